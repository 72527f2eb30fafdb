//! Cursors over typed rows.

use super::key::Key;
use super::table::{decode_key, decode_value};
use super::value::Value;
use crate::cursor::Cursor;
use crate::error::Result;
use std::fmt;
use std::marker::PhantomData;

/// The rows of a range in the order of their keys, or in reverse.
///
/// An iterator over `Result<(K, V)>`, from both ends, that ends after an error. It belongs to its transaction
/// and sees all that this one has changed.
///
/// ```
/// use longshore::{Database, TypedTable};
/// # fn main() -> longshore::Result<()> {
/// # let db = Database::in_memory()?;
/// let tides: TypedTable<i64, f64> = TypedTable::create(&db, "tides")?;
/// db.update(|tx| (-3..3).try_for_each(|hour| tides.put(tx, hour, &(hour as f64 / 2.0))))?;
///
/// let tx = db.begin()?;
/// let latest = tides.scan(&tx, ..0)?.next_back().transpose()?;
/// assert_eq!(latest, Some((-1, -0.5)));
/// let hours: Vec<i64> = tides.scan(&tx, ..)?.reverse().keys().collect::<longshore::Result<_>>()?;
/// assert_eq!(hours, [2, 1, 0, -1, -2, -3]);
/// # Ok(()) }
/// ```
#[must_use = "a cursor reads nothing before it is asked for rows"]
pub struct TypedCursor<K, V> {
    rows: Cursor,
    is_failed: bool,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Value> TypedCursor<K, V> {
    pub(super) fn new(rows: Cursor) -> TypedCursor<K, V> {
        TypedCursor {
            rows,
            is_failed: false,
            types: PhantomData,
        }
    }

    /// Turns the cursor round: `next` takes from the other end.
    pub fn reverse(mut self) -> TypedCursor<K, V> {
        self.rows = self.rows.reverse();
        self
    }

    /// The next row; `None` at the end. The bytes of the row are not copied before they are decoded.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode); those of [`Cursor::next_row`].
    pub fn next_row(&mut self) -> Result<Option<(K, V)>> {
        let table = self.rows.table().clone();
        let Some((key, value)) = self.rows.next_row()? else {
            return Ok(None);
        };
        Ok(Some((
            decode_key(&table, key)?,
            decode_value(&table, value)?,
        )))
    }

    /// The keys alone; values are not decoded.
    pub fn keys(self) -> impl DoubleEndedIterator<Item = Result<K>> {
        let table = self.rows.table().clone();
        self.rows
            .map(move |row| row.and_then(|(key, _)| decode_key(&table, &key)))
    }

    fn decoded(&mut self, row: Option<Result<(Vec<u8>, Vec<u8>)>>) -> Option<Result<(K, V)>> {
        let table = self.rows.table();
        let row = row?
            .and_then(|(key, value)| Ok((decode_key(table, &key)?, decode_value(table, &value)?)));
        self.is_failed = row.is_err();
        Some(row)
    }
}

impl<K: Key, V: Value> Iterator for TypedCursor<K, V> {
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Result<(K, V)>> {
        if self.is_failed {
            return None;
        }
        let row = self.rows.next();
        self.decoded(row)
    }
}

impl<K: Key, V: Value> DoubleEndedIterator for TypedCursor<K, V> {
    fn next_back(&mut self) -> Option<Result<(K, V)>> {
        if self.is_failed {
            return None;
        }
        let row = self.rows.next_back();
        self.decoded(row)
    }
}

impl<K, V> fmt::Debug for TypedCursor<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TypedCursor({:?})", self.rows.table())
    }
}
