//! The checker of histories: each anomaly is found, and nothing is found that did not happen.

mod cases;
mod malformed;
mod random;
mod recorded;

use sim::history::{HistoryError, Level, Order, Report, check};

/// A transaction of a hand-made history: how it ended, and what it did, in JSON.
type Txn<'a> = (&'a str, &'a str);

/// Lines in which all transactions are open at the same time, each in a process of its own.
fn side_by_side(txns: &[Txn]) -> String {
    let invoked = txns
        .iter()
        .enumerate()
        .map(|(process, txn)| (process, "invoke", txn.1));
    let ended = txns
        .iter()
        .enumerate()
        .map(|(process, txn)| (process, txn.0, txn.1));
    lines(invoked.chain(ended))
}

/// Lines in which each transaction is over before the next begins, each in a process of its own.
fn one_by_one(txns: &[Txn]) -> String {
    let both = |(process, txn): (usize, &Txn<'static>)| {
        [(process, "invoke", txn.1), (process, txn.0, txn.1)]
    };
    let txns: Vec<Txn<'static>> = txns
        .iter()
        .map(|(kind, value)| (&*kind.to_string().leak(), &*value.to_string().leak()))
        .collect();
    lines(txns.iter().enumerate().flat_map(both))
}

fn lines<'a>(events: impl Iterator<Item = (usize, &'a str, &'a str)>) -> String {
    events
        .enumerate()
        .map(|(index, (process, kind, value))| {
            let time = index * 10;
            format!(
                "{{\"index\":{index},\"process\":{process},\"time\":{time},\"type\":\"{kind}\",\"value\":{value}}}\n"
            )
        })
        .collect()
}

fn checked(history: &str, level: Level, order: Order) -> Report {
    check(history.as_bytes(), level, order).unwrap_or_else(|error| panic!("{error} in\n{history}"))
}

fn refused(history: &str) -> HistoryError {
    match check(history.as_bytes(), Level::Serializable, Order::Strict) {
        Ok(report) => panic!("should be refused:\n{report}"),
        Err(error) => error,
    }
}

fn names(report: &Report) -> Vec<&str> {
    report
        .found
        .iter()
        .map(|found| found.anomaly.as_str())
        .collect()
}
