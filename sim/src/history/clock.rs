//! What was over before what began, in linear space.
//!
//! The ends of transactions form a chain of relays, one for all that ended between two beginnings. A
//! transaction has an edge to the moment of its end, and an edge from the last moment before it began. One
//! that may or may not have committed has no end: it may take effect at any time after it began.

use super::graph::{Builder, Kind};
use super::transactions::{History, Outcome, TxnId};
use std::collections::HashMap;

/// Adds the edges of time.
pub(super) fn add_time(history: &History, graph: &mut Builder) {
    let committed = |txn: &TxnId| history.at(*txn).outcome == Outcome::Committed;
    let mut ends: Vec<(u32, TxnId)> = history
        .ids()
        .filter(committed)
        .filter_map(|txn| history.at(txn).ended.map(|line| (line, txn)))
        .collect();
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let mut last_moment = None;
    let mut last_of_process: HashMap<u64, TxnId> = HashMap::new();
    for txn in history.ids() {
        let transaction = history.at(txn);
        let over = |end: &(u32, TxnId)| end.0 < transaction.invoked;
        if ends.peek().is_some_and(over) {
            let moment = graph.relay();
            while let Some((_, ended)) = ends.next_if(over) {
                graph.add(ended, moment, Kind::RealTime, None);
            }
            if let Some(former) = last_moment.replace(moment) {
                graph.add(former, moment, Kind::Through, None);
            }
        }
        if let Some(moment) = last_moment {
            graph.add(moment, txn, Kind::Through, None);
        }
        if let Some(former) = last_of_process.get(&transaction.process) {
            graph.add(*former, txn, Kind::Process, None);
        }
        if committed(&txn) {
            last_of_process.insert(transaction.process, txn);
        }
    }
}
