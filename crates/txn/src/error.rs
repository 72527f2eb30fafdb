//! Why a transaction's call failed, and what to do about it.

use crate::lock::LockError;
use longshore_access::AccessError;
use longshore_base::{DurabilityLost, TxnId};
use longshore_log::LogError;
use std::io;
use std::sync::Arc;

/// A call on a transaction, or on the manager of all, failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TxnError {
    /// A lock was not to be had, or the transaction was cancelled. After a deadlock, a time-out or a
    /// cancellation the transaction has been rolled back.
    #[error(transparent)]
    Lock(#[from] LockError),
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
    /// As many transactions are open as are allowed.
    #[error(
        "{max} transactions are open, which is all that may be; end some, or raise the option \
         transactions_max"
    )]
    TooManyTransactions {
        /// The option.
        max: usize,
    },
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
            TxnError::Ended { .. } => true,
            // Somebody wants it to end.
            TxnError::Lock(LockError::Cancelled) => false,
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
            )
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
    use crate::lock::LockName;
    use longshore_base::StoreId;

    #[test]
    fn what_ends_a_transaction_can_be_retried_and_nothing_else() {
        let name = LockName::of_key(StoreId::new(16), b"k");
        assert!(TxnError::from(LockError::Deadlock { name }).is_retryable());
        assert!(!TxnError::from(LockError::TableFull { bytes_max: 1 }).is_retryable());
        assert!(!TxnError::KeyExists.is_retryable());
    }
}
