//! Who may see and change what: transactions, locks, undo.

#![forbid(unsafe_code)]
#![allow(dead_code, unused_imports)]

mod error;
mod lock;
pub mod record;
mod transaction;

pub use error::{Result, TxnError};
#[doc(hidden)]
pub use lock::GapCheck;
pub use lock::{
    CommitLevel, Dependency, GapMode, KeyMode, LockError, LockManager, LockName, LockOptions,
    LockStats, LockWait, Mode, Owner, Wait,
};
pub use transaction::{
    Batch, Commit, CommitHandle, Direction, Savepoint, Transaction, TransactionManager, TxnOptions,
    TxnStats, ValueReader,
};
