//! Indexes as users see them: what an index is to be, and reading through it.

use super::build::{self, Wanted};
use super::cursor::IndexCursor;
use super::error::IndexError;
use super::extract::{Extract, Function};
use super::state::IndexState;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::range;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::typed::{
    AsKey, AsPrefix, Bytes, Context, Key, TypedRange, TypedTable, Value, decode_key, key_bytes,
    of_prefix,
};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::Arc;

/// What an index is to be: its name, whether it is unique, and the function that says what a row is to be
/// found by.
///
/// The function must always give the same keys for the same row; it may give none, or several. Its
/// *definition*, a short text, is kept in the database and compared whenever the index is opened: change
/// it whenever you change the function, so that an index is never used with another function than it
/// was built with.
pub struct IndexSpec<I, K, V> {
    name: String,
    definition: String,
    is_unique: bool,
    extract: Arc<dyn Extract>,
    types: PhantomData<fn(K, V) -> I>,
}

impl<I: Key + 'static, K: Key + 'static, V: Value + 'static> IndexSpec<I, K, V> {
    /// An index in which any number of rows may have the same key.
    pub fn new<Keys: IntoIterator<Item = I> + 'static>(
        name: &str,
        definition: &str,
        keys: impl Fn(&K, &V) -> Keys + Send + Sync + 'static,
    ) -> IndexSpec<I, K, V> {
        IndexSpec {
            name: name.to_owned(),
            definition: definition.to_owned(),
            is_unique: false,
            extract: Arc::new(Function::new(keys)),
            types: PhantomData,
        }
    }

    /// An index in which no two rows have the same key: a change that would make it so is
    /// [`Error::UniqueViolation`].
    pub fn unique<Keys: IntoIterator<Item = I> + 'static>(
        name: &str,
        definition: &str,
        keys: impl Fn(&K, &V) -> Keys + Send + Sync + 'static,
    ) -> IndexSpec<I, K, V> {
        IndexSpec {
            is_unique: true,
            ..IndexSpec::new(name, definition, keys)
        }
    }

    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            name: &self.name,
            definition: &self.definition,
            is_unique: self.is_unique,
            extract: &self.extract,
        }
    }
}

/// # Indexes
impl<K: Key + 'static, V: Value + 'static> TypedTable<K, V> {
    /// Creates an index and fills it from the rows that are there, while others go on using the table.
    ///
    /// First waits, as long as for a lock, until the transactions that use the table have ended; from then on
    /// every change keeps the index, also while it is being filled. When filling fails, because two rows have
    /// the same key in a unique index, or a row cannot be read, nothing of it stays.
    ///
    /// # Errors
    /// [`IndexError::Exists`]; [`Error::TableBusy`]; [`Error::UniqueViolation`]; [`Error::Decode`].
    pub fn create_index<I: Key + 'static>(
        &self,
        db: &Database,
        spec: IndexSpec<I, K, V>,
    ) -> Result<Index<I, K, V>> {
        db.engine().check_writable()?;
        let index = build::create(db.engine(), self.table(), &spec.wanted())?;
        Ok(Index::new(self.table(), index))
    }

    /// Opens an index, which registers its function: from then on the table may be changed.
    ///
    /// # Errors
    /// [`IndexError::Missing`]; [`IndexError::Differs`] when it was created with another definition.
    pub fn open_index<I: Key + 'static>(
        &self,
        db: &Database,
        spec: IndexSpec<I, K, V>,
    ) -> Result<Index<I, K, V>> {
        let index = build::open(db.engine(), self.table(), &spec.wanted())?;
        Ok(Index::new(self.table(), index))
    }

    /// Opens an index, or creates it if it is not there.
    ///
    /// # Errors
    /// Those of [`TypedTable::open_index`] and [`TypedTable::create_index`], except for being there or not.
    pub fn open_or_create_index<I: Key + 'static>(
        &self,
        db: &Database,
        spec: IndexSpec<I, K, V>,
    ) -> Result<Index<I, K, V>> {
        let engine = db.engine();
        let index = match build::open(engine, self.table(), &spec.wanted()) {
            Err(Error::Index(IndexError::Missing { .. })) => {
                engine.check_writable()?;
                match build::create(engine, self.table(), &spec.wanted()) {
                    // Somebody was quicker.
                    Err(Error::Index(IndexError::Exists { .. })) => {
                        build::open(engine, self.table(), &spec.wanted())?
                    }
                    outcome => outcome?,
                }
            }
            outcome => outcome?,
        };
        Ok(Index::new(self.table(), index))
    }
}

/// An index of a table of `K` and `V`, with keys `I`. Cheap to clone.
///
/// ```
/// use longshore::{Database, Error, IndexSpec, TypedTable, Value};
///
/// #[derive(Value, Debug)]
/// struct Customer {
///     last: String,
///     first: String,
///     mail: String,
/// }
///
/// # fn main() -> longshore::Result<()> {
/// # let db = Database::in_memory()?;
/// let customers: TypedTable<u64, Customer> = TypedTable::open_or_create(&db, "customers")?;
/// let by_name = customers.open_or_create_index(
///     &db,
///     IndexSpec::new("by name", "last, first", |_, c: &Customer| {
///         [(c.last.clone(), c.first.clone())]
///     }),
/// )?;
/// let by_mail = customers.open_or_create_index(
///     &db,
///     IndexSpec::unique("by mail", "mail", |_, c: &Customer| [c.mail.clone()]),
/// )?;
///
/// let customer = |last: &str, first: &str, mail: &str| Customer {
///     last: last.into(),
///     first: first.into(),
///     mail: mail.into(),
/// };
/// db.update(|tx| {
///     customers.insert(tx, 1, &customer("Hopper", "Grace", "grace@navy.example"))?;
///     customers.insert(tx, 2, &customer("Lovelace", "Ada", "ada@engine.example"))
/// })?;
///
/// // Through a unique index: one row.
/// let (number, ada) = by_mail.get(&db, "ada@engine.example")?.expect("she is a customer");
/// assert_eq!((number, ada.first.as_str()), (2, "Ada"));
///
/// // Through any index: the rows of a range of its keys, in their order.
/// let tx = db.begin()?;
/// for row in by_name.prefix(&tx, ("Hopper".to_string(),))? {
///     let ((last, first), number, _) = row?;
///     println!("{number}: {first} {last}");
/// }
/// tx.commit()?;
///
/// // No two rows with the same key in a unique index; nothing of such a change stays.
/// let refused = customers.insert(&db, 3, &customer("King", "Ada", "ada@engine.example"));
/// assert!(matches!(refused, Err(Error::UniqueViolation { .. })));
/// assert!(customers.get(&db, 3)?.is_none());
/// # Ok(()) }
/// ```
pub struct Index<I, K, V> {
    table: Table,
    index: Arc<IndexState>,
    types: PhantomData<fn(I) -> (K, V)>,
}

impl<I: Key, K: Key, V: Value> Index<I, K, V> {
    fn new(table: &Table, index: Arc<IndexState>) -> Index<I, K, V> {
        Index {
            table: table.clone(),
            index,
            types: PhantomData,
        }
    }

    /// The index's name.
    pub fn name(&self) -> &str {
        &self.index.name
    }

    /// The row that has this key in a unique index: its own key and its value.
    ///
    /// # Errors
    /// [`IndexError::NotUnique`]; those of [`TypedTable::get`].
    pub fn get(&self, on: &impl Context, key: impl AsKey<I>) -> Result<Option<(K, V)>> {
        if !self.index.is_unique {
            return Err(Error::Index(IndexError::NotUnique {
                table: self.table.name(),
                index: self.index.name.clone(),
            }));
        }
        let key = key_bytes(&key);
        on.run(|tx| {
            let mut found = self.cursor(tx, point(&key))?;
            let row = found.next().transpose()?;
            Ok(row.map(|(_, key, value)| (key, value)))
        })
    }

    /// The rows that have exactly this key, in the order of their own keys.
    ///
    /// # Errors
    /// Those of [`Index::scan`].
    pub fn find(&self, tx: &Transaction, key: impl AsKey<I>) -> Result<IndexCursor<I, K, V>> {
        self.cursor(tx, range::prefix(key_bytes(&key)))
    }

    /// The rows whose keys in the index lie in a range, in the order of those keys, and of their own keys
    /// where those are equal. A row appears once for each of its keys in the range.
    ///
    /// # Errors
    /// [`IndexError::NotReady`]; [`Error::TableDropped`] when the index was dropped; those of
    /// [`Transaction::scan`].
    pub fn scan(
        &self,
        tx: &Transaction,
        range: impl TypedRange<I>,
    ) -> Result<IndexCursor<I, K, V>> {
        self.cursor(tx, of_entries(range.encoded()))
    }

    /// The rows whose keys in the index begin with `prefix`.
    ///
    /// # Errors
    /// Those of [`Index::scan`].
    pub fn prefix(
        &self,
        tx: &Transaction,
        prefix: impl AsPrefix<I>,
    ) -> Result<IndexCursor<I, K, V>> {
        self.cursor(tx, of_prefix(&prefix))
    }

    fn cursor(&self, tx: &Transaction, range: Bytes) -> Result<IndexCursor<I, K, V>> {
        self.index.check_ready(&self.table.state)?;
        let entries = tx.cursor(&self.index.entries, range)?;
        Ok(IndexCursor::new(&self.table, &self.index, entries))
    }

    /// The key in the index that an [`Error::UniqueViolation`] of this index tells of.
    ///
    /// # Errors
    /// [`Error::Decode`] when it is of another index.
    pub fn violated_key(&self, key: &[u8]) -> Result<I> {
        decode_key(&self.index.entries, key)
    }
}

/// The range that holds one key.
fn point(key: &[u8]) -> Bytes {
    (Bound::Included(key.to_vec()), Bound::Included(key.to_vec()))
}

/// The range of the entries whose index keys lie in `range`: other bytes follow those.
fn of_entries((low, high): Bytes) -> Bytes {
    let behind = |key: Vec<u8>| range::prefix(key).1;
    let low = match low {
        Bound::Excluded(key) => match behind(key) {
            Bound::Excluded(next) => Bound::Included(next),
            // Nothing lies behind; no encoding is empty and excluded at once.
            _ => return (Bound::Included(Vec::new()), Bound::Excluded(Vec::new())),
        },
        other => other,
    };
    let high = match high {
        Bound::Included(key) => behind(key),
        other => other,
    };
    (low, high)
}

impl<I, K, V> Clone for Index<I, K, V> {
    fn clone(&self) -> Index<I, K, V> {
        Index {
            table: self.table.clone(),
            index: Arc::clone(&self.index),
            types: PhantomData,
        }
    }
}

impl<I, K, V> fmt::Debug for Index<I, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({:?})", self.index.entries.name())
    }
}

impl<I, K, V> fmt::Debug for IndexSpec<I, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IndexSpec({:?}, {:?})", self.name, self.definition)
    }
}
