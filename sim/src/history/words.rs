//! Says what happened, for people.

use super::format::Content;
use super::graph::Kind;
use super::transactions::{History, Op, Outcome, TxnId};
use super::values::{KeyId, Name};

/// A key or row.
pub(super) fn name(name: Name) -> String {
    match name {
        Name::Key(key) => format!("key {key}"),
        Name::Row(row) => format!("row {row}"),
    }
}

/// What a version holds.
pub(super) fn content(content: Content) -> String {
    match content {
        Content::Number(number) => number.to_string(),
        Content::Balance { balance, stamp } => format!("balance {balance} (stamp {stamp})"),
    }
}

/// A transaction with the lines where it stands, and all that it did.
pub(super) fn transaction(history: &History, txn: TxnId) -> String {
    let transaction = history.at(txn);
    let ended = match (transaction.ended, transaction.outcome) {
        (Some(line), Outcome::Committed) => format!("committed in line {line}"),
        (Some(line), Outcome::Aborted) => format!("aborted in line {line}"),
        (Some(line), Outcome::Unknown) => format!("unknown since line {line}"),
        (None, _) => "open at the end".to_owned(),
    };
    let all = history.operations(txn);
    const SHOWN_MAX: usize = 24;
    let mut operations: Vec<String> = all
        .iter()
        .take(SHOWN_MAX)
        .map(|op| operation(history, *op))
        .collect();
    if all.len() > SHOWN_MAX {
        operations.push(format!("and {} more", all.len() - SHOWN_MAX));
    }
    format!(
        "process {}, invoked in line {}, {ended}: {}",
        transaction.process,
        transaction.invoked,
        operations.join("; ")
    )
}

fn operation(history: &History, op: Op) -> String {
    let values = &history.values;
    let key_name = |key: KeyId| name(values.key_at(key).name);
    let version = |version| {
        let version = values.at(version);
        let at = match values.key_at(version.key).name {
            Name::Key(_) => "",
            Name::Row(_) => "at ",
        };
        (
            key_name(version.key),
            format!("{at}{}", content(version.content)),
        )
    };
    match op {
        Op::Append(id) => {
            let (key, value) = version(id);
            format!("append {value} to {key}")
        }
        Op::Write(id) => {
            let (key, value) = version(id);
            format!("put {key} {value}")
        }
        Op::ReadList { key, length, .. } => {
            let list = &values.key_at(key).longest[..length as usize];
            const SHOWN_MAX: usize = 6;
            let shown = &list[list.len().saturating_sub(SHOWN_MAX)..];
            let dots = if shown.len() < list.len() { "... " } else { "" };
            let shown: Vec<String> = shown.iter().map(i64::to_string).collect();
            format!(
                "read {}: [{dots}{}] ({length} values)",
                key_name(key),
                shown.join(" ")
            )
        }
        Op::ReadAstray(key) => format!("read {}: a list that cannot be", key_name(key)),
        Op::ReadNothing(key) => format!("read {}: nothing", key_name(key)),
        Op::Read { version: id, .. } | Op::ReadOwn(id) => {
            let (key, value) = version(id);
            format!("read {key}: {value}")
        }
        Op::Scan(scan) => {
            let range = &history.scans[scan as usize];
            format!("scan from {} to below {}", range.start, range.end)
        }
    }
}

/// Why `from` comes before `to`; both as they are called in the report.
pub(super) fn because(
    history: &History,
    from: &str,
    to: &str,
    kind: Kind,
    key: Option<KeyId>,
) -> String {
    let key = key.map_or(String::new(), |key| name(history.values.key_at(key).name));
    match kind {
        Kind::Ww => format!("{from} wrote {key}, {to} wrote the next version (ww)"),
        Kind::Wr => format!("{from} wrote {key}, {to} saw that (wr)"),
        Kind::Rw => format!("{from} saw {key} as it was before {to} wrote it (rw)"),
        Kind::PredicateRw => {
            format!(
                "{from} scanned and saw {key} as it was, or nothing of it, before {to} wrote it (predicate rw)"
            )
        }
        Kind::Process => format!("{from} was over when {to} began in the same process (process)"),
        Kind::RealTime => format!("{from} was over when {to} began (real time)"),
        Kind::Through => unreachable!("relays are not told"),
    }
}
