//! A session: a thread that runs one statement at a time, in a transaction that begins with the first.

use super::script::{Begin, Filter, Keys, Scan, Statement};
use super::store::{Numbers, Place, shown};
use longshore::{Error, Isolation, Result, Savepoint, Transaction, TransactionOptions};
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

/// What came of a statement.
#[derive(Debug)]
pub enum Answer {
    /// It was done; what it returned.
    Done(String),
    /// Rows that were read.
    Read(String),
    /// It was refused, and the transaction goes on.
    Refused(String),
    /// The transaction had to give way, and was rolled back.
    GaveWay(String),
}

/// What a session's thread has at hand.
pub struct Session<'a> {
    place: &'a Place,
    level: Isolation,
    tx: Option<Transaction>,
    savepoints: HashMap<String, Savepoint>,
}

impl<'a> Session<'a> {
    pub fn new(place: &'a Place, level: Isolation) -> Session<'a> {
        Session {
            place,
            level,
            tx: None,
            savepoints: HashMap::new(),
        }
    }

    /// Runs statements until there are no more.
    pub fn serve(mut self, statements: Receiver<Statement>, answers: Sender<Answer>) {
        for statement in statements {
            let answer = match self.run(&statement) {
                Ok(answer) => answer,
                Err(error) => self.failed(&error),
            };
            if answers.send(answer).is_err() {
                return;
            }
        }
    }

    fn failed(&mut self, error: &Error) -> Answer {
        let text = match error {
            Error::Deadlock => "deadlock",
            Error::LockTimeout { .. } => "time-out",
            Error::WriteConflict { .. } => "write conflict",
            Error::KeyExists { .. } => return Answer::Refused("refused, key exists".into()),
            Error::UniqueViolation { .. } => {
                return Answer::Refused("refused, another row has this value".into());
            }
            Error::NotPrepared { .. } => {
                return Answer::Refused("refused, nobody is prepared so".into());
            }
            Error::AlreadyPrepared { .. } => {
                return Answer::GaveWay("refused, rolled back".into());
            }
            other => panic!("no script expects this: {other}"),
        };
        assert!(error.is_retryable(), "{error}");
        let tx = self.tx.take().expect("only a transaction gives way");
        tx.rollback().expect("a rollback succeeds");
        Answer::GaveWay(format!("{text}, rolled back"))
    }

    fn run(&mut self, statement: &Statement) -> Result<Answer> {
        let store = self.place.now();
        let resolved = match statement {
            Statement::CommitPrepared(gid) => Some(store.db.commit_prepared(gid.as_bytes())),
            Statement::RollbackPrepared(gid) => Some(store.db.rollback_prepared(gid.as_bytes())),
            Statement::Restart => {
                // The disk has crashed: nothing of that is written any more.
                self.tx = None;
                Some(Ok(()))
            }
            _ => None,
        };
        if let Some(resolved) = resolved {
            return resolved.map(|()| Answer::Done("ok".into()));
        }
        if self.tx.is_none() {
            let begin = match statement {
                Statement::Begin(begin) => *begin,
                _ => Begin::default(),
            };
            self.tx = Some(store.db.begin_with(self.options(begin))?);
        }
        let (tx, table) = (self.tx.as_ref().expect("just begun"), &store.table);
        let done = match statement {
            Statement::Begin(_) => None,
            Statement::Get { key, for_update } => {
                let value = match for_update {
                    true => table.get_for_update(tx, key)?,
                    false => table.get(tx, key)?,
                };
                let row = value.map(|(value, _)| (*key, value));
                return Ok(Answer::Read(shown(row)));
            }
            Statement::Scan(scan) => return Ok(Answer::Read(shown(rows(table, tx, scan)?))),
            Statement::Set { key, value } => {
                table.put(tx, key, &padded(*value))?;
                None
            }
            Statement::AddTo { key, more } => {
                let add = |(value, _): &mut (u64, String)| {
                    *value += more;
                    Ok(())
                };
                Some(u64::from(table.modify(tx, key, add)?))
            }
            Statement::SetWhere { change, filter } => {
                let change = |key, value| table.put(tx, key, &padded(change.apply(value)));
                Some(change_where(table, tx, *filter, change)?)
            }
            Statement::Insert { keys, value } => {
                for key in listed(*keys) {
                    table.insert(tx, key, &padded(*value))?;
                }
                None
            }
            Statement::Delete(key) => Some(u64::from(table.delete(tx, key)?)),
            Statement::DeleteRange(keys) => Some(table.delete_range(tx, *keys)?),
            Statement::DeleteWhere(filter) => {
                let delete = |key, _| table.delete(tx, key).map(drop);
                Some(change_where(table, tx, *filter, delete)?)
            }
            Statement::Savepoint(name) => {
                self.savepoints.insert(name.clone(), tx.savepoint()?);
                None
            }
            Statement::RollbackTo(name) => {
                tx.rollback_to(&self.savepoints[name])?;
                None
            }
            Statement::Commit => {
                self.tx.take().expect("just begun").commit()?;
                None
            }
            Statement::Rollback => {
                self.tx.take().expect("just begun").rollback()?;
                None
            }
            Statement::Prepare(gid) => {
                let tx = self.tx.take().expect("just begun");
                drop(tx.prepare(gid.as_bytes())?);
                None
            }
            Statement::CommitPrepared(_) | Statement::RollbackPrepared(_) | Statement::Restart => {
                unreachable!("it needs no transaction")
            }
        };
        Ok(Answer::Done(match done {
            None => "ok".into(),
            Some(1) => "1 row".into(),
            Some(rows) => format!("{rows} rows"),
        }))
    }

    fn options(&self, begin: Begin) -> TransactionOptions {
        let level = begin.level.unwrap_or(self.level);
        let mut options = TransactionOptions::new().isolation(level);
        if begin.is_read_only {
            options = options.read_only();
        }
        if begin.never_waits {
            options = options.lock_wait(Duration::ZERO);
        }
        options
    }
}

/// A value as the table has it: long enough for some dozens of rows to fill a page.
pub fn padded(value: u64) -> (u64, String) {
    (value, ".".repeat(100))
}

fn rows(table: &Numbers, tx: &Transaction, scan: &Scan) -> Result<Vec<(u64, u64)>> {
    let mut cursor = table.scan(tx, scan.keys)?;
    if scan.is_reverse {
        cursor = cursor.reverse();
    }
    let mut found = Vec::new();
    for row in cursor.take(scan.first) {
        let (key, (mut value, _)) = row?;
        if !scan.filter.holds(value) {
            continue;
        }
        if scan.for_update {
            match table.get_for_update(tx, key)? {
                Some((now, _)) if scan.filter.holds(now) => value = now,
                _ => continue,
            }
        }
        found.push((key, value));
    }
    Ok(found)
}

/// Changes the rows that a scan finds and that still meet the condition when they are locked.
fn change_where(
    table: &Numbers,
    tx: &Transaction,
    filter: Filter,
    change: impl Fn(u64, u64) -> Result<()>,
) -> Result<u64> {
    let scan = Scan {
        keys: (Bound::Unbounded, Bound::Unbounded),
        filter,
        is_reverse: false,
        for_update: true,
        first: usize::MAX,
    };
    let found = rows(table, tx, &scan)?;
    for (key, value) in &found {
        change(*key, *value)?;
    }
    Ok(found.len() as u64)
}

fn listed((low, high): Keys) -> std::ops::RangeInclusive<u64> {
    match (low, high) {
        (Bound::Included(low), Bound::Included(high)) => low..=high,
        _ => panic!("keys to insert have two ends"),
    }
}
