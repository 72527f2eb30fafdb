//! Lists: the longest that was seen is the order of versions, and each read a beginning of it.

use super::Analysis;
use crate::history::anomaly::Anomaly;
use crate::history::graph::Kind;
use crate::history::transactions::{Op, Outcome, TxnId};
use crate::history::values::{KeyId, Shape, VersionId};
use crate::history::words;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What a key's history shows.
#[derive(Default)]
struct List {
    order: Vec<VersionId>,
    /// The first place of which the writer was rolled back.
    aborted: Option<usize>,
    /// For each place, the next one from there on whose writer took effect.
    next: Vec<Option<TxnId>>,
    /// Those who appended what nobody saw: after everything that was seen.
    unseen: Vec<TxnId>,
    /// Those who saw all that anybody saw.
    up_to_date: Vec<(TxnId, Kind)>,
}

/// Draws the edges that lists show.
pub(super) fn relate(analysis: &mut Analysis) {
    let keys = analysis.history.values.keys.len() as u32;
    let mut lists: BTreeMap<KeyId, List> = (0..keys)
        .map(KeyId)
        .filter(|key| analysis.history.values.key_at(*key).shape == Shape::List)
        .map(|key| (key, order(analysis, key)))
        .collect();
    add_unseen(analysis, &mut lists);
    let mut seen_before_append = HashMap::new();
    let committed: Vec<TxnId> = analysis.committed().collect();
    for txn in committed {
        let appended = appended(analysis, txn);
        for op in analysis.history.operations(txn) {
            let (key, length, own) = match *op {
                Op::ReadList { key, length, own } => (key, length as usize, own as usize),
                Op::ReadNothing(key) => (key, 0, 0),
                _ => continue,
            };
            if let Some(list) = lists.get_mut(&key) {
                let length = length - own;
                read(analysis, list, txn, length);
                if appended.contains(&key) {
                    let first = seen_before_append.entry((key, length)).or_insert(txn);
                    update_lost(analysis, [*first, txn], key, list, length);
                }
            }
        }
    }
    for (key, list) in lists {
        after_all(analysis, key, list);
    }
}

/// The order of the versions, and the edges between their writers.
fn order(analysis: &mut Analysis, id: KeyId) -> List {
    let key = analysis.history.values.key_at(id);
    let mut list = List::default();
    let mut met = HashSet::new();
    let mut former = None;
    for (place, value) in key.longest.iter().enumerate() {
        let reader = key.longest_by.expect("somebody saw it");
        if !met.insert(value) {
            let text = || format!("{} held {value} twice", words::name(key.name));
            analysis.findings.add(Anomaly::Duplicate, &[reader], text);
        }
        let Some(version) = analysis.history.values.appended(id, *value) else {
            let text = || {
                format!(
                    "{} held {value}, which nobody appended",
                    words::name(key.name)
                )
            };
            analysis.findings.add(Anomaly::Garbage, &[reader], text);
            break;
        };
        let writer = analysis.history.values.at(version).writer;
        if writer.is_some_and(|txn| analysis.history.at(txn).outcome == Outcome::Aborted) {
            list.aborted.get_or_insert(place);
        }
        list.order.push(version);
        if let Some(writer) = analysis.writer(version) {
            if let Some(former) = former {
                analysis.graph.add(former, writer, Kind::Ww, id);
            }
            former = Some(writer);
        }
    }
    list.next = vec![None; list.order.len()];
    let mut next = None;
    for place in (0..list.order.len()).rev() {
        next = analysis.writer(list.order[place]).or(next);
        list.next[place] = next;
    }
    list
}

/// Finds the appends that nobody saw; they come after all that was seen.
fn add_unseen(analysis: &mut Analysis, lists: &mut BTreeMap<KeyId, List>) {
    let committed: Vec<TxnId> = analysis.committed().collect();
    let seen: HashSet<VersionId> = lists
        .values()
        .flat_map(|list| &list.order)
        .copied()
        .collect();
    for txn in committed {
        for op in analysis.history.operations(txn) {
            let Op::Append(version) = *op else { continue };
            if seen.contains(&version) {
                continue;
            }
            let key = analysis.history.values.at(version).key;
            let Some(list) = lists.get_mut(&key) else {
                continue;
            };
            if list.unseen.last() == Some(&txn) {
                continue;
            }
            list.unseen.push(txn);
            let last = list
                .order
                .iter()
                .rev()
                .find_map(|version| analysis.writer(*version));
            if let Some(last) = last {
                analysis.graph.add(last, txn, Kind::Ww, key);
            }
        }
    }
}

/// `txn` saw the first `length` values of others.
fn read(analysis: &mut Analysis, list: &mut List, txn: TxnId, length: usize) {
    let length = length.min(list.order.len());
    if let Some(place) = list.aborted.filter(|place| *place + 1 < length) {
        analysis.saw(txn, list.order[place]);
    }
    if let Some(last) = length.checked_sub(1) {
        analysis.saw(txn, list.order[last]);
    }
    match list.next.get(length).copied().flatten() {
        Some(next) => {
            let version = list.order[length];
            let key = analysis.history.values.at(version).key;
            analysis.graph.add(txn, next, Kind::Rw, key);
        }
        None if list.up_to_date.last() != Some(&(txn, Kind::Rw)) => {
            list.up_to_date.push((txn, Kind::Rw));
        }
        None => {}
    }
}

/// The keys to which a transaction appended.
fn appended(analysis: &Analysis, txn: TxnId) -> HashSet<KeyId> {
    let appends = analysis
        .history
        .operations(txn)
        .iter()
        .filter_map(|op| match op {
            Op::Append(version) => Some(analysis.history.values.at(*version).key),
            _ => None,
        });
    appends.collect()
}

/// Both saw a list and appended to it.
fn update_lost(analysis: &mut Analysis, both: [TxnId; 2], key: KeyId, list: &List, length: usize) {
    if both[0] != both[1] {
        let last = length.checked_sub(1).and_then(|last| list.order.get(last));
        let seen = last.map(|version| analysis.history.values.at(*version).content);
        analysis.lost_update(key, seen, both);
    }
}

/// Those who saw all come before those whose appends nobody saw.
fn after_all(analysis: &mut Analysis, key: KeyId, mut list: List) {
    if list.unseen.is_empty() {
        return;
    }
    let unseen: HashSet<TxnId> = list.unseen.iter().copied().collect();
    let (ours, others): (Vec<_>, Vec<_>) = list
        .up_to_date
        .drain(..)
        .partition(|(txn, _)| unseen.contains(txn));
    analysis.anti_depend(key, &others, &[], &list.unseen);
    // Of those who saw all and appended, too: to a few others each, for they are rare.
    const OTHERS_MAX: usize = 8;
    for (txn, kind) in ours {
        for other in list.unseen.iter().take(OTHERS_MAX) {
            analysis.graph.add(txn, *other, kind, key);
        }
    }
}
