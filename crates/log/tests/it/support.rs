//! A small log, and what a test remembers of it.

use longshore_base::{Lsn, SeededEnvironment, TxnId};
use longshore_disk::{Disk, SimDisk, SimOptions};
use longshore_log::{Access, Log, LogError, LogOptions, Record, ScanFrom};
use std::sync::Arc;

pub const DATABASE: u64 = 0xda7a;

/// Sizes at which everything wraps, straddles and fills soon.
pub const SMALL: LogOptions = LogOptions {
    segment_bytes: 8 << 10,
    buffer_bytes: 4 << 10,
    bytes_max: 192 << 10,
};

pub fn sim() -> SimDisk {
    SimDisk::new(1, SimOptions::default())
}

pub fn create(disk: &SimDisk) -> Result<Arc<Log>, LogError> {
    Log::create(shared(disk), SMALL, DATABASE, env())
}

pub fn open(disk: &SimDisk, from: impl Into<ScanFrom>) -> Result<Arc<Log>, LogError> {
    Log::open(
        shared(disk),
        SMALL,
        DATABASE,
        from,
        Access::ReadWrite,
        env(),
    )
}

pub fn open_read_only(disk: &SimDisk, from: impl Into<ScanFrom>) -> Result<Arc<Log>, LogError> {
    Log::open(shared(disk), SMALL, DATABASE, from, Access::ReadOnly, env())
}

pub fn shared(disk: &SimDisk) -> Arc<dyn Disk> {
    Arc::new(disk.clone())
}

pub fn env() -> Arc<SeededEnvironment> {
    Arc::new(SeededEnvironment::new(1))
}

/// Appends with a claim of its own.
pub fn append(log: &Log, kind: u8, body: &[u8]) -> Result<Lsn, LogError> {
    let mut claim = log.claim(Log::record_bytes(body.len()))?;
    log.append(
        &mut claim,
        kind,
        TxnId::new(u64::from(kind)),
        Lsn::ZERO,
        &[body],
    )
}

pub fn scan(log: &Log, from: Lsn) -> Result<Vec<Record>, LogError> {
    log.scan(from).collect()
}

/// A record as [`append`] makes it.
pub fn record(lsn: Lsn, kind: u8, body: &[u8]) -> Record {
    let body = body.to_vec();
    Record {
        lsn,
        kind,
        txn: TxnId::new(u64::from(kind)),
        prev: Lsn::ZERO,
        body,
    }
}

pub fn bodies(log: &Log) -> Vec<Vec<u8>> {
    let records = scan(log, Lsn::ZERO).expect("an undamaged log");
    records.into_iter().map(|record| record.body).collect()
}

/// Names of the segment files.
pub fn segment_files(disk: &dyn Disk) -> Vec<String> {
    let mut names = disk.list().expect("a working disk");
    names.retain(|name| name.starts_with("log-"));
    names
}
