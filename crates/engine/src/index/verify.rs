//! Comparing an index with its table, both ways: every row has its entries, every entry its row.
//!
//! The caller has closed the gates, so nothing changes. What is read is what others see: the locks and changes of
//! prepared transactions, which stay inside, are in nobody's way.

use super::extract::Extract;
use super::maintain::entry;
use super::state::IndexState;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::range::borrow;
use crate::table::TableState;
use longshore_access::Tree;
use longshore_txn::{Batch, Begin, Direction};
use std::ops::Bound;

/// Faults of one index that are told one by one.
const FAULTS_MAX: usize = 100;
/// Bytes of a key that a fault shows.
const SHOWN_MAX: usize = 40;

/// What is wrong with the index; nothing if nobody has registered its extractor.
pub(crate) fn compare(
    engine: &Engine,
    table: &TableState,
    index: &IndexState,
) -> Result<Vec<String>> {
    let Some(extract) = index.registered() else {
        return Ok(Vec::new());
    };
    let comparison = Comparison {
        engine,
        table,
        index,
        extract,
    };
    let mut faults = Vec::new();
    walk(engine, table.tree(), |key, value| {
        comparison.check_row(key, value, &mut faults)
    })?;
    walk(engine, index.entries.state.tree(), |key, value| {
        comparison.check_entry(key, value, &mut faults)
    })?;
    if faults.len() > FAULTS_MAX {
        let more = faults.len() - FAULTS_MAX;
        faults.truncate(FAULTS_MAX);
        faults.push(format!("index `{}`: {more} more faults", index.name));
    }
    Ok(faults)
}

struct Comparison<'a> {
    engine: &'a Engine,
    table: &'a TableState,
    index: &'a IndexState,
    extract: &'a dyn Extract,
}

impl Comparison<'_> {
    fn check_row(&self, key: &[u8], value: &[u8], faults: &mut Vec<String>) -> Result<()> {
        let keys = match self.extract.keys_of(self.table, key, value) {
            Ok(keys) => keys,
            Err(Error::Decode { part, source, .. }) => {
                faults.push(self.fault(format!("the {part} of row {}: {source}", shown(key))));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        for index_key in keys {
            let (entry, value) = entry(self.index, &index_key, key);
            if self.get(self.index.entries.state.tree(), &entry)? != Some(value) {
                let (row, key) = (shown(key), shown(&index_key));
                faults
                    .push(self.fault(format!("the entry of row {row} with key {key} is missing")));
            }
        }
        Ok(())
    }

    fn check_entry(&self, entry: &[u8], value: &[u8], faults: &mut Vec<String>) -> Result<()> {
        let length = match self.extract.key_bytes_in(entry) {
            Ok(length) => length,
            Err(error) => {
                faults.push(self.fault(format!("the entry {}: {error}", shown(entry))));
                return Ok(());
            }
        };
        let (index_key, rest) = entry.split_at(length);
        let key = if self.index.is_unique { value } else { rest };
        let row = self.get(self.table.tree(), key)?;
        let is_right = match row {
            Some(value) => match self.extract.keys_of(self.table, key, &value) {
                Ok(keys) => keys.iter().any(|key| key == index_key),
                // Told when the row was looked at.
                Err(_) => true,
            },
            None => false,
        };
        if !is_right {
            let (row, key) = (shown(key), shown(index_key));
            faults.push(self.fault(format!("row {row} has no key {key}, but an entry with it")));
        }
        Ok(())
    }

    fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.engine.note(self.engine.manager.get(tree, key))
    }

    fn fault(&self, what: String) -> String {
        format!("index `{}`: {what}", self.index.name)
    }
}

/// Calls `visit` for each row of a tree.
fn walk(
    engine: &Engine,
    tree: Tree,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    let mut batch = Batch::new();
    let mut from = Some(Bound::Unbounded);
    let mut txn = engine.begin_with(Begin {
        is_read_only: true,
        label: "verify",
        ..Begin::default()
    })?;
    while let Some(low) = from {
        let low = borrow::<Vec<u8>>(&low);
        engine.note(txn.scan_leaf(tree, low, Bound::Unbounded, Direction::Forward, &mut batch))?;
        for (key, value) in batch.rows() {
            visit(key, value)?;
        }
        from = batch.next().map(|next| next.map(<[u8]>::to_vec));
    }
    Ok(())
}

fn shown(key: &[u8]) -> String {
    match key.split_at_checked(SHOWN_MAX) {
        Some((head, rest)) if !rest.is_empty() => {
            format!("\"{}\"… ({} bytes)", head.escape_ascii(), key.len())
        }
        _ => format!("\"{}\"", key.escape_ascii()),
    }
}
