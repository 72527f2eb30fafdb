//! The transactions of a history, put together line by line.
//!
//! # Protocol
//! `invoke` opens the transaction of a process, the next line of that process ends it; a transaction that
//! is open at the end may have committed, as after `info`. What counts is the line that ends it: all
//! operations of a committed transaction, the writes of any other. A list is compared with the longest
//! seen of its key and then forgotten but for its length.

use super::error::HistoryError;
use super::format::{Content, Kind, Line, Operation, Seen};
use super::report::Findings;
use super::values::{KeyId, Name, Shape, Values, VersionId};
use super::{Anomaly, words};
use std::collections::HashMap;
use std::io::BufRead;
use std::ops::Range;

/// Names a transaction: its place in the order in which they were invoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TxnId(pub(super) u32);

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Committed,
    Aborted,
    Unknown,
}

/// A transaction. Lines number its events: a lower one is earlier.
#[derive(Clone, Debug)]
pub(super) struct Transaction {
    pub(super) process: u64,
    pub(super) outcome: Outcome,
    pub(super) invoked: u32,
    /// Never, for one that was open at the end.
    pub(super) ended: Option<u32>,
    operations: Range<u32>,
}

/// What a transaction did to one key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Append(VersionId),
    Write(VersionId),
    /// Saw the first `length` values of the key's longest list, the last `own` of which are its own.
    ReadList {
        key: KeyId,
        length: u32,
        own: u32,
    },
    /// Saw a list that fits into no order, or not with its own; there is a finding about it.
    ReadAstray(KeyId),
    /// Saw that there was nothing.
    ReadNothing(KeyId),
    /// Saw another's version of a register or row.
    Read {
        version: VersionId,
        by: By,
    },
    /// Saw its own version.
    ReadOwn(VersionId),
    /// Scanned positions `scans[_]`; what it saw follows as reads.
    Scan(u32),
}

/// How a version was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Key,
    Scan,
}

/// Accounts whose sum is promised.
#[derive(Debug)]
pub(super) struct Bank {
    pub(super) accounts: Vec<KeyId>,
    pub(super) total: i64,
}

/// A history in memory.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) transactions: Vec<Transaction>,
    pub(super) values: Values,
    pub(super) scans: Vec<Range<i64>>,
    pub(super) banks: Vec<Bank>,
    /// What was found wrong while reading.
    pub(super) findings: Findings,
    pub(super) lines: u32,
    operations: Vec<Op>,
}

impl History {
    /// Reads all lines.
    pub(super) fn read(mut source: impl BufRead) -> Result<History, HistoryError> {
        let mut reader = Reader::default();
        let mut text = Vec::new();
        while source
            .read_until(b'\n', &mut text)
            .map_err(HistoryError::Unreadable)?
            > 0
        {
            reader.take(&text)?;
            text.clear();
        }
        reader.finish()
    }

    pub(super) fn at(&self, txn: TxnId) -> &Transaction {
        &self.transactions[txn.0 as usize]
    }

    pub(super) fn operations(&self, txn: TxnId) -> &[Op] {
        let range = &self.at(txn).operations;
        &self.operations[range.start as usize..range.end as usize]
    }

    /// All transactions.
    pub(super) fn ids(&self) -> impl Iterator<Item = TxnId> + use<> {
        (0..self.transactions.len() as u32).map(TxnId)
    }

    /// How many ended so.
    pub(super) fn count(&self, outcome: Outcome) -> usize {
        let all = self.transactions.iter();
        all.filter(|txn| txn.outcome == outcome).count()
    }
}

/// What a process is about.
#[derive(Debug)]
enum Process {
    Idle,
    Open(TxnId, Vec<Operation>),
    /// After `info`, at this line.
    Retired(u32),
}

/// What the transaction at hand has written to a key.
#[derive(Debug)]
struct Own {
    version: VersionId,
    appended: Vec<i64>,
}

#[derive(Debug, Default)]
struct Reader {
    history: History,
    processes: HashMap<u64, Process>,
    last: Option<(u64, u64)>,
    own: HashMap<KeyId, Own>,
}

impl Reader {
    fn take(&mut self, text: &[u8]) -> Result<(), HistoryError> {
        self.history.lines += 1;
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        let at = self.history.lines;
        let line: Line = serde_json::from_slice(text)
            .map_err(|error| HistoryError::at(at, format!("not a line of a history: {error}")))?;
        self.check_order(&line)?;
        let process = self.processes.entry(line.process).or_insert(Process::Idle);
        match (std::mem::replace(process, Process::Idle), line.kind) {
            (Process::Retired(info), _) => Err(HistoryError::at(
                at,
                format!(
                    "process {} goes on after its info in line {info}; use another",
                    line.process
                ),
            )),
            (Process::Open(..), Kind::Invoke) => Err(HistoryError::at(
                at,
                format!(
                    "process {} invokes, but has a transaction open",
                    line.process
                ),
            )),
            (Process::Idle, Kind::Invoke) => {
                let txn = TxnId(self.history.transactions.len() as u32);
                *process = Process::Open(txn, line.value.unwrap_or_default());
                self.history.transactions.push(Transaction {
                    process: line.process,
                    outcome: Outcome::Unknown,
                    invoked: at,
                    ended: None,
                    operations: 0..0,
                });
                Ok(())
            }
            (Process::Idle, _) => Err(HistoryError::at(
                at,
                format!(
                    "process {} has no transaction open that could end",
                    line.process
                ),
            )),
            (Process::Open(txn, invoked), kind) => {
                let outcome = match kind {
                    Kind::Ok => Outcome::Committed,
                    Kind::Fail => Outcome::Aborted,
                    Kind::Info | Kind::Invoke => Outcome::Unknown,
                };
                if kind == Kind::Info {
                    *process = Process::Retired(at);
                }
                let transaction = &mut self.history.transactions[txn.0 as usize];
                (transaction.outcome, transaction.ended) = (outcome, Some(at));
                self.end(txn, at, line.value.unwrap_or(invoked))
            }
        }
    }

    fn check_order(&mut self, line: &Line) -> Result<(), HistoryError> {
        let at = self.history.lines;
        if let Some((index, time)) = self.last {
            if line.index <= index {
                let reason = format!("index {} comes after index {index}", line.index);
                return Err(HistoryError::at(at, reason));
            }
            if line.time < time {
                let reason = format!("time {} comes after time {time}", line.time);
                return Err(HistoryError::at(at, reason));
            }
        }
        self.last = Some((line.index, line.time));
        Ok(())
    }

    fn finish(mut self) -> Result<History, HistoryError> {
        let mut open: Vec<(TxnId, Vec<Operation>)> = std::mem::take(&mut self.processes)
            .into_values()
            .filter_map(|process| match process {
                Process::Open(txn, invoked) => Some((txn, invoked)),
                _ => None,
            })
            .collect();
        open.sort_by_key(|(txn, _)| *txn);
        let at = self.history.lines;
        for (txn, invoked) in open {
            self.end(txn, at, invoked)?;
        }
        let committed = |txn: &Transaction| txn.outcome == Outcome::Committed;
        let nothing = |txn: &Transaction| txn.operations.is_empty();
        if !self
            .history
            .transactions
            .iter()
            .any(|txn| committed(txn) && !nothing(txn))
        {
            return Err(HistoryError::Empty);
        }
        Ok(self.history)
    }

    /// Takes down what a transaction did, by the line that ended it.
    fn end(&mut self, txn: TxnId, at: u32, done: Vec<Operation>) -> Result<(), HistoryError> {
        let committed = self.history.at(txn).outcome == Outcome::Committed;
        let start = self.history.operations.len() as u32;
        self.own.clear();
        for operation in done {
            match operation {
                Operation::Append { key, value } => self.append(txn, at, key, value)?,
                Operation::Write {
                    key,
                    value: Some(value),
                } => {
                    let key = self.shaped(Name::Key(key), Shape::Register, at)?;
                    self.write(txn, at, key, value)?;
                }
                Operation::Insert {
                    row,
                    position: Some(position),
                } => {
                    let key = self.shaped(Name::Row(row), Shape::Register, at)?;
                    self.see(txn, key, None, By::Key);
                    self.write(txn, at, key, Content::Number(position))?;
                }
                Operation::Move {
                    row: Some(row),
                    from: Some(from),
                    to: Some(to),
                } => {
                    let key = self.shaped(Name::Row(row), Shape::Register, at)?;
                    self.see(txn, key, Some(Content::Number(from)), By::Key);
                    self.write(txn, at, key, Content::Number(to))?;
                }
                Operation::Bank { accounts, total } => self.declare(&accounts, total),
                Operation::Read { key, seen } if committed => self.read(txn, at, key, seen)?,
                Operation::Scan {
                    low,
                    high,
                    seen: Some(seen),
                } if committed => {
                    self.scan(txn, low..high, &seen);
                }
                _ if committed => {
                    return Err(HistoryError::at(
                        at,
                        "a committed operation lacks its value",
                    ));
                }
                _ => {}
            }
        }
        let end = self.history.operations.len() as u32;
        self.history.transactions[txn.0 as usize].operations = start..end;
        Ok(())
    }

    /// The key, which must be of this shape or not be known yet.
    fn shaped(&mut self, name: Name, shape: Shape, at: u32) -> Result<KeyId, HistoryError> {
        let key = self.history.values.key(name);
        let known = &mut self.history.values.keys[key.0 as usize].shape;
        if *known == Shape::Unknown {
            *known = shape;
        }
        if *known == shape {
            return Ok(key);
        }
        let reason = format!(
            "{} is used both as a list and as a register",
            words::name(name)
        );
        Err(HistoryError::at(at, reason))
    }

    fn declare(&mut self, accounts: &[i64], total: i64) {
        let values = &mut self.history.values;
        let accounts = accounts
            .iter()
            .map(|key| values.key(Name::Key(*key)))
            .collect();
        self.history.banks.push(Bank { accounts, total });
    }

    fn append(&mut self, txn: TxnId, at: u32, key: i64, value: i64) -> Result<(), HistoryError> {
        let key = self.shaped(Name::Key(key), Shape::List, at)?;
        let version = self.new_version(txn, at, key, Content::Number(value))?;
        let own = self.own.get_mut(&key).expect("made with the version");
        own.appended.push(value);
        self.history.operations.push(Op::Append(version));
        Ok(())
    }

    fn write(
        &mut self,
        txn: TxnId,
        at: u32,
        key: KeyId,
        value: Content,
    ) -> Result<(), HistoryError> {
        let version = self.new_version(txn, at, key, value)?;
        self.history.operations.push(Op::Write(version));
        Ok(())
    }

    /// Makes a version the transaction's last one of this key.
    fn new_version(
        &mut self,
        txn: TxnId,
        at: u32,
        key: KeyId,
        content: Content,
    ) -> Result<VersionId, HistoryError> {
        let values = &mut self.history.values;
        let id = values.version(key, content);
        if let Some(other) = values.at(id).writer {
            let reason = format!(
                "{} is given {} again, which the transaction of line {} gave it; values must be unique",
                words::name(values.key_at(key).name),
                words::content(content),
                self.history.at(other).invoked
            );
            return Err(HistoryError::at(at, reason));
        }
        let version = &mut values.versions[id.0 as usize];
        (version.writer, version.is_last) = (Some(txn), true);
        match self.own.get_mut(&key) {
            Some(own) => {
                values.versions[own.version.0 as usize].is_last = false;
                own.version = id;
            }
            None => {
                let appended = Vec::new();
                self.own.insert(
                    key,
                    Own {
                        version: id,
                        appended,
                    },
                );
            }
        }
        Ok(id)
    }

    fn read(&mut self, txn: TxnId, at: u32, key: i64, seen: Seen) -> Result<(), HistoryError> {
        match seen {
            Seen::Nothing => {
                let key = self.history.values.key(Name::Key(key));
                self.see(txn, key, None, By::Key);
            }
            Seen::Content(content) => {
                let key = self.shaped(Name::Key(key), Shape::Register, at)?;
                self.see(txn, key, Some(content), By::Key);
            }
            Seen::List(list) => {
                let key = self.shaped(Name::Key(key), Shape::List, at)?;
                self.read_list(txn, key, list);
            }
        }
        Ok(())
    }

    fn read_list(&mut self, txn: TxnId, key: KeyId, list: Vec<i64>) {
        let own = self.own.get(&key).map_or(&[][..], |own| &own.appended);
        let known = &mut self.history.values.keys[key.0 as usize];
        if !list.ends_with(own) {
            let text = || format!("it appended {own:?} and then read {list:?}");
            self.history.findings.add(Anomaly::Internal, &[txn], text);
            self.history.operations.push(Op::ReadAstray(key));
            return;
        }
        let common = list.len().min(known.longest.len());
        if list[..common] != known.longest[..common] {
            let other = known.longest_by.expect("somebody saw it");
            let text = || {
                let (name, longest) = (words::name(known.name), &known.longest);
                format!("of {name}, T1 saw {longest:?}, but T2 saw {list:?}")
            };
            let anomaly = Anomaly::IncompatibleOrder;
            self.history.findings.add(anomaly, &[other, txn], text);
            self.history.operations.push(Op::ReadAstray(key));
            return;
        }
        let (length, own) = (list.len() as u32, own.len() as u32);
        self.history
            .operations
            .push(Op::ReadList { key, length, own });
        if list.len() > known.longest.len() {
            (known.longest, known.longest_by) = (list, Some(txn));
        }
    }

    /// Takes down that `key` was seen with this content, or with none.
    fn see(&mut self, txn: TxnId, key: KeyId, content: Option<Content>, by: By) {
        let values = &mut self.history.values;
        let seen = content.map(|content| values.version(key, content));
        let op = match (self.own.get(&key), seen) {
            (Some(own), seen) if seen == Some(own.version) => Op::ReadOwn(own.version),
            (Some(own), _) => {
                let written = words::content(values.at(own.version).content);
                let text = || {
                    let seen = content.map_or("nothing".to_owned(), words::content);
                    let name = words::name(values.key_at(key).name);
                    format!("it gave {name} {written}, and then found {seen}")
                };
                self.history.findings.add(Anomaly::Internal, &[txn], text);
                return;
            }
            (None, Some(version)) => Op::Read { version, by },
            (None, None) => Op::ReadNothing(key),
        };
        self.history.operations.push(op);
    }

    fn scan(&mut self, txn: TxnId, range: Range<i64>, seen: &[(i64, i64)]) {
        let scan = self.history.scans.len() as u32;
        self.history.scans.push(range.clone());
        self.history.operations.push(Op::Scan(scan));
        for &(position, row) in seen {
            let key = self.history.values.key(Name::Row(row));
            self.see(txn, key, Some(Content::Number(position)), By::Scan);
        }
        for own in self.own.values() {
            let version = *self.history.values.at(own.version);
            let name = self.history.values.key_at(version.key).name;
            let (Name::Row(row), Content::Number(position)) = (name, version.content) else {
                continue;
            };
            if range.contains(&position) && !seen.contains(&(position, row)) {
                let text = || format!("it put row {row} at {position}, and then missed it there");
                self.history.findings.add(Anomaly::Internal, &[txn], text);
            }
        }
    }
}
