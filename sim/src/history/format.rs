//! One line of a history: a transaction is invoked, or it is over. The README lists the operations.

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A line as it stands in the file.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Line {
    pub(super) index: u64,
    pub(super) process: u64,
    pub(super) time: u64,
    #[serde(rename = "type")]
    pub(super) kind: Kind,
    #[serde(default)]
    pub(super) value: Option<Vec<Operation>>,
}

/// What a line tells about the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// It begins.
    Invoke,
    /// It has committed.
    Ok,
    /// It has surely not committed.
    Fail,
    /// Nobody knows.
    Info,
}

/// An operation of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operation {
    /// `["append", KEY, VALUE]`
    Append { key: i64, value: i64 },
    /// `["r", KEY, SEEN]`
    Read { key: i64, seen: Seen },
    /// `["w", KEY, VALUE]`; the value may be unknown when the transaction is invoked.
    Write { key: i64, value: Option<Content> },
    /// `["bank", [KEY, ...], TOTAL]`: the sum of these registers never changes.
    Bank { accounts: Vec<i64>, total: i64 },
    /// `["insert", ROW, POSITION]`
    Insert { row: i64, position: Option<i64> },
    /// `["move", ROW, FROM, TO]`; which row may be unknown when the transaction is invoked.
    Move {
        row: Option<i64>,
        from: Option<i64>,
        to: Option<i64>,
    },
    /// `["scan", LOW, HIGH, [[POSITION, ROW], ...]]`: all rows from `LOW` to below `HIGH`.
    Scan {
        low: i64,
        high: i64,
        seen: Option<Vec<(i64, i64)>>,
    },
}

/// What a read saw.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Seen {
    /// `null`: there was nothing.
    Nothing,
    /// A list.
    List(Vec<i64>),
    /// A register.
    Content(Content),
}

/// The content of a register. No two writes of a register have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Content {
    /// A plain number.
    Number(i64),
    /// `{"balance": B, "stamp": S}`: the account of a bank; the stamp makes it unique.
    Balance { balance: i64, stamp: i64 },
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Name {
    Append,
    R,
    W,
    Bank,
    Insert,
    Move,
    Scan,
}

impl<'de> Deserialize<'de> for Operation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Operation, D::Error> {
        deserializer.deserialize_seq(OperationVisitor)
    }
}

struct OperationVisitor;

impl<'de> Visitor<'de> for OperationVisitor {
    type Value = Operation;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an operation such as [\"append\", 1, 2] or [\"r\", 1, null]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Operation, A::Error> {
        let operation = match next(&mut seq, "the operation's name")? {
            Name::Append => Operation::Append {
                key: next(&mut seq, "a key")?,
                value: next(&mut seq, "a value")?,
            },
            Name::R => Operation::Read {
                key: next(&mut seq, "a key")?,
                seen: next(&mut seq, "what was read, or null")?,
            },
            Name::W => Operation::Write {
                key: next(&mut seq, "a key")?,
                value: match next(&mut seq, "a value")? {
                    Seen::Nothing => None,
                    Seen::Content(content) => Some(content),
                    Seen::List(_) => return Err(de::Error::custom("a register holds no list")),
                },
            },
            Name::Bank => Operation::Bank {
                accounts: next(&mut seq, "the accounts")?,
                total: next(&mut seq, "the total")?,
            },
            Name::Insert => Operation::Insert {
                row: next(&mut seq, "a row")?,
                position: next(&mut seq, "a position")?,
            },
            Name::Move => Operation::Move {
                row: next(&mut seq, "a row")?,
                from: next(&mut seq, "the position that is left")?,
                to: next(&mut seq, "the new position")?,
            },
            Name::Scan => Operation::Scan {
                low: next(&mut seq, "the first position")?,
                high: next(&mut seq, "the position behind the last")?,
                seen: next(&mut seq, "what was seen, or null")?,
            },
        };
        match seq.next_element::<de::IgnoredAny>()? {
            None => Ok(operation),
            Some(_) => Err(de::Error::custom("the operation has too many parts")),
        }
    }
}

fn next<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(
    seq: &mut A,
    what: &'static str,
) -> Result<T, A::Error> {
    seq.next_element()?
        .ok_or_else(|| de::Error::custom(format_args!("the operation lacks {what}")))
}

impl<'de> Deserialize<'de> for Seen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Seen, D::Error> {
        deserializer.deserialize_any(SeenVisitor)
    }
}

struct SeenVisitor;

impl<'de> Visitor<'de> for SeenVisitor {
    type Value = Seen;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null, a number, a list of numbers, or {\"balance\": B, \"stamp\": S}")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Seen, E> {
        Ok(Seen::Nothing)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Seen, E> {
        Ok(Seen::Content(Content::Number(number)))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Seen, E> {
        let number = i64::try_from(number).map_err(|_| E::custom("a number above 2^63"))?;
        self.visit_i64(number)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Seen, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element()? {
            list.push(value);
        }
        Ok(Seen::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Seen, A::Error> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Account {
            balance: i64,
            stamp: i64,
        }
        let account = Account::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(Seen::Content(Content::Balance {
            balance: account.balance,
            stamp: account.stamp,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operations(text: &str) -> Result<Vec<Operation>, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn every_operation_is_understood() {
        let text = r#"[["append",1,2],["r",1,null],["r",1,[2,3]],["r",4,5],["w",4,{"balance":6,"stamp":7}],
            ["bank",[1,2],10],["insert",1,20],["move",1,20,30],["scan",0,99,[[30,1]]],["scan",0,9,null]]"#;
        let read = operations(text).unwrap();
        assert_eq!(read.len(), 10);
        assert_eq!(
            read[2],
            Operation::Read {
                key: 1,
                seen: Seen::List(vec![2, 3])
            }
        );
        let account = Content::Balance {
            balance: 6,
            stamp: 7,
        };
        assert_eq!(
            read[4],
            Operation::Write {
                key: 4,
                value: Some(account)
            }
        );
        let seen = Some(vec![(30, 1)]);
        assert_eq!(
            read[8],
            Operation::Scan {
                low: 0,
                high: 99,
                seen
            }
        );
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        for (text, expected) in [
            (r#"[["apend",1,2]]"#, "unknown variant `apend`"),
            (r#"[["append",1]]"#, "lacks a value"),
            (r#"[["append",1,2,3]]"#, "too many parts"),
            (r#"[["r",1,"x"]]"#, "null, a number, a list"),
            (r#"[["w",1,[2]]]"#, "no list"),
            (r#"[7]"#, "an operation such as"),
        ] {
            let message = operations(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
