//! The handle of a database: tables, transactions, upkeep.

use crate::bulk;
use crate::ddl;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::index;
use crate::inspect::LogEntries;
use crate::lease::Leases;
use crate::locks::{self, LockEscalation, LockView, LockWaitView};
use crate::maintenance::{self, Maintained};
use crate::open::{self, Place};
use crate::options::{Access, Options};
use crate::prepared::{self, PreparedView};
use crate::retry;
use crate::stats::Stats;
use crate::table::Table;
use crate::transaction::{Transaction, TransactionOptions};
use crate::verify::{self, VerifyReport};
use longshore_base::{Environment, Lsn, TxnId};
use longshore_disk::Disk;
use longshore_txn::SnapshotView;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// An open database.
///
/// A handle is cheap to clone and may be used by any number of threads at once. The database is
/// closed cleanly when the last handle, transaction and cursor is dropped; [`Database::close`] does
/// it at once and tells of errors.
///
/// ```
/// use longshore::Database;
/// # fn main() -> longshore::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("inventory");
/// let db = Database::open_or_create(&path)?;
/// let stock = db.table_or_create("stock")?;
///
/// db.update(|tx| {
///     tx.put(&stock, "apples", "3")?;
///     tx.put(&stock, "pears", "5")
/// })?;
///
/// for row in db.begin()?.scan(&stock, ..)? {
///     let (fruit, count) = row?;
///     println!("{}: {}", String::from_utf8_lossy(&fruit), String::from_utf8_lossy(&count));
/// }
/// db.close()
/// # }
/// ```
#[derive(Clone)]
pub struct Database {
    engine: Arc<Engine>,
    leases: Arc<Leases>,
}

/// # Opening and closing
impl Database {
    /// Creates a database with default options in the directory `path`; see [`Options::create`].
    ///
    /// # Errors
    /// Those of [`Options::create`].
    pub fn create(path: impl AsRef<Path>) -> Result<Database> {
        Options::new().create(path)
    }

    /// Opens a database with default options; see [`Options::open`].
    ///
    /// # Errors
    /// Those of [`Options::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Database> {
        Options::new().open(path)
    }

    /// Opens a database with default options, or creates it; see [`Options::open_or_create`].
    ///
    /// # Errors
    /// Those of [`Options::open_or_create`].
    pub fn open_or_create(path: impl AsRef<Path>) -> Result<Database> {
        Options::new().open_or_create(path)
    }

    /// Creates a database with default options that lives in memory; see [`Options::in_memory`].
    ///
    /// # Errors
    /// Those of [`Options::in_memory`].
    pub fn in_memory() -> Result<Database> {
        Options::new().in_memory()
    }

    /// Opens the database on `disk`, or creates it where there is none, with a clock and random
    /// numbers of the caller's: what the simulation uses.
    ///
    /// # Errors
    /// Those of [`Options::open_or_create`].
    pub fn open_with_disk(
        disk: Arc<dyn Disk>,
        env: Arc<dyn Environment>,
        options: Options,
    ) -> Result<Database> {
        let path = "the disk".to_owned();
        Database::start(open::open_or_create(Place {
            disk,
            env,
            options,
            path,
        })?)
    }

    pub(crate) fn create_at(place: Place) -> Result<Database> {
        Database::start(open::create(place)?)
    }

    pub(crate) fn open_at(place: Place) -> Result<Database> {
        Database::start(open::open(place)?)
    }

    pub(crate) fn open_or_create_at(place: Place) -> Result<Database> {
        Database::start(open::open_or_create(place)?)
    }

    /// What all handles share.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    fn start(engine: Arc<Engine>) -> Result<Database> {
        let leases = Arc::new(Leases::new(Arc::clone(&engine))?);
        Ok(Database { engine, leases })
    }

    /// Closes the database: writes everything, ends the threads, releases the lock. Opening it again
    /// is instant. Other handles to it become useless.
    ///
    /// # Errors
    /// [`Error::StillInUse`] while transactions are active; the database stays open then. After any
    /// other error it is closed, and opening it recovers what could not be written.
    pub fn close(&self) -> Result<()> {
        self.leases.close()
    }

    /// The options it was opened with.
    pub fn options(&self) -> &Options {
        &self.engine.options
    }
}

/// # Tables
impl Database {
    /// Creates an empty table. Names have 1 to 255 bytes.
    ///
    /// # Errors
    /// [`Error::TableExists`], [`Error::TableName`], [`Error::ReadOnly`].
    pub fn create_table(&self, name: &str) -> Result<Table> {
        self.engine.check_writable()?;
        ddl::create(&self.engine, name)
    }

    /// The table of that name.
    ///
    /// # Errors
    /// [`Error::TableMissing`].
    pub fn table(&self, name: &str) -> Result<Table> {
        self.engine.condition.check()?;
        ddl::open(&self.engine, name)
    }

    /// The table of that name, created if it is not there.
    ///
    /// # Errors
    /// Those of [`Database::create_table`], except that it exists.
    pub fn table_or_create(&self, name: &str) -> Result<Table> {
        match self.table(name) {
            Err(Error::TableMissing { .. }) => {}
            outcome => return outcome,
        }
        match self.create_table(name) {
            // Somebody was quicker.
            Err(Error::TableExists { .. }) => self.table(name),
            outcome => outcome,
        }
    }

    /// Drops a table with all its rows. Its pages are given back bit by bit, in the background.
    ///
    /// Waits, as long as for a lock, until the transactions that use the table have ended.
    ///
    /// # Errors
    /// [`Error::TableMissing`]; [`Error::TableBusy`] or [`Error::TablePrepared`] when the wait was in vain.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.engine.check_writable()?;
        ddl::drop(&self.engine, name)
    }

    /// Gives a table another name. Handles to it stay good.
    ///
    /// # Errors
    /// [`Error::TableMissing`], [`Error::TableExists`], [`Error::TableName`].
    pub fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        self.engine.check_writable()?;
        ddl::rename(&self.engine, from, to)
    }

    /// Drops an index of a table; see [`Table::indexes`].
    ///
    /// Waits, as long as for a lock, until the transactions that use the table have ended.
    ///
    /// # Errors
    /// [`IndexError::Missing`](crate::IndexError::Missing); [`IndexError::NotReady`](crate::IndexError::NotReady)
    /// while it is being built; [`Error::TableBusy`] or [`Error::TablePrepared`] when the wait was in vain.
    pub fn drop_index(&self, table: &Table, name: &str) -> Result<()> {
        self.engine.check_writable()?;
        index::drop(&self.engine, table, name)
    }

    /// The names of all tables, sorted.
    ///
    /// # Errors
    /// The failures of disk and memory.
    pub fn tables(&self) -> Result<Vec<String>> {
        self.engine.condition.check()?;
        ddl::names(&self.engine)
    }

    /// Fills an empty table with rows in ascending order of their keys, which is much faster than
    /// inserting them. Either all rows are there afterwards, or none. Returns how many.
    ///
    /// # Errors
    /// [`Error::TableNotEmpty`]; [`Error::Unsorted`]; [`Error::TableBusy`]; the first error among
    /// `rows`.
    ///
    /// ```
    /// use longshore::Database;
    /// # fn main() -> longshore::Result<()> {
    /// # let db = Database::in_memory()?;
    /// let squares = db.create_table("squares")?;
    /// let rows = (0..1000u32).map(|n| Ok((n.to_be_bytes(), (n * n).to_be_bytes())));
    /// assert_eq!(db.bulk_load(&squares, rows)?, 1000);
    /// # Ok(()) }
    /// ```
    pub fn bulk_load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        table: &Table,
        rows: impl IntoIterator<Item = Result<(K, V)>>,
    ) -> Result<u64> {
        self.engine.check_writable()?;
        bulk::load(&self.engine, table, rows)
    }
}

/// # Reading and writing
impl Database {
    /// Begins a transaction.
    ///
    /// # Errors
    /// [`Error::TooManyTransactions`]; [`Error::Closed`]; [`Error::Poisoned`].
    pub fn begin(&self) -> Result<Transaction> {
        self.begin_with(TransactionOptions::new())
    }

    /// Begins a transaction with choices of its own.
    ///
    /// # Errors
    /// Those of [`Database::begin`].
    pub fn begin_with(&self, options: TransactionOptions) -> Result<Transaction> {
        Transaction::begin(self.leases.mine(), options)
    }

    /// Runs `body` in a transaction and commits it; runs it again when it had to give way to another.
    ///
    /// The transaction is rolled back when `body` fails. Errors that are worth another try
    /// ([`Error::is_retryable`]) lead to one, after a short pause, up to the number of attempts set in
    /// the options; so `body` should do nothing that must not be done twice. An error of the
    /// application's own leaves as [`Error::other`].
    ///
    /// # Errors
    /// What `body` returned; [`Error::GaveUp`]; those of [`Transaction::commit`].
    ///
    /// ```
    /// use longshore::{Database, Error};
    /// # fn main() -> longshore::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let table = db.create_table("counters")?;
    /// let count = db.update(|tx| {
    ///     let old = tx.get_for_update(&table, "visits")?;
    ///     let count = old.map_or(0, |bytes| bytes[0]) + 1;
    ///     tx.put(&table, "visits", [count])?;
    ///     Ok(count)
    /// })?;
    /// assert_eq!(count, 1);
    /// # Ok(()) }
    /// ```
    pub fn update<T>(&self, body: impl FnMut(&Transaction) -> Result<T>) -> Result<T> {
        self.run(TransactionOptions::new(), body)
    }

    /// Runs `body` in a transaction that may only read; runs it again when it had to give way.
    ///
    /// All that it reads belongs to one moment in the serial order of transactions, that of its begin. It
    /// takes no locks, waits for nobody, and nobody waits for it.
    ///
    /// # Errors
    /// Those of [`Database::update`]; [`Error::SnapshotTooOld`]; [`Error::ReadOnly`] when `body` tries to change something.
    pub fn view<T>(&self, body: impl FnMut(&Transaction) -> Result<T>) -> Result<T> {
        self.run(TransactionOptions::new().read_only(), body)
    }

    /// The value of `key`, if there is such a row, as the last transaction committed it.
    ///
    /// Takes no lock and changes no memory that threads share: as fast as reading gets.
    ///
    /// # Errors
    /// [`Error::TableDropped`], and the failures of disk and memory.
    #[inline]
    pub fn get(&self, table: &Table, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let mut value = Vec::new();
        Ok(self.get_into(table, key, &mut value)?.then_some(value))
    }

    /// Replaces the content of `value` by that of `key`; false, with nothing in `value`, when there is
    /// no such row. Like [`Database::get`], but allocates only when `value` has to grow.
    ///
    /// # Errors
    /// Those of [`Database::get`]. What is in `value` then means nothing.
    ///
    /// ```
    /// use longshore::Database;
    /// # fn main() -> longshore::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let depths = db.create_table("depths")?;
    /// # db.update(|tx| tx.put(&depths, "quay", [7]))?;
    /// let mut value = Vec::new();
    /// assert!(db.get_into(&depths, "quay", &mut value)?);
    /// assert_eq!(value, [7]);
    /// assert!(!db.get_into(&depths, "anchorage", &mut value)?);
    /// assert!(value.is_empty());
    /// # Ok(()) }
    /// ```
    #[inline]
    pub fn get_into(
        &self,
        table: &Table,
        key: impl AsRef<[u8]>,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        let engine = &*self.engine;
        engine.condition.check()?;
        let state = &*table.state;
        state.check_owner(engine.instance)?;
        loop {
            let epoch = state.epoch()?;
            let found = engine.manager.get_into(state.tree(), key.as_ref(), value);
            // A table dropped or reloaded meanwhile may have led us anywhere.
            if state.gate.is_still(epoch) {
                return found.map_err(|error| engine.noted(Error::from_txn(error, state)));
            }
        }
    }

    fn run<T>(
        &self,
        options: TransactionOptions,
        mut body: impl FnMut(&Transaction) -> Result<T>,
    ) -> Result<T> {
        let engine = &*self.engine;
        let attempt = || {
            let tx = self.begin_with(options)?;
            let value = body(&tx)?;
            // A body that kept a deadlock to itself is run again all the same.
            if let Some(doom) = tx.doom() {
                return Err(doom);
            }
            tx.commit()?;
            Ok(value)
        };
        let pause = |time| {
            engine.counters.retries.add(1);
            std::thread::sleep(time);
        };
        retry::run(&*engine.env, engine.options.retry_limits(), pause, attempt)
    }
}

/// # Upkeep
impl Database {
    /// Writes all changed pages, and lets a restart begin here. Stops nobody.
    ///
    /// # Errors
    /// The failures of the disk.
    pub fn checkpoint(&self) -> Result<()> {
        self.engine.check_writable()?;
        self.engine.checkpoint()
    }

    /// Does one round of what the background threads do: cleans pages, frees garbage, takes a
    /// checkpoint when one is due. For databases without such threads.
    ///
    /// # Errors
    /// The failures of the disk.
    pub fn maintain(&self) -> Result<Maintained> {
        self.engine.check_writable()?;
        maintenance::round(&self.engine)
    }

    /// Walks through everything and checks it: every page, every tree's order and fences, every
    /// chain, the map of free space. Keeps transactions away from the tables meanwhile. Those that are
    /// [prepared](Transaction::prepare) stay as they are, and can be resolved afterwards.
    ///
    /// # Errors
    /// [`Error::TableBusy`] while other transactions use a table; [`Error::Verifying`] while one is being resolved;
    /// the failures of the disk. Damage is in the report, not an error.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.engine.condition.check()?;
        verify::run(&self.engine)
    }

    /// The open snapshots, oldest first: whose they are, since when, and what their transactions are
    /// [called](TransactionOptions::label). The oldest decides what is kept of former states.
    ///
    /// ```
    /// use longshore::{Database, TransactionOptions};
    /// # fn main() -> longshore::Result<()> {
    /// # let db = Database::in_memory()?;
    /// let report = db.begin_with(TransactionOptions::new().read_only().label("report"))?;
    /// let open = db.snapshots();
    /// assert_eq!((open[0].txn, open[0].label), (report.id(), "report"));
    /// # Ok(()) }
    /// ```
    pub fn snapshots(&self) -> Vec<SnapshotView> {
        self.engine.manager.snapshots()
    }

    /// The locks that are held, at most `max`; those on tables and the whole database first.
    pub fn locks(&self, max: usize) -> Vec<LockView> {
        locks::held(&self.engine, max)
    }

    /// Who waits for a lock, what for, and for whom.
    pub fn lock_waits(&self) -> Vec<LockWaitView> {
        locks::waits(&self.engine)
    }

    /// Ends a transaction of another thread: the lock that it waits for, or its next statement, fails
    /// with [`Error::Cancelled`], and it is rolled back. False if no such transaction is active.
    pub fn cancel(&self, transaction: TxnId) -> bool {
        self.engine.manager.locks().cancel(transaction)
    }

    /// The transactions that are [prepared](Transaction::prepare) and wait for a decision.
    pub fn prepared(&self) -> Vec<PreparedView> {
        self.engine.manager.prepared()
    }

    /// Commits a prepared transaction, as durably as the database is opened for.
    ///
    /// # Errors
    /// [`Error::NotPrepared`]; [`Error::Verifying`], after which it is still prepared; [`Error::Poisoned`]:
    /// whether it is committed, or still prepared, is known only after the database was reopened.
    pub fn commit_prepared(&self, gid: &[u8]) -> Result<()> {
        prepared::commit(&self.engine, gid, self.engine.options.durability)
    }

    /// Rolls a prepared transaction back.
    ///
    /// The end is not forced to disk: after a crash it may be listed again, to be rolled back once more.
    ///
    /// # Errors
    /// Those of [`Database::commit_prepared`].
    pub fn rollback_prepared(&self, gid: &[u8]) -> Result<()> {
        prepared::rollback(&self.engine, gid)
    }

    /// Gives a table its own rule for trading locks on rows for one on the table; `None` gives it that
    /// of [`Options::lock_escalation`] again. Lasts until the database is closed, or the table loaded
    /// in bulk.
    ///
    /// # Errors
    /// [`Error::ForeignTable`].
    pub fn set_lock_escalation(&self, table: &Table, rule: Option<LockEscalation>) -> Result<()> {
        table.state.check_owner(self.engine.instance)?;
        self.engine.manager.locks().set_escalation(table.id(), rule);
        Ok(())
    }

    /// What happened since the database was opened, and what each part holds.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.engine)
    }

    /// The records of the log, in words, from `from` on or from the oldest one that is still there.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Poisoned`]; those of reading come with the records.
    ///
    /// ```
    /// use longshore::Database;
    /// # fn main() -> longshore::Result<()> {
    /// # let db = Database::in_memory()?;
    /// db.create_table("tides")?;
    /// for entry in db.log_entries(None)? {
    ///     let entry = entry?;
    ///     println!("{} {} {}", entry.lsn, entry.kind, entry.text);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn log_entries(&self, from: Option<Lsn>) -> Result<LogEntries> {
        self.engine.condition.check()?;
        Ok(LogEntries::new(Arc::clone(&self.engine), from))
    }

    /// Lets inserts into ranges that others have read go ahead, so that a test can see its checker fail.
    #[doc(hidden)]
    pub fn ignore_gaps(&self) {
        self.engine.manager.locks().ignore_gaps();
    }

    /// Lets a snapshot transaction overwrite what was committed after its begin, for the same purpose.
    #[doc(hidden)]
    pub fn ignore_conflicts(&self) {
        self.engine.manager.ignore_conflicts();
    }

    /// Lets snapshots see rows as they are now, for the same purpose.
    #[doc(hidden)]
    pub fn ignore_versions(&self) {
        self.engine.manager.ignore_versions();
    }

    /// Whether the database was opened for reading only.
    pub fn is_read_only(&self) -> bool {
        self.engine.options.access == Access::ReadOnly
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Database({:?})", self.engine.path)
    }
}
