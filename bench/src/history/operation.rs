//! The operations of a transaction, as a history tells them.

use serde::{Serialize, Serializer};

/// An operation, intended or done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operation {
    Append {
        key: i64,
        value: i64,
    },
    Read {
        key: i64,
        seen: Seen,
    },
    /// The value is unknown as long as it depends on what will be read.
    Write {
        key: i64,
        value: Option<Content>,
    },
    Bank {
        accounts: Vec<i64>,
        total: i64,
    },
    Insert {
        row: i64,
        position: i64,
    },
    /// Which row will be moved, and from where, shows when the transaction runs.
    Move {
        row: Option<i64>,
        from: Option<i64>,
        to: i64,
    },
    Scan {
        low: i64,
        high: i64,
        seen: Option<Vec<(i64, i64)>>,
    },
}

/// What a read saw.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Seen {
    /// Nothing, or nothing yet.
    Nothing,
    List(Vec<i64>),
    Content(Content),
}

/// What a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Content {
    Number(i64),
    Balance { balance: i64, stamp: i64 },
}

impl Operation {
    /// A read that has not seen anything yet.
    pub(super) fn read(key: i64) -> Operation {
        let seen = Seen::Nothing;
        Operation::Read { key, seen }
    }

    /// A scan that has not seen anything yet.
    pub(super) fn scan(low: i64, high: i64) -> Operation {
        let seen = None;
        Operation::Scan { low, high, seen }
    }
}

impl Serialize for Operation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Operation::Append { key, value } => ("append", key, value).serialize(serializer),
            Operation::Read { key, seen } => ("r", key, seen).serialize(serializer),
            Operation::Write { key, value } => ("w", key, value).serialize(serializer),
            Operation::Bank { accounts, total } => ("bank", accounts, total).serialize(serializer),
            Operation::Insert { row, position } => ("insert", row, position).serialize(serializer),
            Operation::Move { row, from, to } => ("move", row, from, to).serialize(serializer),
            Operation::Scan { low, high, seen } => ("scan", low, high, seen).serialize(serializer),
        }
    }
}
