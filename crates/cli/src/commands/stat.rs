//! `longshore stat`: figures about a database.

use std::io::Write;

use longshore::Stats;

use crate::args::{Global, OnlyDatabase};
use crate::exit::Outcome;
use crate::output::{self, Figures};
use crate::store::{OWN_TABLES, Purpose, Store};
use crate::units;

/// Prints what the database holds on disk, and what this process uses for it.
///
/// # Errors
/// The engine's.
pub fn run(global: &Global, args: &OnlyDatabase) -> Outcome {
    let store = Store::open(&args.db, global, Purpose::Read)?;
    let names = store.table_names()?;
    let (mut tables, mut indexes) = (0, 0);
    for name in names.iter().filter(|name| !name.starts_with(OWN_TABLES)) {
        tables += 1;
        indexes += store.table(name)?.indexes().len() as u64;
    }
    let stats = store.db.stats();
    let mut figures = Figures::new();
    figures
        .group("database")
        .add_plain("database", args.db.as_str())
        .add_plain("tables", tables)
        .add_plain("indexes", indexes)
        .add_plain("prepared_transactions", store.db.prepared().len() as u64);
    add_disk(&mut figures, &stats);
    add_memory(&mut figures, &stats);
    add_work(&mut figures, &stats);
    let mut out = output::stdout();
    figures.print(&mut out, global.json)?;
    out.flush()?;
    store.close()
}

fn bytes(figures: &mut Figures, name: &str, count: u64) {
    figures.add(name, count, units::bytes(count));
}

fn add_disk(figures: &mut Figures, stats: &Stats) {
    figures.group("on disk");
    bytes(figures, "data_bytes", stats.data_bytes);
    bytes(figures, "log_bytes", stats.log.disk_bytes);
    figures.add_plain("log_segments", stats.log.segments);
    bytes(figures, "recovery_bytes", stats.recovery_bytes);
}

fn add_memory(figures: &mut Figures, stats: &Stats) {
    figures.group("in memory");
    bytes(figures, "pool_bytes", stats.pool.bytes);
    bytes(figures, "page_table_bytes", stats.pool.table_bytes);
    bytes(figures, "replacement_bytes", stats.pool.replacement_bytes);
    figures
        .add_plain("replacement", stats.replacement.as_str())
        .add_plain("frames", stats.pool.frames)
        .add_plain("frames_free", stats.pool.frames_free);
    bytes(
        figures,
        "lock_bytes",
        stats.transactions.locks.bytes_used as u64,
    );
    bytes(
        figures,
        "lock_bytes_max",
        stats.transactions.locks.bytes_max as u64,
    );
}

fn add_work(figures: &mut Figures, stats: &Stats) {
    let replacement = stats.pool.replacement;
    figures
        .group("since it was opened")
        .add_plain("page_reads", stats.pool.page_reads)
        .add_plain("page_writes", stats.pool.page_writes)
        .add_plain("replacement_locks", replacement.lock_acquisitions)
        .add_plain("replacement_locks_blocked", replacement.lock_blocked)
        .add_plain("replacement_try_locks_failed", replacement.try_locks_failed)
        .add_plain("hits_drained", replacement.hits_drained)
        .add_plain("hits_stale", replacement.hits_stale)
        .add_plain("hits_dropped", replacement.hits_dropped)
        .add_plain("log_records", stats.log.records)
        .add_plain("syncs", stats.log.syncs + stats.pool.syncs)
        .add_plain("checkpoints", stats.checkpoints)
        .add_plain("commits", stats.transactions.committed)
        .add_plain("rollbacks", stats.transactions.rolled_back);
}
