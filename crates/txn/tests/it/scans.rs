//! Scans of whole ranges, leaf by leaf.

use longshore_access::Tree;
use longshore_txn::{Batch, Direction, Result, Statement, Transaction};
use std::collections::BTreeMap;
use std::ops::Bound;

pub type Row = (Vec<u8>, Vec<u8>);

/// The rows of a range in scan order, `rows_max` at a time.
pub fn range(
    txn: &mut Transaction,
    tree: Tree,
    low: Bound<&[u8]>,
    high: Bound<&[u8]>,
    direction: Direction,
    rows_max: usize,
) -> Result<Vec<Row>> {
    range_of(txn, None, tree, low, high, direction, rows_max)
}

/// The same as a part of a statement.
pub fn range_of(
    txn: &mut Transaction,
    statement: Option<Statement>,
    tree: Tree,
    low: Bound<&[u8]>,
    high: Bound<&[u8]>,
    direction: Direction,
    rows_max: usize,
) -> Result<Vec<Row>> {
    let mut batch = Batch::new();
    batch.rows_max = rows_max;
    let (mut low, mut high) = (low.map(<[u8]>::to_vec), high.map(<[u8]>::to_vec));
    let mut rows = Vec::new();
    loop {
        let (from, to) = (
            low.as_ref().map(Vec::as_slice),
            high.as_ref().map(Vec::as_slice),
        );
        txn.scan_leaf_of(statement, tree, from, to, direction, &mut batch)?;
        rows.extend(batch.rows().map(|(k, v)| (k.to_vec(), v.to_vec())));
        let Some(next) = batch.next() else {
            return Ok(rows);
        };
        match direction {
            Direction::Forward => low = next.map(<[u8]>::to_vec),
            Direction::Reverse => high = next.map(<[u8]>::to_vec),
        }
    }
}

/// All rows of a tree.
pub fn all(txn: &mut Transaction, tree: Tree) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (low, high) = (Bound::Unbounded, Bound::Unbounded);
    range(txn, tree, low, high, Direction::Forward, usize::MAX)
        .unwrap()
        .into_iter()
        .collect()
}
