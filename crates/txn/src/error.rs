//! Why a transaction's call failed, and what to do about it.

use crate::lock::{LockError, LockName};
use longshore_access::AccessError;
use longshore_base::{DurabilityLost, TxnId};
use longshore_log::LogError;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A call on a transaction, or on the manager of all, failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TxnError {
    /// A lock was not to be had, or the transaction was cancelled. After a deadlock, a time-out or a
    /// cancellation the transaction has been rolled back.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The transaction took longer than it was given. It has been rolled back.
    #[error(
        "the transaction took longer than the {limit:?} that it was given, and was rolled back; begin it anew \
         with more time, or make it shorter"
    )]
    TimeLimit {
        /// The time that it was given.
        limit: Duration,
    },
    /// An insert found a row with its key. The transaction goes on.
    #[error("a row with this key exists already")]
    KeyExists,
    /// The transaction was rolled back by an earlier error, and takes no more calls.
    #[error("transaction {txn} was rolled back already: {cause}; begin it anew")]
    Ended {
        /// The transaction.
        txn: TxnId,
        /// The error that ended it.
        cause: Arc<str>,
    },
    /// The savepoint is another transaction's, or lies behind one that was rolled back to.
    #[error("the savepoint is not, or no longer, one of this transaction")]
    SavepointGone,
    /// A prepared transaction has this name. The one that was to be prepared has been rolled back.
    #[error("a transaction is prepared as \"{}\" already; choose another name, or resolve that one", gid.escape_ascii())]
    AlreadyPrepared {
        /// The name.
        gid: Arc<[u8]>,
    },
    /// No prepared transaction has this name.
    #[error("no transaction is prepared as \"{}\"; it was resolved already, or never prepared here", gid.escape_ascii())]
    NotPrepared {
        /// The name.
        gid: Arc<[u8]>,
    },
    /// A name that no prepared transaction may have. The one that was to be prepared has been rolled back.
    #[error("the name of a prepared transaction has 1 to {max} bytes; this one has {length}")]
    GidLength {
        /// Bytes of the refused name.
        length: usize,
        /// Bytes that it may have.
        max: usize,
    },
    /// As many transactions are open as are allowed.
    #[error(
        "{max} transactions are open, which is all that may be; end some, or raise the option \
         transactions_max"
    )]
    TooManyTransactions {
        /// The option.
        max: usize,
    },
    /// At isolation level snapshot: the row has been changed since this transaction began. It has been rolled
    /// back.
    #[error(
        "the row has been changed by a transaction that this one does not see, which began before; begin it anew"
    )]
    WriteConflict {
        /// The row's name.
        name: LockName,
    },
    /// The snapshot was ended because memory for older images of rows ran out. The transaction has been
    /// rolled back.
    #[error(
        "the snapshot is too old: older images of rows took more memory than version_bytes_max allows; begin \
         the transaction anew, or raise the option"
    )]
    SnapshotTooOld,
    /// Older images of rows take all the memory that they may, and snapshots that need them are open. The
    /// transaction goes on.
    #[error(
        "older images of rows take all of {bytes_max} bytes, because of snapshots that are open ({}); end \
         those, or raise the option version_bytes_max",
        oldest.map_or_else(|| String::from("by now closed"), |txn| format!("the oldest is transaction {txn}'s"))
    )]
    VersionsFull {
        /// The option.
        bytes_max: usize,
        /// Whose snapshot is the oldest.
        oldest: Option<TxnId>,
    },
    /// As many snapshots are open as may be: twice as many as transactions.
    #[error(
        "too many snapshots are open; close some cursors, or raise the option transactions_max"
    )]
    TooManySnapshots,
    /// A value is longer than any may be.
    #[error("the value is longer than {max} bytes, which is the most that a row may hold")]
    ValueTooLong {
        /// Bytes that a value may have.
        max: u64,
    },
    /// The source of a streamed value failed.
    #[error("the value could not be read from its source: {0}")]
    Source(Arc<io::Error>),
    /// Pages or trees failed.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A log that lost its promise, or a rollback that could not be finished.
    #[error("transactions are refused until the database is reopened: {cause}")]
    Failed {
        /// The failure that came first.
        cause: Arc<str>,
    },
}

/// What calls on transactions return.
pub type Result<T> = std::result::Result<T, TxnError>;

impl TxnError {
    /// Whether the whole transaction, begun anew, may succeed without anybody doing anything.
    pub fn is_retryable(&self) -> bool {
        match self {
            TxnError::Ended { .. } | TxnError::VersionsFull { .. } | TxnError::TooManySnapshots => {
                true
            }
            // Somebody wants it to end, be it by a limit.
            TxnError::Lock(LockError::Cancelled) | TxnError::TimeLimit { .. } => false,
            _ => self.ends_transaction(),
        }
    }

    /// Whether nothing can succeed any more until the database is reopened.
    pub fn is_final(&self) -> bool {
        match self {
            TxnError::Failed { .. } => true,
            TxnError::Log(error) => error.is_poisoned(),
            TxnError::Access(error) => error.is_final(),
            _ => false,
        }
    }

    /// Whether the transaction has been rolled back because of this error.
    pub fn ends_transaction(&self) -> bool {
        matches!(
            self,
            TxnError::Lock(
                LockError::Deadlock { .. } | LockError::Timeout { .. } | LockError::Cancelled
            ) | TxnError::TimeLimit { .. }
                | TxnError::WriteConflict { .. }
                | TxnError::SnapshotTooOld
        )
    }
}

impl From<DurabilityLost> for TxnError {
    fn from(lost: DurabilityLost) -> TxnError {
        TxnError::Failed { cause: lost.cause }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_base::StoreId;

    #[test]
    fn what_ends_a_transaction_can_be_retried_and_nothing_else() {
        let name = LockName::of_key(StoreId::new(16), b"k");
        assert!(TxnError::from(LockError::Deadlock { name }).is_retryable());
        assert!(!TxnError::from(LockError::TableFull { bytes_max: 1 }).is_retryable());
        assert!(!TxnError::KeyExists.is_retryable());
    }
}
