//! Transactions as users hold them. What is behind them is told in `shared.rs`.

use crate::commit::CommitHandle;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::index::{self, RowChange};
use crate::large::{ValueReader, Watched};
use crate::lease::Lease;
use crate::locks::TableLock;
use crate::options::{Access, Durability, Isolation};
use crate::prepared::Prepared;
use crate::range::{self, KeyRange};
use crate::shared::Shared;
use crate::table::Table;
use longshore_base::TxnId;
use std::fmt;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

/// What one transaction may choose for itself.
///
/// ```
/// use longshore::{Database, Durability, TransactionOptions};
/// # fn main() -> longshore::Result<()> {
/// # let db = Database::in_memory()?;
/// let relaxed = TransactionOptions::new().durability(Durability::None);
/// let tx = db.begin_with(relaxed)?;
/// # tx.commit()
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TransactionOptions {
    pub(crate) durability: Option<Durability>,
    pub(crate) lock_wait: Option<Duration>,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) access: Access,
    pub(crate) isolation: Isolation,
    pub(crate) label: &'static str,
}

impl TransactionOptions {
    /// The database's own choices.
    pub fn new() -> TransactionOptions {
        TransactionOptions::default()
    }

    /// How safe the commit is when it is answered.
    pub fn durability(mut self, durability: Durability) -> TransactionOptions {
        self.durability = Some(durability);
        self
    }

    /// Longest wait for a lock; zero means not to wait.
    pub fn lock_wait(mut self, limit: Duration) -> TransactionOptions {
        self.lock_wait = Some(limit);
        self
    }

    /// Longest time from its begin to its commit; unlimited unless set.
    ///
    /// Looked at by each statement and by the commit, before each lock, and while waiting for one. What finds
    /// the time up fails with [`Error::TimeLimit`], and the transaction is rolled back at once. A
    /// transaction that does nothing is not ended by it: it keeps its locks, and its snapshot, until its next
    /// call or until it is dropped, as after [`Database::cancel`](crate::Database::cancel).
    ///
    /// ```
    /// use longshore::{Database, Error, TransactionOptions};
    /// use std::time::Duration;
    /// # fn main() -> longshore::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let table = db.create_table("t")?;
    /// let hasty = TransactionOptions::new().time_limit(Duration::from_millis(1));
    /// let tx = db.begin_with(hasty)?;
    /// std::thread::sleep(Duration::from_millis(2));
    /// assert!(matches!(tx.put(&table, "k", "v"), Err(Error::TimeLimit { .. })));
    /// # Ok(()) }
    /// ```
    pub fn time_limit(mut self, limit: Duration) -> TransactionOptions {
        self.time_limit = Some(limit);
        self
    }

    /// What it may see of others: [`Isolation::Serializable`] unless set.
    ///
    /// | level | may happen |
    /// |---|---|
    /// | serializable | – |
    /// | snapshot | write skew; [`Error::WriteConflict`](crate::Error::WriteConflict) instead of lost updates |
    /// | read committed | that, and reads that another commit comes between: read skew, lost updates, phantoms |
    ///
    /// At none of them are changes seen before they are committed, or overwritten.
    pub fn isolation(mut self, isolation: Isolation) -> TransactionOptions {
        self.isolation = isolation;
        self
    }

    /// What [`Database::snapshots`](crate::Database::snapshots) calls it.
    pub fn label(mut self, label: &'static str) -> TransactionOptions {
        self.label = label;
        self
    }

    /// Refuses changes. It reads the state at its begin, takes no locks and waits for nobody, at any level.
    pub fn read_only(mut self) -> TransactionOptions {
        self.access = Access::ReadOnly;
        self
    }
}

/// A transaction: serializable unless begun [otherwise](TransactionOptions::isolation), rolled back when dropped.
///
/// Calls take `&self`, so cursors may be open while rows are read and changed. It may move between
/// threads, and keeps the database open.
///
/// ```
/// use longshore::Database;
/// # fn main() -> longshore::Result<()> {
/// let db = Database::in_memory()?;
/// let table = db.create_table("stock")?;
///
/// let tx = db.begin()?;
/// tx.put(&table, "apples", "3")?;
/// assert_eq!(tx.get(&table, "apples")?, Some(b"3".to_vec()));
/// tx.rollback()?;
///
/// assert_eq!(db.get(&table, "apples")?, None);
/// # Ok(()) }
/// ```
pub struct Transaction {
    shared: Arc<Shared>,
}

/// A point in a transaction to which it can be taken back.
#[derive(Clone, Debug)]
pub struct Savepoint {
    txn: TxnId,
    inner: longshore_txn::Savepoint,
}

impl Transaction {
    pub(crate) fn begin(lease: Arc<Lease>, options: TransactionOptions) -> Result<Transaction> {
        Ok(Transaction {
            shared: Arc::new(Shared::begin(lease, options)?),
        })
    }

    /// The transaction's number. Of those that change something, no two ever have the same.
    pub fn id(&self) -> TxnId {
        self.shared.id
    }

    /// The value of `key`, if there is such a row. Nobody changes it before this transaction ends, unless
    /// it reads a snapshot.
    ///
    /// # Errors
    /// As for every call on a transaction: [`Error::Deadlock`] and [`Error::LockTimeout`], which are
    /// worth another try of the whole, as are [`Error::WriteConflict`] and [`Error::SnapshotTooOld`] where
    /// snapshots are read; [`Error::TimeLimit`] and [`Error::Cancelled`], which have ended it too;
    /// [`Error::VersionsFull`]; [`Error::TableDropped`]; [`Error::TransactionEnded`]; and the
    /// failures of disk and memory.
    pub fn get(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        self.shared.read(table, |txn, tree| txn.get(tree, key))
    }

    /// Whether there is a row with this key.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn contains(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        self.shared.read(table, |txn, tree| txn.contains(tree, key))
    }

    /// The values of several keys, in the order in which they are given; `None` where there is no row.
    ///
    /// One statement: also at level read committed, all of them are of one state.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    ///
    /// ```
    /// # use longshore::Database;
    /// # fn main() -> longshore::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let table = db.create_table("stock")?;
    /// # db.update(|tx| tx.put(&table, "apples", "3"))?;
    /// let tx = db.begin()?;
    /// let found = tx.get_many(&table, &["pears", "apples"])?;
    /// assert_eq!(found, [None, Some(b"3".to_vec())]);
    /// # Ok(()) }
    /// ```
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        table: &Table,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        self.shared
            .read(table, |txn, tree| txn.get_many(tree, &keys))
    }

    /// Like [`Transaction::get`], for a row that is to be changed: others may still read it, but nobody
    /// else for that purpose, so two who read and then change the same row wait instead of ending in a
    /// deadlock.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn get_for_update(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        self.shared
            .change(table, |txn, tree| txn.get_for_update(tree, key))
    }

    /// Locks a whole table until the transaction ends, so that none of its rows needs a lock of its own.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn lock_table(&self, table: &Table, lock: TableLock) -> Result<()> {
        let operation = |txn: &mut longshore_txn::Transaction, tree| txn.lock_table(tree, lock);
        match lock {
            TableLock::IntentShared | TableLock::Shared => self.shared.read(table, operation),
            _ => self.shared.change(table, operation),
        }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// [`Error::KeyExists`]; [`Error::KeyTooLong`]; [`Error::UniqueViolation`] and [`Error::Index`] in a table
    /// with indexes; those of [`Transaction::get`].
    pub fn insert(
        &self,
        table: &Table,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let change = RowChange::Insert(value.as_ref());
        self.shared
            .change_row(table, key.as_ref(), change)
            .map(drop)
    }

    /// Adds a row, or gives an existing one another value.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`]; [`Error::UniqueViolation`] and [`Error::Index`] in a table with indexes; those of
    /// [`Transaction::get`].
    pub fn put(&self, table: &Table, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let change = RowChange::Put(value.as_ref());
        self.shared
            .change_row(table, key.as_ref(), change)
            .map(drop)
    }

    /// Gives an existing row another value; false when there is none.
    ///
    /// # Errors
    /// Those of [`Transaction::put`].
    ///
    /// ```
    /// # use longshore::Database;
    /// # fn main() -> longshore::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let table = db.create_table("stock")?;
    /// # db.update(|tx| tx.put(&table, "apples", "3"))?;
    /// let tx = db.begin()?;
    /// assert!(tx.update(&table, "apples", "4")?);
    /// assert!(!tx.update(&table, "pears", "4")?);
    /// # tx.commit()
    /// # }
    /// ```
    pub fn update(
        &self,
        table: &Table,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<bool> {
        let change = RowChange::Update(value.as_ref());
        self.shared.change_row(table, key.as_ref(), change)
    }

    /// Changes the value of an existing row by what it was; false when there is none.
    ///
    /// `change` gets the newest value, at every isolation level, and makes it another; when it fails, or leaves
    /// the value as it was, nothing is written. Nobody else changes the row before this transaction ends.
    /// Quicker than [`Transaction::get_for_update`] and then [`Transaction::update`]: it locks and seeks once.
    ///
    /// # Errors
    /// What `change` returned; those of [`Transaction::put`].
    ///
    /// ```
    /// # use longshore::Database;
    /// # fn main() -> longshore::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let table = db.create_table("stock")?;
    /// # db.update(|tx| tx.put(&table, "apples", [3]))?;
    /// let tx = db.begin()?;
    /// let mut left = 0;
    /// let take_one = |count: &mut Vec<u8>| {
    ///     count[0] -= 1;
    ///     left = count[0];
    ///     Ok(())
    /// };
    /// assert!(tx.modify(&table, "apples", take_one)?);
    /// assert_eq!(left, 2);
    /// assert!(!tx.modify(&table, "pears", |_| unreachable!("there are none"))?);
    /// # tx.commit()
    /// # }
    /// ```
    pub fn modify(
        &self,
        table: &Table,
        key: impl AsRef<[u8]>,
        change: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<bool> {
        self.shared.modify(table, key.as_ref(), change)
    }

    /// Makes the value of `key` `new` if it is `expected`; false, with nothing changed, if it is not. In both
    /// places `None` means that there is no row.
    ///
    /// The comparison is with the newest value, at every isolation level, and true or false, nobody
    /// changes the row before this transaction ends.
    ///
    /// # Errors
    /// Those of [`Transaction::put`].
    ///
    /// ```
    /// # use longshore::Database;
    /// # fn main() -> longshore::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let table = db.create_table("leader")?;
    /// let tx = db.begin()?;
    /// assert!(tx.compare_and_set(&table, "now", None, Some(b"ada"))?);
    /// assert!(!tx.compare_and_set(&table, "now", None, Some(b"grace"))?);
    /// assert!(tx.compare_and_set(&table, "now", Some(b"ada"), None)?);
    /// # tx.commit()
    /// # }
    /// ```
    pub fn compare_and_set(
        &self,
        table: &Table,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        let change = RowChange::CompareAndSet { expected, new };
        self.shared.change_row(table, key.as_ref(), change)
    }

    /// Takes a row out; false when there was none.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn delete(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<bool> {
        self.shared
            .change_row(table, key.as_ref(), RowChange::Delete)
    }

    /// Takes all rows of a range out; returns how many there were.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    ///
    /// ```
    /// # use longshore::Database;
    /// # fn main() -> longshore::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let table = db.create_table("log")?;
    /// # db.update(|tx| (0..9u8).try_for_each(|day| tx.put(&table, [day], "entry")))?;
    /// let removed = db.update(|tx| tx.delete_range(&table, [3]..[7]))?;
    /// assert_eq!(removed, 4);
    /// # Ok(()) }
    /// ```
    pub fn delete_range(&self, table: &Table, range: impl KeyRange) -> Result<u64> {
        let (low, high) = range.bounds();
        if range::is_empty(low, high) {
            return Ok(0);
        }
        self.shared.change_rows(
            table,
            |txn, tree| txn.delete_range(tree, low, high),
            |txn, table| index::delete_range(txn, table, low, high),
        )
    }

    /// The rows of a range, in the order of their keys. No row appears in it or leaves it by others'
    /// hands before this transaction ends.
    ///
    /// # Errors
    /// Those of [`Transaction::get`]; rows are read when the cursor gets to them.
    pub fn scan(&self, table: &Table, range: impl KeyRange) -> Result<Cursor> {
        self.cursor(table, range::owned(&range))
    }

    /// The rows whose keys begin with `prefix`, in order.
    ///
    /// # Errors
    /// Those of [`Transaction::scan`].
    pub fn prefix(&self, table: &Table, prefix: impl AsRef<[u8]>) -> Result<Cursor> {
        self.cursor(table, range::prefix(prefix.as_ref().to_vec()))
    }

    pub(crate) fn cursor(&self, table: &Table, bounds: range::Bounds) -> Result<Cursor> {
        let statement = self.shared.read(table, |txn, _| txn.begin_statement())?;
        let shared = Arc::clone(&self.shared);
        Ok(Cursor::new(shared, table.clone(), bounds, statement))
    }

    /// Gives a row the value that `source` yields, up to 1 GiB, without holding all of it in memory;
    /// returns its length.
    ///
    /// # Errors
    /// [`Error::Source`] when reading fails; [`Error::ValueTooLong`]; [`Error::Index`] in a table with
    /// indexes, which need whole values; those of [`Transaction::put`].
    ///
    /// ```
    /// # use longshore::Database;
    /// use std::io::Read;
    /// # fn main() -> longshore::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let files = db.create_table("files")?;
    /// let song = std::io::repeat(7).take(300_000);
    /// db.update(|tx| tx.put_stream(&files, "song", std::io::repeat(7).take(300_000)))?;
    ///
    /// let tx = db.begin()?;
    /// let mut stored = Vec::new();
    /// let mut reader = tx.get_stream(&files, "song")?.expect("the song is there");
    /// reader.read_to_end(&mut stored)?;
    /// assert_eq!(stored.len(), 300_000);
    /// # drop(song);
    /// # Ok(()) }
    /// ```
    pub fn put_stream(
        &self,
        table: &Table,
        key: impl AsRef<[u8]>,
        source: impl Read,
    ) -> Result<u64> {
        let key = key.as_ref();
        let engine = &**self.shared.engine();
        let mut source = Watched { engine, source };
        self.shared
            .change_once(table, |txn, tree| txn.put_stream(tree, key, &mut source))
    }

    /// Reads a row's value piece by piece.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn get_stream(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<ValueReader>> {
        let key = key.as_ref();
        let value = self
            .shared
            .read(table, |txn, tree| txn.open_value(tree, key))?;
        Ok(value.map(|value| ValueReader::new(Arc::clone(&self.shared), value)))
    }

    /// A point to which [`Transaction::rollback_to`] can take this transaction back.
    ///
    /// # Errors
    /// [`Error::TransactionEnded`].
    ///
    /// ```
    /// # use longshore::Database;
    /// # fn main() -> longshore::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let table = db.create_table("t")?;
    /// db.update(|tx| {
    ///     tx.put(&table, "kept", "yes")?;
    ///     let before = tx.savepoint()?;
    ///     tx.put(&table, "tried", "no")?;
    ///     tx.rollback_to(&before)
    /// })?;
    /// assert!(db.get(&table, "kept")?.is_some());
    /// assert!(db.get(&table, "tried")?.is_none());
    /// # Ok(()) }
    /// ```
    pub fn savepoint(&self) -> Result<Savepoint> {
        let inner = self.shared.savepoint()?;
        let txn = self.shared.id;
        Ok(Savepoint { txn, inner })
    }

    /// Undoes what was done since the savepoint was taken. Locks are kept; the savepoint stays good, later
    /// ones are gone.
    ///
    /// # Errors
    /// [`Error::SavepointGone`] when it is not one of this transaction's.
    pub fn rollback_to(&self, savepoint: &Savepoint) -> Result<()> {
        if savepoint.txn != self.shared.id {
            return Err(Error::SavepointGone);
        }
        self.shared.rollback_to(&savepoint.inner)
    }

    /// Forgets a savepoint and those taken after it. What was done since stays.
    ///
    /// # Errors
    /// [`Error::SavepointGone`] when it is not one of this transaction's.
    pub fn release_savepoint(&self, savepoint: &Savepoint) -> Result<()> {
        if savepoint.txn != self.shared.id {
            return Err(Error::SavepointGone);
        }
        self.shared.release_savepoint(&savepoint.inner)
    }

    /// Makes all changes last, with the durability chosen for the database or for this transaction.
    ///
    /// # Errors
    /// [`Error::Poisoned`] when the log failed: whether the commit survives is known only after the
    /// database was reopened. After any other error, as [`Error::TimeLimit`], the transaction was rolled back.
    pub fn commit(self) -> Result<()> {
        let durability = self.shared.durability;
        self.commit_with(durability)?.wait()
    }

    /// Makes all changes visible, and gives a handle that tells when they are as durable as asked.
    ///
    /// # Errors
    /// Those of [`Transaction::commit`].
    pub fn commit_with(self, durability: Durability) -> Result<CommitHandle> {
        let commit = self.shared.commit(durability)?;
        Ok(CommitHandle::new(Arc::clone(self.shared.engine()), commit))
    }

    /// Prepares the transaction to be committed or rolled back later, by its name, whatever crashes come
    /// between: the first phase of a commit that spans several databases. Names have 1 to 255 bytes.
    ///
    /// It keeps its locks, its place among the open transactions, and the log from its first record on, until it
    /// is resolved by the answer, by [`Database::commit_prepared`](crate::Database::commit_prepared), or by
    /// [`Database::rollback_prepared`](crate::Database::rollback_prepared). After a restart it has its locks
    /// again, also those on what it has only read.
    ///
    /// Meanwhile nobody else can drop or load the tables that it has used, or change their indexes: see
    /// [`Error::TablePrepared`].
    ///
    /// # Errors
    /// [`Error::AlreadyPrepared`], [`Error::GidLength`], [`Error::LogFull`], [`Error::ReadOnly`], and those of
    /// [`Transaction::commit`]. After an error other than [`Error::Poisoned`] the transaction was rolled back.
    pub fn prepare(self, gid: &[u8]) -> Result<Prepared> {
        self.shared.prepare(gid)
    }

    /// Undoes everything. Dropping the transaction does the same, without telling of errors.
    ///
    /// # Errors
    /// [`Error::Poisoned`] when it could not be finished; reopening the database finishes it.
    pub fn rollback(self) -> Result<()> {
        self.shared.roll_back()
    }

    /// An error that makes it pointless to go on, if there was one.
    pub(crate) fn doom(&self) -> Option<Error> {
        self.shared.doom()
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // Whoever wants to see the error calls `rollback`.
        let _ = self.shared.roll_back();
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transaction({})", self.shared.id)
    }
}
