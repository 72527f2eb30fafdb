//! Loading sorted rows into an empty table, all or nothing.
//!
//! # Protocol
//! The rows go into a tree of their own, which stands in the catalog as "being loaded". At the end one
//! transaction gives it the table's name and drops the table's former, empty tree. An error, or the
//! next opening after a crash, drops the loaded tree instead. The table's gate is closed meanwhile.
//! Each index gets a tree of its own in the same way, filled when the rows are there.
//!
//! Whole leaves are written and logged, not rows. A value too large for a leaf interrupts that: its
//! row is put by a transaction of its own, and loading goes on behind it.

use crate::ddl;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::index;
use crate::options::Durability;
use crate::table::Table;
use longshore_access::{AccessError, Limits, RowFlags, Tree};
use longshore_txn::{Batch, Direction};
use std::ops::Bound;

/// Rows between two looks at the log's length.
const ROWS_PER_LOOK: u64 = 256;

/// Loads `rows` into the empty `table`; returns how many.
pub(crate) fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    engine: &Engine,
    table: &Table,
    rows: impl IntoIterator<Item = Result<(K, V)>>,
) -> Result<u64> {
    table.state.check_owner(engine.instance)?;
    // Does nothing, but is seen by whoever wants to close the database.
    let _active = engine.begin_internal()?;
    engine.check_writable()?;
    let _closed = ddl::close_all(engine, table)?;
    check_indexes(table)?;
    check_empty(engine, table)?;
    let tree = ddl::begin_load(engine)?;
    let mut load = Load {
        engine,
        table,
        tree,
        rows: rows.into_iter(),
        large: None,
        last_key: None,
        count: 0,
    };
    let mut trees = vec![tree];
    let loaded = load
        .run()
        .and_then(|()| fill_indexes(engine, table, &mut trees))
        .and_then(|()| ddl::end_load(engine, table, tree, &trees[1..]));
    match loaded {
        Ok(()) => Ok(load.count),
        Err(error) => {
            // If this fails too, the next opening does it.
            for tree in trees {
                let _ = ddl::give_up_load(engine, tree);
            }
            Err(engine.noted(error))
        }
    }
}

/// Fails unless every index can be filled.
fn check_indexes(table: &Table) -> Result<()> {
    table.state.indexes().iter().try_for_each(|index| {
        index.check_ready(&table.state)?;
        index.extract(&table.state).map(drop)
    })
}

/// Fills a tree of entries for each index, from the rows in the first of `trees`, and appends it.
fn fill_indexes(engine: &Engine, table: &Table, trees: &mut Vec<Tree>) -> Result<()> {
    for index in table.state.indexes() {
        let entries = ddl::begin_load(engine)?;
        trees.push(entries);
        index::fill_loaded(engine, trees[0], &table.state, index, entries)?;
    }
    Ok(())
}

fn check_empty(engine: &Engine, table: &Table) -> Result<()> {
    let mut txn = engine.begin_internal()?;
    let mut batch = Batch::new();
    let mut from = Some(Bound::Unbounded);
    while let Some(low) = from {
        let low = crate::range::borrow::<Vec<u8>>(&low);
        let tree = table.state.tree();
        engine.note(txn.scan_leaf(tree, low, Bound::Unbounded, Direction::Forward, &mut batch))?;
        if !batch.is_empty() {
            return Err(Error::TableNotEmpty {
                table: table.name(),
            });
        }
        from = batch.next().map(|next| next.map(<[u8]>::to_vec));
    }
    Ok(())
}

/// A load under way.
struct Load<'a, I, K, V> {
    engine: &'a Engine,
    table: &'a Table,
    tree: Tree,
    rows: I,
    /// A row that is too large for a leaf, waiting for those before it to be written.
    large: Option<(K, V)>,
    last_key: Option<Vec<u8>>,
    count: u64,
}

impl<K: AsRef<[u8]>, V: AsRef<[u8]>, I: Iterator<Item = Result<(K, V)>>> Load<'_, I, K, V> {
    fn run(&mut self) -> Result<()> {
        loop {
            let (engine, tree) = (self.engine, self.tree);
            let mut context = engine.access.system_context(0)?;
            let rows = std::iter::from_fn(|| self.next_small());
            tree.bulk_load(&engine.access, &mut context, rows)
                .map_err(|failure| failure.0)?;
            drop(context);
            match self.large.take() {
                Some((key, value)) => self.put_large(key.as_ref(), value.as_ref())?,
                None => return Ok(()),
            }
        }
    }

    /// The next row, unless it is the end or a large one.
    fn next_small(&mut self) -> Option<std::result::Result<(K, RowFlags, V), Failure>> {
        let row = match self.rows.next()? {
            Ok(row) => row,
            Err(error) => return Some(Err(Failure(error))),
        };
        if let Err(error) = self.accept(row.0.as_ref()) {
            return Some(Err(Failure(error)));
        }
        let limits = Limits::new(self.engine.access.page_size());
        if row.1.as_ref().len() > limits.inline_max(row.0.as_ref().len()) {
            self.large = Some(row);
            return None;
        }
        Some(Ok((row.0, RowFlags::NONE, row.1)))
    }

    /// Checks the order, and the log from time to time: a long load must not fill it.
    fn accept(&mut self, key: &[u8]) -> Result<()> {
        self.count += 1;
        if self.last_key.as_deref().is_some_and(|last| last >= key) {
            return Err(Error::Unsorted { row: self.count });
        }
        let limits = Limits::new(self.engine.access.page_size());
        if key.len() > limits.key_max() {
            return Err(Error::KeyTooLong {
                table: self.table.name(),
                key_bytes: key.len(),
                maximum: limits.key_max(),
            });
        }
        let last = self.last_key.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        if self.count.is_multiple_of(ROWS_PER_LOOK) && self.engine.is_checkpoint_due() {
            self.engine.checkpoint()?;
        }
        Ok(())
    }

    fn put_large(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let engine = self.engine;
        engine.with_log_space(|| {
            let mut txn = engine.begin_internal()?;
            txn.put(self.tree, key, value)?;
            // The commit that ends the load makes this one durable with itself.
            let _ = txn.commit(Engine::level(Durability::None))?;
            Ok(())
        })
    }
}

/// Carries an error through the loader below, which has errors of its own.
struct Failure(Error);

impl From<AccessError> for Failure {
    fn from(error: AccessError) -> Failure {
        Failure(error.into())
    }
}
