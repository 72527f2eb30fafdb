//! Errors say what to do next, and whether another attempt can help.

use super::*;
use longshore_disk::{DiskErrorKind, DiskOperation};

/// Whether another attempt can help, and how the text says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Retry {
    /// Another attempt may succeed as it is, and the text says "again".
    Helps,
    /// Something else has to be done first, and the text says what.
    NotAlone,
    /// The text is somebody else's.
    NotOurs,
}

/// What is true of a variant. Without a catch-all: who adds a variant decides here.
fn retry(error: &Error) -> Retry {
    match error {
        Error::Deadlock
        | Error::LockTimeout { .. }
        | Error::TableBusy { .. }
        | Error::Verifying { .. }
        | Error::TooManyTransactions { .. }
        | Error::WriteConflict { .. }
        | Error::SnapshotTooOld { .. }
        | Error::VersionsFull { .. }
        | Error::TooManySnapshots
        | Error::PoolExhausted { .. } => Retry::Helps,
        Error::NoDatabase { .. }
        | Error::DatabaseExists { .. }
        | Error::NotADatabase { .. }
        | Error::OtherVersion { .. }
        | Error::OtherPageSize { .. }
        | Error::Locked { .. }
        | Error::NeedsRecovery { .. }
        | Error::InvalidOption { .. }
        | Error::PoolTooSmall { .. }
        | Error::TableMissing { .. }
        | Error::TableExists { .. }
        | Error::TableDropped { .. }
        | Error::TablePrepared { .. }
        | Error::TableName { .. }
        | Error::TableNotEmpty { .. }
        | Error::ForeignTable { .. }
        | Error::KeyExists { .. }
        | Error::KeyTooLong { .. }
        | Error::ValueTooLong { .. }
        | Error::Decode { .. }
        | Error::UniqueViolation { .. }
        | Error::Index(_)
        | Error::Unsorted { .. }
        | Error::Cancelled
        | Error::TimeLimit { .. }
        | Error::LockTableFull { .. }
        | Error::TransactionEnded
        | Error::SavepointGone
        | Error::AlreadyPrepared { .. }
        | Error::NotPrepared { .. }
        | Error::GidLength { .. }
        | Error::GaveUp { .. }
        | Error::ReadOnly
        | Error::Closed
        | Error::StillInUse { .. }
        | Error::Memory { .. }
        | Error::LogFull { .. }
        | Error::DiskFull { .. }
        | Error::PermissionDenied { .. }
        | Error::Corrupt { .. }
        | Error::Poisoned { .. } => Retry::NotAlone,
        Error::Source { .. } | Error::Other(_) | Error::Disk(_) => Retry::NotOurs,
    }
}

/// One of each variant.
fn all() -> Vec<Error> {
    let text = || String::from("some");
    let waited = Duration::from_millis(3);
    let io = || Arc::new(std::io::Error::other("broken"));
    vec![
        Error::NoDatabase { path: text() },
        Error::DatabaseExists {
            path: text(),
            found: text(),
        },
        Error::NotADatabase {
            path: text(),
            reason: text(),
        },
        Error::OtherVersion {
            path: text(),
            found: 1,
            supported: 2,
        },
        Error::OtherPageSize {
            path: text(),
            found: 4096,
            asked: 8192,
        },
        Error::Locked {
            path: text(),
            holder: text(),
        },
        Error::NeedsRecovery { path: text() },
        Error::InvalidOption {
            option: "pool_bytes",
            value: text(),
            allowed: text(),
        },
        Error::PoolTooSmall {
            bytes: 1,
            minimum: 2,
        },
        Error::TableMissing { table: text() },
        Error::TableExists { table: text() },
        Error::TableDropped { table: text() },
        Error::TableBusy {
            table: text(),
            transactions: 1,
            waited,
        },
        Error::TablePrepared {
            table: text(),
            gid: Arc::from(*b"g"),
        },
        Error::Verifying { waited },
        Error::TableName { length: 0 },
        Error::TableNotEmpty { table: text() },
        Error::ForeignTable { table: text() },
        Error::KeyExists { table: text() },
        Error::KeyTooLong {
            table: text(),
            key_bytes: 2,
            maximum: 1,
        },
        Error::ValueTooLong { maximum: 1 },
        Error::Decode {
            table: text(),
            part: "key",
            source: DecodeError::new("a bool", "nothing"),
        },
        Error::UniqueViolation {
            table: text(),
            index: text(),
            key: Arc::from(&b"k"[..]),
        },
        Error::Index(IndexError::NotReady {
            table: text(),
            index: text(),
        }),
        Error::Unsorted { row: 1 },
        Error::Source { source: io() },
        Error::Deadlock,
        Error::Cancelled,
        Error::TimeLimit { limit: waited },
        Error::LockTimeout {
            table: text(),
            waited,
        },
        Error::WriteConflict { table: text() },
        Error::SnapshotTooOld { table: text() },
        Error::VersionsFull { bytes_max: 1 },
        Error::TooManySnapshots,
        Error::LockTableFull { bytes_max: 1 },
        Error::TooManyTransactions { maximum: 1 },
        Error::TransactionEnded,
        Error::SavepointGone,
        Error::AlreadyPrepared {
            gid: Arc::from(&b"g"[..]),
        },
        Error::NotPrepared {
            gid: Arc::from(&b"g"[..]),
        },
        Error::GidLength {
            length: 0,
            maximum: 255,
        },
        Error::GaveUp {
            attempts: 3,
            last: Box::new(Error::TransactionEnded),
        },
        Error::ReadOnly,
        Error::Closed,
        Error::StillInUse { transactions: 1 },
        Error::other("not enough money"),
        Error::PoolExhausted {
            reason: text(),
            waited,
        },
        Error::Memory { reason: text() },
        Error::LogFull { bytes_max: 1 },
        Error::DiskFull {
            operation: text(),
            file: text(),
        },
        Error::PermissionDenied {
            operation: text(),
            file: text(),
        },
        Error::Disk(longshore_disk::DiskError {
            operation: DiskOperation::Read,
            file: text(),
            offset: None,
            kind: DiskErrorKind::Io,
            source: io(),
        }),
        Error::corrupt("data", "checksum"),
        Error::Poisoned {
            cause: Arc::from("a sync failed"),
        },
    ]
}

#[test]
fn every_error_says_whether_another_attempt_can_help() {
    let all = all();
    let mut kinds: Vec<_> = all.iter().map(std::mem::discriminant).collect();
    kinds.dedup();
    assert_eq!(kinds.len(), VARIANTS, "one of each variant");
    for error in all {
        let (said, text) = (retry(&error), error.to_string());
        assert_eq!(error.is_retryable(), said == Retry::Helps, "{text}");
        let advises = text.contains("try again")
            || text.contains("run it again")
            || text.contains("run the transaction again");
        match said {
            Retry::Helps => assert!(advises, "{text}"),
            // Advice, or what is wrong with what was given.
            Retry::NotAlone => assert!(!text.contains("roll back and run"), "{text}"),
            Retry::NotOurs => {}
        }
        if error.is_fatal() {
            assert!(text.contains("open"), "{text}");
        }
    }
}

/// How many variants `retry` has to decide on.
const VARIANTS: usize = 54;

#[test]
fn damage_names_file_page_and_reason() {
    let in_page = Error::Corrupt {
        file: "data".into(),
        page: Some(PageId::new(7)),
        reason: "checksum mismatch".into(),
    };
    assert_eq!(
        in_page.to_string(),
        "`data` page 7 is damaged: checksum mismatch; restore the database from a backup"
    );
    let whole = Error::corrupt("control", "shorter than 8192 bytes").to_string();
    assert!(
        whole.starts_with("`control` is damaged: shorter"),
        "{whole}"
    );
}

#[test]
fn an_applications_error_comes_back_out() {
    #[derive(Debug, thiserror::Error)]
    #[error("not enough money: {0}")]
    struct TooPoor(u64);
    let error = Error::other(TooPoor(3));
    assert_eq!(error.to_string(), "not enough money: 3");
    assert!(error.as_other().unwrap().is::<TooPoor>());
}
