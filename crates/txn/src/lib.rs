//! Who may see and change what: transactions, locks, undo.

#![forbid(unsafe_code)]
#![allow(dead_code, unused_imports)]

mod lock;

pub use lock::{
    CommitLevel, Dependency, GapMode, KeyMode, LockError, LockManager, LockName, LockOptions,
    LockStats, LockWait, Mode, Owner, Wait,
};
