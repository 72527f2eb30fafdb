//! Registers and rows: who saw a version and then wrote has written the next one it knows of.
//!
//! A write without a read before it is only known to come after the beginning, when there was nothing.

use super::Analysis;
use crate::history::graph::Kind;
use crate::history::transactions::{By, Op, TxnId};
use crate::history::values::{KeyId, Shape, VersionId};
use std::collections::{BTreeMap, HashMap};

/// A state of a key: the last part is absent before its first write.
type State = (KeyId, Option<VersionId>);

/// What happened to a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// Seen by one that wrote it afterwards.
    Overwritten,
    /// Replaced, now or later, by one that had not seen it.
    Passed,
    /// Only seen.
    Seen(Kind),
}

/// Draws the edges that registers and rows show.
pub(super) fn relate(analysis: &mut Analysis) {
    let mut uses = uses(analysis);
    uses.sort_unstable();
    uses.dedup();
    for group in uses.chunk_by(|a, b| a.0 == b.0) {
        relate_state(analysis, group[0].0, group);
    }
}

/// Who did what to which state; draws the edges from writers to those who saw their writes.
fn uses(analysis: &mut Analysis) -> Vec<(State, Use, TxnId)> {
    let mut uses = Vec::new();
    let mut bases: HashMap<KeyId, State> = HashMap::new();
    let mut seen: BTreeMap<State, Kind> = BTreeMap::new();
    for txn in analysis.history.ids() {
        if !analysis.has_happened(txn) {
            continue;
        }
        bases.clear();
        seen.clear();
        let values = &analysis.history.values;
        for op in analysis.history.operations(txn) {
            match *op {
                Op::ReadNothing(key) if values.key_at(key).shape != Shape::List => {
                    bases.insert(key, (key, None));
                    seen.insert((key, None), Kind::Rw);
                }
                Op::Read { version, by } => {
                    let key = values.at(version).key;
                    let kind = match by {
                        By::Key => Kind::Rw,
                        By::Scan => Kind::PredicateRw,
                    };
                    bases.insert(key, (key, Some(version)));
                    seen.insert((key, Some(version)), kind);
                    analysis.saw(txn, version);
                }
                Op::Write(version) => {
                    let key = values.at(version).key;
                    match bases.get(&key) {
                        Some(base) => {
                            if seen.remove(base).is_some() {
                                uses.push((*base, Use::Overwritten, txn));
                            }
                        }
                        None => {
                            bases.insert(key, (key, None));
                            uses.push(((key, None), Use::Passed, txn));
                        }
                    }
                }
                _ => {}
            }
        }
        uses.extend(
            seen.iter()
                .map(|(state, kind)| (*state, Use::Seen(*kind), txn)),
        );
    }
    uses
}

fn relate_state(analysis: &mut Analysis, state: State, group: &[(State, Use, TxnId)]) {
    let of = |wanted: Use| -> Vec<TxnId> {
        let wanted = group.iter().filter(|(_, how, _)| *how == wanted);
        wanted.map(|(_, _, txn)| *txn).collect()
    };
    let (overwriters, passing) = (of(Use::Overwritten), of(Use::Passed));
    if overwriters.is_empty() && passing.is_empty() {
        return;
    }
    let (key, version) = state;
    if let Some(writer) = version.and_then(|version| analysis.writer(version)) {
        for overwriter in &overwriters {
            analysis.graph.add(writer, *overwriter, Kind::Ww, key);
        }
    }
    let readers: Vec<(TxnId, Kind)> = group
        .iter()
        .filter_map(|(_, how, txn)| match how {
            Use::Seen(kind) => Some((*txn, *kind)),
            _ => None,
        })
        .collect();
    analysis.anti_depend(key, &readers, &overwriters, &passing);
    let seen = version.map(|version| analysis.history.values.at(version).content);
    for pair in overwriters.windows(2) {
        analysis.lost_update(key, seen, [pair[0], pair[1]]);
    }
}
