//! The tables in a database: rows by their keys.
//!
//! Rows go through tables of bytes. A typed table allocates keys and copies rows once more: to read a row of stock
//! for update and change it took 1.19 times the instructions so, and 1.28 times with a struct for a value (callgrind,
//! when that was two calls).
//! The indexes are the engine's. Nothing they are made of is ever changed, so only a new order adds an entry.

use super::index::{self, CustomerByName, OrderByCustomer};
use super::layout::{Layout, Row};
use super::schema::{
    Customer, District, History, Item, NewOrder, Order, OrderLine, Stock, Warehouse,
};
use longshore::{Cursor, Database, Error, KeyRange, Result, Table, Transaction};
use std::marker::PhantomData;

/// All tables of the benchmark.
pub(super) struct Tables {
    pub(super) warehouse: Relation<Warehouse>,
    pub(super) district: Relation<District>,
    pub(super) customer: Relation<Customer>,
    pub(super) customer_by_name: CustomerByName,
    pub(super) history: Relation<History>,
    pub(super) new_order: Relation<NewOrder>,
    pub(super) order: Relation<Order>,
    pub(super) order_by_customer: OrderByCustomer,
    pub(super) order_line: Relation<OrderLine>,
    pub(super) item: Relation<Item>,
    pub(super) stock: Relation<Stock>,
}

impl Tables {
    pub(super) fn create(db: &Database) -> Result<Tables> {
        let (customer, order) = (Relation::create(db)?, Relation::create(db)?);
        Ok(Tables {
            warehouse: Relation::create(db)?,
            district: Relation::create(db)?,
            customer_by_name: index::customer_by_name(db, &customer)?,
            customer,
            history: Relation::create(db)?,
            new_order: Relation::create(db)?,
            order_by_customer: index::order_by_customer(db, &order)?,
            order,
            order_line: Relation::create(db)?,
            item: Relation::create(db)?,
            stock: Relation::create(db)?,
        })
    }
}

/// A table whose rows are laid out as `R`.
pub(super) struct Relation<R> {
    pub(super) table: Table,
    kind: PhantomData<R>,
}

impl<R: Layout> Relation<R> {
    fn create(db: &Database) -> Result<Relation<R>> {
        Ok(Relation {
            table: db.create_table(R::TABLE)?,
            kind: PhantomData,
        })
    }

    /// The row of `key`, if there is one.
    pub(super) fn find(&self, tx: &Transaction, key: &[u8]) -> Result<Option<Row<R, Vec<u8>>>> {
        tx.get(&self.table, key)?.map(self::row).transpose()
    }

    /// The row of `key`.
    pub(super) fn get(&self, tx: &Transaction, key: &[u8]) -> Result<Row<R, Vec<u8>>> {
        self.find(tx, key)?.ok_or_else(|| missing::<R>(key))
    }

    /// Changes the row of `key`, and returns what `change` does.
    pub(super) fn modify<T>(
        &self,
        tx: &Transaction,
        key: &[u8],
        change: impl FnOnce(&mut Row<R, &mut Vec<u8>>) -> T,
    ) -> Result<T> {
        let mut changed = None;
        tx.modify(&self.table, key, |bytes| {
            changed = Some(change(&mut row(bytes)?));
            Ok(())
        })?;
        changed.ok_or_else(|| missing::<R>(key))
    }

    pub(super) fn insert<B: AsRef<[u8]>>(
        &self,
        tx: &Transaction,
        key: &[u8],
        row: &Row<R, B>,
    ) -> Result<()> {
        tx.insert(&self.table, key, row)
    }

    /// Takes a row out; false when there was none.
    pub(super) fn delete(&self, tx: &Transaction, key: &[u8]) -> Result<bool> {
        tx.delete(&self.table, key)
    }

    pub(super) fn scan(&self, tx: &Transaction, range: impl KeyRange) -> Result<Rows<R>> {
        let cursor = tx.scan(&self.table, range)?;
        let kind = PhantomData;
        Ok(Rows { cursor, kind })
    }

    pub(super) fn prefix(&self, tx: &Transaction, prefix: &[u8]) -> Result<Rows<R>> {
        let cursor = tx.prefix(&self.table, prefix)?;
        let kind = PhantomData;
        Ok(Rows { cursor, kind })
    }
}

/// A key, and the row that it has.
type Entry<'a, R> = (&'a [u8], Row<R, &'a [u8]>);

/// The rows of a range.
pub(super) struct Rows<R> {
    cursor: Cursor,
    kind: PhantomData<R>,
}

impl<R: Layout> Rows<R> {
    /// The next row with its key; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Entry<'_, R>>> {
        match self.cursor.next_row()? {
            Some((key, bytes)) => Ok(Some((key, row(bytes)?))),
            None => Ok(None),
        }
    }
}

fn row<R: Layout, B: AsRef<[u8]>>(bytes: B) -> Result<Row<R, B>> {
    let found = bytes.as_ref().len();
    Row::over(bytes).ok_or_else(|| {
        let (table, width) = (R::TABLE, R::WIDTH);
        Error::other(format!("a row of {table} has {found} bytes, not {width}"))
    })
}

#[cold]
fn missing<R: Layout>(key: &[u8]) -> Error {
    Error::other(format!("{} has no row {key:02x?}", R::TABLE))
}
