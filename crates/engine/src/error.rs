//! What can go wrong, said so that the reader knows what to do next.
//!
//! # Protocol
//! Every call of this crate returns [`Error`]; the errors of the storeys below are turned into it in
//! `convert.rs`, and nowhere else. A message names what was tried, on what, and the way out.
//!
//! # Invariants
//! I1. [`Error::is_retryable`] is true exactly for what may succeed when the whole transaction is run
//! again: [`crate::Database::update`] relies on it.
//! I2. After the first [`Error::Poisoned`] every later call that could promise something returns it,
//! with the same cause, until the database is reopened.

use crate::index::IndexError;
use crate::typed::DecodeError;
use longshore_base::PageId;
use std::sync::Arc;
use std::time::Duration;

/// The result of every call that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed. Cheap to clone.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // ---- opening -------------------------------------------------------------------------------
    /// There is nothing to open.
    #[error("there is no database in {path}; create one there, or check the path")]
    NoDatabase {
        /// Where it was looked for.
        path: String,
    },
    /// The place of a new database is taken.
    #[error("{path} holds a database already (`{found}`); open it, or choose another place")]
    DatabaseExists {
        /// Where it was to be created.
        path: String,
        /// The file that is in the way.
        found: String,
    },
    /// The files are not Longshore's.
    #[error("{path} is not a Longshore database: {reason}")]
    NotADatabase {
        /// Where it was looked for.
        path: String,
        /// What was found instead.
        reason: String,
    },
    /// The database was written by another version of this crate.
    #[error("{path} has format version {found}; this build reads version {supported}")]
    OtherVersion {
        /// The database.
        path: String,
        /// Its version.
        found: u32,
        /// The version that this build reads and writes.
        supported: u32,
    },
    /// The option names another page size than the database has.
    #[error(
        "{path} has pages of {found} bytes, not {asked}; the size is fixed at creation: leave the \
         option out, or load the data into a new database"
    )]
    OtherPageSize {
        /// The database.
        path: String,
        /// Its page size in bytes.
        found: usize,
        /// The size that the option names.
        asked: usize,
    },
    /// Another process, or another handle of this one, has the database open.
    #[error("{path} is open already ({holder}); close it there, or clone that handle")]
    Locked {
        /// The database.
        path: String,
        /// Who has it open, as far as is known.
        holder: String,
    },
    /// A database opened for reading only would have to be changed first.
    #[error(
        "{path} was not closed cleanly and must be recovered before it can be opened for reading \
         only; open it once for writing"
    )]
    NeedsRecovery {
        /// The database.
        path: String,
    },
    /// A value outside the range of an option.
    #[error("option {option} is {value}; it must be {allowed}")]
    InvalidOption {
        /// The option's name.
        option: &'static str,
        /// The refused value.
        value: String,
        /// What it may be.
        allowed: String,
    },
    /// The pool cannot work with so little memory.
    #[error("pool_bytes is {bytes}; this page size needs at least {minimum} bytes")]
    PoolTooSmall {
        /// The refused size in bytes.
        bytes: usize,
        /// The least that will do, in bytes.
        minimum: usize,
    },

    // ---- tables --------------------------------------------------------------------------------
    /// No table has the name.
    #[error("there is no table `{table}`; `tables()` lists those that there are")]
    TableMissing {
        /// The name asked for.
        table: String,
    },
    /// A table has the name already.
    #[error("table `{table}` exists already; open it with `table()`, or choose another name")]
    TableExists {
        /// The name asked for.
        table: String,
    },
    /// The table was dropped after the handle was made.
    #[error("table `{table}` has been dropped; handles to it are of no more use")]
    TableDropped {
        /// The name it had.
        table: String,
    },
    /// Transactions that used the table did not end in time.
    #[error(
        "table `{table}` is in use by {transactions} transaction(s), which did not end within \
         {waited:?}; try again when they have"
    )]
    TableBusy {
        /// The table that was to be dropped or loaded.
        table: String,
        /// How many transactions use it.
        transactions: u64,
        /// How long was waited.
        waited: Duration,
    },
    /// A prepared transaction has used the table and waits for a decision.
    #[error(
        "table `{table}` is used by the transaction prepared as \"{}\", which waits for a decision: commit or roll \
         that one back first",
        gid.escape_ascii()
    )]
    TablePrepared {
        /// The table that was to be dropped or loaded, or whose indexes were to be changed.
        table: String,
        /// The transaction's name.
        gid: Arc<[u8]>,
    },
    /// A prepared transaction was to be resolved while the database was verified, or the other way round.
    #[error(
        "the database is verified, or a prepared transaction resolved, and only one of the two can be; waited for \
         {waited:?}; try again later"
    )]
    Verifying {
        /// How long was waited.
        waited: Duration,
    },
    /// A name that no table may have.
    #[error("a table's name has 1 to 255 bytes; this one has {length}")]
    TableName {
        /// Length of the refused name in bytes.
        length: usize,
    },
    /// Sorted loading needs an empty table.
    #[error("table `{table}` is not empty; load into a new table, or insert row by row")]
    TableNotEmpty {
        /// The table that was to be loaded.
        table: String,
    },
    /// A table of another database.
    #[error("table `{table}` belongs to another database; ask this one for its own handle")]
    ForeignTable {
        /// The table's name.
        table: String,
    },

    // ---- rows ----------------------------------------------------------------------------------
    /// `insert` found the key taken.
    #[error("table `{table}` has a row with this key already; use `put` to replace its value")]
    KeyExists {
        /// The table.
        table: String,
    },
    /// A key longer than a quarter of a page.
    #[error("a key of {key_bytes} bytes is too long for table `{table}`; at most {maximum} fit")]
    KeyTooLong {
        /// The table.
        table: String,
        /// Length of the refused key.
        key_bytes: usize,
        /// The longest key that this page size allows.
        maximum: usize,
    },
    /// A value of more than 1 GiB.
    #[error("the value is too long; a row may hold at most {maximum} bytes")]
    ValueTooLong {
        /// The longest value.
        maximum: u64,
    },
    /// A row whose bytes are not of the types that the table was opened with.
    #[error(
        "the {part} of a row of table `{table}` is of another type: {source}; open the table with the \
         types that it was written with, or as bytes"
    )]
    Decode {
        /// The table.
        table: String,
        /// `key` or `value`.
        part: &'static str,
        /// What was expected, and what was found.
        source: DecodeError,
    },
    /// A row would have a key in a unique index that another row has.
    #[error(
        "another row of table `{table}` has this key in the unique index `{index}`: \"{}\"",
        key.escape_ascii()
    )]
    UniqueViolation {
        /// The table.
        table: String,
        /// The index.
        index: String,
        /// The encoding of the key; [`crate::Key::from_bytes`] decodes it.
        key: Arc<[u8]>,
    },
    /// An index was in the way, or is not as it should be.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// Rows for sorted loading that are not in strictly ascending order.
    #[error("row {row} has a key that is not above that of the row before it; sort the rows first")]
    Unsorted {
        /// The row, counted from 1.
        row: u64,
    },
    /// The reader given to `put_stream`, or the rows given to `bulk_load`, failed.
    #[error("the source of the data failed: {source}")]
    Source {
        /// The failure.
        source: Arc<std::io::Error>,
    },

    // ---- transactions --------------------------------------------------------------------------
    /// The transaction was chosen to end a deadlock; its locks can be had again.
    #[error("deadlock: this transaction was chosen to give way; roll back and run it again")]
    Deadlock,
    /// [`Database::cancel`](crate::Database::cancel) has ended the transaction.
    #[error(
        "the transaction was cancelled by another thread, and rolled back; begin another only if the work is \
         still wanted"
    )]
    Cancelled,
    /// The transaction took longer than [its limit](crate::TransactionOptions::time_limit). Not retried: the limit
    /// is the caller's word on how long it may take.
    #[error(
        "the transaction took longer than the {limit:?} that it was given, and was rolled back; make it \
         shorter, or give it more time"
    )]
    TimeLimit {
        /// The time that it was given.
        limit: Duration,
    },
    /// A lock could not be had in time.
    #[error(
        "a lock on a row of table `{table}` was not free within {waited:?}; run the transaction \
         again, or raise lock_wait"
    )]
    LockTimeout {
        /// The table of the row.
        table: String,
        /// How long was waited.
        waited: Duration,
    },
    /// At isolation level snapshot: somebody has changed the row since this transaction began.
    #[error(
        "a row of table `{table}` has been changed since this transaction began; roll back and run it again"
    )]
    WriteConflict {
        /// The table of the row.
        table: String,
    },
    /// What the transaction would read is not kept any more.
    #[error(
        "the transaction's snapshot is too old for table `{table}`: the table was loaded anew, or older \
         states of rows took more memory than there is; run the transaction again, make it shorter, or raise \
         version_bytes_max"
    )]
    SnapshotTooOld {
        /// The table.
        table: String,
    },
    /// Older states of rows, kept for long readers, use up their memory.
    #[error(
        "older states of rows, kept for transactions that read for long, use up {bytes_max} bytes; \
         `Database::snapshots` lists those transactions: end them and try again, or raise version_bytes_max"
    )]
    VersionsFull {
        /// The budget in bytes.
        bytes_max: usize,
    },
    /// As many snapshots are open as may be.
    #[error(
        "too many snapshots are open: each transaction that reads one has one, and each cursor at level \
         read committed; close some and try again, or raise transactions_max"
    )]
    TooManySnapshots,
    /// The memory for locks is used up.
    #[error(
        "the lock table is full ({bytes_max} bytes); another attempt helps only if others end first: commit \
         in smaller portions, or raise lock_bytes_max"
    )]
    LockTableFull {
        /// The budget in bytes.
        bytes_max: usize,
    },
    /// A prepared transaction has the name already.
    #[error(
        "a transaction is prepared as \"{}\" already; choose another name, or resolve that one first",
        gid.escape_ascii()
    )]
    AlreadyPrepared {
        /// The name.
        gid: Arc<[u8]>,
    },
    /// No prepared transaction has the name.
    #[error(
        "no transaction is prepared as \"{}\": it was resolved already, or never prepared here; `prepared()` \
         lists those that are",
        gid.escape_ascii()
    )]
    NotPrepared {
        /// The name.
        gid: Arc<[u8]>,
    },
    /// A name that no prepared transaction may have.
    #[error("the name of a prepared transaction has 1 to {maximum} bytes; this one has {length}")]
    GidLength {
        /// Length of the refused name in bytes.
        length: usize,
        /// The longest name.
        maximum: usize,
    },
    /// Too many transactions are active.
    #[error(
        "{maximum} transactions are active, which is the most allowed; try again when some have ended, or \
         raise transactions_max"
    )]
    TooManyTransactions {
        /// The limit.
        maximum: usize,
    },
    /// The transaction is over.
    #[error("the transaction has ended; begin another")]
    TransactionEnded,
    /// The savepoint was released by a rollback to an earlier one, or is another transaction's.
    #[error("the savepoint is not one of this transaction's any more")]
    SavepointGone,
    /// `update` has run its body as often as it may.
    #[error("gave up after {attempts} attempts; the last one failed so: {last}")]
    GaveUp {
        /// How often the body was run.
        attempts: u32,
        /// What ended the last attempt.
        last: Box<Error>,
    },
    /// A change to a database opened for reading only, or in a `view`.
    #[error("this is open for reading only; nothing can be changed")]
    ReadOnly,
    /// The database was closed.
    #[error("the database has been closed; open it again")]
    Closed,
    /// The database cannot be closed yet.
    #[error("{transactions} transaction(s) are still active; end them before closing")]
    StillInUse {
        /// How many.
        transactions: usize,
    },
    /// An error of the application's own, on its way out of `update` or `view`.
    #[error("{0}")]
    Other(Arc<dyn std::error::Error + Send + Sync>),

    // ---- resources -----------------------------------------------------------------------------
    /// The pool had no room for a page in time.
    #[error(
        "the page pool had no room within {waited:?}: {reason}; run the transaction again, raise \
         pool_bytes, or run fewer operations at a time"
    )]
    PoolExhausted {
        /// What was in the way.
        reason: String,
        /// How long was waited.
        waited: Duration,
    },
    /// The system gave no memory.
    #[error("no memory: {reason}")]
    Memory {
        /// For what, and what to do.
        reason: String,
    },
    /// The log has reached its limit and no checkpoint can free any of it.
    #[error(
        "the log is full ({bytes_max} bytes), and active transactions need all of it; another \
         attempt helps only if those end: commit in smaller portions, end long transactions, or raise \
         log_bytes_max"
    )]
    LogFull {
        /// The budget in bytes.
        bytes_max: u64,
    },
    /// The file system is full.
    #[error("the disk is full, {operation} `{file}` failed; free some space and try again")]
    DiskFull {
        /// What was tried.
        operation: String,
        /// The file.
        file: String,
    },
    /// The file system refuses access.
    #[error("permission denied to {operation} `{file}`; check owner and mode of the directory")]
    PermissionDenied {
        /// What was tried.
        operation: String,
        /// The file.
        file: String,
    },
    /// Another failure of the file system.
    #[error("{0}")]
    Disk(longshore_disk::DiskError),

    // ---- broken --------------------------------------------------------------------------------
    /// Bytes that are not those that were written.
    #[error(
        "`{file}`{} is damaged: {reason}; restore the database from a backup",
        at_page(page)
    )]
    Corrupt {
        /// The file.
        file: String,
        /// The page, where the damage is in one.
        page: Option<PageId>,
        /// What is wrong with it.
        reason: String,
    },
    /// A write or sync failed, after which nothing more can be promised.
    #[error(
        "the database stopped after a failure, and refuses everything until it is reopened: \
         {cause}"
    )]
    Poisoned {
        /// The failure that came first.
        cause: Arc<str>,
    },
}

impl Error {
    /// Carries an application's own error out of [`crate::Database::update`], which rolls back and
    /// does not try again.
    ///
    /// ```
    /// use longshore::{Database, Error};
    /// # fn main() -> longshore::Result<()> {
    /// let db = Database::in_memory()?;
    /// let outcome: Result<(), Error> = db.update(|_| Err(Error::other("not enough money")));
    /// assert_eq!(outcome.unwrap_err().to_string(), "not enough money");
    /// # Ok(()) }
    /// ```
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Other(Arc::from(error.into()))
    }

    /// Whether the whole transaction, run again, may succeed (I1).
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Error::Deadlock
                | Error::LockTimeout { .. }
                | Error::TableBusy { .. }
                | Error::Verifying { .. }
                | Error::TooManyTransactions { .. }
                | Error::WriteConflict { .. }
                | Error::SnapshotTooOld { .. }
                | Error::VersionsFull { .. }
                | Error::TooManySnapshots
                | Error::PoolExhausted { .. }
        )
    }

    /// Whether damaged bytes were found.
    pub fn is_corrupt(&self) -> bool {
        matches!(self, Error::Corrupt { .. })
    }

    /// Whether nothing will succeed before the database is reopened.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Error::Poisoned { .. } | Error::Closed)
    }

    /// The application's own error, where this carries one.
    pub fn as_other(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        match self {
            Error::Other(error) => Some(error.as_ref()),
            _ => None,
        }
    }

    /// Damage in a file, outside of any page.
    pub(crate) fn corrupt(file: &str, reason: impl Into<String>) -> Error {
        Error::Corrupt {
            file: file.to_owned(),
            page: None,
            reason: reason.into(),
        }
    }
}

impl From<std::io::Error> for Error {
    /// A reader of the caller's failed.
    fn from(error: std::io::Error) -> Error {
        Error::Source {
            source: Arc::new(error),
        }
    }
}

fn at_page(page: &Option<PageId>) -> String {
    page.map(|page| format!(" page {page}")).unwrap_or_default()
}

#[cfg(test)]
mod tests;
