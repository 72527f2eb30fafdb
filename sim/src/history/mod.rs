//! Checks the history of a run against an isolation level: what did the transactions see, and is there
//! an order that explains it?
//!
//! # Protocol
//! `format` reads a line; `transactions` joins the lines of a transaction and finds which version each
//! operation wrote or saw; `versions` puts the versions of each key in order, as far as the history
//! itself proves one, and draws the edges between transactions; `clock` adds what was over before what
//! began; `cycles` looks for cycles, by the searches of a table; `anomaly` says which level forbids what.
//!
//! # Edges (Adya)
//!
//! | edge | from the transaction that | to the one that |
//! |---|---|---|
//! | ww | wrote a version | wrote the next one |
//! | wr | wrote a version | saw it |
//! | rw | saw a version | wrote the next one |
//! | predicate rw | saw a range without a row, or with its old version | changed that |
//! | process, real time (strict only) | was over | began later, in the same process or another |
//!
//! # Versions in order
//! - A *list* shows all that was appended: the longest list seen is the order of versions, and every other
//!   must be a beginning of it. What was appended and never seen comes after all that was seen.
//! - Who sees a *register* at one version and then writes it has written a later version.
//! - A *row* is inserted once and moved from place to place, each used once; a move names the place
//!   that it left. Who scanned the only places in which a row ever began, and missed it, came before.
//!
//! An edge is drawn only where the history proves it, so what is reported has happened; what left no
//! trace is not found.
//!
//! # Cost
//! Memory and time grow with the length of the history, but for shortest cycles: where there are
//! many, `cycles` looks at so many only.
//!
//! # Source
//! Adya, "Weak consistency" (1999), for phenomena and graph; Kingsbury and Alvaro, "Elle" (2020), for
//! lists that reveal their order; Cerone and Gotsman, "Analysing snapshot isolation" (2016): a history is one
//! of snapshot isolation if every cycle has two anti-dependencies (rw) side by side. We differ: real time is
//! a chain of moments rather than edges between transactions, and rows that move trace what predicates saw.

mod anomaly;
mod clock;
mod components;
mod cycles;
mod error;
mod format;
mod graph;
mod report;
mod transactions;
mod values;
mod versions;
mod words;

pub use anomaly::{Anomaly, Level};
pub use error::HistoryError;
pub use report::{Found, Report};

use std::io::BufRead;

/// Whether the order of time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Any order will do that explains what was seen.
    Any,
    /// What was over before another began comes before it.
    Strict,
}

/// Reads a history and looks for what `level` forbids.
///
/// # Errors
/// [`HistoryError`]: it cannot be read, breaks the rules of the format, or is empty. Anomalies are no error:
/// see [`Report::violations`].
pub fn check(source: impl BufRead, level: Level, order: Order) -> Result<Report, HistoryError> {
    let history = transactions::History::read(source)?;
    let (mut graph, mut findings) = versions::dependencies(&history);
    if order == Order::Strict {
        clock::add_time(&history, &mut graph);
    }
    let graph = graph.build();
    findings.append(cycles::search(&graph, order));
    Ok(report::Report::new(
        &history, &graph, findings, level, order,
    ))
}
