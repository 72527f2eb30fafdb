//! `longshore tables`: which tables there are.

use std::ops::{Bound, ControlFlow};

use longshore::Table;
use serde_json::json;

use crate::args::{Global, Output, Tables};
use crate::exit::Outcome;
use crate::output::{self, Rows, Shown};
use crate::store::{Direction, OWN_TABLES, Purpose, Store, for_each_row};
use crate::units;

/// Prints a line for each table.
///
/// # Errors
/// The engine's.
pub fn run(global: &Global, args: &Tables) -> Outcome {
    let store = Store::open(&args.db, global, Purpose::Read)?;
    let format = if global.json {
        Output::Json
    } else {
        Output::Table
    };
    let mut columns = vec![
        "table".to_string(),
        "key".to_string(),
        "columns".to_string(),
        "indexes".to_string(),
    ];
    if args.count {
        columns.push("rows".to_string());
    }
    let mut rows = Rows::new(output::stdout(), format, columns)?;
    let mut is_empty = true;
    for name in store.table_names()? {
        if !args.all && name.starts_with(OWN_TABLES) {
            continue;
        }
        let table = store.table(&name)?;
        let count = if args.count {
            Some(count_rows(&store, &table)?)
        } else {
            None
        };
        rows.push(line(&store, &table, format, count)?)?;
        is_empty = false;
    }
    rows.finish()?;
    if is_empty && format == Output::Table {
        println!("{} has no tables", args.db);
    }
    store.close()
}

fn line(store: &Store, table: &Table, format: Output, count: Option<u64>) -> Outcome<Shown> {
    let shape = store.shape(table)?;
    if format == Output::Json {
        let mut line = json!({ "table": table.name(), "id": table.id().get() });
        if let Some(shape) = &shape {
            line["key"] = json!(shape.key);
            line["columns"] = json!(shape.columns);
        }
        let indexes = table.indexes();
        line["indexes"] = indexes.iter().map(output::index_json).collect();
        if let Some(count) = count {
            line["rows"] = json!(count);
        }
        return Ok(Shown::Json(line.to_string()));
    }
    let (key, columns) = match shape {
        Some(shape) => (shape.key_words(), shape.columns.join(", ")),
        None => ("(bare)".to_string(), String::new()),
    };
    let indexes = table.indexes();
    let indexes: Vec<String> = indexes.iter().map(output::index_words).collect();
    let mut cells = vec![table.name(), key, columns, indexes.join(", ")];
    cells.extend(count.map(units::count));
    Ok(Shown::Cells(cells))
}

fn count_rows(store: &Store, table: &Table) -> Outcome<u64> {
    let mut count = 0;
    let all = (Bound::Unbounded, Bound::Unbounded);
    for_each_row(&store.db, table, all, Direction::Forward, |_, _| {
        count += 1;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(count)
}
