//! What is behind a transaction and its cursors.
//!
//! # Protocol
//! A transaction and its cursors share one [`Shared`]; every call locks its state, which nobody
//! else wants unless the program uses one transaction from several threads. The first use of a table
//! enters the table's gate; ending the transaction leaves all gates, after locks were released.
//!
//! | state  | by                                          | then                                      |
//! |--------|---------------------------------------------|-------------------------------------------|
//! | active | `begin`                                     | everything is allowed                     |
//! | doomed | an error after which it must be rolled back | every call repeats that error             |
//! | ended  | commit, rollback, drop                      | every call is [`Error::TransactionEnded`] |
//!
//! # Failure
//! An operation that fails has changed nothing, and the transaction goes on; only what has ended it in
//! the storey below, a deadlock for example, dooms it. When the log is full, a checkpoint is taken and the operation tried
//! once more. A rollback that cannot finish stops the database: reopening finishes it.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::index::{self, IndexError, RowChange};
use crate::lease::Lease;
use crate::options::{Access, Durability};
use crate::prepared::{self, Inside, Prepared};
use crate::table::{Table, TableState};
use crate::transaction::TransactionOptions;
use longshore_access::Tree;
use longshore_base::TxnId;
use longshore_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use longshore_base::sync::{Mutex, MutexGuard};
use longshore_txn::{Begin, Commit, Savepoint, Statement, Transaction, TxnError};
use std::sync::Arc;

type TxnResult<T> = std::result::Result<T, TxnError>;

/// What a transaction and its cursors share.
pub(crate) struct Shared {
    lease: Arc<Lease>,
    pub(crate) id: TxnId,
    pub(crate) durability: Durability,
    access: Access,
    /// Set when the transaction ends; a hint for cursors, which spares them the lock.
    ended: AtomicBool,
    /// Raised by each change of this transaction's, so that cursors read again what they had ahead.
    changes: AtomicU64,
    state: Mutex<State>,
}

/// Guarded by `Shared::state`.
struct State {
    /// `None` once ended.
    txn: Option<Transaction>,
    /// The tables used so far.
    entered: Inside,
    /// Why nothing but a rollback is possible.
    doom: Option<Error>,
}

impl Shared {
    /// Begins a transaction.
    pub(crate) fn begin(lease: Arc<Lease>, options: TransactionOptions) -> Result<Shared> {
        let engine = &lease.engine;
        engine.condition.check()?;
        let lock_wait = options.lock_wait.unwrap_or(engine.options.lock_wait);
        // Looks again whether the database is open, once `close` can see the transaction.
        let access = engine.options.access.max(options.access);
        let mut txn = engine.begin_with(Begin {
            isolation: options.isolation,
            is_read_only: access == Access::ReadOnly,
            label: options.label,
        })?;
        txn.set_lock_wait(lock_wait);
        if let Some(limit) = options.time_limit {
            txn.set_time_limit(limit);
        }
        Ok(Shared {
            id: txn.id(),
            durability: options.durability.unwrap_or(engine.options.durability),
            access,
            ended: AtomicBool::new(false),
            changes: AtomicU64::new(0),
            state: Mutex::new(State {
                txn: Some(txn),
                entered: Vec::new(),
                doom: None,
            }),
            lease,
        })
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.lease.engine
    }

    /// Whether the transaction is over.
    pub(crate) fn is_ended(&self) -> bool {
        // Acquire: pairs with `leave`.
        self.ended.load(Ordering::Acquire)
    }

    /// How often the transaction has changed something.
    pub(crate) fn changes(&self) -> u64 {
        // Relaxed: a cursor in another thread than the change is ordered by what ordered the two.
        self.changes.load(Ordering::Relaxed)
    }

    /// Called with `state` locked.
    fn count_change(&self) {
        // Relaxed: see `changes`.
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs an operation that changes nothing.
    pub(crate) fn read<T>(
        &self,
        table: &Table,
        operation: impl FnOnce(&mut Transaction, Tree) -> TxnResult<T>,
    ) -> Result<T> {
        let mut state = self.active()?;
        self.run(&mut state, table, operation)
    }

    /// Runs an operation that changes something; twice if the log was full the first time.
    pub(crate) fn change<T>(
        &self,
        table: &Table,
        mut operation: impl FnMut(&mut Transaction, Tree) -> TxnResult<T>,
    ) -> Result<T> {
        let mut state = self.active_for_change()?;
        let engine = self.engine();
        engine.with_log_space(|| self.run(&mut state, table, &mut operation))
    }

    /// Changes a row, and what its indexes have of it; false when there was nothing to change.
    pub(crate) fn change_row(
        &self,
        table: &Table,
        key: &[u8],
        change: RowChange<'_>,
    ) -> Result<bool> {
        self.change_rows(
            table,
            |txn, tree| change.apply(txn, tree, key),
            |txn, table| index::change_row(txn, table, key, change),
        )
    }

    /// Changes a row by what it was; false when there is none. While `change` runs, which is the program's own,
    /// the state is not locked: it may use the transaction.
    pub(crate) fn modify(
        &self,
        table: &Table,
        key: &[u8],
        change: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<bool> {
        let mut value = Vec::new();
        let mut changes = 0;
        let find = |txn: &mut Transaction, tree| {
            changes = self.changes();
            txn.find_to_change(tree, key, &mut value)
        };
        let Some(found) = self.change(table, find)? else {
            return Ok(false);
        };
        // Inside the gate: the indexes stay what they are (index N2).
        let old = (!table.state.indexes().is_empty()).then(|| value.clone());
        change(&mut value)?;
        self.change_rows(
            table,
            |txn, _| txn.change_found(&found, key, &value),
            |txn, table| match &old {
                // This change is counted, and none came between: the row is still what was found.
                Some(old) if self.changes() == changes + 1 => {
                    index::change_found(txn, table, key, &found, [old, &value])
                }
                _ => index::change_row(txn, table, key, RowChange::Update(&value)),
            },
        )
    }

    /// Changes rows: by `plain` in a table without indexes, else by `indexed`. Both are repeatable.
    pub(crate) fn change_rows<T>(
        &self,
        table: &Table,
        mut plain: impl FnMut(&mut Transaction, Tree) -> TxnResult<T>,
        mut indexed: impl FnMut(&mut Transaction, &TableState) -> std::result::Result<T, index::Failed>,
    ) -> Result<T> {
        let mut state = self.active_for_change()?;
        let engine = self.engine();
        let table = &table.state;
        engine.with_log_space(|| {
            state.enter(self, table)?;
            let txn = state.txn()?;
            let outcome = match table.indexes() {
                [] => plain(txn, table.tree()).map_err(index::Failed::Below),
                _ => indexed(txn, table),
            };
            outcome.map_err(|failed| match failed {
                index::Failed::Below(error) => self.failed(&mut state, table, error),
                index::Failed::Here(error) => engine.noted(error),
            })
        })
    }

    /// Runs an operation that changes something and cannot be repeated, nor seen by indexes.
    pub(crate) fn change_once<T>(
        &self,
        table: &Table,
        operation: impl FnOnce(&mut Transaction, Tree) -> TxnResult<T>,
    ) -> Result<T> {
        let mut state = self.active_for_change()?;
        state.enter(self, &table.state)?;
        if !table.state.indexes().is_empty() {
            return Err(Error::Index(IndexError::WholeValues {
                table: table.name(),
                instead: "use `put`",
            }));
        }
        self.run(&mut state, table, operation)
    }

    fn active_for_change(&self) -> Result<MutexGuard<'_, State>> {
        if self.access == Access::ReadOnly {
            return Err(Error::ReadOnly);
        }
        let state = self.active()?;
        self.count_change();
        Ok(state)
    }

    /// The state of a transaction that may go on.
    fn active(&self) -> Result<MutexGuard<'_, State>> {
        self.engine().condition.check_poison()?;
        let state = self.state.lock();
        match (&state.txn, &state.doom) {
            (None, _) => Err(Error::TransactionEnded),
            (_, Some(doom)) => Err(doom.clone()),
            _ => Ok(state),
        }
    }

    fn run<T>(
        &self,
        state: &mut State,
        table: &Table,
        operation: impl FnOnce(&mut Transaction, Tree) -> TxnResult<T>,
    ) -> Result<T> {
        state.enter(self, &table.state)?;
        let tree = table.state.tree();
        match operation(state.txn()?, tree) {
            Ok(value) => Ok(value),
            Err(error) => Err(self.failed(state, &table.state, error)),
        }
    }

    #[cold]
    fn failed(&self, state: &mut State, table: &TableState, error: TxnError) -> Error {
        let dooms = error.ends_transaction();
        let error = self.engine().noted(Error::from_txn(error, table));
        if dooms {
            state.doom = Some(error.clone());
        }
        error
    }

    /// An error that makes it pointless to go on, if there was one.
    pub(crate) fn doom(&self) -> Option<Error> {
        self.state.lock().doom.clone()
    }

    /// Ends a cursor's statement, if the transaction has not ended before.
    pub(crate) fn end_statement(&self, statement: Statement) {
        if let Some(txn) = &mut self.state.lock().txn {
            txn.end_statement(statement);
        }
    }

    pub(crate) fn savepoint(&self) -> Result<Savepoint> {
        let mut state = self.active()?;
        Ok(state.txn()?.savepoint())
    }

    pub(crate) fn rollback_to(&self, savepoint: &Savepoint) -> Result<()> {
        let mut state = self.active()?;
        self.count_change();
        self.engine().note(state.txn()?.rollback_to(savepoint))
    }

    pub(crate) fn release_savepoint(&self, savepoint: &Savepoint) -> Result<()> {
        let mut state = self.active()?;
        self.engine()
            .note(state.txn()?.release_savepoint(savepoint))
    }

    /// Ends the transaction; its changes are visible when this returns.
    pub(crate) fn commit(&self, durability: Durability) -> Result<Commit> {
        let mut state = self.active()?;
        let txn = state.txn.take().ok_or(Error::TransactionEnded)?;
        let outcome = self.engine().note(txn.commit(Engine::level(durability)));
        self.leave(&mut state);
        outcome
    }

    /// Ends the transaction for its user; it waits for a decision under the name `gid`.
    pub(crate) fn prepare(&self, gid: &[u8]) -> Result<Prepared> {
        let mut state = self.active_for_change()?;
        let state = &mut *state;
        let txn = state.txn.take().ok_or(Error::TransactionEnded)?;
        let (lease, durability) = (&self.lease, self.durability);
        let outcome = prepared::prepare(lease, txn, &mut state.entered, gid, durability);
        self.leave(state);
        let (prepared, handle) = outcome?;
        self.engine().note(handle.wait())?;
        Ok(prepared)
    }

    /// Ends the transaction if it has not ended yet; nothing of it stays.
    pub(crate) fn roll_back(&self) -> Result<()> {
        let mut state = self.state.lock();
        let Some(txn) = state.txn.take() else {
            return Ok(());
        };
        let engine = self.engine();
        let outcome = txn.rollback();
        self.leave(&mut state);
        match outcome {
            Ok(()) => Ok(()),
            Err(error) => Err(engine.poison("a rollback could not be finished", &error.into())),
        }
    }

    /// The transaction is over: its tables may be dropped now.
    fn leave(&self, state: &mut State) {
        // Release: pairs with `is_ended`.
        self.ended.store(true, Ordering::Release);
        prepared::leave(&mut state.entered);
    }
}

impl State {
    fn txn(&mut self) -> Result<&mut Transaction> {
        self.txn.as_mut().ok_or(Error::TransactionEnded)
    }

    /// Makes sure that the table stays until the transaction ends.
    #[inline]
    fn enter(&mut self, shared: &Shared, table: &Arc<TableState>) -> Result<()> {
        let known = self
            .entered
            .iter()
            .any(|(known, _)| Arc::ptr_eq(known, table));
        if known {
            return Ok(());
        }
        let engine = shared.engine();
        table.check_owner(engine.instance)?;
        let entered = table.enter(&*engine.env, self.txn()?.patience())?;
        self.entered.push((Arc::clone(table), entered));
        match self.txn()?.snapshot_position() {
            Some(position) => table.check_snapshot(position),
            None => Ok(()),
        }
    }
}
