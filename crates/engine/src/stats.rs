//! What a database has done since it was opened, and what each part of it holds.

use crate::engine::Engine;
use crate::error::Error;
use longshore_log::LogStats;
use longshore_pool::PoolStats;
use longshore_txn::TxnStats;

/// A snapshot of counters; taken without stopping anybody, so the parts may be moments apart.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Pages in memory.
    pub pool: PoolStats,
    /// Who chooses the pages that leave memory, as [`Options::replacement`](crate::Options::replacement) takes it.
    pub replacement: String,
    /// The log.
    pub log: LogStats,
    /// Transactions and locks.
    pub transactions: TxnStats,
    /// Checkpoints taken.
    pub checkpoints: u64,
    /// Times that `update` or `view` ran its body again.
    pub retries: u64,
    /// Checkpoints taken because the log was full.
    pub log_relieved: u64,
    /// Times that the free end of the data file was given back to the file system.
    pub truncations: u64,
    /// Size of the data file in bytes.
    pub data_bytes: u64,
    /// Bytes of log that a restart would read.
    pub recovery_bytes: u64,
    /// The latest failure of a background thread.
    pub background_error: Option<Error>,
}

impl Stats {
    pub(crate) fn of(engine: &Engine) -> Stats {
        let page_bytes = engine.control.get().page_size.bytes() as u64;
        let scan_lsn = engine.control.get().scan_lsn;
        Stats {
            pool: engine.pool.stats(),
            replacement: engine.pool.options().replacement.to_string(),
            log: engine.log.stats(),
            transactions: engine.manager.stats(),
            checkpoints: engine.counters.checkpoints.get(),
            retries: engine.counters.retries.get(),
            log_relieved: engine.counters.log_relieved.get(),
            truncations: engine.counters.truncations.get(),
            data_bytes: engine.pool.file_pages() * page_bytes,
            recovery_bytes: engine.log.tail().get().saturating_sub(scan_lsn.get()),
            background_error: engine.background_error(),
        }
    }
}
