//! Who may see and change what: transactions, locks, undo.
//!
//! [`LockManager`] comes first: the trees ask it before a boundary disappears. [`TransactionManager`] then
//! begins each [`Transaction`], reads single rows without one, undoes what a crash cut off, and frees
//! what nobody refers to any more. The README of this crate has the picture, the invariants, the order of
//! latches and locks, and a reading order; the headers of `lock` and `transaction` have the protocols.

#![forbid(unsafe_code)]

mod error;
mod lock;
pub mod record;
mod transaction;
mod version;

pub use error::{Result, TxnError};
#[doc(hidden)]
pub use lock::GapCheck;
pub use lock::{
    CommitLevel, Dependency, Escalation, GapMode, KeyMode, LockError, LockHold, LockManager,
    LockName, LockOptions, LockStats, LockWait, Mode, Owner, TableMode, Wait,
};
pub use transaction::{
    Adopted, Batch, Begin, Commit, CommitHandle, Direction, Found, GID_BYTES_MAX, Isolation,
    PreparedView, Savepoint, Statement, Transaction, TransactionManager, TxnOptions, TxnStats,
    ValueReader,
};
pub use version::{LongReaders, SnapshotView, VersionOptions, VersionStats};
