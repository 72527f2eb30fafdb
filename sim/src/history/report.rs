//! What was found, for people and for scripts.

use super::Order;
use super::anomaly::{Anomaly, Level};
use super::graph::{Graph, Kind};
use super::transactions::{History, Outcome, TxnId};
use super::values::KeyId;
use super::words;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// One edge of a circle, with the transaction that it leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) from: TxnId,
    pub(super) kind: Kind,
    pub(super) key: Option<KeyId>,
}

/// All findings, by what they are: how often, and the simplest.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings(BTreeMap<(Anomaly, bool), (u64, Example)>);

#[derive(Clone, Debug)]
enum Example {
    Single {
        transactions: Vec<TxnId>,
        text: String,
    },
    Cycle(Vec<Step>),
}

impl Example {
    fn size(&self) -> usize {
        match self {
            Example::Single { transactions, .. } => transactions.len(),
            Example::Cycle(steps) => steps.len(),
        }
    }
}

impl Findings {
    /// A finding that is no circle; `text` calls the transactions T1, T2.
    pub(super) fn add(
        &mut self,
        anomaly: Anomaly,
        transactions: &[TxnId],
        text: impl FnOnce() -> String,
    ) {
        self.note(anomaly, false, transactions.len(), || Example::Single {
            transactions: transactions.to_vec(),
            text: text(),
        });
    }

    /// A circle.
    pub(super) fn add_cycle(&mut self, anomaly: Anomaly, timed: bool, steps: Vec<Step>) {
        self.note(anomaly, timed, steps.len(), || Example::Cycle(steps));
    }

    fn note(&mut self, anomaly: Anomaly, timed: bool, size: usize, make: impl FnOnce() -> Example) {
        match self.0.get_mut(&(anomaly, timed)) {
            None => {
                self.0.insert((anomaly, timed), (1, make()));
            }
            Some((count, example)) => {
                *count += 1;
                if size < example.size() {
                    *example = make();
                }
            }
        }
    }

    /// Takes over what another has.
    pub(super) fn append(&mut self, other: Findings) {
        for (class, (count, example)) in other.0 {
            match self.0.get_mut(&class) {
                None => {
                    self.0.insert(class, (count, example));
                }
                Some((sum, known)) => {
                    *sum += count;
                    if example.size() < known.size() {
                        *known = example;
                    }
                }
            }
        }
    }

    /// What there is, and whether time is a part of it.
    #[cfg(test)]
    pub(super) fn classes(&self) -> impl Iterator<Item = (Anomaly, bool)> {
        self.0.keys().copied()
    }
}

/// What a history shows.
#[derive(Debug, Serialize)]
pub struct Report {
    /// What it was held against.
    pub level: &'static str,
    /// Whether the order of time counted.
    pub strict: bool,
    /// Whether nothing was found that the level forbids.
    pub valid: bool,
    /// Lines read.
    pub lines: u32,
    /// Transactions that committed.
    pub committed: usize,
    /// Transactions that surely did not.
    pub aborted: usize,
    /// Transactions of which nobody knows.
    pub unknown: usize,
    /// Keys and rows.
    pub keys: usize,
    /// Edges of the graph by kind: ww, wr, rw, predicate rw.
    pub edges: [usize; 4],
    /// Everything found, gravest first.
    pub found: Vec<Found>,
}

/// An anomaly that the history shows.
#[derive(Debug, Serialize)]
pub struct Found {
    /// The name in the literature; with `-realtime` if only time closes the circle.
    pub anomaly: String,
    /// The name in words.
    pub words: &'static str,
    /// Whether the level forbids it.
    pub forbidden: bool,
    /// How many were met; of circles, at most as many as were looked at.
    pub count: u64,
    /// The transactions of the simplest, T1 first.
    pub transactions: Vec<String>,
    /// What they show.
    pub because: Vec<String>,
}

impl Report {
    pub(super) fn new(
        history: &History,
        graph: &Graph,
        findings: Findings,
        level: Level,
        order: Order,
    ) -> Report {
        let found: Vec<Found> = findings
            .0
            .iter()
            .map(|((anomaly, timed), (count, example))| {
                Found::new(history, *anomaly, *timed, *count, example, level)
            })
            .collect();
        let kinds = [Kind::Ww, Kind::Wr, Kind::Rw, Kind::PredicateRw];
        Report {
            level: level.as_str(),
            strict: order == Order::Strict,
            valid: !found.iter().any(|found| found.forbidden),
            lines: history.lines,
            committed: history.count(Outcome::Committed),
            aborted: history.count(Outcome::Aborted),
            unknown: history.count(Outcome::Unknown),
            keys: history.values.keys.len(),
            edges: kinds.map(|kind| graph.count(kind)),
            found,
        }
    }

    /// What the level forbids.
    pub fn violations(&self) -> impl Iterator<Item = &Found> {
        self.found.iter().filter(|found| found.forbidden)
    }
}

impl Found {
    fn new(
        history: &History,
        anomaly: Anomaly,
        timed: bool,
        count: u64,
        example: &Example,
        level: Level,
    ) -> Found {
        let (transactions, because) = match example {
            Example::Single { transactions, text } => (transactions.clone(), vec![text.clone()]),
            Example::Cycle(steps) => (
                steps.iter().map(|step| step.from).collect(),
                reasons(history, steps),
            ),
        };
        let time = if timed { "-realtime" } else { "" };
        Found {
            anomaly: format!("{}{time}", anomaly.name()),
            words: anomaly.words(),
            forbidden: anomaly.forbidden_from() <= level,
            count,
            transactions: transactions
                .iter()
                .map(|txn| words::transaction(history, *txn))
                .collect(),
            because,
        }
    }
}

fn reasons(history: &History, steps: &[Step]) -> Vec<String> {
    let called = |at: usize| format!("T{}", at % steps.len() + 1);
    let reason = |(at, step): (usize, &Step)| {
        words::because(history, &called(at), &called(at + 1), step.kind, step.key)
    };
    steps.iter().enumerate().map(reason).collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.strict {
            ", in the order of time"
        } else {
            ""
        };
        let [ww, wr, rw, predicate] = self.edges;
        writeln!(
            f,
            "{} lines: {} committed, {} aborted, {} unknown; {} keys; edges: {ww} ww, {wr} wr, {rw} rw, \
             {predicate} predicate rw",
            self.lines, self.committed, self.aborted, self.unknown, self.keys
        )?;
        for found in &self.found {
            let judged = if found.forbidden {
                "FORBIDDEN"
            } else {
                "allowed"
            };
            writeln!(
                f,
                "{judged}: {} ({}), met {} time(s); the simplest:",
                found.anomaly, found.words, found.count
            )?;
            for (at, transaction) in found.transactions.iter().enumerate() {
                writeln!(f, "  T{} = {transaction}", at + 1)?;
            }
            for because in &found.because {
                writeln!(f, "  - {because}")?;
            }
        }
        match self.valid {
            true => write!(f, "{}{order}: nothing found that it forbids", self.level),
            false => write!(f, "{}{order}: VIOLATED", self.level),
        }
    }
}
