//! `longshore get`: one row.

use std::io::Write;

use crate::args::{Get, Global, Output};
use crate::exit::{Failure, Outcome};
use crate::output::{self, Shown};
use crate::store::{Purpose, Store};
use crate::view::View;

/// Prints the row: a line per column, or the bare value.
///
/// # Errors
/// [`crate::exit::Code::NotFound`] when there is no such row.
pub fn run(global: &Global, args: &Get) -> Outcome {
    let store = Store::open(&args.db, global, Purpose::Read)?;
    let table = store.table(&args.table)?;
    let view = View::of(&store, &table, args.view)?;
    let key = view.key(&args.key)?;
    let Some(value) = store.db.get(&table, &key)? else {
        let (key, table, db) = (args.key.join(" "), &args.table, &args.db);
        return Err(Failure::not_found(format!(
            "there is no row {key} in table {table} of {db}"
        )));
    };
    let mut out = output::stdout();
    let format = if global.json {
        Output::Json
    } else {
        Output::Table
    };
    match (view.shape(), view.show(format, &key, &value)?) {
        (_, Shown::Json(json)) => writeln!(out, "{json}")?,
        (Some(shape), Shown::Cells(cells)) => {
            let width = shape
                .columns
                .iter()
                .map(|name| name.chars().count())
                .max()
                .unwrap_or(0);
            for (name, cell) in shape.columns.iter().zip(cells) {
                writeln!(out, "{}", format!("{name:width$}  {cell}").trim_end())?;
            }
        }
        (None, Shown::Cells(cells)) => writeln!(out, "{}", cells[1])?,
    }
    out.flush()?;
    store.close()
}
