//! The errors of the storeys below, in the words of this one.
//!
//! Whoever knows the table uses [`Error::from_txn`]; where there is none, [`From`] does. What poisons
//! a storey below poisons the database, whichever storey tells of it first.

use crate::error::Error;
use crate::table::TableState;
use longshore_access::AccessError;
use longshore_base::{DurabilityLost, PageId};
use longshore_disk::{DiskError, DiskErrorKind};
use longshore_log::{FullCause, LogError};
use longshore_pool::PoolError;
use longshore_txn::{LockError, TxnError};

/// Name given to the data file in errors about pages.
const DATA: &str = "data";

impl Error {
    /// The error of an operation on `table`.
    pub(crate) fn from_txn(error: TxnError, table: &TableState) -> Error {
        in_table(error, || table.name())
    }
}

impl From<TxnError> for Error {
    fn from(error: TxnError) -> Error {
        in_table(error, || "the catalog".to_owned())
    }
}

fn in_table(error: TxnError, table: impl Fn() -> String) -> Error {
    match error {
        TxnError::Lock(LockError::Deadlock { .. }) => Error::Deadlock,
        TxnError::Lock(LockError::Timeout { waited, .. }) => Error::LockTimeout {
            table: table(),
            waited,
        },
        TxnError::Lock(LockError::Cancelled) => Error::Cancelled,
        TxnError::Lock(LockError::TableFull { bytes_max }) => Error::LockTableFull { bytes_max },
        TxnError::TimeLimit { limit } => Error::TimeLimit { limit },
        TxnError::WriteConflict { .. } => Error::WriteConflict { table: table() },
        TxnError::SnapshotTooOld => Error::SnapshotTooOld { table: table() },
        TxnError::VersionsFull { bytes_max, .. } => Error::VersionsFull { bytes_max },
        TxnError::TooManySnapshots => Error::TooManySnapshots,
        TxnError::KeyExists => Error::KeyExists { table: table() },
        TxnError::Access(AccessError::KeyTooLong { len, max }) => Error::KeyTooLong {
            table: table(),
            key_bytes: len,
            maximum: max,
        },
        TxnError::Ended { .. } => Error::TransactionEnded,
        TxnError::SavepointGone => Error::SavepointGone,
        TxnError::AlreadyPrepared { gid } => Error::AlreadyPrepared { gid },
        TxnError::NotPrepared { gid } => Error::NotPrepared { gid },
        TxnError::GidLength { length, max } => Error::GidLength {
            length,
            maximum: max,
        },
        TxnError::TooManyTransactions { max } => Error::TooManyTransactions { maximum: max },
        TxnError::ValueTooLong { max } => Error::ValueTooLong { maximum: max },
        TxnError::Source(source) => Error::Source { source },
        TxnError::Access(error) => error.into(),
        TxnError::Log(error) => error.into(),
        TxnError::Failed { cause } => Error::Poisoned { cause },
        other => Error::other(other.to_string()),
    }
}

impl From<AccessError> for Error {
    fn from(error: AccessError) -> Error {
        match error {
            AccessError::Pool(error) => error.into(),
            AccessError::Log(error) => error.into(),
            AccessError::Corrupt(found) => damaged(
                found.page,
                format!("expected {}, found {}", found.expected, found.found),
            ),
            AccessError::Malformed { .. } => Error::corrupt("log", error.to_string()),
            AccessError::KeyTooLong { len, max } => Error::KeyTooLong {
                table: "a new table".to_owned(),
                key_bytes: len,
                maximum: max,
            },
            AccessError::ValueTooLong { max, .. } => Error::ValueTooLong {
                maximum: max as u64,
            },
            AccessError::NotAscending { row } => Error::Unsorted { row: row + 1 },
        }
    }
}

impl From<PoolError> for Error {
    fn from(error: PoolError) -> Error {
        match error {
            PoolError::Exhausted {
                frames,
                pinned,
                dirty,
                waited,
            } => Error::PoolExhausted {
                reason: format!(
                    "{pinned} of {frames} frames are in use, {dirty} wait to be written"
                ),
                waited,
            },
            PoolError::Busy { page, waited } => Error::PoolExhausted {
                reason: format!("page {page} was held by another thread"),
                waited,
            },
            PoolError::Damaged { page, reason } => damaged(page, reason.to_string()),
            PoolError::NoSuchPage { page } => damaged(page, "no page has this number".to_owned()),
            PoolError::Disk(error) => error.into(),
            PoolError::LogLost(lost) => lost.into(),
            PoolError::Poisoned { cause } => Error::Poisoned { cause },
            PoolError::TooSmall { given, minimum, .. } => Error::PoolTooSmall {
                bytes: given,
                minimum,
            },
            other => Error::Memory {
                reason: other.to_string(),
            },
        }
    }
}

fn damaged(page: PageId, reason: String) -> Error {
    Error::Corrupt {
        file: DATA.to_owned(),
        page: Some(page),
        reason,
    }
}

impl From<LogError> for Error {
    fn from(error: LogError) -> Error {
        match error {
            LogError::Full { cause, .. } => match cause {
                FullCause::Limit { bytes_max, .. } => Error::LogFull { bytes_max },
                FullCause::Disk(error) => error.into(),
            },
            LogError::Poisoned { cause } => Error::Poisoned { cause },
            LogError::Damaged {
                segment,
                offset,
                lsn,
                reason,
            } => Error::corrupt(&segment, format!("offset {offset} (LSN {lsn}): {reason}")),
            LogError::Missing { segment, lsn } => Error::corrupt(
                &segment,
                format!("the file is missing, and is needed from LSN {lsn} on"),
            ),
            LogError::ReadOnly => Error::ReadOnly,
            LogError::Disk(error) => error.into(),
            LogError::NotALog { ref segment, .. }
            | LogError::Version { ref segment, .. }
            | LogError::OtherDatabase { ref segment, .. } => {
                Error::corrupt(segment, error.to_string())
            }
            other => Error::corrupt("log", other.to_string()),
        }
    }
}

impl From<DurabilityLost> for Error {
    fn from(lost: DurabilityLost) -> Error {
        Error::Poisoned { cause: lost.cause }
    }
}

impl From<DiskError> for Error {
    fn from(error: DiskError) -> Error {
        let operation = error.operation.to_string();
        let file = error.file.clone();
        match error.kind {
            DiskErrorKind::Full => Error::DiskFull { operation, file },
            DiskErrorKind::PermissionDenied => Error::PermissionDenied { operation, file },
            DiskErrorKind::Locked => Error::Locked {
                path: file,
                holder: error.source.to_string(),
            },
            _ => Error::Disk(error),
        }
    }
}
