//! What can go wrong below the transactions, and what to do about it.

use crate::bytes::Malformed;
use longshore_base::{Lsn, PageId, StoreId};
use longshore_log::LogError;
use longshore_pool::PoolError;
use std::fmt;

/// A call on trees, chains or space failed. Nothing was changed by the step that failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AccessError {
    /// A page could not be had in memory, read, written, or added to the file.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The log takes no record.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A page is whole, but not what its place demands: a write was lost, or there is a bug.
    #[error(transparent)]
    Corrupt(#[from] Box<Corruption>),
    /// The key does not fit the pages of this database.
    #[error("the key has {len} bytes; with pages of this size a key may have at most {max}")]
    KeyTooLong {
        /// Bytes of the key.
        len: usize,
        /// Bytes that a key may have.
        max: usize,
    },
    /// The value does not fit beside its key; it should have gone to an overflow chain.
    #[error("the row's value has {len} bytes; beside its key at most {max} fit into a page")]
    ValueTooLong {
        /// Bytes of the value.
        len: usize,
        /// Bytes that fit with this key.
        max: usize,
    },
    /// A log record does not say what its kind must say.
    #[error("log record {lsn} cannot be read: {cause}")]
    Malformed {
        /// The record.
        lsn: Lsn,
        /// What is wrong with it.
        cause: Malformed,
    },
    /// Rows for a bulk load must ascend, and lie behind all rows that are there.
    #[error(
        "row {row} of the bulk load does not sort after the row before it: keys must ascend strictly"
    )]
    NotAscending {
        /// Number of the row within the load, from 0.
        row: u64,
    },
}

impl AccessError {
    /// Whether nothing can succeed any more until the database is reopened.
    pub fn is_final(&self) -> bool {
        match self {
            AccessError::Log(error) => error.is_poisoned(),
            AccessError::Pool(PoolError::LogLost(_) | PoolError::Poisoned { .. }) => true,
            _ => false,
        }
    }

    pub(crate) fn malformed(lsn: Lsn, cause: Malformed) -> Self {
        AccessError::Malformed { lsn, cause }
    }

    #[cold]
    pub(crate) fn corrupt(
        page: PageId,
        store: StoreId,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Self {
        AccessError::Corrupt(Box::new(Corruption {
            page,
            store,
            expected: expected.to_string(),
            found: found.to_string(),
        }))
    }
}

/// A row operation did not happen.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WriteError {
    /// The leaf is full: call [`Tree::make_room`](crate::Tree::make_room) and latch it again.
    #[error("the leaf has no room for the row; make room and try again")]
    NoRoom,
    /// An insert found a row with that key.
    #[error("there is a row with that key already")]
    RowExists,
    /// An update or delete found no row with that key.
    #[error("there is no row with that key")]
    RowMissing,
    /// It cannot be done at all, or not now.
    #[error(transparent)]
    Failed(#[from] AccessError),
}

/// A page that contradicts the rest of the database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "page {page} of store {store} is corrupt: expected {expected}, found {found}; \
     run `verify`, and restore the database from a backup"
)]
pub struct Corruption {
    /// The page.
    pub page: PageId,
    /// The store that it was visited for.
    pub store: StoreId,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}
