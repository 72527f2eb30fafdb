//! `longshore rename`: another name for a table.

use crate::args::{Global, Rename};
use crate::exit::{Failure, Outcome};
use crate::store::{OWN_TABLES, Purpose, Store};

/// Renames the table; its rows and its shape stay.
///
/// # Errors
/// [`crate::exit::Code::NotFound`] when there is none; [`crate::exit::Code::Usage`] when the new name is taken,
/// or one of the names is the command's own.
pub fn run(global: &Global, args: &Rename) -> Outcome {
    let (old, new) = (&args.table, &args.name);
    if new.starts_with(OWN_TABLES) {
        return Err(Failure::usage(format!(
            "names that begin with {OWN_TABLES} are the command's own; choose another than {new}"
        )));
    }
    let store = Store::open(&args.db, global, Purpose::Write)?;
    store.users_table(old)?;
    if store.find_table(new)?.is_some() {
        return Err(Failure::usage(format!(
            "there is a table {new} in {} already: drop it first, or choose another name",
            args.db
        )));
    }
    store.db.rename_table(old, new)?;
    store.close()?;
    match global.json {
        true => println!(
            "{}",
            serde_json::json!({ "table": new, "renamed_from": old })
        ),
        false => println!("renamed table {old} to {new}"),
    }
    Ok(())
}
