//! Creating, filling and dropping indexes. The protocol is told in `index/mod.rs`.

use super::error::IndexError;
use super::extract::Extract;
use super::maintain::{entry, unique_violation};
use super::state::{IndexState, Status};
use crate::catalog::{self, IndexRow, TableRow};
use crate::ddl::{self, transact};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::options::Durability;
use crate::range::borrow;
use crate::retry;
use crate::table::{Table, TableState};
use longshore_access::Tree;
use longshore_base::crash_point;
use longshore_txn::{Batch, Direction, Transaction, TxnError};
use std::ops::Bound;
use std::sync::Arc;

/// Longest name and definition of an index in bytes.
const TEXT_BYTES_MAX: usize = 255;
/// Rows that the builder reads in one transaction; fewer after it had to give way.
const ROWS: usize = 64;

/// What an index is to be.
pub(super) struct Wanted<'a> {
    pub(super) name: &'a str,
    pub(super) definition: &'a str,
    pub(super) is_unique: bool,
    pub(super) extract: &'a Arc<dyn Extract>,
}

/// Creates an index and fills it, while others use the table.
pub(super) fn create(
    engine: &Engine,
    table: &Table,
    wanted: &Wanted<'_>,
) -> Result<Arc<IndexState>> {
    check_text("name", 1, wanted.name)?;
    check_text("definition", 0, wanted.definition)?;
    table.state.check_owner(engine.instance)?;
    let index = begin(engine, table, wanted)?;
    let rows = Rows::OfOpenTable(&table.state);
    let built = fill(
        engine,
        &rows,
        &table.state,
        &index,
        index.entries.state.tree(),
    )
    .and_then(|()| finish(engine, table, &index));
    match built {
        Ok(()) => Ok(index),
        Err(error) => {
            // If this fails too, `drop`, `create` or the next opening does it.
            index.set_status(Status::Failed);
            let _ = give_up(engine, table, &index);
            Err(engine.noted(error))
        }
    }
}

/// The index of that name, opened: its extractor is registered.
pub(super) fn open(engine: &Engine, table: &Table, wanted: &Wanted<'_>) -> Result<Arc<IndexState>> {
    engine.condition.check()?;
    table.state.check_owner(engine.instance)?;
    let index = find(table, wanted.name)?;
    let kind = |is_unique: bool, definition: &str| {
        let kind = if is_unique { "unique" } else { "not unique" };
        format!("{kind}, with definition \"{definition}\"")
    };
    let found = kind(index.is_unique, &index.definition);
    let asked = kind(wanted.is_unique, wanted.definition);
    let table = table.name();
    if found != asked {
        let index = index.name.clone();
        return Err(Error::Index(IndexError::Differs {
            table,
            index,
            found,
            asked,
        }));
    }
    index.register(&table, wanted.extract)?;
    Ok(index)
}

/// Drops an index.
pub(crate) fn drop(engine: &Engine, table: &Table, name: &str) -> Result<()> {
    table.state.check_owner(engine.instance)?;
    let _ddl = engine.catalog.change();
    let index = find(table, name)?;
    match index.status() {
        Status::Building => Err(index.not_ready(&table.state)),
        Status::Ready | Status::Failed => take_away(engine, table, &index),
    }
}

fn check_text(part: &'static str, least: usize, text: &str) -> Result<()> {
    let length = text.len();
    if (least..=TEXT_BYTES_MAX).contains(&length) {
        return Ok(());
    }
    Err(Error::Index(IndexError::Name {
        part,
        least,
        length,
    }))
}

fn find(table: &Table, name: &str) -> Result<Arc<IndexState>> {
    let found = table
        .state
        .indexes()
        .iter()
        .find(|index| index.name == name);
    found.cloned().ok_or_else(|| {
        Error::Index(IndexError::Missing {
            table: table.name(),
            index: name.to_owned(),
        })
    })
}

/// Lets all writers keep the index from now on.
fn begin(engine: &Engine, table: &Table, wanted: &Wanted<'_>) -> Result<Arc<IndexState>> {
    let _ddl = engine.catalog.change();
    if let Ok(index) = find(table, wanted.name) {
        if index.status() != Status::Failed {
            return Err(Error::Index(IndexError::Exists {
                table: table.name(),
                index: wanted.name.to_owned(),
            }));
        }
        take_away(engine, table, &index)?;
    }
    let closed = ddl::close(engine, table)?;
    let key = catalog::key_of(&table.name())?;
    let row = transact(engine, |engine, txn| {
        let store = ddl::take_store(engine, txn)?;
        let row = IndexRow {
            name: wanted.name.to_owned(),
            definition: wanted.definition.to_owned(),
            is_unique: wanted.is_unique,
            is_ready: false,
            tree: txn.create_tree(store)?,
        };
        crash_point("build.tree");
        change_table_row(engine, txn, &key, |table| table.indexes.push(row.clone()))?;
        crash_point("build.named");
        Ok(row)
    })?;
    crash_point("build.begun");
    let index = IndexState::new(engine.instance, &table.name(), &row);
    index.register(&table.name(), wanted.extract)?;
    index.set_status(Status::Building);
    let index = Arc::new(index);
    let mut indexes = table.state.indexes().to_vec();
    indexes.push(Arc::clone(&index));
    table.state.replace_indexes(indexes);
    std::mem::drop(closed);
    Ok(index)
}

/// The index is complete.
fn finish(engine: &Engine, table: &Table, index: &IndexState) -> Result<()> {
    let _ddl = engine.catalog.change();
    let key = catalog::key_of(&table.name())?;
    let store = index.entries.id();
    transact(engine, |engine, txn| {
        let mut is_there = false;
        change_table_row(engine, txn, &key, |row| {
            let mut indexes = row.indexes.iter_mut();
            if let Some(built) = indexes.find(|index| index.tree.store == store) {
                built.is_ready = true;
                is_there = true;
            }
        })?;
        if !is_there {
            let table = table.name();
            return Err(Error::TableDropped { table });
        }
        crash_point("build.ready");
        Ok(())
    })?;
    crash_point("build.committed");
    // Snapshots opened before have not seen all entries.
    index.entries.state.set_loaded_at(engine.log.tail());
    index.set_status(Status::Ready);
    Ok(())
}

/// Takes away what could not be built.
fn give_up(engine: &Engine, table: &Table, index: &Arc<IndexState>) -> Result<()> {
    let limits = engine.options.retry_limits();
    retry::run(&*engine.env, limits, std::thread::sleep, || {
        let _ddl = engine.catalog.change();
        take_away(engine, table, index)
    })
}

/// Takes an index out of the table's set and of the catalog; the caller holds `ddl`.
fn take_away(engine: &Engine, table: &Table, index: &Arc<IndexState>) -> Result<()> {
    let _closed = ddl::close(engine, table)?;
    let entries_closed = ddl::close(engine, &index.entries)?;
    let key = catalog::key_of(&table.name())?;
    let tree = index.entries.state.tree();
    transact(engine, |engine, txn| {
        remove_from_row(engine, txn, &key, tree)?;
        crash_point("index_drop.unnamed");
        Ok(())
    })?;
    crash_point("index_drop.committed");
    let mut indexes = table.state.indexes().to_vec();
    indexes.retain(|other| !Arc::ptr_eq(other, index));
    table.state.replace_indexes(indexes);
    entries_closed.remove();
    Ok(())
}

/// Drops the indexes whose building ended in a crash; not those whose entries a prepared transaction has changed,
/// which keep waiting until the next opening.
pub(crate) fn give_up_interrupted_builds(
    engine: &Engine,
    is_kept: impl Fn(longshore_base::StoreId) -> bool,
) -> Result<()> {
    for (name, row) in ddl::tables(engine)? {
        let key = catalog::key_of(&name)?;
        let interrupted = row.indexes.iter().filter(|index| !index.is_ready);
        for index in interrupted.filter(|index| !is_kept(index.tree.store)) {
            transact(engine, |engine, txn| {
                remove_from_row(engine, txn, &key, index.tree)
            })?;
            crash_point("build.interrupted");
        }
    }
    Ok(())
}

fn remove_from_row(engine: &Engine, txn: &mut Transaction, key: &[u8], tree: Tree) -> Result<()> {
    change_table_row(engine, txn, key, |row| {
        row.indexes.retain(|index| index.tree.store != tree.store);
    })?;
    Ok(txn.drop_tree(tree)?)
}

/// Changes a table's row in the catalog.
fn change_table_row(
    engine: &Engine,
    txn: &mut Transaction,
    key: &[u8],
    change: impl FnOnce(&mut TableRow),
) -> Result<()> {
    let mut row = ddl::table_row(engine, txn, key)?;
    change(&mut row);
    Ok(txn.put(engine.catalog.tree, key, &row.encode())?)
}

/// The rows that an index is filled from.
enum Rows<'a> {
    /// Others use the table meanwhile: its gate is entered for each portion.
    OfOpenTable(&'a TableState),
    /// A tree that nobody else knows yet.
    OfTree(Tree),
}

/// Fills the entries of an index of `table` into `entries`, from the rows of a tree that is being loaded.
pub(crate) fn fill_loaded(
    engine: &Engine,
    rows: Tree,
    table: &TableState,
    index: &IndexState,
    entries: Tree,
) -> Result<()> {
    fill(engine, &Rows::OfTree(rows), table, index, entries)
}

fn fill(
    engine: &Engine,
    rows: &Rows<'_>,
    table: &TableState,
    index: &IndexState,
    entries: Tree,
) -> Result<()> {
    let mut from = Some(Bound::Unbounded);
    while let Some(low) = from {
        let mut attempt = 0;
        let portion = || {
            let rows_max = ROWS.checked_shr(attempt).map_or(1, |rows| rows.max(1));
            attempt += 1;
            engine.with_log_space(|| {
                let inside = Inside::enter(engine, rows)?;
                fill_portion(engine, inside.tree, table, index, entries, &low, rows_max)
            })
        };
        let limits = engine.options.retry_limits();
        from = retry::run(&*engine.env, limits, std::thread::sleep, portion)?;
        crash_point("build.portion");
        if engine.is_checkpoint_due() {
            engine.checkpoint()?;
        }
    }
    Ok(())
}

/// Adds the entries of the rows from `low` on, a few; returns where to go on.
fn fill_portion(
    engine: &Engine,
    rows: Tree,
    table: &TableState,
    index: &IndexState,
    entries: Tree,
    low: &Bound<Vec<u8>>,
    rows_max: usize,
) -> Result<Option<Bound<Vec<u8>>>> {
    let extract = index.extract(table)?;
    let mut txn = engine.begin_internal()?;
    let mut batch = Batch::new();
    batch.rows_max = rows_max;
    let of_table = |error| engine.noted(Error::from_txn(error, table));
    txn.scan_leaf(
        rows,
        borrow(low),
        Bound::Unbounded,
        Direction::Forward,
        &mut batch,
    )
    .map_err(of_table)?;
    for (key, value) in batch.rows() {
        for index_key in extract.keys_of(table, key, value)? {
            let (entry, value) = entry(index, &index_key, key);
            match txn.insert(entries, &entry, &value) {
                Ok(()) => {}
                Err(TxnError::KeyExists) => {
                    // Whoever changed the row since the index began has added it.
                    if txn.get(entries, &entry).map_err(of_table)? != Some(value) {
                        return Err(unique_violation(table, index, &index_key));
                    }
                }
                Err(error) => {
                    return Err(engine.noted(Error::from_txn(error, &index.entries.state)));
                }
            }
        }
    }
    // The commit that ends the building makes this one durable with itself.
    let _ = txn
        .commit(Engine::level(Durability::None))
        .map_err(of_table)?;
    Ok(batch.next().map(|next| next.map(<[u8]>::to_vec)))
}

/// Inside the gate of the table, where it has one to be passed.
struct Inside<'a> {
    tree: Tree,
    gate: Option<(&'a TableState, crate::gate::Entered)>,
}

impl<'a> Inside<'a> {
    fn enter(engine: &Engine, rows: &Rows<'a>) -> Result<Inside<'a>> {
        match *rows {
            Rows::OfOpenTable(table) => {
                let entered = table.enter(&*engine.env, engine.options.lock_wait)?;
                Ok(Inside {
                    tree: table.tree(),
                    gate: Some((table, entered)),
                })
            }
            Rows::OfTree(tree) => Ok(Inside { tree, gate: None }),
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        if let Some((table, entered)) = self.gate.take() {
            table.gate.leave(entered);
        }
    }
}
