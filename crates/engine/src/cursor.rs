//! Cursors: the rows of a range, from either end.
//!
//! # Protocol
//! A cursor reads ahead one leaf at a time, from the front, from the back, or from both. What it
//! has not read yet is the range between `low` and `high`; rows already read and not yet handed out
//! wait in `front` and `back`. When the range is used up, each end goes on with what the other one
//! has left.
//!
//! No latch and no position in a page is kept between two calls: a cursor knows keys only. Locks on
//! the rows and gaps that were read keep others from changing them, or a snapshot keeps what they were. The transaction itself may change
//! them: then what was read ahead is dropped and read again, behind the last row handed out, a few
//! rows at first, so that deleting row by row behind a cursor stays cheap.
//!
//! # Invariants
//! I1. Keys in `front` are below the unread range, keys in `back` above it; handed-out keys are below
//! those of `front` and above those of `back`.

use crate::error::{Error, Result};
use crate::range::{self, Bounds};
use crate::shared::Shared;
use crate::table::Table;
use longshore_txn::{Batch, Direction, Statement};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// Rows read ahead at first, and after the transaction has changed something.
const ROWS_AT_FIRST: usize = 8;
/// Factor by which each reading-ahead takes more; one leaf is the most in any case.
const ROWS_GROWTH: usize = 8;

/// A row: key and value.
pub type Row = (Vec<u8>, Vec<u8>);

/// The rows of a range in order, or in reverse.
///
/// Use it as an iterator, which ends after an error, from both ends if you like, or with [`Cursor::next_row`], which allocates
/// nothing per row. It belongs to its transaction and sees all that this one has changed; used after
/// the transaction has ended, it gives [`Error::TransactionEnded`].
///
/// ```
/// use longshore::Database;
/// # fn main() -> longshore::Result<()> {
/// # let db = Database::in_memory()?;
/// # let table = db.create_table("letters")?;
/// # db.update(|tx| "abcde".bytes().try_for_each(|b| tx.put(&table, [b], [b])))?;
/// let tx = db.begin()?;
/// let newest = tx.scan(&table, ..)?.reverse().next().transpose()?;
/// assert_eq!(newest.map(|(key, _)| key), Some(b"e".to_vec()));
///
/// let mut cursor = tx.scan(&table, "b".."d")?;
/// while let Some((key, value)) = cursor.next_row()? {
///     assert_eq!(key, value);
/// }
/// # Ok(()) }
/// ```
#[must_use = "a cursor reads nothing before it is asked for rows"]
pub struct Cursor {
    shared: Arc<Shared>,
    table: Table,
    /// The range not read yet; void once `is_exhausted`.
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    is_exhausted: bool,
    front: Ahead,
    back: Ahead,
    order: Order,
    /// The transaction's count of changes when `front` and `back` were read.
    changes: u64,
    /// Rows to read ahead next time.
    rows_max: usize,
    /// What makes all its reads see one state, where the transaction's do not.
    statement: Option<Statement>,
    /// Set when the iterator has told of an error: it ends there.
    is_failed: bool,
}

/// Which end `next` takes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Ascending,
    Descending,
}

/// Rows read ahead from one end, in the order in which that end hands them out.
struct Ahead {
    batch: Batch,
    /// The end's bound of the unread range before the batch was read.
    before: Bound<Vec<u8>>,
    /// Rows of the batch not handed out: `from..to`. This end takes at `from`, the other at `to`.
    from: usize,
    to: usize,
}

/// Where a row waits: at which end it was read, and its place in that batch.
#[derive(Clone, Copy)]
enum Place {
    Front(usize),
    Back(usize),
}

impl Cursor {
    pub(crate) fn new(
        shared: Arc<Shared>,
        table: Table,
        (low, high): Bounds,
        statement: Option<Statement>,
    ) -> Cursor {
        Cursor {
            changes: shared.changes(),
            front: Ahead::new(low.clone()),
            back: Ahead::new(high.clone()),
            shared,
            table,
            is_exhausted: range::is_empty(range::borrow(&low), range::borrow(&high)),
            low,
            high,
            order: Order::Ascending,
            rows_max: ROWS_AT_FIRST,
            statement,
            is_failed: false,
        }
    }

    /// Turns the cursor round: `next` and [`Cursor::next_row`] take from the other end.
    pub fn reverse(mut self) -> Cursor {
        self.order = self.order.opposite();
        self
    }

    /// The next row, borrowed until the next call; `None` at the end.
    ///
    /// # Errors
    /// [`Error::TransactionEnded`]; those of [`crate::Transaction::get`].
    pub fn next_row(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let place = self.take(self.order)?;
        Ok(place.map(|place| self.row(place)))
    }

    /// The table that the rows are of.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// The value of `key` in another table, read by the same transaction.
    pub(crate) fn get_beside(&self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.shared.read(table, |txn, tree| txn.get(tree, key))
    }

    fn row(&self, place: Place) -> (&[u8], &[u8]) {
        match place {
            Place::Front(index) => self.front.batch.row(index),
            Place::Back(index) => self.back.batch.row(index),
        }
    }

    /// What `read` makes of the next row; the last time, an error.
    pub(crate) fn next_as<T>(
        &mut self,
        read: impl FnOnce(&[u8], &[u8]) -> Result<T>,
    ) -> Option<Result<T>> {
        self.take_as(self.order, read)
    }

    /// What `read` makes of the next row from the other end; the last time, an error.
    pub(crate) fn next_back_as<T>(
        &mut self,
        read: impl FnOnce(&[u8], &[u8]) -> Result<T>,
    ) -> Option<Result<T>> {
        self.take_as(self.order.opposite(), read)
    }

    fn take_as<T>(
        &mut self,
        order: Order,
        read: impl FnOnce(&[u8], &[u8]) -> Result<T>,
    ) -> Option<Result<T>> {
        if self.is_failed {
            return None;
        }
        let place = self.take(order).transpose()?;
        let outcome = place.and_then(|place| {
            let (key, value) = self.row(place);
            read(key, value)
        });
        self.is_failed = outcome.is_err();
        Some(outcome)
    }

    /// Takes the next row at the end that `order` begins with.
    fn take(&mut self, order: Order) -> Result<Option<Place>> {
        if self.shared.is_ended() {
            return Err(Error::TransactionEnded);
        }
        self.forget_if_changed();
        loop {
            if let Some(place) = self.take_ready(order) {
                return Ok(Some(place));
            }
            if self.is_exhausted {
                return Ok(self.take_others(order));
            }
            self.read_ahead(order)?;
        }
    }

    /// A row that this end has read ahead.
    fn take_ready(&mut self, order: Order) -> Option<Place> {
        match order {
            Order::Ascending => self.front.take_first().map(Place::Front),
            Order::Descending => self.back.take_first().map(Place::Back),
        }
    }

    /// A row that the other end has read ahead, when there is nothing left to read.
    fn take_others(&mut self, order: Order) -> Option<Place> {
        match order {
            Order::Ascending => self.back.take_last().map(Place::Back),
            Order::Descending => self.front.take_last().map(Place::Front),
        }
    }

    /// Reads rows of one leaf at the end that `order` begins with, perhaps none.
    fn read_ahead(&mut self, order: Order) -> Result<()> {
        let (ahead, direction) = match order {
            Order::Ascending => (&mut self.front, Direction::Forward),
            Order::Descending => (&mut self.back, Direction::Reverse),
        };
        let mut batch = std::mem::take(&mut ahead.batch);
        (ahead.from, ahead.to) = (0, 0);
        batch.rows_max = self.rows_max;
        let (low, high) = (range::borrow(&self.low), range::borrow(&self.high));
        self.shared.read(&self.table, |txn, tree| {
            txn.scan_leaf_of(self.statement, tree, low, high, direction, &mut batch)
        })?;
        self.rows_max = self.rows_max.saturating_mul(ROWS_GROWTH);
        let bound = match order {
            Order::Ascending => &mut self.low,
            Order::Descending => &mut self.high,
        };
        ahead.before = match batch.next() {
            Some(next) => std::mem::replace(bound, next.map(<[u8]>::to_vec)),
            None => {
                self.is_exhausted = true;
                bound.clone()
            }
        };
        ahead.to = batch.len();
        ahead.batch = batch;
        Ok(())
    }

    /// Drops what was read ahead if the transaction has changed something since; what follows the
    /// rows handed out is unread again.
    fn forget_if_changed(&mut self) {
        let changes = self.shared.changes();
        if changes == self.changes {
            return;
        }
        self.changes = changes;
        self.rows_max = ROWS_AT_FIRST;
        let low = self
            .back
            .reached_by_other()
            .unwrap_or_else(|| self.front.reached());
        let high = self
            .front
            .reached_by_other()
            .unwrap_or_else(|| self.back.reached());
        self.is_exhausted = range::is_empty(range::borrow(&low), range::borrow(&high));
        self.front = Ahead::new(low.clone());
        self.back = Ahead::new(high.clone());
        (self.low, self.high) = (low, high);
    }
}

impl Ahead {
    fn new(before: Bound<Vec<u8>>) -> Ahead {
        Ahead {
            batch: Batch::default(),
            before,
            from: 0,
            to: 0,
        }
    }

    fn take_first(&mut self) -> Option<usize> {
        let index = self.from;
        (index < self.to).then(|| {
            self.from += 1;
            index
        })
    }

    fn take_last(&mut self) -> Option<usize> {
        (self.from < self.to).then(|| {
            self.to -= 1;
            self.to
        })
    }

    /// The bound behind the rows that this end has handed out.
    fn reached(&self) -> Bound<Vec<u8>> {
        match self.from.checked_sub(1) {
            Some(last) => Bound::Excluded(self.batch.row(last).0.to_vec()),
            None => self.before.clone(),
        }
    }

    /// The bound behind the rows of this batch that the other end has handed out, if it has any.
    fn reached_by_other(&self) -> Option<Bound<Vec<u8>>> {
        (self.to < self.batch.len()).then(|| Bound::Excluded(self.batch.row(self.to).0.to_vec()))
    }
}

impl Order {
    fn opposite(self) -> Order {
        match self {
            Order::Ascending => Order::Descending,
            Order::Descending => Order::Ascending,
        }
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        if let Some(statement) = self.statement.take() {
            self.shared.end_statement(statement);
        }
    }
}

fn owned(key: &[u8], value: &[u8]) -> Result<Row> {
    Ok((key.to_vec(), value.to_vec()))
}

impl Iterator for Cursor {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        self.next_as(owned)
    }
}

impl DoubleEndedIterator for Cursor {
    fn next_back(&mut self) -> Option<Result<Row>> {
        self.next_back_as(owned)
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cursor({:?})", self.table)
    }
}
