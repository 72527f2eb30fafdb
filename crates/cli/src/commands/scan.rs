//! `longshore scan`: the rows of a range.

use std::ops::{Bound, ControlFlow};

use crate::args::{Global, Output, Scan};
use crate::exit::Outcome;
use crate::output::{self, Rows};
use crate::row::Last;
use crate::store::{Bounds, Direction, Purpose, Store, for_each_row, prefix_bounds};
use crate::view::View;

/// Prints the rows.
///
/// # Errors
/// No such table; bounds that are no keys of it.
pub fn run(global: &Global, args: &Scan) -> Outcome {
    let store = Store::open(&args.db, global, Purpose::Read)?;
    let table = store.table(&args.table)?;
    let view = View::of(&store, &table, args.view)?;
    let bounds = bounds_of(&view, args)?;
    let direction = if args.reverse {
        Direction::Reverse
    } else {
        Direction::Forward
    };
    let format = match global.json {
        true => Output::Json,
        false => args.output.unwrap_or_else(output::default_format),
    };
    let mut rows = Rows::new(output::stdout(), format, view.columns())?;
    let mut left = args.limit.unwrap_or(u64::MAX);
    if left > 0 {
        for_each_row(&store.db, &table, bounds, direction, |key, value| {
            rows.push(view.show(format, key, value)?)?;
            left -= 1;
            Ok(if left == 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        })?;
    }
    rows.finish()?;
    store.close()
}

fn bounds_of(view: &View, args: &Scan) -> Outcome<Bounds> {
    if !args.prefix.is_empty() {
        return Ok(prefix_bounds(view.beginning(&args.prefix, Last::Open)?));
    }
    let bound = |texts: &[String]| view.beginning(texts, Last::Whole);
    let low = match args.from.is_empty() {
        true => Bound::Unbounded,
        false => Bound::Included(bound(&args.from)?),
    };
    let high = match args.to.is_empty() {
        true => Bound::Unbounded,
        false => Bound::Excluded(bound(&args.to)?),
    };
    Ok((low, high))
}
