//! The operations of a transaction, run on the store and written down as they are done.
//!
//! A change is written down before it is made: if it fails half-way, what it wrote is known as its own.

use super::operation::{Content, Operation, Seen};
use longshore::{Database, Error, Result, Table, Transaction};
use rand::Rng;
use rand::rngs::SmallRng;
use std::sync::atomic::{AtomicI64, Ordering};

/// One step in so many is followed by a pause in which others may run.
const PAUSED: u32 = 4;

/// The tables of all workloads.
pub(super) struct Tables {
    lists: Table,
    registers: Table,
    rows: Table,
}

impl Tables {
    pub(super) fn create(db: &Database) -> Result<Tables> {
        Ok(Tables {
            lists: db.create_table("lists")?,
            registers: db.create_table("registers")?,
            rows: db.create_table("rows")?,
        })
    }
}

/// Whether a row is read to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Look,
    Change,
}

/// A transaction at work.
pub(super) struct Steps<'a> {
    transaction: &'a Transaction,
    tables: &'a Tables,
    next_value: &'a AtomicI64,
    pub(super) random: SmallRng,
    done: Vec<Operation>,
}

impl<'a> Steps<'a> {
    pub(super) fn new(
        transaction: &'a Transaction,
        tables: &'a Tables,
        next_value: &'a AtomicI64,
        random: SmallRng,
    ) -> Steps<'a> {
        let done = Vec::new();
        Steps {
            transaction,
            tables,
            next_value,
            random,
            done,
        }
    }

    /// What was done, in order.
    pub(super) fn into_done(self) -> Vec<Operation> {
        self.done
    }

    /// A number that nobody else gets.
    pub(super) fn unique(&self) -> i64 {
        self.next_value.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn read_list(&mut self, key: i64) -> Result<()> {
        let list = self.transaction.get(&self.tables.lists, bytes(key))?;
        let seen = match list {
            None => Seen::Nothing,
            Some(list) => Seen::List(numbers(&list)?),
        };
        self.did(Operation::Read { key, seen });
        Ok(())
    }

    pub(super) fn append(&mut self, key: i64, value: i64) -> Result<()> {
        self.did(Operation::Append { key, value });
        self.append_in_silence(key, value)
    }

    /// Appends a value of which nothing is said, and takes that back: nobody may ever see it.
    pub(super) fn append_and_take_back(&mut self, key: i64) -> Result<()> {
        let savepoint = self.transaction.savepoint()?;
        self.append_in_silence(key, self.unique())?;
        self.transaction.rollback_to(&savepoint)
    }

    fn append_in_silence(&mut self, key: i64, value: i64) -> Result<()> {
        let (lists, key) = (&self.tables.lists, bytes(key));
        let mut list = self
            .transaction
            .get_for_update(lists, key)?
            .unwrap_or_default();
        list.extend(value.to_le_bytes());
        self.transaction.put(lists, key, list)
    }

    pub(super) fn read(&mut self, key: i64, purpose: Purpose) -> Result<Option<Content>> {
        let (registers, at) = (&self.tables.registers, bytes(key));
        let value = match purpose {
            Purpose::Look => self.transaction.get(registers, at)?,
            Purpose::Change => self.transaction.get_for_update(registers, at)?,
        };
        let content = match value.as_deref().map(numbers).transpose()?.as_deref() {
            None => None,
            Some([number]) => Some(Content::Number(*number)),
            Some([balance, stamp]) => Some(Content::Balance {
                balance: *balance,
                stamp: *stamp,
            }),
            Some(_) => return Err(Error::other("a register holds something else")),
        };
        let seen = content.map_or(Seen::Nothing, Seen::Content);
        self.did(Operation::Read { key, seen });
        Ok(content)
    }

    pub(super) fn write(&mut self, key: i64, content: Content) -> Result<()> {
        self.did(Operation::Write {
            key,
            value: Some(content),
        });
        let value = match content {
            Content::Number(number) => number.to_le_bytes().to_vec(),
            Content::Balance { balance, stamp } => {
                [balance.to_le_bytes(), stamp.to_le_bytes()].concat()
            }
        };
        self.transaction
            .put(&self.tables.registers, bytes(key), value)
    }

    /// Writes down what these accounts promise.
    pub(super) fn promise(&mut self, accounts: Vec<i64>, total: i64) {
        self.done.push(Operation::Bank { accounts, total });
    }

    /// All rows at the positions from `low` to below `high`, with their positions.
    pub(super) fn scan(&mut self, low: i64, high: i64) -> Result<Vec<(i64, i64)>> {
        let mut rows = Vec::new();
        let range = bytes(low).to_vec()..bytes(high).to_vec();
        for row in self.transaction.scan(&self.tables.rows, range)? {
            let (position, row) = row?;
            let position = <[u8; 8]>::try_from(&position[..]).map_err(Error::other)?;
            let row = numbers(&row)?;
            rows.push((
                i64::from_be_bytes(position),
                row.first().copied().unwrap_or(-1),
            ));
        }
        let seen = Some(rows.clone());
        self.did(Operation::Scan { low, high, seen });
        Ok(rows)
    }

    pub(super) fn insert(&mut self, row: i64, position: i64) -> Result<()> {
        self.did(Operation::Insert { row, position });
        self.transaction
            .insert(&self.tables.rows, bytes(position), row.to_le_bytes())
    }

    /// Moves a row, unless somebody else has moved it from there.
    pub(super) fn move_row(&mut self, row: i64, from: i64, to: i64) -> Result<()> {
        if self.transaction.delete(&self.tables.rows, bytes(from))? {
            let (row_number, from) = (Some(row), Some(from));
            self.did(Operation::Move {
                row: row_number,
                from,
                to,
            });
            self.transaction
                .insert(&self.tables.rows, bytes(to), row.to_le_bytes())?;
        }
        Ok(())
    }

    fn did(&mut self, operation: Operation) {
        self.done.push(operation);
        if self.random.random_ratio(1, PAUSED) {
            std::thread::yield_now();
        }
    }
}

/// A key or position; none is negative, so bytes have the order of numbers.
fn bytes(key: i64) -> [u8; 8] {
    key.to_be_bytes()
}

fn numbers(bytes: &[u8]) -> Result<Vec<i64>> {
    let (numbers, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(Error::other("a value is cut short"));
    }
    Ok(numbers
        .iter()
        .map(|number| i64::from_le_bytes(*number))
        .collect())
}
