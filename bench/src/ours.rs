//! Longshore under the workloads.

use crate::crash_disk::CrashDisk;
use crate::settings::{Name, Settings};
use crate::store::{Counts, Engine, Outcome, Store, key, value};
use longshore::{Database, IoMode, Options, Stats, Table};
use longshore_base::SystemEnvironment;
use longshore_disk::FileOptions;
use std::path::Path;
use std::sync::Arc;

/// Makes Longshore databases.
#[derive(Clone, Copy, Debug)]
pub struct LongshoreEngine;

impl Engine for LongshoreEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn create(
        &self,
        folder: &Path,
        settings: &Settings,
        clients: usize,
    ) -> Outcome<Box<dyn Store>> {
        Ok(Box::new(Longshore::open(
            folder,
            options(settings),
            clients,
        )?))
    }
}

/// What the report calls Longshore.
pub(crate) const NAME: &str = "longshore";

/// Memory for log records on their way to disk.
pub(crate) const LOG_BUFFER_BYTES: usize = 16 << 20;

/// Memory for the lock table.
pub(crate) const LOCK_BYTES_MAX: usize = 32 << 20;

/// Memory for versions where a reader stays open for a whole run.
const READER_VERSION_BYTES: usize = 4 << 30;

/// The options of every measured database.
pub(crate) fn options(settings: &Settings) -> Options {
    // A checkpoint is taken each time that a quarter of the log has been written: more often where
    // the cleaner's work is part of what is measured.
    let log_bytes_max = match settings.name {
        Name::Memory => 1 << 30,
        Name::Restart => 8 * (settings.data_mib() << 20).max(64 << 20),
        _ => 16 << 30,
    };
    let options = match settings.reader {
        true => Options::new().version_bytes_max(READER_VERSION_BYTES),
        false => Options::new(),
    };
    let options = options
        .pool_bytes(settings.pool_mib() << 20)
        .log_bytes_max(log_bytes_max)
        .log_segment_bytes(16 << 20)
        .log_buffer_bytes(LOG_BUFFER_BYTES)
        .lock_bytes_max(LOCK_BYTES_MAX)
        .replacement(settings.replacement.to_string())
        .durability(settings.durability.durability());
    match &settings.page_trace {
        Some(trace) => options.page_trace(Arc::clone(trace)),
        None => options,
    }
}

/// Opens the database in `folder`, or makes it; and the disk below, which is to be cut off before the
/// database is dropped, so that nothing is written out that is thrown away.
pub(crate) fn open(folder: &Path, options: Options) -> Outcome<(Database, Arc<CrashDisk>)> {
    let files = FileOptions {
        io: IoMode::Buffered,
        create: true,
    };
    let disk = CrashDisk::open(folder, files)?;
    let env = Arc::new(SystemEnvironment::new());
    let db = Database::open_with_disk(disk.clone(), env, options)?;
    Ok((db, disk))
}

/// A database with its tables. Dropped as by a crash, which spares writing out what is thrown away.
pub(crate) struct Longshore {
    db: Database,
    shared: Table,
    private: Vec<Table>,
    disk: Arc<CrashDisk>,
}

impl Longshore {
    /// Opens the database in `folder`, or makes it, with a private table for each of `clients`.
    pub(crate) fn open(folder: &Path, options: Options, clients: usize) -> Outcome<Longshore> {
        let (db, disk) = open(folder, options)?;
        let shared = db.table_or_create("shared")?;
        let private: longshore::Result<Vec<Table>> = (0..clients)
            .map(|client| db.table_or_create(&format!("private-{client}")))
            .collect();
        Ok(Longshore {
            db,
            shared,
            private: private?,
            disk,
        })
    }

    /// What the database has counted.
    pub(crate) fn stats(&self) -> Stats {
        self.db.stats()
    }

    /// Writes everything out.
    pub(crate) fn checkpoint(&self) -> Outcome {
        Ok(self.db.checkpoint()?)
    }

    /// Hands the log to the system, and so all that was committed so far.
    pub(crate) fn hand_over_log(&self, row: u64) -> Outcome {
        let transaction = self.db.begin()?;
        transaction.put(&self.shared, key(row), value(row, 1))?;
        Ok(transaction.commit_with(longshore::Durability::Os)?.wait()?)
    }
}

impl Drop for Longshore {
    fn drop(&mut self) {
        self.disk.cut();
    }
}

impl Store for Longshore {
    fn load(&self, first: u64, count: u64) -> Outcome {
        let transaction = self.db.begin()?;
        for row in first..first + count {
            transaction.insert(&self.shared, key(row), value(row, 0))?;
        }
        Ok(transaction.commit()?)
    }

    fn insert(&self, client: usize, first: u64, count: u64) -> Outcome {
        let table = &self.private[client];
        let transaction = self.db.begin()?;
        for row in first..first + count {
            transaction.insert(table, key(row), value(row, 0))?;
        }
        Ok(transaction.commit()?)
    }

    fn read(&self, row: u64, value: &mut Vec<u8>) -> Outcome<bool> {
        Ok(self.db.get_into(&self.shared, key(row), value)?)
    }

    fn update(&self, row: u64, stamp: u64) -> Outcome<u64> {
        let mut attempts = 0;
        self.db.update(|transaction| {
            attempts += 1;
            transaction.put(&self.shared, key(row), value(row, stamp))
        })?;
        Ok(attempts - 1)
    }

    fn settle(&self) -> Outcome {
        self.checkpoint()
    }

    fn counts(&self) -> Option<Counts> {
        Some(counts(&self.db.stats()))
    }
}

/// What every measured database tells of a run.
pub(crate) fn counts(stats: &Stats) -> Counts {
    let (pool, log, locks) = (&stats.pool, &stats.log, &stats.transactions.locks);
    Counts {
        log_bytes: log.bytes,
        fixes: pool.fixes,
        blocked: vec![
            ("page_latch_waits", pool.latch_waits),
            ("page_load_waits", pool.load_waits),
            ("frame_waits", pool.frame_waits),
            ("lock_latch_waits", locks.latches_contended),
            ("log_room_waits", log.waits_for_room),
        ],
        others: vec![
            ("lock_waits", locks.blocked),
            ("deadlocks", locks.deadlocks),
            ("page_misses", pool.misses),
            ("page_writes", pool.page_writes),
            ("log_groups", log.groups),
            ("log_syncs", log.syncs),
            ("checkpoints", stats.checkpoints),
        ],
    }
}
