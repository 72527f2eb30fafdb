//! Views of locks, with the names of tables.

use crate::engine::Engine;
use longshore_base::{StoreId, TxnId};
pub use longshore_txn::{Escalation as LockEscalation, Mode as LockMode, TableMode as TableLock};
use std::time::Duration;

/// A lock that a transaction holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockView {
    /// Who holds it.
    pub transaction: TxnId,
    /// The table's name, or its number if it has none; nothing for the whole database.
    pub table: Option<String>,
    /// The hash of the row's key; nothing for a whole table.
    pub row: Option<u64>,
    /// How it is held.
    pub mode: LockMode,
    /// For how long at most: since its transaction began, to about a tenth of a second; without
    /// background threads since the last [`crate::Database::maintain`] before it.
    pub age: Duration,
}

/// A transaction that waits for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockWaitView {
    /// Who waits.
    pub transaction: TxnId,
    /// The table's name, or its number if it has none; nothing for the whole database.
    pub table: Option<String>,
    /// The hash of the row's key; nothing for a whole table.
    pub row: Option<u64>,
    /// The mode that it waits for.
    pub mode: LockMode,
    /// For how long so far.
    pub waited: Duration,
    /// Those who hold the lock, or wait for it before, in a mode that is in the way.
    pub waits_for: Vec<TxnId>,
}

/// What is held, at most `max` of it.
pub(crate) fn held(engine: &Engine, max: usize) -> Vec<LockView> {
    let holds = engine.manager.locks().holds(max);
    let view = |hold: longshore_txn::LockHold| LockView {
        transaction: hold.holder,
        table: table_name(engine, hold.store),
        row: hold.row,
        mode: hold.mode,
        age: hold.age,
    };
    holds.into_iter().map(view).collect()
}

/// Who waits for whom.
pub(crate) fn waits(engine: &Engine) -> Vec<LockWaitView> {
    let waits = engine.manager.locks().waits();
    let view = |wait: longshore_txn::LockWait| LockWaitView {
        transaction: wait.waiter,
        table: table_name(engine, wait.name.store()),
        row: (!wait.name.is_table()).then(|| wait.name.hash()),
        mode: wait.wanted,
        waited: wait.waited,
        waits_for: wait.waits_for,
    };
    waits.into_iter().map(view).collect()
}

fn table_name(engine: &Engine, store: StoreId) -> Option<String> {
    let name = || engine.catalog.name_of(store);
    (store != StoreId::NONE).then(|| name().unwrap_or_else(|| store.to_string()))
}
