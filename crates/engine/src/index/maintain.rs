//! Changing a row together with its entries: the one place through which every change of an indexed
//! table goes. The protocol is told in `index/mod.rs`.

use super::extract::Extract;
use super::state::{IndexState, Status};
use crate::error::{Error, Result};
use crate::table::TableState;
use longshore_access::Tree;
use longshore_txn::{Batch, Direction, Found, Transaction, TxnError};
use std::ops::Bound;

/// Rows of a range that are read before they are deleted.
const ROWS: usize = 64;

/// What is to become of a row.
#[derive(Clone, Copy)]
pub(crate) enum RowChange<'a> {
    /// It must not be there yet.
    Insert(&'a [u8]),
    /// It has this value from now on.
    Put(&'a [u8]),
    /// It has this value from now on, if it is there.
    Update(&'a [u8]),
    /// It becomes `new` if it is `expected`, where `None` is no row.
    CompareAndSet {
        expected: Option<&'a [u8]>,
        new: Option<&'a [u8]>,
    },
    /// It goes, if it is there.
    Delete,
}

/// Why a change failed: in a storey below, or here.
pub(crate) enum Failed {
    Below(TxnError),
    Here(Error),
}

impl From<TxnError> for Failed {
    fn from(error: TxnError) -> Failed {
        Failed::Below(error)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::Here(error)
    }
}

impl RowChange<'_> {
    /// Changes a row of a table without indexes; false when there was nothing to change.
    #[inline]
    pub(crate) fn apply(
        self,
        txn: &mut Transaction,
        tree: Tree,
        key: &[u8],
    ) -> std::result::Result<bool, TxnError> {
        match self {
            RowChange::Insert(value) => txn.insert(tree, key, value).map(|()| true),
            RowChange::Put(value) => txn.put(tree, key, value).map(|()| true),
            RowChange::Update(value) => txn.update(tree, key, value),
            RowChange::CompareAndSet { expected, new } => {
                txn.compare_and_set(tree, key, expected, new)
            }
            RowChange::Delete => txn.delete(tree, key),
        }
    }
}

/// Changes a row of an indexed table, and its entries; false when there was nothing to change.
pub(crate) fn change_row(
    txn: &mut Transaction,
    table: &TableState,
    key: &[u8],
    change: RowChange<'_>,
) -> std::result::Result<bool, Failed> {
    check_registered(table)?;
    match change {
        RowChange::Insert(value) => insert(txn, table, key, value).map(|()| true),
        RowChange::Update(value) => update(txn, table, key, value),
        RowChange::Put(value) => {
            let is_there = update(txn, table, key, value)?;
            if !is_there {
                insert(txn, table, key, value)?;
            }
            Ok(true)
        }
        RowChange::CompareAndSet { expected, new } => {
            let old = txn.get_for_update(table.tree(), key)?;
            match (&old, new) {
                (old, _) if old.as_deref() != expected => return Ok(false),
                (None, None) => {}
                (None, Some(new)) => insert(txn, table, key, new)?,
                (Some(_), Some(new)) => drop(update(txn, table, key, new)?),
                (Some(_), None) => drop(delete(txn, table, key)?),
            }
            Ok(true)
        }
        RowChange::Delete => delete(txn, table, key),
    }
}

/// Gives a row of an indexed table that was found, when its value was `old`, another one; false when this
/// transaction has taken it out since.
pub(crate) fn change_found(
    txn: &mut Transaction,
    table: &TableState,
    key: &[u8],
    found: &Found,
    [old, new]: [&[u8]; 2],
) -> std::result::Result<bool, Failed> {
    // The program's own functions run before anything is changed, here and below: they may panic.
    let mut differences = Vec::new();
    for index in table.indexes() {
        let extract = index.extract(table)?;
        if !extract.gives_same_keys(table, key, old, new)? {
            let [old, new] = [old, new].map(|value| extract.keys_of(table, key, value));
            differences.push((index, Difference::between(old?, new?)));
        }
    }
    if differences.is_empty() {
        return Ok(txn.change_found(found, key, new)?);
    }
    txn.atomically(|txn| {
        let is_there = txn.change_found(found, key, new)?;
        if is_there {
            for (index, difference) in &differences {
                change_entries(txn, table, index, difference, key)?;
            }
        }
        Ok(is_there)
    })
}

fn insert(
    txn: &mut Transaction,
    table: &TableState,
    key: &[u8],
    value: &[u8],
) -> std::result::Result<(), Failed> {
    let come = all_keys(table, key, value)?;
    txn.atomically(|txn| {
        txn.insert(table.tree(), key, value)?;
        for (index, come) in table.indexes().iter().zip(come) {
            let gone = Vec::new();
            change_entries(txn, table, index, &Difference { gone, come }, key)?;
        }
        Ok(())
    })
}

fn update(
    txn: &mut Transaction,
    table: &TableState,
    key: &[u8],
    value: &[u8],
) -> std::result::Result<bool, Failed> {
    let mut old = Vec::new();
    match txn.find_to_change(table.tree(), key, &mut old)? {
        Some(found) => change_found(txn, table, key, &found, [&old, value]),
        None => Ok(false),
    }
}

fn delete(
    txn: &mut Transaction,
    table: &TableState,
    key: &[u8],
) -> std::result::Result<bool, Failed> {
    let mut old = Vec::new();
    if txn.find_to_change(table.tree(), key, &mut old)?.is_none() {
        return Ok(false);
    }
    let gone = all_keys(table, key, &old)?;
    txn.atomically(|txn| {
        txn.delete(table.tree(), key)?;
        for (index, gone) in table.indexes().iter().zip(gone) {
            let come = Vec::new();
            change_entries(txn, table, index, &Difference { gone, come }, key)?;
        }
        Ok(true)
    })
}

/// What each index of a table finds a row by.
fn all_keys(table: &TableState, key: &[u8], value: &[u8]) -> Result<Vec<Vec<Vec<u8>>>> {
    let indexes = table.indexes().iter();
    indexes
        .map(|index| index.extract(table)?.keys_of(table, key, value))
        .collect()
}

/// Deletes the rows of a range of an indexed table, with their entries.
pub(crate) fn delete_range(
    txn: &mut Transaction,
    table: &TableState,
    low: Bound<&[u8]>,
    high: Bound<&[u8]>,
) -> std::result::Result<u64, Failed> {
    txn.atomically(|txn| {
        let mut batch = Batch::new();
        batch.rows_max = ROWS;
        let mut low = low.map(<[u8]>::to_vec);
        let mut deleted = 0;
        loop {
            let from = crate::range::borrow(&low);
            txn.scan_leaf(table.tree(), from, high, Direction::Forward, &mut batch)?;
            for (key, _) in batch.rows() {
                deleted += u64::from(change_row(txn, table, key, RowChange::Delete)?);
            }
            match batch.next() {
                Some(next) => low = next.map(<[u8]>::to_vec),
                None => return Ok(deleted),
            }
        }
    })
}

fn change_entries(
    txn: &mut Transaction,
    table: &TableState,
    index: &IndexState,
    difference: &Difference,
    key: &[u8],
) -> std::result::Result<(), Failed> {
    for gone in &difference.gone {
        remove_entry(txn, table, index, gone, key)?;
    }
    for come in &difference.come {
        add_entry(txn, table, index, come, key)?;
    }
    Ok(())
}

fn check_registered(table: &TableState) -> Result<()> {
    let mut indexes = table.indexes().iter();
    indexes.try_for_each(|index| index.extract(table).map(|_: &dyn Extract| ()))
}

/// Index keys that only one of two values of a row has.
struct Difference {
    gone: Vec<Vec<u8>>,
    come: Vec<Vec<u8>>,
}

impl Difference {
    /// Both are sorted.
    fn between(mut old: Vec<Vec<u8>>, mut new: Vec<Vec<u8>>) -> Difference {
        let stays = |key: &Vec<u8>, others: &[Vec<u8>]| others.binary_search(key).is_ok();
        let both: Vec<Vec<u8>> = old.iter().filter(|key| stays(key, &new)).cloned().collect();
        old.retain(|key| !stays(key, &both));
        new.retain(|key| !stays(key, &both));
        Difference {
            gone: old,
            come: new,
        }
    }
}

/// The entry's key and value in the tree.
pub(super) fn entry(index: &IndexState, index_key: &[u8], key: &[u8]) -> (Vec<u8>, Vec<u8>) {
    match index.is_unique {
        true => (index_key.to_vec(), key.to_vec()),
        false => ([index_key, key].concat(), Vec::new()),
    }
}

fn remove_entry(
    txn: &mut Transaction,
    table: &TableState,
    index: &IndexState,
    index_key: &[u8],
    key: &[u8],
) -> std::result::Result<(), Failed> {
    let tree = index.entries.state.tree();
    let (entry, expected) = entry(index, index_key, key);
    let found = txn.get_for_update(tree, &entry)?;
    if found.as_ref() == Some(&expected) {
        txn.delete(tree, &entry)?;
        return Ok(());
    }
    match index.status() {
        Status::Ready => Err(index
            .mismatch(table, "a row that is changed has no entry")
            .into()),
        // The builder has not come to this row, or never will.
        Status::Building | Status::Failed => Ok(()),
    }
}

fn add_entry(
    txn: &mut Transaction,
    table: &TableState,
    index: &IndexState,
    index_key: &[u8],
    key: &[u8],
) -> std::result::Result<(), Failed> {
    let (entry, value) = entry(index, index_key, key);
    let added = txn.insert(index.entries.state.tree(), &entry, &value);
    added.map_err(|error| match error {
        TxnError::KeyExists if index.is_unique => {
            Failed::Here(unique_violation(table, index, index_key))
        }
        TxnError::KeyExists => index.mismatch(table, "an entry was there already").into(),
        error if error.ends_transaction() => Failed::Below(error),
        error => Failed::Here(Error::from_txn(error, &index.entries.state)),
    })
}

pub(super) fn unique_violation(table: &TableState, index: &IndexState, index_key: &[u8]) -> Error {
    Error::UniqueViolation {
        table: table.name(),
        index: index.name.clone(),
        key: index_key.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn differences_are_what_one_side_has_alone(
            old in proptest::collection::btree_set(0..9u8, 0..6),
            new in proptest::collection::btree_set(0..9u8, 0..6),
        ) {
            let keys = |set: &BTreeSet<u8>| set.iter().map(|key| vec![*key]).collect::<Vec<_>>();
            let difference = Difference::between(keys(&old), keys(&new));
            prop_assert_eq!(difference.gone, keys(&(&old - &new)));
            prop_assert_eq!(difference.come, keys(&(&new - &old)));
        }
    }
}
