//! Cursors through an index.

use super::state::IndexState;
use crate::cursor::Cursor;
use crate::error::Result;
use crate::table::Table;
use crate::typed::{Key, Value, decode_key, decode_value};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// The rows of a range of index keys in order, or in reverse: index key, the row's own key, its value.
///
/// An iterator over `Result<(I, K, V)>`, from both ends, that ends after an error. [`IndexCursor::keys`] spares
/// the look-up of the rows. It belongs to its transaction and sees all that this one has changed.
#[must_use = "a cursor reads nothing before it is asked for rows"]
pub struct IndexCursor<I, K, V> {
    table: Table,
    index: Arc<IndexState>,
    entries: Cursor,
    is_failed: bool,
    types: PhantomData<fn(I, K) -> V>,
}

impl<I: Key, K: Key, V: Value> IndexCursor<I, K, V> {
    pub(super) fn new(table: &Table, index: &Arc<IndexState>, entries: Cursor) -> Self {
        IndexCursor {
            table: table.clone(),
            index: Arc::clone(index),
            entries,
            is_failed: false,
            types: PhantomData,
        }
    }

    /// Turns the cursor round: `next` takes from the other end.
    pub fn reverse(mut self) -> IndexCursor<I, K, V> {
        self.entries = self.entries.reverse();
        self
    }

    /// The keys alone, without a look at the rows: index key, and the row's own key.
    pub fn keys(self) -> impl DoubleEndedIterator<Item = Result<(I, K)>> {
        Keys(self)
    }

    /// Takes entries until one has a row.
    fn take(
        &mut self,
        mut next: impl FnMut(&mut Cursor) -> Option<Result<(Vec<u8>, Vec<u8>)>>,
    ) -> Option<Result<(I, K, V)>> {
        if self.is_failed {
            return None;
        }
        loop {
            let entry = next(&mut self.entries)?;
            let row = entry.and_then(|(entry, value)| self.row(&entry, &value));
            self.is_failed = row.is_err();
            if let Some(row) = row.transpose() {
                return Some(row);
            }
        }
    }

    /// The row of an entry; `None` when both have gone since the entry was read, which only a transaction
    /// sees that does not keep what it has read.
    fn row(&self, entry: &[u8], value: &[u8]) -> Result<Option<(I, K, V)>> {
        let (index_key, key) = split::<I>(&self.index, entry, value)?;
        let Some(row) = self.entries.get_beside(&self.table, key)? else {
            return match self.entries.get_beside(&self.index.entries, entry)? {
                None => Ok(None),
                Some(_) => Err(self
                    .index
                    .mismatch(&self.table.state, "an entry's row is not there")),
            };
        };
        let (table, key) = (&self.table, decode_key(&self.table, key)?);
        Ok(Some((index_key, key, decode_value(table, &row)?)))
    }
}

/// What [`IndexCursor::keys`] gives.
struct Keys<I, K, V>(IndexCursor<I, K, V>);

impl<I: Key, K: Key, V> Iterator for Keys<I, K, V> {
    type Item = Result<(I, K)>;

    fn next(&mut self) -> Option<Result<(I, K)>> {
        let Keys(cursor) = self;
        let (table, index) = (&cursor.table, &cursor.index);
        cursor
            .entries
            .next_as(|entry, value| keys(table, index, entry, value))
    }
}

impl<I: Key, K: Key, V> DoubleEndedIterator for Keys<I, K, V> {
    fn next_back(&mut self) -> Option<Result<(I, K)>> {
        let Keys(cursor) = self;
        let (table, index) = (&cursor.table, &cursor.index);
        cursor
            .entries
            .next_back_as(|entry, value| keys(table, index, entry, value))
    }
}

fn keys<I: Key, K: Key>(
    table: &Table,
    index: &IndexState,
    entry: &[u8],
    value: &[u8],
) -> Result<(I, K)> {
    let (index_key, key) = split(index, entry, value)?;
    Ok((index_key, decode_key(table, key)?))
}

/// The index key and the row's key of an entry.
fn split<'a, I: Key>(
    index: &IndexState,
    entry: &'a [u8],
    value: &'a [u8],
) -> Result<(I, &'a [u8])> {
    if index.is_unique {
        return Ok((decode_key(&index.entries, entry)?, value));
    }
    let mut rest = entry;
    let decoded = I::decode(&mut rest);
    let index_key = decoded.map_err(|source| crate::error::Error::Decode {
        table: index.entries.name(),
        part: "key",
        source,
    })?;
    Ok((index_key, rest))
}

impl<I: Key, K: Key, V: Value> Iterator for IndexCursor<I, K, V> {
    type Item = Result<(I, K, V)>;

    fn next(&mut self) -> Option<Result<(I, K, V)>> {
        self.take(Cursor::next)
    }
}

impl<I: Key, K: Key, V: Value> DoubleEndedIterator for IndexCursor<I, K, V> {
    fn next_back(&mut self) -> Option<Result<(I, K, V)>> {
        self.take(Cursor::next_back)
    }
}

impl<I, K, V> fmt::Debug for IndexCursor<I, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IndexCursor({:?})", self.entries.table())
    }
}
