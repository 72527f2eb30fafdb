//! Longshore: an embedded transactional store with many concurrent writers.
//!
//! A [`Database`] holds tables; a [`Table`] is an ordered map from keys to values, both bytes. Rows
//! are read and changed in [`Transaction`]s, which are serializable: whatever many of them do at once,
//! the outcome is as if they had run one after the other. What was committed survives the crash of the
//! process and of the machine.
//!
//! ```
//! use longshore::{Database, Error};
//!
//! # fn main() -> longshore::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("bank");
//! let db = Database::open_or_create(&path)?;
//! let accounts = db.table_or_create("accounts")?;
//! db.update(|tx| {
//!     tx.put(&accounts, "alice", [70])?;
//!     tx.put(&accounts, "bob", [30])
//! })?;
//!
//! // Runs again by itself when it has to give way to another transaction.
//! db.update(|tx| {
//!     let alice = tx.get_for_update(&accounts, "alice")?.expect("alice has an account")[0];
//!     let bob = tx.get_for_update(&accounts, "bob")?.expect("bob has an account")[0];
//!     if alice < 20 {
//!         return Err(Error::other("alice has not enough money"));
//!     }
//!     tx.put(&accounts, "alice", [alice - 20])?;
//!     tx.put(&accounts, "bob", [bob + 20])
//! })?;
//!
//! assert_eq!(db.get(&accounts, "bob")?, Some(vec![50]));
//! db.close()
//! # }
//! ```
//!
//! Where to go on: [`Database`] for tables and transactions, [`Options`] for what can be chosen,
//! [`Transaction`] for reading and writing, [`Cursor`] for ranges, [`TypedTable`] for keys and values of
//! your own types, [`Error`] for what can go wrong.

#![forbid(unsafe_code)]

mod bulk;
mod catalog;
mod checkpoint;
mod commit;
mod condition;
mod control;
mod convert;
mod cursor;
mod database;
mod ddl;
mod engine;
mod error;
mod gate;
mod index;
mod inspect;
mod large;
mod lease;
mod locks;
mod maintenance;
mod open;
mod options;
mod prepared;
mod range;
mod recovery;
mod redo;
mod retry;
mod shared;
mod stats;
mod table;
mod transaction;
mod typed;
mod verify;

pub use commit::CommitHandle;
pub use control::FORMAT_VERSION;
pub use cursor::{Cursor, Row};
pub use database::Database;
pub use error::{Error, Result};
pub use index::{Index, IndexCursor, IndexError, IndexInfo, IndexSpec};
pub use inspect::{LogEntries, LogEntry};
pub use large::ValueReader;
pub use locks::{LockEscalation, LockMode, LockView, LockWaitView, TableLock};
pub use longshore_base::{Lsn, PageId, StoreId, TxnId};
#[cfg(feature = "derive")]
pub use longshore_derive::{Key, Value};
pub use longshore_txn::{SnapshotView, VersionStats};
pub use maintenance::Maintained;
pub use options::{
    Background, DoubleWrite, Durability, IoMode, Isolation, LongReaders, Options, PageTrace,
    PageUse, Replacement,
};
pub use prepared::{Prepared, PreparedView};
pub use range::KeyRange;
pub use stats::Stats;
pub use table::Table;
pub use transaction::{Savepoint, Transaction, TransactionOptions};
#[doc(hidden)]
pub use typed::derived;
pub use typed::{
    AsKey, AsPrefix, Context, DecodeError, Key, TypedCursor, TypedRange, TypedTable, Value,
};
pub use verify::{Fault, IndexReport, TableReport, VerifyReport};
