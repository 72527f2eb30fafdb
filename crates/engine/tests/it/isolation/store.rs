//! The database of a script, and how its rows are shown.

use super::script::Script;
use super::session::padded;
use longshore::{
    Background, Database, Durability, IndexSpec, Options, Transaction, TransactionOptions,
    TypedTable,
};
use std::fmt::Write;
use std::time::Duration;

/// Values are numbers; the text makes rows long.
pub type Numbers = TypedTable<u64, (u64, String)>;

/// Nobody waits as long as this, unless something is wrong.
pub const FOREVER: Duration = Duration::from_secs(600);

pub struct Store {
    pub db: Database,
    pub table: Numbers,
}

impl Store {
    pub fn new(script: &Script) -> Store {
        let db = Options::new()
            .page_size(4096)
            .pool_bytes(1 << 20)
            .log_segment_bytes(64 << 10)
            .log_bytes_max(1 << 20)
            .log_buffer_bytes(64 << 10)
            .lock_bytes_max(8 << 20)
            // So many that each session has slots of its own: their numbers, by which the victims of
            // deadlocks are chosen, are then in the order of their begins.
            .transactions_max(4096)
            .durability(Durability::None)
            .background(Background::Off)
            .lock_wait(FOREVER)
            .in_memory()
            .unwrap();
        let table = Numbers::create(&db, "test").unwrap();
        if script.has_unique_values {
            let spec = IndexSpec::unique("value", "v1", |_: &u64, (value, _): &(u64, String)| {
                [*value]
            });
            table.create_index(&db, spec).unwrap();
        }
        let fill = |tx: &Transaction| {
            let mut rows = script.rows.iter();
            rows.try_for_each(|(key, value)| table.insert(tx, key, &padded(*value)))
        };
        db.update(fill).unwrap();
        Store { db, table }
    }

    /// A reader that must never wait.
    pub fn reader(&self) -> Transaction {
        let options = TransactionOptions::new().read_only();
        self.db
            .begin_with(options.lock_wait(Duration::ZERO))
            .unwrap()
    }

    /// All rows that a reader sees.
    pub fn rows(&self, reader: &Transaction) -> Vec<(u64, u64)> {
        let rows = self.table.scan(reader, ..).unwrap();
        rows.map(|row| row.map(|(key, (value, _))| (key, value)).unwrap())
            .collect()
    }
}

/// Rows as `key=value`; three or more neighbours with one value as `first..last=value`.
pub fn shown(rows: impl IntoIterator<Item = (u64, u64)>) -> String {
    let rows: Vec<(u64, u64)> = rows.into_iter().collect();
    let mut text = String::new();
    let runs =
        rows.chunk_by(|(key, value), (next, other)| value == other && next.abs_diff(*key) == 1);
    for run in runs {
        if let [(first, value), _, .., (last, _)] = run {
            write!(text, " {first}..{last}={value}").unwrap();
            continue;
        }
        for (key, value) in run {
            write!(text, " {key}={value}").unwrap();
        }
    }
    match text.strip_prefix(' ') {
        Some(rows) => rows.to_owned(),
        None => "none".to_owned(),
    }
}
