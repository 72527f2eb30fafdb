//! Tables of typed rows.

use super::context::Context;
use super::cursor::TypedCursor;
use super::key::{AsKey, AsPrefix, Key, key_bytes};
use super::range::{TypedRange, of_prefix};
use super::value::Value;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::table::Table;
use crate::transaction::Transaction;
use std::fmt;
use std::marker::PhantomData;

/// A table whose keys are `K` and whose values are `V`, in the order of `K`.
///
/// A view of a [`Table`]: cheap to clone, and no more than the two types. The same table may be opened with
/// other types, or as bytes; rows that are no `K` and `V` are [`Error::Decode`] when they are read.
///
/// Calls that touch rows take where they run first: a [`Transaction`], or the [`Database`] for one that is
/// committed at once.
///
/// ```
/// use longshore::{Database, Key, TypedTable, Value};
///
/// #[derive(Key, Debug, PartialEq)]
/// struct Berth {
///     quay: String,
///     number: u32,
/// }
///
/// #[derive(Value, Debug, PartialEq)]
/// struct Ship {
///     name: String,
///     draught: f64,
/// }
///
/// # fn main() -> longshore::Result<()> {
/// # let db = Database::in_memory()?;
/// let berths: TypedTable<Berth, Ship> = TypedTable::open_or_create(&db, "berths")?;
/// let berth = |quay: &str, number| Berth { quay: quay.into(), number };
/// let ship = |name: &str, draught| Ship { name: name.into(), draught };
///
/// db.update(|tx| {
///     berths.insert(tx, berth("east", 1), &ship("Ada", 7.5))?;
///     berths.insert(tx, berth("east", 2), &ship("Grace", 6.0))?;
///     berths.insert(tx, berth("west", 1), &ship("Edsger", 9.25))
/// })?;
///
/// // Without a transaction of one's own.
/// assert_eq!(berths.get(&db, berth("west", 1))?.unwrap().name, "Edsger");
///
/// // Half-open ranges of keys, and all keys with the same leading fields.
/// let tx = db.begin()?;
/// assert_eq!(berths.scan(&tx, berth("east", 2)..)?.count(), 2);
/// assert_eq!(berths.prefix(&tx, ("east".to_string(),))?.count(), 2);
/// # Ok(()) }
/// ```
pub struct TypedTable<K, V> {
    table: Table,
    types: PhantomData<fn(K) -> V>,
}

/// # Opening
impl<K: Key, V: Value> TypedTable<K, V> {
    /// A typed view of `table`.
    pub fn new(table: Table) -> TypedTable<K, V> {
        TypedTable {
            table,
            types: PhantomData,
        }
    }

    /// The table of that name.
    ///
    /// # Errors
    /// Those of [`Database::table`].
    pub fn open(db: &Database, name: &str) -> Result<TypedTable<K, V>> {
        db.table(name).map(TypedTable::new)
    }

    /// Creates a table.
    ///
    /// # Errors
    /// Those of [`Database::create_table`].
    pub fn create(db: &Database, name: &str) -> Result<TypedTable<K, V>> {
        db.create_table(name).map(TypedTable::new)
    }

    /// The table of that name, created if it is not there.
    ///
    /// # Errors
    /// Those of [`Database::table_or_create`].
    pub fn open_or_create(db: &Database, name: &str) -> Result<TypedTable<K, V>> {
        db.table_or_create(name).map(TypedTable::new)
    }

    /// The table of bytes that this is a view of.
    pub fn table(&self) -> &Table {
        &self.table
    }
}

/// # One row
impl<K: Key, V: Value> TypedTable<K, V> {
    /// The value of `key`, if there is such a row.
    ///
    /// # Errors
    /// [`Error::Decode`]; those of [`Transaction::get`] or [`Database::get`].
    pub fn get(&self, on: &impl Context, key: impl AsKey<K>) -> Result<Option<V>> {
        let value = on.get_bytes(&self.table, &key_bytes(&key))?;
        self.decoded(value)
    }

    /// Whether there is a row with this key.
    ///
    /// # Errors
    /// Those of [`Transaction::contains`].
    pub fn contains(&self, on: &impl Context, key: impl AsKey<K>) -> Result<bool> {
        let key = key_bytes(&key);
        on.run(|tx| tx.contains(&self.table, &key))
    }

    /// Like [`TypedTable::get`], for a row that is to be changed.
    ///
    /// # Errors
    /// [`Error::Decode`]; those of [`Transaction::get_for_update`].
    pub fn get_for_update(&self, tx: &Transaction, key: impl AsKey<K>) -> Result<Option<V>> {
        let value = tx.get_for_update(&self.table, key_bytes(&key))?;
        self.decoded(value)
    }

    /// Adds a row.
    ///
    /// # Errors
    /// Those of [`Transaction::insert`].
    pub fn insert(&self, on: &impl Context, key: impl AsKey<K>, value: &V) -> Result<()> {
        let (key, value) = (key_bytes(&key), value.to_bytes());
        on.run(|tx| tx.insert(&self.table, &key, &value))
    }

    /// Adds a row, or gives an existing one another value.
    ///
    /// # Errors
    /// Those of [`Transaction::put`].
    pub fn put(&self, on: &impl Context, key: impl AsKey<K>, value: &V) -> Result<()> {
        let (key, value) = (key_bytes(&key), value.to_bytes());
        on.run(|tx| tx.put(&self.table, &key, &value))
    }

    /// Gives an existing row another value; false when there is none.
    ///
    /// # Errors
    /// Those of [`Transaction::update`].
    pub fn update(&self, on: &impl Context, key: impl AsKey<K>, value: &V) -> Result<bool> {
        let (key, value) = (key_bytes(&key), value.to_bytes());
        on.run(|tx| tx.update(&self.table, &key, &value))
    }

    /// Makes the value of `key` `new` if it is `expected`; false, with nothing changed, if it is not. In both
    /// places `None` means that there is no row. What is compared are the encodings.
    ///
    /// # Errors
    /// Those of [`Transaction::compare_and_set`].
    ///
    /// ```
    /// # use longshore::{Database, TypedTable};
    /// # fn main() -> longshore::Result<()> {
    /// # let db = Database::in_memory()?;
    /// let visits: TypedTable<String, u64> = TypedTable::create(&db, "visits")?;
    /// assert!(visits.compare_and_set(&db, "Ada", None, Some(&1))?);
    /// assert!(!visits.compare_and_set(&db, "Ada", Some(&7), Some(&8))?);
    /// assert_eq!(visits.get_many(&db, ["Grace", "Ada"])?, [None, Some(1)]);
    /// # Ok(()) }
    /// ```
    pub fn compare_and_set(
        &self,
        on: &impl Context,
        key: impl AsKey<K>,
        expected: Option<&V>,
        new: Option<&V>,
    ) -> Result<bool> {
        let key = key_bytes(&key);
        let [expected, new] = [expected, new].map(|value| value.map(Value::to_bytes));
        on.run(|tx| tx.compare_and_set(&self.table, &key, expected.as_deref(), new.as_deref()))
    }

    /// Changes the value of `key` by what it was; false when there is no such row.
    ///
    /// # Errors
    /// [`Error::Decode`]; those of [`Transaction::modify`].
    ///
    /// ```
    /// # use longshore::{Database, TypedTable};
    /// # fn main() -> longshore::Result<()> {
    /// # let db = Database::in_memory()?;
    /// let visits: TypedTable<String, u64> = TypedTable::create(&db, "visits")?;
    /// visits.put(&db, "Ada", &6)?;
    /// let count = |count: &mut u64| {
    ///     *count += 1;
    ///     Ok(())
    /// };
    /// assert!(visits.modify(&db, "Ada", count)?);
    /// assert!(!visits.modify(&db, "Grace", count)?);
    /// assert_eq!(visits.get(&db, "Ada")?, Some(7));
    /// # Ok(()) }
    /// ```
    pub fn modify(
        &self,
        on: &impl Context,
        key: impl AsKey<K>,
        mut change: impl FnMut(&mut V) -> Result<()>,
    ) -> Result<bool> {
        let key = key_bytes(&key);
        let mut change_bytes = |bytes: &mut Vec<u8>| {
            let mut value = decode_value(&self.table, bytes)?;
            change(&mut value)?;
            bytes.clear();
            value.encode(bytes);
            Ok(())
        };
        on.run(|tx| tx.modify(&self.table, &key, &mut change_bytes))
    }

    /// Takes a row out; false when there was none.
    ///
    /// # Errors
    /// Those of [`Transaction::delete`].
    pub fn delete(&self, on: &impl Context, key: impl AsKey<K>) -> Result<bool> {
        let key = key_bytes(&key);
        on.run(|tx| tx.delete(&self.table, &key))
    }

    fn decoded(&self, value: Option<Vec<u8>>) -> Result<Option<V>> {
        value
            .map(|value| decode_value(&self.table, &value))
            .transpose()
    }
}

/// # Many rows
impl<K: Key, V: Value> TypedTable<K, V> {
    /// The values of several keys, in the order in which they are given; `None` where there is no row.
    ///
    /// # Errors
    /// [`Error::Decode`]; those of [`Transaction::get_many`].
    pub fn get_many<Q: AsKey<K>>(
        &self,
        on: &impl Context,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<Vec<Option<V>>> {
        let keys: Vec<Vec<u8>> = keys.into_iter().map(|key| key_bytes(&key)).collect();
        let values = on.run(|tx| tx.get_many(&self.table, &keys))?;
        values
            .into_iter()
            .map(|value| self.decoded(value))
            .collect()
    }

    /// The rows of a range, in the order of their keys.
    ///
    /// # Errors
    /// Those of [`Transaction::scan`].
    pub fn scan(&self, tx: &Transaction, range: impl TypedRange<K>) -> Result<TypedCursor<K, V>> {
        tx.cursor(&self.table, range.encoded())
            .map(TypedCursor::new)
    }

    /// The rows whose keys begin with `prefix`: the leading parts of a tuple or of a derived struct, the
    /// beginning of a text.
    ///
    /// # Errors
    /// Those of [`Transaction::scan`].
    ///
    /// ```
    /// # use longshore::{Database, TypedTable};
    /// # fn main() -> longshore::Result<()> {
    /// # let db = Database::in_memory()?;
    /// let lines: TypedTable<(u16, u32, u8), String> = TypedTable::create(&db, "order lines")?;
    /// # db.update(|tx| (0..9).try_for_each(|n| lines.put(tx, (1, n / 3, n as u8), &"rope".into())))?;
    /// let tx = db.begin()?;
    /// assert_eq!(lines.prefix(&tx, (1,))?.count(), 9);
    /// assert_eq!(lines.prefix(&tx, (1, 2))?.count(), 3);
    /// # Ok(()) }
    /// ```
    pub fn prefix(&self, tx: &Transaction, prefix: impl AsPrefix<K>) -> Result<TypedCursor<K, V>> {
        tx.cursor(&self.table, of_prefix(&prefix))
            .map(TypedCursor::new)
    }

    /// Takes all rows of a range out; returns how many there were.
    ///
    /// # Errors
    /// Those of [`Transaction::delete_range`].
    pub fn delete_range(&self, on: &impl Context, range: impl TypedRange<K>) -> Result<u64> {
        let range = range.encoded();
        on.run(|tx| tx.delete_range(&self.table, range.clone()))
    }

    /// Fills an empty table with rows in ascending order of their keys: see [`Database::bulk_load`].
    ///
    /// # Errors
    /// Those of [`Database::bulk_load`].
    pub fn bulk_load(
        &self,
        db: &Database,
        rows: impl IntoIterator<Item = Result<(K, V)>>,
    ) -> Result<u64> {
        let encoded = rows
            .into_iter()
            .map(|row| row.map(|(key, value)| (key.to_bytes(), value.to_bytes())));
        db.bulk_load(&self.table, encoded)
    }
}

impl<K, V> Clone for TypedTable<K, V> {
    fn clone(&self) -> TypedTable<K, V> {
        TypedTable {
            table: self.table.clone(),
            types: PhantomData,
        }
    }
}

impl<K, V> fmt::Debug for TypedTable<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TypedTable({:?})", self.table.name())
    }
}

/// The key in these bytes.
pub(crate) fn decode_key<K: Key>(table: &Table, bytes: &[u8]) -> Result<K> {
    K::from_bytes(bytes).map_err(|source| Error::Decode {
        table: table.name(),
        part: "key",
        source,
    })
}

/// The value in these bytes.
pub(crate) fn decode_value<V: Value>(table: &Table, bytes: &[u8]) -> Result<V> {
    V::from_bytes(bytes).map_err(|source| Error::Decode {
        table: table.name(),
        part: "value",
        source,
    })
}
