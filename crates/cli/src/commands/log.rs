//! `longshore log`: the records of the log, readably.

use std::io::Write;

use longshore::{Error, LogEntry, Lsn};
use serde_json::json;

use crate::args::{Global, Log};
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::store::{Purpose, Store};

/// Prints the records, oldest first.
///
/// # Errors
/// The log does not hold the position asked for; the engine's.
pub fn run(global: &Global, args: &Log) -> Outcome {
    let store = Store::open(&args.db, global, Purpose::Read)?;
    let mut out = output::stdout();
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut entries = store.db.log_entries(args.from.map(Lsn::new))?;
    let mut is_first = true;
    while left > 0
        && let Some(entry) = entries.next()
    {
        let entry = entry.map_err(|error| match args.from {
            Some(from) if is_first => no_record(from, &error),
            _ => error.into(),
        })?;
        is_first = false;
        if args.txn.is_some_and(|txn| txn != entry.txn.get()) {
            continue;
        }
        left -= 1;
        match global.json {
            true => writeln!(out, "{}", to_json(&entry))?,
            false => writeln!(out, "{}", to_words(&entry).trim_end())?,
        }
    }
    out.flush()?;
    drop(entries);
    store.close()
}

/// Far more likely than damage: a number that is the start of no record.
fn no_record(from: u64, error: &Error) -> Failure {
    Failure::usage(format!(
        "--from {from}: no record can be read there ({error}); the numbers of records stand in the \
         first column of `longshore log`"
    ))
}

fn to_words(entry: &LogEntry) -> String {
    let LogEntry {
        lsn, kind, text, ..
    } = entry;
    let txn = match entry.txn.get() {
        0 => String::from("-"),
        txn => txn.to_string(),
    };
    format!("{:>12}  {txn:>8}  {kind:<10}  {text}", lsn.get())
}

fn to_json(entry: &LogEntry) -> serde_json::Value {
    json!({
        "lsn": entry.lsn.get(),
        "kind": entry.kind,
        "txn": entry.txn.get(),
        "prev": entry.prev.get(),
        "bytes": entry.bytes,
        "text": entry.text,
    })
}
