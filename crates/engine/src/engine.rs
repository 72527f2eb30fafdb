//! What the handles of an open database share.
//!
//! # Order
//! Locks of this crate, outermost first: `ddl` of the catalog, `purging`, a table's gate, a
//! transaction's state, `checkpointing`, the catalog's map, the control file. None is taken under a page latch.
//!
//! # Failure
//! Every result from below passes [`Engine::note`], which stops the database for good when it says
//! that nothing can be promised any more.

use crate::catalog::Catalog;
use crate::condition::Condition;
use crate::control::ControlFile;
use crate::error::{Error, Result};
use crate::maintenance::{CLEAN_PAGES, PURGE_STEPS};
use crate::open::Place;
use crate::options::{Access as Mode, Durability, Options};
use crate::prepared::Gates;
use longshore_access::{Access, Tree};
use longshore_base::metrics::Counter;
use longshore_base::sync::Mutex;
use longshore_base::sync::atomic::Ordering;
use longshore_base::{Environment, Lsn, PageSize, StoreId};
use longshore_disk::{Disk, DiskFile, DiskLock};
use longshore_log::{Level, Log};
use longshore_pool::{Pool, PoolOptions};
use longshore_txn::{
    Begin, LockManager, LockOptions, TransactionManager, TxnOptions, VersionOptions,
};
use std::sync::Arc;

/// One open database.
pub(crate) struct Engine {
    pub(crate) options: Options,
    /// Where the database lives, for messages.
    pub(crate) path: String,
    /// Distinguishes the open databases of this process.
    pub(crate) instance: u64,
    pub(crate) env: Arc<dyn Environment>,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) log: Arc<Log>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) access: Arc<Access>,
    pub(crate) manager: Arc<TransactionManager>,
    pub(crate) control: ControlFile,
    pub(crate) catalog: Catalog,
    pub(crate) condition: Condition,
    pub(crate) counters: Counters,
    /// What prepared transactions keep closed tables from.
    pub(crate) gates: Gates,
    /// Held while a checkpoint is taken.
    pub(crate) checkpointing: Mutex<()>,
    /// Held while garbage is freed, and by whoever must not see that happen.
    pub(crate) purging: Mutex<()>,
    /// The latest failure of a background thread, for `stats()`.
    background_error: Mutex<Option<Error>>,
    /// Keeps others out; released when the database is closed.
    lock: Mutex<Option<DiskLock>>,
}

/// The open files that hold pages.
pub(crate) struct Files {
    pub(crate) data: Arc<dyn DiskFile>,
    pub(crate) double_write: Option<Arc<dyn DiskFile>>,
}

/// Pages, log and locks: what there is before there can be transactions.
pub(crate) struct Storage {
    pub(crate) log: Arc<Log>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) locks: Arc<LockManager>,
    pub(crate) access: Arc<Access>,
}

impl Storage {
    pub(crate) fn new(
        place: &Place,
        page_size: PageSize,
        log: Arc<Log>,
        files: Files,
    ) -> Result<Storage> {
        let (options, env) = (&place.options, &place.env);
        let pool_options = PoolOptions {
            page_size,
            double_write: options.double_write,
            replacement: options.replacement_chosen(),
            trace: options.page_trace.clone(),
            ..PoolOptions::with_bytes(options.pool_bytes)
        };
        let pool = Pool::new(
            pool_options,
            files.data,
            files.double_write,
            log.clone(),
            env.clone(),
        )?;
        let lock_options = LockOptions {
            bytes_max: options.lock_bytes_max,
            owners_max: options.transactions_max,
            escalation: options.lock_escalation,
            ..LockOptions::default()
        };
        let locks = LockManager::new(lock_options, log.clone(), env.clone());
        let access = Access::new(pool.clone(), log.clone(), locks.clone());
        Ok(Storage {
            log,
            pool,
            locks,
            access,
        })
    }
}

/// Counts of the engine's own work.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) checkpoints: Counter,
    pub(crate) retries: Counter,
    pub(crate) log_relieved: Counter,
    pub(crate) truncations: Counter,
}

/// Checkpoints that free nothing before the log is called full.
const CHECKPOINTS_IN_VAIN: u32 = 2;

impl Engine {
    /// Puts transactions on top of storage whose trees are there.
    pub(crate) fn new(
        place: Place,
        lock: Option<DiskLock>,
        control: ControlFile,
        storage: Storage,
        first_txn: u64,
    ) -> Engine {
        let Storage {
            log,
            pool,
            locks,
            access,
        } = storage;
        let txn_options = TxnOptions {
            versions: VersionOptions {
                bytes_max: place.options.version_bytes_max,
                long_readers: place.options.long_readers,
            },
            lock_wait: place.options.lock_wait,
            garbage: Tree {
                store: StoreId::GARBAGE,
                root: control.get().garbage_root,
            },
            first_txn,
        };
        let env = place.env;
        let manager = TransactionManager::new(access.clone(), log.clone(), locks, txn_options);
        // The standard library's also under the model checker: a name is no part of a protocol.
        // Relaxed: only distinct values matter.
        static INSTANCES: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        Engine {
            options: place.options,
            path: place.path,
            instance: INSTANCES.fetch_add(1, Ordering::Relaxed),
            env,
            disk: place.disk,
            log,
            pool,
            access,
            manager,
            catalog: Catalog::new(control.get().catalog_root),
            control,
            condition: Condition::default(),
            counters: Counters::default(),
            gates: Gates::new(),
            checkpointing: Mutex::new(()),
            purging: Mutex::new(()),
            background_error: Mutex::new(None),
            lock: Mutex::new(lock),
        }
    }

    /// Learns of a failure of the log that nobody has waited for. Takes a lock: not for quick paths.
    pub(crate) fn check_log(&self) -> Result<()> {
        match self.log.poison_cause() {
            None => Ok(()),
            Some(cause) => Err(self.noted(Error::Poisoned { cause })),
        }
    }

    /// Fails unless the database is open and may be changed.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.condition.check()?;
        match self.options.access {
            Mode::ReadWrite => Ok(()),
            Mode::ReadOnly => Err(Error::ReadOnly),
        }
    }

    /// Passes a result of a storey below on, and stops the database when it has failed for good.
    #[inline]
    pub(crate) fn note<T, E: Into<Error>>(&self, outcome: std::result::Result<T, E>) -> Result<T> {
        outcome.map_err(|error| self.noted(error.into()))
    }

    /// Like [`Engine::note`], for what is known to be an error.
    #[cold]
    pub(crate) fn noted(&self, error: Error) -> Error {
        if let Error::Poisoned { cause } = &error {
            self.condition.poison(cause);
        }
        error
    }

    /// Stops the database for good because `what` failed with `error`.
    #[cold]
    pub(crate) fn poison(&self, what: &str, error: &Error) -> Error {
        let cause: Arc<str> = format!("{what}: {error}").into();
        self.condition.poison(&cause);
        Error::Poisoned { cause }
    }

    /// Writes dirty pages ahead of need, one round; returns how many.
    pub(crate) fn clean(&self) -> Result<u64> {
        self.condition.check()?;
        let maintained = self.note(self.pool.maintain(CLEAN_PAGES))?;
        Ok(maintained.written as u64)
    }

    /// Frees what deletes and drops have left, one round; returns how much.
    pub(crate) fn purge(&self) -> Result<u64> {
        let _purging = self.purging.lock();
        self.purge_step()
    }

    /// The same for whoever holds `purging`.
    pub(crate) fn purge_step(&self) -> Result<u64> {
        self.check_writable()?;
        let purged = self.with_log_space(|| self.note(self.manager.purge(PURGE_STEPS)))?;
        Ok(purged as u64)
    }

    /// Runs `operation`, which changes nothing when it fails; again if the log was full and a
    /// checkpoint has freed some of it.
    ///
    /// Others take what was freed as well, so one more attempt may not be enough; but when checkpoints
    /// free nothing any more, active transactions need all of it.
    pub(crate) fn with_log_space<T>(&self, mut operation: impl FnMut() -> Result<T>) -> Result<T> {
        let mut in_vain = 0;
        loop {
            let oldest = self.control.get().scan_lsn;
            match operation() {
                Err(Error::LogFull { .. }) if in_vain < CHECKPOINTS_IN_VAIN => {
                    let freed = self.relieve_log(oldest)?;
                    in_vain = if freed { 0 } else { in_vain + 1 };
                }
                outcome => return outcome,
            }
        }
    }

    /// Frees log space by a checkpoint, unless somebody has since the log began at `oldest`; tells
    /// whether a segment's worth is free now that was not then.
    fn relieve_log(&self, oldest: Lsn) -> Result<bool> {
        let has_moved = || {
            let now = self.control.get().scan_lsn;
            now.get() - oldest.get() >= self.options.log_segment_bytes
        };
        // Whoever waited in line for another's checkpoint looks first: a line of checkpoints in which each
        // frees nothing lets those who went ahead fill the log again.
        let taken = self.checkpoint_unless(has_moved)?;
        if taken {
            self.counters.log_relieved.add(1);
        }
        Ok(has_moved())
    }

    /// Begins a transaction of the engine's own.
    ///
    /// Whoever closes the database counts transactions after it has said so; this one looks whether
    /// anybody has said so after it can be counted.
    pub(crate) fn begin_internal(&self) -> Result<longshore_txn::Transaction> {
        self.begin_with(Begin::default())
    }

    /// Begins a transaction as a user has asked for.
    pub(crate) fn begin_with(&self, begin: Begin) -> Result<longshore_txn::Transaction> {
        let txn = self.note(self.manager.begin_with(begin))?;
        self.condition.check()?;
        Ok(txn)
    }

    /// What the log calls a durability.
    pub(crate) fn level(durability: Durability) -> Level {
        match durability {
            Durability::None => Level::None,
            Durability::Os => Level::Os,
            Durability::Sync => Level::Sync,
        }
    }

    pub(crate) fn keep_background_error(&self, error: Error) {
        *self.background_error.lock() = Some(error);
    }

    pub(crate) fn background_error(&self) -> Option<Error> {
        self.background_error.lock().clone()
    }
}

impl Engine {
    /// Lets others open the database.
    pub(crate) fn release(&self) {
        drop(self.lock.lock().take());
    }
}
