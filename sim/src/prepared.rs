//! Prepared transactions: what the model knows of them, and when they are resolved.
//!
//! One that was acknowledged is listed after every crash until it is resolved. One whose preparing, committing
//! or rolling back a crash has cut off may be listed or not, and so may one that was rolled back, for that is
//! not forced to disk. What is listed has happened to nobody: resolved later, it happens whole or not at all.
//!
//! Until then nobody else commits a change of what it has read or changed, whatever restarts come between. Every
//! commit is held against that, and clients are sent to try: they must meet a lock.

use crate::model::{Change, Short};
use crate::subject::{Subject, read_all};
use crate::trace::trace;
use crate::workload::{Client, Stop, Workload, has_failed};
use longshore::{Database, Error};
use std::collections::BTreeMap;

/// The prepared transactions of a run, by name.
#[derive(Clone, Debug, Default)]
pub struct InDoubt {
    by_gid: BTreeMap<Vec<u8>, Known>,
    prepared: u64,
}

#[derive(Clone, Debug)]
struct Known {
    changes: Vec<Change>,
    reads: Vec<Read>,
    listed: Listed,
}

/// What a transaction has read: the rows of a table from a key on and below another, and those that are not there.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    table: String,
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Read {
    pub(crate) fn key(table: &str, key: &[u8]) -> Read {
        // The next key that there can be.
        Read::range(table, key, &[key, &[0]].concat())
    }

    pub(crate) fn range(table: &str, from: &[u8], to: &[u8]) -> Read {
        Read {
            table: table.to_owned(),
            from: from.to_vec(),
            to: to.to_vec(),
        }
    }

    pub(crate) fn is_of(change: &Change) -> Option<Read> {
        match change {
            Change::Put(table, key, _) | Change::Delete(table, key) => Some(Read::key(table, key)),
            _ => None,
        }
    }

    fn is_touched_by(&self, change: &Change) -> bool {
        match change {
            Change::Put(table, key, _) | Change::Delete(table, key) => {
                *table == self.table && self.from <= *key && *key < self.to
            }
            Change::Drop(table) => *table == self.table,
            _ => false,
        }
    }
}

/// Whether the database lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listed {
    Surely,
    Perhaps,
}

impl InDoubt {
    /// The names of those that are surely listed.
    fn open(&self) -> Vec<Vec<u8>> {
        let open = self.by_gid.iter();
        let open = open.filter(|(_, known)| known.listed == Listed::Surely);
        open.map(|(gid, _)| gid.clone()).collect()
    }

    /// Holds a commit of somebody else against what they have read.
    pub(crate) fn check(&self, changes: &[Change]) -> Result<(), String> {
        for (gid, known) in &self.by_gid {
            let mut reads = known.reads.iter();
            let is_surely = known.listed == Listed::Surely;
            let touches = |read: &&Read| changes.iter().any(|change| read.is_touched_by(change));
            if let Some(read) = reads.find(touches).filter(|_| is_surely) {
                return Err(format!(
                    "a commit has changed what prepared {} has read: {} {}..{}",
                    Short(gid),
                    read.table,
                    Short(&read.from),
                    Short(&read.to)
                ));
            }
        }
        Ok(())
    }

    /// Whether there may be one of this name.
    pub(crate) fn knows(&self, gid: &[u8]) -> bool {
        self.by_gid.contains_key(gid)
    }

    /// Everything that the one of this name has read.
    fn reads(&self, gid: &[u8]) -> Vec<Read> {
        let known = self.by_gid.get(gid);
        known.map(|known| known.reads.clone()).unwrap_or_default()
    }

    /// Whether none can be listed.
    pub fn is_empty(&self) -> bool {
        self.by_gid.is_empty()
    }

    /// What was resolved is safe, and listed no more.
    pub fn all_durable(&mut self) {
        self.by_gid
            .retain(|_, known| known.listed == Listed::Surely);
    }

    /// Learns after a restart what is listed.
    fn learn(&mut self, listed: &[Vec<u8>]) -> Result<(), String> {
        if let Some(lost) = self.open().iter().find(|gid| !listed.contains(gid)) {
            return Err(format!("prepared transaction {} is lost", Short(lost)));
        }
        if let Some(gid) = listed.iter().find(|gid| !self.by_gid.contains_key(*gid)) {
            return Err(format!("nobody has prepared {}", Short(gid)));
        }
        self.by_gid.retain(|gid, known| {
            known.listed = Listed::Surely;
            listed.contains(gid)
        });
        Ok(())
    }
}

impl Workload<'_> {
    pub(crate) fn prepare(&mut self, mut client: Client) -> Result<(), Stop> {
        // It keeps the locks on what it has taken back as well.
        if self.choices.one_in(4) && !self.try_and_take_back(&mut client)? {
            return self.rollback(client);
        }
        let in_doubt = &mut self.history.prepared;
        in_doubt.prepared += 1;
        let gid = format!("transaction {}", in_doubt.prepared).into_bytes();
        trace(|| {
            format!(
                "  prepare {}, {} changes",
                Short(&gid),
                client.changes.len()
            )
        });
        let listed = match client.transaction.prepare(&gid) {
            Ok(_) => {
                // It is durable, and all that was logged before.
                self.history.all_durable();
                Listed::Surely
            }
            Err(Error::LogFull { .. }) => return Ok(()),
            Err(error) if has_failed(self.disk) => {
                self.learn_of(gid, client.changes, client.reads, Listed::Perhaps);
                return Err(Stop::Failed(error));
            }
            Err(error) => return self.sort(Err(error)),
        };
        self.learn_of(gid, client.changes, client.reads, listed);
        Ok(())
    }

    fn learn_of(
        &mut self,
        gid: Vec<u8>,
        changes: Vec<Change>,
        mut reads: Vec<Read>,
        listed: Listed,
    ) {
        reads.extend(changes.iter().filter_map(Read::is_of));
        let known = Known {
            changes,
            reads,
            listed,
        };
        self.history.prepared.by_gid.insert(gid, known);
    }

    /// Tries to change what a prepared transaction has read.
    pub(crate) fn disturb(&mut self) -> Result<(), Stop> {
        let open = self.history.prepared.open();
        if open.is_empty() {
            return Ok(());
        }
        let gid = &open[self.choices.index(open.len())];
        let reads = self.history.prepared.reads(gid);
        if reads.is_empty() {
            return Ok(());
        }
        let read = &reads[self.choices.index(reads.len())];
        trace(|| format!("disturb {}: {}", Short(gid), Short(&read.from)));
        match disturb(self.db, read) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(wrong)) => Err(Stop::Wrong(format!("{}: {wrong}", Short(gid)))),
            Err(error) => self.sort(Err(error)),
        }
    }

    /// Commits or rolls back one of the prepared transactions, if there is any.
    pub(crate) fn resolve(&mut self) -> Result<(), Stop> {
        let open = self.history.prepared.open();
        if open.is_empty() {
            return Ok(());
        }
        let gid = &open[self.choices.index(open.len())];
        let commits = self.choices.one_in(2);
        trace(|| format!("resolve {}: commit {commits}", Short(gid)));
        let Some(mut known) = self.history.prepared.by_gid.remove(gid) else {
            return Ok(());
        };
        known.listed = Listed::Perhaps;
        let outcome = match commits {
            true => self.db.commit_prepared(gid),
            false => self.db.rollback_prepared(gid),
        };
        match (&outcome, commits) {
            (Ok(()), true) => {
                let checked = self.history.prepared.check(&known.changes);
                checked.map_err(Stop::Wrong)?;
                self.history.committed(known.changes);
                self.history.all_durable();
                return Ok(());
            }
            (Err(_), true) => self.history.in_doubt(known.changes.clone()),
            (_, false) => {}
        }
        self.history.prepared.by_gid.insert(gid.clone(), known);
        self.sort(outcome)
    }
}

/// Tries to put a row where a prepared transaction has read; tells if that was not refused.
fn disturb(db: &Database, read: &Read) -> Result<Result<(), String>, Error> {
    if read.from >= read.to {
        return Ok(Ok(()));
    }
    let table = db.table(&read.table)?;
    let transaction = db.begin()?;
    match transaction.put(&table, &read.from, "disturbed") {
        Ok(()) => {
            let (key, table) = (Short(&read.from), &read.table);
            Ok(Err(format!(
                "{key} of {table}, which it has read, can be changed"
            )))
        }
        // The log may be full, or a unique key taken.
        Err(Error::LogFull { .. } | Error::UniqueViolation { .. }) => Ok(Ok(())),
        Err(error) if error.is_retryable() => Ok(Ok(())),
        Err(error) => Err(error),
    }
}

impl Subject {
    /// Holds what is listed after a restart against the model, and resolves it, or leaves it to the clients.
    ///
    /// # Errors
    /// What is lost, invented, or torn.
    pub fn settle(&mut self, db: &Database) -> Result<(), String> {
        let listed: Vec<_> = db.prepared().into_iter().map(|view| view.gid).collect();
        self.history.prepared.learn(&listed)?;
        let failed = |error: Error| format!("after recovery: {error}");
        for gid in &listed {
            for read in self.history.prepared.reads(gid) {
                let disturbed = disturb(db, &read).map_err(failed)?;
                disturbed.map_err(|wrong| format!("after recovery, {}: {wrong}", Short(gid)))?;
            }
        }
        for gid in listed {
            let way = self.choices.below(3);
            trace(|| format!("settle {}: way {way}", Short(&gid)));
            match way {
                0 => continue,
                1 => db.rollback_prepared(&gid).map_err(failed)?,
                _ => db.commit_prepared(&gid).map_err(failed)?,
            }
            let known = self.history.prepared.by_gid.get_mut(&gid);
            let known = known.ok_or("it was learned of above")?;
            known.listed = Listed::Perhaps;
            if way == 2 {
                let changes = std::mem::take(&mut known.changes);
                self.history.prepared.by_gid.remove(&gid);
                self.history.prepared.check(&changes)?;
                self.history.committed(changes);
                self.history.all_durable();
            }
        }
        let found = read_all(db).map_err(failed)?;
        match self.history.now().difference(&found) {
            Some(difference) => Err(format!("after resolving: {difference}")),
            None => Ok(()),
        }
    }
}
