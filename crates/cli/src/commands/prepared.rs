//! `longshore prepared`: transactions that wait for a decision, and the decision.

use crate::args::{Global, Output, Prepared};
use crate::exit::{Code, Failure, Outcome};
use crate::output::{self, Rows, Shown};
use crate::store::{Purpose, Store};
use crate::view::{from_hex, to_hex};
use longshore::Error;
use serde_json::json;

/// Commits or rolls back the transaction of that name, or lists all.
///
/// # Errors
/// The engine's, as that there is none of that name.
pub fn run(global: &Global, args: &Prepared) -> Outcome {
    let bytes_of = |gid: &str| match args.hex {
        true => from_hex(gid).map_err(Failure::usage),
        false => Ok(gid.as_bytes().to_vec()),
    };
    match (&args.commit, &args.rollback) {
        (Some(gid), _) => {
            let bytes = bytes_of(gid)?;
            let store = Store::open(&args.db, global, Purpose::Write)?;
            store.db.commit_prepared(&bytes).map_err(refused)?;
            tell(global, gid, "committed");
            store.close()
        }
        (None, Some(gid)) => {
            let bytes = bytes_of(gid)?;
            let store = Store::open(&args.db, global, Purpose::Write)?;
            store.db.rollback_prepared(&bytes).map_err(refused)?;
            tell(global, gid, "rolled back");
            store.close()
        }
        (None, None) => {
            let store = Store::open(&args.db, global, Purpose::Read)?;
            list(global, args, &store)?;
            store.close()
        }
    }
}

fn refused(error: Error) -> Failure {
    match error {
        Error::NotPrepared { .. } => Failure::Failed {
            code: Code::NotFound,
            message: error.to_string(),
        },
        other => other.into(),
    }
}

fn tell(global: &Global, gid: &str, what: &str) {
    match global.json {
        true => println!("{}", json!({ "gid": gid, "outcome": what })),
        false => println!("{what} {gid}"),
    }
}

fn list(global: &Global, args: &Prepared, store: &Store) -> Outcome {
    let format = match global.json {
        true => Output::Json,
        false => Output::Table,
    };
    let columns = vec!["gid".to_string(), "transaction".to_string()];
    let mut rows = Rows::new(output::stdout(), format, columns)?;
    let all = store.db.prepared();
    for view in &all {
        let (gid, txn) = (shown(&view.gid, args.hex), view.txn.get());
        rows.push(match global.json {
            true => Shown::Json(json!({ "gid": gid, "transaction": txn }).to_string()),
            false => Shown::Cells(vec![gid, txn.to_string()]),
        })?;
    }
    rows.finish()?;
    if all.is_empty() && !global.json {
        println!("{} has no prepared transactions", store.path);
    }
    Ok(())
}

/// A name on one line, whatever its bytes.
fn shown(gid: &[u8], hex: bool) -> String {
    match str::from_utf8(gid) {
        _ if hex => to_hex(gid),
        Ok(text) if !text.contains(char::is_control) => text.to_owned(),
        _ => format!("\"{}\", see --hex", gid.escape_ascii()),
    }
}
