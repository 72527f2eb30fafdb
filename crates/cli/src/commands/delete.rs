//! `longshore delete`: one row less.

use crate::args::{Delete, Global};
use crate::exit::{Failure, Outcome};
use crate::store::{Purpose, Store};
use crate::view::View;

/// Deletes the row.
///
/// # Errors
/// [`crate::exit::Code::NotFound`] when there was none.
pub fn run(global: &Global, args: &Delete) -> Outcome {
    let store = Store::open(&args.db, global, Purpose::Write)?;
    let table = store.table(&args.table)?;
    let key = View::of(&store, &table, args.view)?.key(&args.key)?;
    let was_there = store.db.update(|tx| tx.delete(&table, &key))?;
    store.close()?;
    let (key, table, db) = (args.key.join(" "), &args.table, &args.db);
    match was_there {
        false => Err(Failure::not_found(format!(
            "there is no row {key} in table {table} of {db}"
        ))),
        true if global.json => {
            println!("{}", serde_json::json!({ "table": table, "deleted": 1 }));
            Ok(())
        }
        true => {
            println!("deleted {key} from table {table}");
            Ok(())
        }
    }
}
