//! Why a lock was not granted.

use super::name::LockName;
use longshore_base::TxnId;
use std::time::Duration;

/// Why a lock was not granted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LockError {
    /// Several transactions waited for each other in a circle, and this one had the greatest number.
    #[error("deadlock: the transaction waited for a lock in store {} whose holder waits for it", name.store())]
    Deadlock {
        /// The lock it waited for.
        name: LockName,
    },
    /// The time for waiting is up; at once if there was none.
    #[error(
        "no lock in store {} within {waited:?}{}; raise lock_wait or retry",
        name.store(),
        holder.map(|h| format!(": transaction {h} is in the way")).unwrap_or_default()
    )]
    Timeout {
        /// The lock it waited for.
        name: LockName,
        /// How long it waited.
        waited: Duration,
        /// One of the transactions in the way at the end.
        holder: Option<TxnId>,
    },
    /// Another thread has cancelled the transaction.
    #[error("the transaction was cancelled")]
    Cancelled,
    /// All memory for locks is in use.
    #[error(
        "the lock table is full: its {bytes_max} bytes hold no more locks; commit in smaller \
         transactions or raise the option lock_bytes_max"
    )]
    TableFull {
        /// The budget.
        bytes_max: usize,
    },
}
