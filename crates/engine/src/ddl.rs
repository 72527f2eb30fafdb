//! Creating, dropping and renaming tables: small transactions on the catalog.
//!
//! The protocol is told in `catalog.rs`. Every change here is retried like any other transaction,
//! for it locks rows like any other.

use crate::catalog::{self, NEXT_STORE, TableRow};
use crate::cursor::Row;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::gate::{Closed, Refused};
use crate::range::borrow;
use crate::retry;
use crate::table::{Table, TableState};
use longshore_access::Tree;
use longshore_base::{StoreId, crash_point};
use longshore_txn::{Batch, Direction, Transaction};
use std::ops::Bound;

/// Creates a table.
pub(crate) fn create(engine: &Engine, name: &str) -> Result<Table> {
    let key = catalog::key_of(name)?;
    let _ddl = engine.catalog.change();
    transact(engine, |engine, txn| {
        let catalog = engine.catalog.tree;
        if txn.contains(catalog, &key)? {
            let table = name.to_owned();
            return Err(Error::TableExists { table });
        }
        let store = take_store(engine, txn)?;
        let tree = txn.create_tree(store)?;
        crash_point("create.tree");
        txn.insert(catalog, &key, &TableRow::new(tree).encode())?;
        crash_point("create.named");
        Ok(())
    })?;
    crash_point("create.committed");
    open(engine, name)
}

/// The handle of a table.
pub(crate) fn open(engine: &Engine, name: &str) -> Result<Table> {
    let missing = || Error::TableMissing {
        table: name.to_owned(),
    };
    loop {
        let generation = match engine.catalog.known(name) {
            Ok(table) => return Ok(table),
            Err(generation) => generation,
        };
        let key = catalog::key_of(name).map_err(|_| missing())?;
        let row = engine.note(engine.manager.get(engine.catalog.tree, &key))?;
        let row = TableRow::decode(&row.ok_or_else(missing)?)?;
        let state = TableState::of_row(engine.instance, name, &row);
        if let Some(table) = engine.catalog.learn(generation, name, state) {
            return Ok(table);
        }
    }
}

/// Drops a table with its indexes.
pub(crate) fn drop(engine: &Engine, name: &str) -> Result<()> {
    let _ddl = engine.catalog.change();
    let table = open(engine, name)?;
    let closed = close_all(engine, &table)?;
    crash_point("drop.closed");
    let key = catalog::key_of(name)?;
    transact(engine, |engine, txn| {
        let row = table_row(engine, txn, &key)?;
        txn.delete(engine.catalog.tree, &key)?;
        txn.drop_tree(row.tree)?;
        for index in row.indexes {
            txn.drop_tree(index.tree)?;
        }
        crash_point("drop.unnamed");
        Ok(())
    })?;
    crash_point("drop.committed");
    closed.into_iter().for_each(Closed::remove);
    engine.catalog.forget(name);
    Ok(())
}

/// Gives a table another name.
pub(crate) fn rename(engine: &Engine, from: &str, to: &str) -> Result<()> {
    let new_key = catalog::key_of(to)?;
    let _ddl = engine.catalog.change();
    open(engine, from)?;
    if from == to {
        return Ok(());
    }
    let key = catalog::key_of(from)?;
    transact(engine, |engine, txn| {
        let catalog = engine.catalog.tree;
        if txn.contains(catalog, &new_key)? {
            let table = to.to_owned();
            return Err(Error::TableExists { table });
        }
        let row = table_row(engine, txn, &key)?;
        txn.delete(catalog, &key)?;
        crash_point("rename.unnamed");
        txn.insert(catalog, &new_key, &row.encode())?;
        crash_point("rename.named");
        Ok(())
    })?;
    crash_point("rename.committed");
    engine.catalog.rename(from, to);
    Ok(())
}

/// Creates a tree that is to be loaded.
pub(crate) fn begin_load(engine: &Engine) -> Result<Tree> {
    transact(engine, |engine, txn| {
        let store = take_store(engine, txn)?;
        let tree = txn.create_tree(store)?;
        let key = catalog::loading_key(tree.store);
        txn.insert(engine.catalog.tree, &key, &catalog::encode_tree(tree))?;
        crash_point("load.begun");
        Ok(tree)
    })
}

/// Lets the table's rows be those of `loaded`, and its entries those of `entries`, a tree for each index;
/// the former trees are garbage. The caller has closed the gates.
pub(crate) fn end_load(
    engine: &Engine,
    table: &Table,
    loaded: Tree,
    entries: &[Tree],
) -> Result<()> {
    let _ddl = engine.catalog.change();
    let key = catalog::key_of(&table.name())?;
    let indexes = table.state.indexes();
    transact(engine, |engine, txn| {
        let catalog = engine.catalog.tree;
        let mut row = table_row(engine, txn, &key)?;
        let former = indexes.iter().map(|index| index.entries.state.tree());
        let replaced: Vec<(Tree, Tree)> = former.zip(entries.iter().copied()).collect();
        for index in &mut row.indexes {
            let new = replaced
                .iter()
                .find(|(old, _)| old.store == index.tree.store);
            index.tree = new.map_or(index.tree, |(_, new)| *new);
        }
        for (old, new) in [(row.tree, loaded)].into_iter().chain(replaced) {
            txn.delete(catalog, &catalog::loading_key(new.store))?;
            txn.drop_tree(old)?;
        }
        row.tree = loaded;
        txn.put(catalog, &key, &row.encode())?;
        crash_point("load.named");
        Ok(())
    })?;
    crash_point("load.committed");
    let loaded_at = engine.log.tail();
    table.state.set_tree(loaded, loaded_at);
    for (index, tree) in indexes.iter().zip(entries) {
        index.entries.state.set_tree(*tree, loaded_at);
    }
    Ok(())
}

/// Drops a tree whose load failed.
pub(crate) fn give_up_load(engine: &Engine, loaded: Tree) -> Result<()> {
    transact(engine, |engine, txn| {
        txn.delete(engine.catalog.tree, &catalog::loading_key(loaded.store))?;
        Ok(txn.drop_tree(loaded)?)
    })
}

/// Drops the trees whose load ended in a crash.
pub(crate) fn give_up_interrupted_loads(engine: &Engine) -> Result<()> {
    for (_, row) in rows(engine, catalog::LOADS)? {
        give_up_load(engine, catalog::decode_tree(&row)?)?;
        crash_point("load.given_up");
    }
    Ok(())
}

/// The names of all tables.
pub(crate) fn names(engine: &Engine) -> Result<Vec<String>> {
    let tables = tables(engine)?;
    Ok(tables.into_iter().map(|(name, _)| name).collect())
}

/// All tables with their rows in the catalog, sorted by name.
pub(crate) fn tables(engine: &Engine) -> Result<Vec<(String, TableRow)>> {
    rows(engine, catalog::NAMES)?
        .iter()
        .map(|(key, row)| Ok((catalog::name_in(key)?.to_owned(), TableRow::decode(row)?)))
        .collect()
}

/// The trees that are being loaded.
pub(crate) fn loads(engine: &Engine) -> Result<Vec<Tree>> {
    rows(engine, catalog::LOADS)?
        .iter()
        .map(|(_, row)| catalog::decode_tree(row))
        .collect()
}

/// The rows of the catalog from `low` on and below `high`.
fn rows(engine: &Engine, (low, high): (&[u8], &[u8])) -> Result<Vec<Row>> {
    transact(engine, |engine, txn| {
        let mut rows = Vec::new();
        let mut batch = Batch::new();
        let mut from = Some(Bound::Included(low.to_vec()));
        while let Some(low) = from {
            let (low, high) = (borrow(&low), Bound::Excluded(high));
            txn.scan_leaf(
                engine.catalog.tree,
                low,
                high,
                Direction::Forward,
                &mut batch,
            )?;
            rows.extend(batch.rows().map(|(key, row)| (key.to_vec(), row.to_vec())));
            from = batch.next().map(|next| next.map(<[u8]>::to_vec));
        }
        Ok(rows)
    })
}

/// Closes a table's gate; it opens again unless the table is removed.
pub(crate) fn close<'a>(engine: &Engine, table: &'a Table) -> Result<Closed<'a>> {
    let limit = engine.options.lock_wait;
    let closed = table.state.gate.close(&*engine.env, limit);
    closed.map_err(
        |(refused, inside)| match engine.gates.one_inside(&table.state) {
            Some(gid) if refused == Refused::Busy => Error::TablePrepared {
                table: table.name(),
                gid,
            },
            _ => table.state.refusal(refused, inside, limit),
        },
    )
}

/// Closes the gates of a table and of its indexes.
pub(crate) fn close_all<'a>(engine: &Engine, table: &'a Table) -> Result<Vec<Closed<'a>>> {
    let mut closed = vec![close(engine, table)?];
    for index in table.state.indexes() {
        closed.push(close(engine, &index.entries)?);
    }
    Ok(closed)
}

/// The row of a table that is there, locked for a change.
pub(crate) fn table_row(engine: &Engine, txn: &mut Transaction, key: &[u8]) -> Result<TableRow> {
    let row = txn.get_for_update(engine.catalog.tree, key)?;
    let missing = || Error::TableMissing {
        table: catalog::name_in(key).unwrap_or_default().to_owned(),
    };
    TableRow::decode(&row.ok_or_else(missing)?)
}

/// A store that no table ever had.
pub(crate) fn take_store(engine: &Engine, txn: &mut Transaction) -> Result<StoreId> {
    let row = txn.get_for_update(engine.catalog.tree, NEXT_STORE)?;
    let store = catalog::decode_next(row.as_deref())?;
    let next = StoreId::new(store.get() + 1);
    txn.put(engine.catalog.tree, NEXT_STORE, &catalog::encode_next(next))?;
    Ok(store)
}

/// Runs a change of the catalog in a transaction of its own, again where that is worth it.
pub(crate) fn transact<T>(
    engine: &Engine,
    mut body: impl FnMut(&Engine, &mut Transaction) -> Result<T>,
) -> Result<T> {
    retry::run(
        &*engine.env,
        engine.options.retry_limits(),
        std::thread::sleep,
        || engine.with_log_space(|| transact_once(engine, &mut body)),
    )
}

fn transact_once<T>(
    engine: &Engine,
    body: &mut impl FnMut(&Engine, &mut Transaction) -> Result<T>,
) -> Result<T> {
    let mut txn = engine.begin_internal()?;
    let outcome = body(engine, &mut txn);
    let value = match outcome {
        Ok(value) => value,
        Err(error) => {
            engine.note(txn.rollback())?;
            return Err(engine.noted(error));
        }
    };
    let commit = engine.note(txn.commit(Engine::level(engine.options.durability)))?;
    engine.note(commit.handle.wait())?;
    Ok(value)
}
