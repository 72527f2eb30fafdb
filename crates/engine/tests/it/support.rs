//! Small databases for tests.

use longshore::{Background, Database, Durability, Options, Result, Table};
use longshore_base::SeededEnvironment;
use longshore_disk::{SimDisk, SimOptions};
use std::sync::Arc;
use std::time::Duration;

/// The sizes of the simulation: everything happens often.
pub fn small() -> Options {
    Options::new()
        .page_size(4096)
        .pool_bytes(512 << 10)
        .log_segment_bytes(64 << 10)
        .log_bytes_max(1 << 20)
        .log_buffer_bytes(64 << 10)
        .lock_bytes_max(256 << 10)
        .transactions_max(16)
        .lock_wait(Duration::ZERO)
        .background(Background::Off)
}

pub fn sim(seed: u64) -> SimDisk {
    SimDisk::new(seed, SimOptions::default())
}

pub fn open(disk: &Arc<SimDisk>, seed: u64) -> Result<Database> {
    open_with(disk, seed, small())
}

pub fn open_with(disk: &Arc<SimDisk>, seed: u64, options: Options) -> Result<Database> {
    let env = Arc::new(SeededEnvironment::new(seed));
    Database::open_with_disk(Arc::clone(disk) as _, env, options)
}

/// What a machine finds that crashes now.
pub fn crash(disk: &Arc<SimDisk>, seed: u64) -> Arc<SimDisk> {
    disk.crash_now();
    Arc::new(disk.crash_image(seed))
}

/// All rows of a table.
pub fn rows(db: &Database, table: &Table) -> Vec<(Vec<u8>, Vec<u8>)> {
    db.view(|tx| tx.scan(table, ..)?.collect()).unwrap()
}

pub fn put(db: &Database, table: &Table, key: &str, value: &str) {
    db.update(|tx| tx.put(table, key, value)).unwrap();
}

pub fn get(db: &Database, table: &Table, key: &str) -> Option<String> {
    let value = db.get(table, key).unwrap()?;
    Some(String::from_utf8(value).unwrap())
}

pub fn assert_sound(db: &Database) {
    let report = db.verify().unwrap();
    let faults: Vec<_> = report.faults.iter().map(ToString::to_string).collect();
    assert!(report.is_sound(), "{faults:#?}");
}

pub fn in_memory() -> Database {
    Options::new()
        .durability(Durability::None)
        .pool_bytes(8 << 20)
        .log_bytes_max(16 << 20)
        .log_segment_bytes(1 << 20)
        .in_memory()
        .unwrap()
}
