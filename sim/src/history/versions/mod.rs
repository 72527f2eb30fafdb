//! The versions of each key in order, as far as the history proves one, and the edges that follow.

mod banks;
mod lists;
mod registers;
mod rows;

use super::anomaly::Anomaly;
use super::format::Content;
use super::graph::{Builder, Kind};
use super::report::Findings;
use super::transactions::{History, Op, Outcome, TxnId};
use super::values::{KeyId, VersionId};
use super::words;

/// Draws the edges between transactions, and finds what is wrong with single reads.
pub(super) fn dependencies(history: &History) -> (Builder, Findings) {
    let mut analysis = Analysis {
        history,
        happened: happened(history),
        graph: Builder::new(history.transactions.len()),
        findings: history.findings.clone(),
    };
    lists::relate(&mut analysis);
    registers::relate(&mut analysis);
    rows::relate(&mut analysis);
    banks::add_up(&mut analysis);
    (analysis.graph, analysis.findings)
}

/// What is known while edges are drawn.
struct Analysis<'h> {
    history: &'h History,
    /// Whether each transaction took effect, as far as anybody saw.
    happened: Vec<bool>,
    graph: Builder,
    findings: Findings,
}

/// Those that committed, and of those that may have, the ones of which something was seen.
fn happened(history: &History) -> Vec<bool> {
    let mut happened: Vec<bool> = history
        .transactions
        .iter()
        .map(|txn| txn.outcome == Outcome::Committed)
        .collect();
    let mut seen = |version: VersionId| {
        if let Some(writer) = history.values.at(version).writer {
            happened[writer.0 as usize] |= history.at(writer).outcome == Outcome::Unknown;
        }
    };
    for txn in history
        .ids()
        .filter(|txn| history.at(*txn).outcome == Outcome::Committed)
    {
        for op in history.operations(txn) {
            if let Op::Read { version, .. } = op {
                seen(*version);
            }
        }
    }
    for (id, key) in history.values.keys.iter().enumerate() {
        for value in &key.longest {
            history
                .values
                .appended(KeyId(id as u32), *value)
                .map(&mut seen);
        }
    }
    happened
}

impl Analysis<'_> {
    fn committed(&self) -> impl Iterator<Item = TxnId> + use<'_> {
        let history = self.history;
        let committed = |txn: &TxnId| history.at(*txn).outcome == Outcome::Committed;
        history.ids().filter(committed)
    }

    fn has_happened(&self, txn: TxnId) -> bool {
        self.happened[txn.0 as usize]
    }

    /// Who wrote this version, if it took effect.
    fn writer(&self, version: VersionId) -> Option<TxnId> {
        let writer = self.history.values.at(version).writer?;
        self.has_happened(writer).then_some(writer)
    }

    /// `reader` saw this version: draws the edge, and looks whether it was allowed to.
    fn saw(&mut self, reader: TxnId, id: VersionId) {
        let values = &self.history.values;
        let version = values.at(id);
        let what = || {
            let name = words::name(values.key_at(version.key).name);
            format!("{} of {name}", words::content(version.content))
        };
        let Some(writer) = version.writer else {
            let text = || format!("it saw {}, which nobody wrote", what());
            self.findings.add(Anomaly::Garbage, &[reader], text);
            return;
        };
        if writer == reader {
            return;
        }
        let both = [writer, reader];
        if self.history.at(writer).outcome == Outcome::Aborted {
            let text = || format!("T2 saw {}, which T1 wrote and took back", what());
            self.findings.add(Anomaly::G1a, &both, text);
            return;
        }
        if !version.is_last {
            let text = || format!("T2 saw {}, which T1 wrote and then replaced", what());
            self.findings.add(Anomaly::G1b, &both, text);
        }
        self.graph.add(writer, reader, Kind::Wr, version.key);
    }

    /// Two saw the same version of `key` and replaced it.
    fn lost_update(&mut self, key: KeyId, seen: Option<Content>, both: [TxnId; 2]) {
        let name = words::name(self.history.values.key_at(key).name);
        let text = || {
            let seen = seen.map_or("nothing".to_owned(), words::content);
            format!("both saw {seen} in {name}, and both wrote it")
        };
        self.findings.add(Anomaly::LostUpdate, &both, text);
    }

    /// Anti-dependencies of those who saw a version on all who wrote a later one.
    ///
    /// A relay stands in for them where they are many; it must not lead back to a reader, so those who
    /// both saw and wrote are in `overwriters`, not in `readers`, and are joined in a ring: there are two
    /// of them only after a lost update.
    fn anti_depend(
        &mut self,
        key: KeyId,
        readers: &[(TxnId, Kind)],
        overwriters: &[TxnId],
        blind: &[TxnId],
    ) {
        const DIRECT_MAX: usize = 2;
        let later: Vec<TxnId> = overwriters.iter().chain(blind).copied().collect();
        let ours: Vec<(TxnId, Kind)> = overwriters.iter().map(|txn| (*txn, Kind::Rw)).collect();
        for (readers, later) in [(readers, &later[..]), (&ours, blind)] {
            if readers.is_empty() || later.is_empty() {
                continue;
            }
            if later.len() <= DIRECT_MAX || readers.len() == 1 {
                for (reader, kind) in readers {
                    later
                        .iter()
                        .for_each(|txn| self.graph.add(*reader, *txn, *kind, key));
                }
                continue;
            }
            let relay = self.graph.relay();
            later
                .iter()
                .for_each(|txn| self.graph.add(relay, *txn, Kind::Through, key));
            for (reader, kind) in readers {
                self.graph.add(*reader, relay, *kind, key);
            }
        }
        if let [first, .., last] = overwriters {
            self.graph.add(*last, *first, Kind::Rw, key);
            for pair in overwriters.windows(2) {
                self.graph.add(pair[0], pair[1], Kind::Rw, key);
            }
        }
    }
}
