//! Reading the log record by record, for people.

use crate::checkpoint::CHECKPOINT;
use crate::engine::Engine;
use crate::error::Result;
use longshore_access::record as rows;
use longshore_access::{PageChange, RowRecord};
use longshore_base::{Lsn, TxnId};
use longshore_log::{Record, Scan};
use longshore_txn::record as ends;
use std::fmt::Write;
use std::sync::Arc;

/// A record of the log, put into words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogEntry {
    /// Where it starts.
    pub lsn: Lsn,
    /// What kind of record it is: `row`, `undo`, `structure`, `locks`, `prepare`, `commit`,
    /// `end`, `checkpoint`.
    pub kind: &'static str,
    /// The transaction it belongs to; 0 for nobody's.
    pub txn: TxnId,
    /// The transaction's record before it; 0 for none.
    pub prev: Lsn,
    /// Length of its body in bytes.
    pub bytes: usize,
    /// What it says.
    pub text: String,
}

/// The records of the log from some position on, up to its end.
pub struct LogEntries {
    engine: Arc<Engine>,
    scan: Scan,
}

impl LogEntries {
    pub(crate) fn new(engine: Arc<Engine>, from: Option<Lsn>) -> LogEntries {
        let from = from.unwrap_or_else(|| first_record(&engine));
        let scan = engine.log.scan(from);
        LogEntries { engine, scan }
    }
}

/// The oldest record that is there whole. Segments are cut without regard to records, so the oldest
/// one may begin within a record; a checksum over position and content tells where the next starts.
fn first_record(engine: &Engine) -> Lsn {
    let oldest = engine.log.oldest_lsn().get();
    let needed = engine.control.get().scan_lsn;
    let mut positions = (oldest..needed.get()).step_by(8).map(Lsn::new);
    positions
        .find(|lsn| engine.log.read(*lsn).is_ok())
        .unwrap_or(needed)
}

impl Iterator for LogEntries {
    type Item = Result<LogEntry>;

    fn next(&mut self) -> Option<Result<LogEntry>> {
        let record = self.scan.next()?;
        Some(self.engine.note(record).map(|record| LogEntry::of(&record)))
    }
}

impl LogEntry {
    fn of(record: &Record) -> LogEntry {
        let (kind, text) = describe(record);
        LogEntry {
            lsn: record.lsn,
            kind,
            txn: record.txn,
            prev: record.prev,
            bytes: record.body.len(),
            text,
        }
    }
}

fn describe(record: &Record) -> (&'static str, String) {
    let body = &record.body;
    match record.kind {
        rows::ROW => ("row", or_unreadable(RowRecord::decode(body))),
        rows::CLR => {
            let text = RowRecord::decode_clr(body)
                .map(|(next, row)| format!("{row}; to be undone next: {next}"));
            ("undo", or_unreadable(text))
        }
        rows::SMO => {
            let text = rows::changes(record.kind, body)
                .map(|changes| changes.iter().map(page_text).collect::<Vec<_>>().join("; "));
            ("structure", or_unreadable(text))
        }
        ends::COMMIT => ("commit", String::new()),
        ends::PREPARE => ("prepare", prepare_text(body)),
        ends::LOCKS => ("locks", "of a transaction about to be prepared".to_owned()),
        ends::END => ("end", "rolled back".to_owned()),
        CHECKPOINT => ("checkpoint", checkpoint_text(body)),
        _ => ("unknown", format!("kind {}", record.kind)),
    }
}

fn or_unreadable(text: std::result::Result<impl ToString, impl ToString>) -> String {
    match text {
        Ok(text) => text.to_string(),
        Err(why) => format!("unreadable: {}", why.to_string()),
    }
}

fn page_text(change: &PageChange<'_>) -> String {
    let mut text = format!("page {}:", change.page);
    for action in change.actions() {
        match action {
            Ok(action) => {
                // Writing to a string cannot fail.
                let _ = write!(text, " {action}");
            }
            Err(why) => {
                let _ = write!(text, " unreadable: {why}");
            }
        }
    }
    text
}

fn prepare_text(body: &[u8]) -> String {
    match ends::gid_of(body) {
        Some(gid) => format!("as \"{}\"", gid.escape_ascii()),
        None => format!("unreadable: {} bytes", body.len()),
    }
}

fn checkpoint_text(body: &[u8]) -> String {
    match body.as_chunks::<8>() {
        ([redo, scan], []) => format!(
            "redo from {}, analysis from {}",
            u64::from_le_bytes(*redo),
            u64::from_le_bytes(*scan)
        ),
        _ => format!("unreadable: {} bytes", body.len()),
    }
}
