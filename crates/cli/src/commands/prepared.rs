//! `longshore prepared`: transactions that wait for a decision, and the decision.

use crate::args::{Global, Output, Prepared};
use crate::exit::{Code, Failure, Outcome};
use crate::output::{self, Rows, Shown};
use crate::store::{Purpose, Store};
use longshore::Error;
use serde_json::json;

/// Commits or rolls back the transaction of that name, or lists all.
///
/// # Errors
/// The engine's, as that there is none of that name.
pub fn run(global: &Global, args: &Prepared) -> Outcome {
    let store = Store::open(&args.db, global, Purpose::Write)?;
    match (&args.commit, &args.rollback) {
        (Some(gid), _) => {
            store.db.commit_prepared(gid.as_bytes()).map_err(refused)?;
            tell(global, gid, "committed");
        }
        (None, Some(gid)) => {
            store
                .db
                .rollback_prepared(gid.as_bytes())
                .map_err(refused)?;
            tell(global, gid, "rolled back");
        }
        (None, None) => list(global, &store)?,
    }
    store.close()
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

fn list(global: &Global, store: &Store) -> Outcome {
    let format = match global.json {
        true => Output::Json,
        false => Output::Table,
    };
    let columns = vec!["gid".to_string(), "transaction".to_string()];
    let mut rows = Rows::new(output::stdout(), format, columns)?;
    let all = store.db.prepared();
    for view in &all {
        let (gid, txn) = (String::from_utf8_lossy(&view.gid), view.txn.get());
        rows.push(match global.json {
            true => Shown::Json(json!({ "gid": gid, "transaction": txn }).to_string()),
            false => Shown::Cells(vec![gid.into_owned(), txn.to_string()]),
        })?;
    }
    rows.finish()?;
    if all.is_empty() && !global.json {
        println!("{} has no prepared transactions", store.path);
    }
    Ok(())
}
