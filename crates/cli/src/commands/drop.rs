//! `longshore drop`: one table less.

use crate::args::{Drop, Global};
use crate::exit::Outcome;
use crate::store::{Purpose, Store};

/// Drops the table, its rows and its shape.
///
/// # Errors
/// [`crate::exit::Code::NotFound`] when there is none; [`crate::exit::Code::Usage`] when it is one of the
/// command's own.
pub fn run(global: &Global, args: &Drop) -> Outcome {
    let store = Store::open(&args.db, global, Purpose::Write)?;
    let table = store.users_table(&args.table)?;
    store.db.drop_table(&args.table)?;
    // Behind it: a shape that a crash leaves here is nobody's, for no table gets that number again.
    store.remove_shape(&table)?;
    drop(table);
    store.close()?;
    match global.json {
        true => println!(
            "{}",
            serde_json::json!({ "table": args.table, "dropped": true })
        ),
        false => println!("dropped table {}", args.table),
    }
    Ok(())
}
