//! What all transactions of a database share.

use super::Transaction;
use super::prepared::PreparedOnes;
use super::purge::GhostHints;
use super::slots::{Slots, Taken};
use super::work::Work;
use crate::error::{Result, TxnError};
use crate::lock::{Dependency, LockManager, LockName, LockStats};
use crate::version::{SnapshotView, VersionOptions, VersionStats, Versions};
use longshore_access::{Access, Corruption, PageSet, Patience, Slot, Tree, ValueKind};
use longshore_base::metrics::{Counter, STRIPES, thread_number};
use longshore_base::sync::Mutex;
use longshore_base::{Durability, Lsn, TxnId};
use longshore_log::{Level, Log};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How transactions behave.
#[derive(Clone, Copy, Debug)]
pub struct TxnOptions {
    /// How long a transaction waits for a lock, unless told otherwise. Zero: not at all.
    pub lock_wait: Duration,
    /// The tree of what is to be freed; see the header of `garbage`.
    pub garbage: Tree,
    /// The first transaction's number: above every number in the log.
    pub first_txn: u64,
    /// How older images of rows are kept.
    pub versions: VersionOptions,
}

/// What a transaction may see of others, and they of it. The header of `version` has the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Isolation {
    /// As if all serializable transactions ran one after the other.
    #[default]
    Serializable,
    /// All reads are of one state, that at the begin; the first to change a row wins.
    Snapshot,
    /// Each statement reads what was committed when it began.
    ReadCommitted,
}

/// How a transaction is begun.
#[derive(Clone, Copy, Debug, Default)]
pub struct Begin {
    /// What it may see.
    pub isolation: Isolation,
    /// It changes nothing: then it reads a snapshot at any level, without locks.
    pub is_read_only: bool,
    /// What views call it.
    pub label: &'static str,
}

/// All transactions of one database.
pub struct TransactionManager {
    core: Arc<Core>,
    /// One per stripe of threads. A transaction holds the one of its thread, so that beginning and
    /// ending one moves no count that all threads share.
    doors: Box<[Arc<Door>]>,
}

/// Keeps the core alive; on a line of its own, with its count of holders.
#[repr(align(128))]
pub(crate) struct Door {
    pub(crate) core: Arc<Core>,
}

pub(crate) struct Core {
    pub access: Arc<Access>,
    pub log: Arc<Log>,
    pub locks: Arc<LockManager>,
    pub options: TxnOptions,
    pub slots: Slots,
    pub versions: Versions,
    pub counters: Counters,
    pub ghosts: GhostHints,
    pub prepared: PreparedOnes,
    /// Held by the one purge round under way.
    pub purging: Mutex<()>,
    /// Why all work is refused, once it is.
    failure: OnceLock<Arc<str>>,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub committed: Counter,
    pub rolled_back: Counter,
    pub read_blocked: Counter,
    pub purged: Counter,
}

/// Counts since the manager was made.
#[derive(Clone, Copy, Debug, Default)]
pub struct TxnStats {
    /// Transactions that committed.
    pub committed: u64,
    /// Transactions that were rolled back, by their user or by an error.
    pub rolled_back: u64,
    /// Transactions open now.
    pub active: usize,
    /// Single reads that met a change under way, and were made a transaction of their own.
    pub read_blocked: u64,
    /// Rows, pages and trees freed by purge rounds.
    pub purged: u64,
    /// The lock manager's counts.
    pub locks: LockStats,
    /// Older images of rows.
    pub versions: VersionStats,
}

impl TransactionManager {
    /// A manager of no transactions yet. `locks` is what `access` asks about boundaries.
    pub fn new(
        access: Arc<Access>,
        log: Arc<Log>,
        locks: Arc<LockManager>,
        options: TxnOptions,
    ) -> Arc<TransactionManager> {
        let versions = Versions::new(
            locks.owners_max(),
            options.versions,
            Arc::clone(locks.env()),
        );
        locks.keep_for(versions.past());
        let core = Arc::new(Core {
            access,
            versions,
            log,
            slots: Slots::new(locks.owners_max(), options.first_txn),
            locks,
            options,
            counters: Counters::default(),
            ghosts: GhostHints::default(),
            prepared: PreparedOnes::default(),
            purging: Mutex::new(()),
            failure: OnceLock::new(),
        });
        let doors = (0..STRIPES)
            .map(|_| {
                Arc::new(Door {
                    core: Arc::clone(&core),
                })
            })
            .collect();
        Arc::new(TransactionManager { core, doors })
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// [`TxnError::TooManyTransactions`]; [`TxnError::Failed`].
    pub fn begin(&self) -> Result<Transaction> {
        self.core.check()?;
        let door = Arc::clone(&self.doors[thread_number() % STRIPES]);
        let taken = door.core.slots.take()?;
        let work = Work::new(&door.core, taken);
        Ok(Transaction::new(door, work))
    }

    /// Begins a transaction that has a number already.
    pub(super) fn begin_as(&self, txn: TxnId) -> Result<Transaction> {
        let door = Arc::clone(&self.doors[thread_number() % STRIPES]);
        let index = door.core.slots.take_slot()?;
        let work = Work::new(&door.core, Taken { index, txn });
        Ok(Transaction::new(door, work))
    }

    /// Begins a transaction at an isolation level, or one that only reads.
    ///
    /// # Errors
    /// Those of [`TransactionManager::begin`]; [`TxnError::TooManySnapshots`].
    pub fn begin_with(&self, begin: Begin) -> Result<Transaction> {
        let mut txn = self.begin()?;
        txn.read_by(begin)?;
        Ok(txn)
    }

    /// The open snapshots, oldest first.
    pub fn snapshots(&self) -> Vec<SnapshotView> {
        self.core.versions.views(self.core.locks.env().now())
    }

    /// Lets reads of snapshots take what is in the page, so that a test can see its checker fail.
    #[doc(hidden)]
    pub fn ignore_versions(&self) {
        self.core.versions.ignore_versions();
    }

    /// Lets updaters overwrite what has changed since their snapshot, so that a test can see its checker
    /// fail.
    #[doc(hidden)]
    pub fn ignore_conflicts(&self) {
        self.core.versions.ignore_conflicts();
    }

    /// The committed value of `key`, read alone. See [`TransactionManager::get_into`].
    ///
    /// # Errors
    /// Those of [`TransactionManager::get_into`].
    pub fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut value = Vec::new();
        Ok(self.get_into(tree, key, &mut value)?.then_some(value))
    }

    /// Replaces the content of `out` by the committed value of `key`; false, and nothing in `out`, when
    /// there is none.
    ///
    /// A transaction of this one read, without its cost: no lock, no store to shared memory. The leaf
    /// is read at one version; before that is checked, the lock table shows that nobody has the key
    /// locked to change it. So the value was committed at a moment during the call. The answer waits
    /// until the commit that it may come from is as durable as that commit asked to be.
    ///
    /// While a change of the row is under way, the value before it is read, from a snapshot. Only if
    /// there is no room for a snapshot, or the writer has kept no image, is the writer waited for.
    ///
    /// # Errors
    /// Those of reading; those of waiting for the writer as a transaction.
    pub fn get_into(&self, tree: Tree, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        self.core.check()?;
        if let Some(found) = self.core.get_alone(tree, key, out)? {
            return Ok(found);
        }
        self.core.counters.read_blocked.add(1);
        let snapshot = Begin {
            is_read_only: true,
            ..Begin::default()
        };
        match self.get_in(snapshot, tree, key, out) {
            Err(TxnError::SnapshotTooOld | TxnError::TooManySnapshots) => {
                self.get_in(Begin::default(), tree, key, out)
            }
            outcome => outcome,
        }
    }

    /// Reads a row in a transaction of its own.
    #[cold]
    fn get_in(&self, begin: Begin, tree: Tree, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let mut txn = self.begin_with(begin)?;
        let found = txn.get_into(tree, key, out)?;
        txn.commit(Level::None)?.handle.wait()?;
        Ok(found)
    }

    /// The lowest position of the log that undoing an open transaction may need; `None` for none.
    ///
    /// A checkpoint reads the log's tail first, then this.
    pub fn oldest_first_lsn(&self) -> Option<Lsn> {
        self.core.slots.oldest_first()
    }

    /// A number above that of every transaction so far.
    pub fn next_txn(&self) -> u64 {
        self.core.slots.next_txn()
    }

    /// Gives no transaction a number below `next`. To be called before the first begins.
    pub fn raise_next_txn(&self, next: u64) {
        self.core.slots.raise_next_txn(next);
    }

    /// How many transactions are open.
    pub fn active(&self) -> usize {
        self.core.slots.active()
    }

    /// Undoes the transactions that the last run left without an end, given the last record of each;
    /// returns how many there were. To be called after redo and before the first transaction begins.
    ///
    /// They are undone one after the other: each had locked what it changed, so they share no row. No
    /// locks are taken, as nobody else is there.
    ///
    /// # Errors
    /// Those of reading the log and changing pages. It may be called again after reopening.
    pub fn restart_undo(&self, losers: Vec<(TxnId, Lsn)>) -> Result<usize> {
        // Their deleted rows are ghosts that no lock keeps: undo still needs them, and must not lose them
        // to a purge that makes room for the undo of another.
        self.core.locks.pin_boundaries(true);
        for &(txn, last) in &losers {
            self.core.undo_loser(txn, last)?;
        }
        self.core.locks.pin_boundaries(false);
        Ok(losers.len())
    }

    /// Frees what deletes, drops and rollbacks have left, in at most `steps` steps; returns how many
    /// did something.
    ///
    /// # Errors
    /// Those of changing pages. What was not freed is found again by a later round.
    pub fn purge(&self, steps: usize) -> Result<usize> {
        self.core.check()?;
        self.core.versions.maintain(|| self.core.log.tail());
        let done = super::purge::round(self, steps)?;
        self.core.counters.purged.add(done as u64);
        Ok(done)
    }

    /// Adds the pages of what waits to be freed, once somebody commits or at once, to `pages`; returns those that
    /// were there already, or cannot be read. Nobody may change anything meanwhile.
    ///
    /// # Errors
    /// Those of reading pages.
    pub fn verify_garbage(&self, pages: &mut PageSet) -> Result<Vec<Corruption>> {
        super::garbage::verify(&self.core, pages)
    }

    /// The lock manager.
    pub fn locks(&self) -> &Arc<LockManager> {
        &self.core.locks
    }

    /// The counters.
    pub fn stats(&self) -> TxnStats {
        let counters = &self.core.counters;
        TxnStats {
            committed: counters.committed.get(),
            rolled_back: counters.rolled_back.get(),
            active: self.active(),
            read_blocked: counters.read_blocked.get(),
            purged: counters.purged.get(),
            locks: self.core.locks.stats(),
            versions: self.core.versions.stats(),
        }
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }
}

impl Drop for TransactionManager {
    fn drop(&mut self) {
        // They hold the core that holds them.
        self.core.prepared.abandon();
    }
}

impl Core {
    /// Fails once all work is refused.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.failure.get() {
            None => Ok(self.log.check()?),
            Some(cause) => Err(TxnError::Failed {
                cause: Arc::clone(cause),
            }),
        }
    }

    /// Refuses all work from now on; the first cause is kept.
    #[cold]
    pub fn fail(&self, cause: impl std::fmt::Display) -> TxnError {
        let cause = self.failure.get_or_init(|| cause.to_string().into());
        TxnError::Failed {
            cause: Arc::clone(cause),
        }
    }

    /// Reads a row without a lock; `None` when it must be read with one.
    #[inline]
    fn get_alone(&self, tree: Tree, key: &[u8], out: &mut Vec<u8>) -> Result<Option<bool>> {
        let name = LockName::of_key(tree.store, key);
        let mut patience = Patience::new();
        loop {
            let leaf = tree.read_leaf_patiently(&self.access, key, &mut patience)?;
            let found = match leaf.find(key) {
                Slot::Present(slot) => Some(leaf.value_into(slot, out)),
                Slot::Ghost(_) | Slot::Absent(_) => {
                    out.clear();
                    None
                }
            };
            // The look at the lock lies between two sightings of the same version of the leaf.
            let unlocked = self.locks.unlocked_for_read(name);
            if leaf.validate().is_err() {
                patience.lost();
                continue;
            }
            drop(leaf);
            // A chain may be freed as soon as nobody has its row locked.
            let (Some(dependency), None | Some(ValueKind::Inline)) = (unlocked, found) else {
                return Ok(None);
            };
            self.wait_for(dependency)?;
            return Ok(Some(found.is_some()));
        }
    }

    /// Waits until the commit is as durable as it asked to be.
    #[inline]
    pub fn wait_for(&self, dependency: Dependency) -> Result<()> {
        if dependency.is_none() || self.log.is_durable(dependency.lsn()) {
            return Ok(());
        }
        Ok(self.log.flush(dependency.lsn(), dependency.level())?)
    }
}

impl std::fmt::Debug for TransactionManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransactionManager")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
