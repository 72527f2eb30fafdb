//! Scans that missed a row: they came before it was first put where they looked.
//!
//! That is certain if every later position of the row lies in the scanned range as well: the row then
//! was somewhere else, or nowhere, only before. Other misses prove nothing and draw no edge.

use super::Analysis;
use crate::history::format::Content;
use crate::history::graph::Kind;
use crate::history::transactions::{By, Op, Outcome, TxnId};
use crate::history::values::{KeyId, Name, VersionId};
use std::collections::{HashMap, HashSet};

/// Where a position stands.
#[derive(Clone, Copy)]
struct Place {
    position: i64,
    row: KeyId,
    rank: usize,
}

/// Draws the edges that scans show by what they missed.
pub(super) fn relate(analysis: &mut Analysis) {
    if analysis.history.scans.is_empty() {
        return;
    }
    let rows = traced(analysis);
    let mut places = Vec::new();
    for (row, positions) in &rows {
        for (rank, version) in positions.iter().enumerate() {
            if let Content::Number(position) = analysis.history.values.at(*version).content {
                places.push(Place {
                    position,
                    row: *row,
                    rank,
                });
            }
        }
    }
    places.sort_unstable_by_key(|place| place.position);
    let committed: Vec<TxnId> = analysis.committed().collect();
    for txn in committed {
        let operations = analysis.history.operations(txn);
        for (at, op) in operations.iter().enumerate() {
            if let Op::Scan(scan) = op {
                let known = known(analysis, operations, at);
                missed(analysis, txn, *scan, &known, &rows, &places);
            }
        }
    }
}

/// The rows of which every position is known, in order from the first.
fn traced(analysis: &Analysis) -> HashMap<KeyId, Vec<VersionId>> {
    let values = &analysis.history.values;
    let mut next: HashMap<VersionId, Vec<VersionId>> = HashMap::new();
    let mut first: HashMap<KeyId, Vec<VersionId>> = HashMap::new();
    let mut total: HashMap<KeyId, usize> = HashMap::new();
    let mut in_doubt: HashSet<KeyId> = HashSet::new();
    for txn in analysis.history.ids() {
        let mut bases: HashMap<KeyId, VersionId> = HashMap::new();
        for op in analysis.history.operations(txn) {
            match *op {
                Op::Read { version, .. } | Op::ReadOwn(version) => {
                    bases.insert(values.at(version).key, version);
                }
                Op::Write(version) if is_row(analysis, version) => {
                    let key = values.at(version).key;
                    if analysis.history.at(txn).outcome == Outcome::Aborted {
                        continue;
                    }
                    if !analysis.has_happened(txn) {
                        in_doubt.insert(key);
                        continue;
                    }
                    *total.entry(key).or_default() += 1;
                    match bases.insert(key, version) {
                        Some(base) => next.entry(base).or_default().push(version),
                        None => first.entry(key).or_default().push(version),
                    }
                }
                _ => {}
            }
        }
    }
    let mut rows = HashMap::new();
    for (key, starts) in first {
        let [start] = starts[..] else { continue };
        let mut positions = vec![start];
        while let Some([one]) = next
            .get(positions.last().expect("not empty"))
            .map(|v| &v[..])
        {
            positions.push(*one);
        }
        if positions.len() == total[&key] && !in_doubt.contains(&key) {
            rows.insert(key, positions);
        }
    }
    rows
}

fn is_row(analysis: &Analysis, version: VersionId) -> bool {
    let values = &analysis.history.values;
    matches!(values.key_at(values.at(version).key).name, Name::Row(_))
}

/// The rows that the scan at `at` has seen, and those that its transaction had put somewhere before.
fn known(analysis: &Analysis, operations: &[Op], at: usize) -> HashSet<KeyId> {
    let values = &analysis.history.values;
    let written = operations[..at].iter().filter_map(|op| match op {
        Op::Write(version) => Some(values.at(*version).key),
        _ => None,
    });
    let seen = operations[at + 1..].iter().map_while(|op| match op {
        Op::Read {
            version,
            by: By::Scan,
        }
        | Op::ReadOwn(version) => Some(values.at(*version).key),
        _ => None,
    });
    written.chain(seen).collect()
}

fn missed(
    analysis: &mut Analysis,
    txn: TxnId,
    scan: u32,
    known: &HashSet<KeyId>,
    rows: &HashMap<KeyId, Vec<VersionId>>,
    places: &[Place],
) {
    let range = &analysis.history.scans[scan as usize];
    let from = places.partition_point(|place| place.position < range.start);
    let within = places[from..]
        .iter()
        .take_while(|place| place.position < range.end);
    // For each row that was missed: the first of its positions in the range, and how many are.
    let mut found: HashMap<KeyId, (usize, usize)> = HashMap::new();
    for place in within.filter(|place| !known.contains(&place.row)) {
        let (first, count) = found.entry(place.row).or_insert((place.rank, 0));
        *first = place.rank.min(*first);
        *count += 1;
    }
    for (row, (first, count)) in found {
        let positions = &rows[&row];
        if first + count != positions.len() {
            continue;
        }
        if let Some(writer) = analysis.writer(positions[first]) {
            analysis.graph.add(txn, writer, Kind::PredicateRw, row);
        }
    }
}
