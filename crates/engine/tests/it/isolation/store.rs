//! The database of a script, across restarts, and how its rows are shown.

use super::script::Script;
use super::session::padded;
use longshore::{
    Background, Database, IndexSpec, Options, Transaction, TransactionOptions, TypedTable,
};
use longshore_base::SystemEnvironment;
use longshore_disk::{SimDisk, SimOptions};
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Values are numbers; the text makes rows long.
pub type Numbers = TypedTable<u64, (u64, String)>;

/// Nobody waits as long as this, unless something is wrong.
pub const FOREVER: Duration = Duration::from_secs(600);

/// What there is from one restart to the next.
#[derive(Clone)]
pub struct Store {
    disk: Arc<SimDisk>,
    pub db: Database,
    pub table: Numbers,
}

/// The store of a play: another one after each restart.
pub struct Place(Mutex<Store>);

impl Place {
    pub fn new(script: &Script) -> Place {
        let disk = Arc::new(SimDisk::new(1, SimOptions::default()));
        let store = Store::open(disk, script);
        let fill = |tx: &Transaction| {
            let mut rows = script.rows.iter();
            rows.try_for_each(|(key, value)| store.table.insert(tx, key, &padded(*value)))
        };
        store.db.update(fill).unwrap();
        Place(Mutex::new(store))
    }

    pub fn now(&self) -> Store {
        self.locked().clone()
    }

    /// Nothing reaches the disk any more.
    pub fn crash(&self) {
        self.locked().disk.crash_now();
    }

    /// Opens what the crash has left.
    pub fn reopen(&self, script: &Script) {
        let mut store = self.locked();
        let disk = Arc::new(store.disk.crash_image(1));
        *store = Store::open(disk, script);
    }

    fn locked(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap()
    }
}

impl Store {
    fn open(disk: Arc<SimDisk>, script: &Script) -> Store {
        let options = Options::new()
            .page_size(4096)
            .pool_bytes(1 << 20)
            .log_segment_bytes(64 << 10)
            .log_bytes_max(1 << 20)
            .log_buffer_bytes(64 << 10)
            .lock_bytes_max(8 << 20)
            // So many that each session has slots of its own: their numbers, by which the victims of
            // deadlocks are chosen, are then in the order of their begins.
            .transactions_max(4096)
            .background(Background::Off)
            .lock_wait(FOREVER);
        let env = Arc::new(SystemEnvironment::new());
        let db = Database::open_with_disk(Arc::clone(&disk) as _, env, options).unwrap();
        let table = Numbers::open_or_create(&db, "test").unwrap();
        if script.has_unique_values {
            let spec = IndexSpec::unique("value", "v1", |_: &u64, (value, _): &(u64, String)| {
                [*value]
            });
            table.open_or_create_index(&db, spec).unwrap();
        }
        Store { disk, db, table }
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
