//! Transactions: begin, read, change, take back, commit.
//!
//! # Protocol
//! A [`Transaction`] is used by one thread at a time and may move between threads. Each statement takes
//! its locks (`lock`), then looks at or changes one leaf. A statement that fails has changed
//! nothing. After a deadlock, a time-out or a cancellation, or when its time is up (`time_limit`), the whole
//! transaction is rolled back at once, so that those who wait for it go on; every later call but `rollback`
//! says [`TxnError::Ended`].
//!
//! ```text
//!              deadlock, time-out, cancelled, time limit
//!   Active ───────────────────────▶ Ended (rolled back; locks and slot given back)
//!     │ commit, rollback, drop
//!     ▼
//!   gone        a rollback that cannot finish: locks and slot are kept, the manager refuses all work
//! ```
//!
//! **Writing.** With the first change a transaction publishes, in its slot, the log's tail, and claims
//! log space. Each change claims what itself and its undo take (the tree does); this module claims ahead
//! in chunks, so that most changes touch no common count, and keeps room for the last record.
//!
//! **Commit.** Append COMMIT while all locks are held: its position is the place in the serial order →
//! release the locks, leaving the position in the buckets of what was changed → give back the slot. The
//! answer, [`Commit::handle`], waits until that record and the newest commit seen are durable. A
//! transaction that has changed nothing logs nothing and waits for the commits it has seen only.
//!
//! **Rollback.** Walk the transaction's records backwards along `prev`, undo each by key with a CLR that
//! names the next one to undo, then append END, then release the locks. It needs no locks, its log space
//! was claimed, and if the pool has no frame for a moment it tries again.
//!
//! # Invariants
//! X1. A transaction that is answered has its commit record, and those of all it saw, as durable as asked.
//! X2. Locks are released only after COMMIT or END is in the log.
//! X3. A change is undone entirely or commits entirely; also that of a statement that fails.
//! X4. While a crash would leave something to undo, the slot says since when: `slots` A1 and A2.
//! X5. While a restart undoes losers, no boundary vanishes: their ghosts have no locks that keep them.
//!
//! # Failure
//! An error of the log while committing or rolling back leaves the outcome to the next restart: the locks
//! are kept, so nobody sees what may not stay, and the manager refuses all work.

mod batch;
mod capture;
mod commit;
mod delete_range;
mod former;
mod garbage;
mod kept_locks;
mod manager;
mod prepared;
mod purge;
mod savepoint;
mod scan;
mod slots;
mod snapshot;
mod statement;
mod time_limit;
mod undo;
mod value;
mod visible;
mod work;

pub use batch::{Batch, Direction};
pub use commit::{Commit, CommitHandle};
pub use kept_locks::gid_of;
pub use manager::{Begin, Isolation, TransactionManager, TxnOptions, TxnStats};
pub use prepared::{Adopted, GID_BYTES_MAX, PreparedView};
pub use savepoint::Savepoint;
#[cfg(all(test, loom))]
pub(crate) use slots::Slots;
pub use snapshot::Statement;
pub use statement::Found;
pub use value::ValueReader;

use crate::error::{Result, TxnError};
use crate::lock::{LockError, TableMode};
use longshore_access::Tree;
use longshore_base::{Lsn, StoreId, TxnId};
use longshore_log::Level;
use manager::Door;
use std::io::Read;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use work::Work;

/// One transaction. Dropping it rolls it back.
pub struct Transaction {
    door: Arc<Door>,
    work: Work,
    state: State,
    savepoints: savepoint::Savepoints,
}

/// What may be done with a transaction.
enum State {
    Active,
    /// Nothing: it was rolled back, for this reason.
    Ended(Arc<str>),
    /// Nothing: it was committed or rolled back by its user, or it could not be.
    Gone,
}

impl Transaction {
    pub(crate) fn new(door: Arc<Door>, work: Work) -> Transaction {
        Transaction {
            door,
            work,
            state: State::Active,
            savepoints: savepoint::Savepoints::default(),
        }
    }

    /// Chooses how it reads. To be called before it does anything.
    pub(crate) fn read_by(&mut self, begin: Begin) -> Result<()> {
        let core = &self.door.core;
        match begin {
            Begin {
                isolation: Isolation::Serializable,
                is_read_only: false,
                ..
            } => Ok(()),
            Begin {
                isolation: Isolation::ReadCommitted,
                is_read_only: false,
                ..
            } => {
                self.work.reads = snapshot::Reads::Statements;
                Ok(())
            }
            Begin { label, .. } => self.work.read_snapshot(core, label),
        }
    }

    /// Below which position of the log commits are visible to it, if it reads one snapshot.
    pub fn snapshot_position(&self) -> Option<Lsn> {
        match self.work.reads {
            snapshot::Reads::Snapshot(snapshot) => Some(snapshot.at),
            snapshot::Reads::Locked | snapshot::Reads::Statements => None,
        }
    }

    /// The transaction's number.
    pub fn id(&self) -> TxnId {
        self.work.txn()
    }

    /// How long it waits for a lock from now on; zero is not at all.
    pub fn set_lock_wait(&mut self, limit: Duration) {
        self.work.lock_wait = limit;
    }

    /// The value of `key`, which nobody changes before this transaction ends.
    ///
    /// # Errors
    /// [`TxnError`]; after a deadlock or time-out the transaction is over.
    pub fn get(&mut self, tree: Tree, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut value = Vec::new();
        Ok(self.get_into(tree, key, &mut value)?.then_some(value))
    }

    /// Replaces the content of `out` by the value of `key`; false when there is none.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    #[inline]
    pub fn get_into(&mut self, tree: Tree, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        self.run(|work, core| work.get_into(core, tree, key, out))
    }

    /// Whether there is a row with this key.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn contains(&mut self, tree: Tree, key: &[u8]) -> Result<bool> {
        self.run(|work, core| work.contains(core, tree, key))
    }

    /// The values of several keys, in the order of the keys given; all of one state, as a scan's are.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn get_many(&mut self, tree: Tree, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        self.run(|work, core| work.get_many(core, tree, keys))
    }

    /// Like [`Transaction::get`], for a row that is to be changed: others may still read it, but nobody
    /// else to change it.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn get_for_update(&mut self, tree: Tree, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut value = Vec::new();
        let found = self.run(|work, core| {
            work.lock_for_update(core, tree, key)?;
            work.get_locked(core, tree, key, &mut value)
        })?;
        Ok(found.then_some(value))
    }

    /// Replaces the content of `out` by the value of `key`, for [`change_found`](Transaction::change_found) to
    /// change; `None` when there is no such row. Nobody else changes it meanwhile.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn find_to_change(
        &mut self,
        tree: Tree,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Found>> {
        self.run(|work, core| work.find_to_change(core, tree, key, out))
    }

    /// Gives the row of `key`, which was found, another value, unless that is what it has; false when this
    /// transaction has taken the row out since.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    ///
    /// # Panics
    /// If another transaction has found the row.
    pub fn change_found(&mut self, found: &Found, key: &[u8], value: &[u8]) -> Result<bool> {
        self.run(|work, core| work.change_found(core, found, key, value))
    }

    /// Locks a whole table until this transaction ends; beside what it holds there already.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn lock_table(&mut self, tree: Tree, mode: TableMode) -> Result<()> {
        self.run(|work, core| work.lock_table(core, tree.store, mode))
    }

    /// Locks the whole database until this transaction ends.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn lock_database(&mut self, mode: TableMode) -> Result<()> {
        self.run(|work, core| work.lock_database(core, mode))
    }

    /// Adds a row.
    ///
    /// # Errors
    /// [`TxnError::KeyExists`]; those of [`Transaction::get`].
    #[inline]
    pub fn insert(&mut self, tree: Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.run(|work, core| work.insert(core, tree, key, value))
    }

    /// Adds a row, or gives an existing one another value.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn put(&mut self, tree: Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.run(|work, core| work.put(core, tree, key, value))
    }

    /// Gives a row another value; false when there is none.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn update(&mut self, tree: Tree, key: &[u8], value: &[u8]) -> Result<bool> {
        self.run(|work, core| work.update(core, tree, key, value))
    }

    /// Makes the value of `key` `new`, where `None` is no row, if it is `expected` now; false if it is not.
    ///
    /// Either way the row stays as it was found, or made, until this transaction ends.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn compare_and_set(
        &mut self,
        tree: Tree,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        self.run(|work, core| work.compare_and_set(core, tree, key, expected, new))
    }

    /// Takes a row out; false when there was none.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn delete(&mut self, tree: Tree, key: &[u8]) -> Result<bool> {
        self.run(|work, core| work.delete(core, tree, key))
    }

    /// Takes all rows of a range out; returns how many there were.
    ///
    /// Row by row with locks, leaf after leaf; the range is locked as for a scan. All or nothing.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn delete_range(
        &mut self,
        tree: Tree,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
    ) -> Result<u64> {
        self.run(|work, core| work.delete_range(core, tree, low, high))
    }

    /// Fills `batch` with the next rows of a range: those of one leaf, which may be none.
    ///
    /// [`Batch::next`] says where to go on. Locks are taken on the rows and on the gaps between them, so
    /// nobody changes what was read, or adds to it, before this transaction ends.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn scan_leaf(
        &mut self,
        tree: Tree,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        direction: Direction,
        batch: &mut Batch,
    ) -> Result<()> {
        self.scan_leaf_of(None, tree, low, high, direction, batch)
    }

    /// Like [`Transaction::scan_leaf`], as a part of `statement`.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn scan_leaf_of(
        &mut self,
        statement: Option<Statement>,
        tree: Tree,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        direction: Direction,
        batch: &mut Batch,
    ) -> Result<()> {
        let range = scan::Range {
            low,
            high,
            direction,
        };
        self.run(|work, core| work.scan_leaf(core, tree, range, batch, statement))
    }

    /// Begins a statement that takes several calls, all of which see one state; `None` at isolation levels
    /// where that goes without saying.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn begin_statement(&mut self) -> Result<Option<Statement>> {
        self.run(|work, core| work.begin_statement(core))
    }

    /// Ends a statement. Those still open end with the transaction.
    pub fn end_statement(&mut self, statement: Statement) {
        if let State::Active = self.state {
            self.work.end_statement(&self.door.core, statement);
        }
    }

    /// Gives a row the value that `source` yields, without holding it in memory; returns its length.
    ///
    /// # Errors
    /// [`TxnError::Source`]; [`TxnError::ValueTooLong`]; those of [`Transaction::get`].
    pub fn put_stream(&mut self, tree: Tree, key: &[u8], source: &mut dyn Read) -> Result<u64> {
        self.run(|work, core| work.put_stream(core, tree, key, source))
    }

    /// Reads a row's value piece by piece; `None` when there is no such row.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn open_value(&mut self, tree: Tree, key: &[u8]) -> Result<Option<ValueReader>> {
        self.run(|work, core| work.open_value(core, tree, key))
    }

    /// Creates a tree for `store`, which never had one. If this transaction does not commit, the tree is
    /// freed by a purge round.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn create_tree(&mut self, store: StoreId) -> Result<Tree> {
        self.run(|work, core| work.create_tree(core, store))
    }

    /// Drops a tree: once this transaction has committed, a purge round frees it.
    ///
    /// The caller sees to it that nobody uses the tree then.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn drop_tree(&mut self, tree: Tree) -> Result<()> {
        self.run(|work, core| work.drop_tree(core, tree))
    }

    /// Makes all changes last and visible to others; see [`Commit`] for the answer.
    ///
    /// Does not wait. A read-only transaction's answer depends on the commits it has seen.
    ///
    /// # Errors
    /// [`TxnError::Ended`]; [`TxnError::TimeLimit`]; [`TxnError::Failed`] when the log takes no record: whether
    /// the changes last is known after reopening. After any other error the transaction was rolled back.
    pub fn commit(mut self, level: Level) -> Result<Commit> {
        self.may_end()?;
        let core = &self.door.core;
        match self.work.place_commit(core, level) {
            Ok(lsn) => {
                self.state = State::Gone;
                Ok(commit::finish(core, &mut self.work, lsn, level))
            }
            Err(error) if error.is_final() => {
                self.state = State::Gone;
                Err(core.fail(error))
            }
            Err(error) => {
                self.roll_back_all()?;
                Err(error)
            }
        }
    }

    /// Undoes everything. Dropping the transaction does the same.
    ///
    /// # Errors
    /// [`TxnError::Failed`] when it could not be finished; reopening the database finishes it.
    pub fn rollback(mut self) -> Result<()> {
        match self.state {
            State::Active => self.roll_back_all(),
            State::Ended(_) | State::Gone => Ok(()),
        }
    }

    /// Runs a statement: refuses it when the transaction is over, and undoes it when it fails.
    #[inline]
    fn run<T>(
        &mut self,
        statement: impl FnOnce(&mut Work, &manager::Core) -> Result<T>,
    ) -> Result<T> {
        self.check()?;
        let before = self.work.last_lsn();
        if self.door.core.locks.is_cancelled(&self.work.owner) {
            return Err(self.statement_failed(before, LockError::Cancelled.into()));
        }
        if let Err(error) = self.work.check_time(&self.door.core) {
            return Err(self.statement_failed(before, error));
        }
        match statement(&mut self.work, &self.door.core) {
            Ok(value) => Ok(value),
            Err(error) => Err(self.statement_failed(before, error)),
        }
    }

    /// Refuses to commit or prepare what is over, or takes too long.
    fn may_end(&mut self) -> Result<()> {
        self.check()?;
        let checked = self.work.check_time(&self.door.core);
        checked.map_err(|error| self.statement_failed(Lsn::ZERO, error))
    }

    #[inline]
    fn check(&self) -> Result<()> {
        match &self.state {
            State::Active => self.door.core.check(),
            State::Ended(cause) => Err(TxnError::Ended {
                txn: self.id(),
                cause: Arc::clone(cause),
            }),
            State::Gone => unreachable!("only methods that take the transaction end it so"),
        }
    }

    /// Undoes what a failed statement has done so far, or everything if the error says so.
    #[cold]
    fn statement_failed(&mut self, before: Lsn, error: TxnError) -> TxnError {
        self.work.locks_more_than_it_changed = true;
        let undone = if error.ends_transaction() {
            let undone = self.roll_back_all();
            self.state = State::Ended(error.to_string().into());
            undone
        } else if self.work.last_lsn() != before {
            self.undo_to(before)
        } else {
            Ok(())
        };
        match undone {
            Ok(()) if error.is_final() => self.door.core.fail(error),
            Ok(()) => error,
            Err(failed) => failed,
        }
    }

    /// Undoes what was logged after `lsn`.
    fn undo_to(&mut self, lsn: Lsn) -> Result<()> {
        self.work.locks_more_than_it_changed = true;
        let core = &self.door.core;
        self.work.undo_to(core, lsn).map_err(|error| {
            self.state = State::Ended(error.to_string().into());
            core.fail(error)
        })
    }

    /// Undoes everything and ends the transaction; if that fails, keeps its locks and refuses all work.
    fn roll_back_all(&mut self) -> Result<()> {
        let core = &self.door.core;
        self.state = State::Gone;
        self.work.roll_back(core).map_err(|error| core.fail(error))
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let State::Active = self.state {
            // Who wants to see the error calls `rollback`; the manager keeps it.
            let _ = self.roll_back_all();
        }
    }
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction")
            .field("id", &self.id())
            .field("locks", &self.work.locks_held())
            .finish_non_exhaustive()
    }
}
