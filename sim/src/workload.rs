//! Random transactions of several clients, interleaved on one thread, each checked against the model.
//!
//! Locks are never waited for here: a conflict is an error, and the client that meets it rolls back.
//! Every read is checked: a row is what the client itself wrote last, or else what is committed,
//! since strict two-phase locks hide everything in between.

use crate::indexes;
use crate::model::{Change, History, Short, State};
use crate::onlooker::Onlooker;
use crate::prepared::Read;
use crate::rng::Choices;
use crate::trace::trace;
use longshore::{Database, Durability, Error, Savepoint, Table, TableLock, Transaction};
use longshore_disk::SimDisk;
use std::collections::BTreeMap;

/// How a run's transactions look.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Different keys in a table.
    pub keys: u64,
    /// Longest ordinary value, in bytes.
    pub value_bytes_max: u64,
    /// Longest value now and then, in bytes; beyond a quarter page it goes to overflow pages.
    pub large_bytes_max: u64,
    /// Clients with an open transaction at a time.
    pub clients: usize,
}

impl Profile {
    /// A profile from a seed: few hot keys, many keys, or wide rows.
    pub fn choose(choices: &mut Choices) -> Profile {
        let keys = [12, 120, 1200][choices.index(3)];
        let value_bytes_max = [16, 120, 700][choices.index(3)];
        let large_bytes_max = [0, 0, 9_000, 40_000][choices.index(4)];
        Profile {
            keys,
            value_bytes_max,
            large_bytes_max,
            clients: 1 + choices.index(4),
        }
    }
}

/// Why a run stopped.
#[derive(Debug)]
pub enum Stop {
    /// The disk crashed or failed, as arranged; the error that a client was told.
    Failed(Error),
    /// The database did something that it must not do.
    Wrong(String),
}

pub(crate) struct Client {
    pub(crate) transaction: Transaction,
    pub(crate) changes: Vec<Change>,
    pub(crate) reads: Vec<Read>,
    savepoints: Vec<(Savepoint, usize)>,
}

/// The clients of one open database.
pub struct Workload<'a> {
    pub(crate) disk: &'a SimDisk,
    pub(crate) db: &'a Database,
    profile: Profile,
    pub(crate) choices: &'a mut Choices,
    pub(crate) history: &'a mut History,
    pub(crate) clients: Vec<Option<Client>>,
    pub(crate) onlooker: Option<Onlooker>,
}

impl<'a> Workload<'a> {
    /// Clients that have begun nothing yet.
    pub fn new(
        disk: &'a SimDisk,
        db: &'a Database,
        profile: Profile,
        choices: &'a mut Choices,
        history: &'a mut History,
    ) -> Workload<'a> {
        let clients = (0..profile.clients).map(|_| None).collect();
        Workload {
            disk,
            db,
            profile,
            choices,
            history,
            clients,
            onlooker: None,
        }
    }

    /// Runs `steps` steps.
    ///
    /// # Errors
    /// [`Stop`], when the disk has failed or the database has failed the test.
    pub fn run(&mut self, steps: u64) -> Result<(), Stop> {
        (0..steps).try_for_each(|_| self.step())
    }

    fn step(&mut self) -> Result<(), Stop> {
        match self.choices.below(100) {
            0..2 => self.change_tables(),
            2..4 => {
                trace(|| "checkpoint".to_owned());
                self.sort(self.db.checkpoint())
            }
            4..9 => {
                trace(|| "maintain".to_owned());
                self.sort(self.db.maintain().map(drop))
            }
            9..13 => self.resolve(),
            13..15 => self.disturb(),
            15..18 => self.look(),
            _ => self.client_step(),
        }
    }

    fn client_step(&mut self) -> Result<(), Stop> {
        let at = self.choices.index(self.clients.len());
        trace(|| format!("client {at}"));
        let mut client = match self.clients[at].take() {
            Some(client) => client,
            None => match self.db.begin() {
                Ok(transaction) => Client {
                    transaction,
                    changes: Vec::new(),
                    reads: Vec::new(),
                    savepoints: Vec::new(),
                },
                Err(error) => return self.sort(Err(error)),
            },
        };
        match self.choices.below(100) {
            0..10 => return self.commit(client),
            10..12 => return self.prepare(client),
            12..15 => return self.rollback(client),
            15..19 => match client.transaction.savepoint() {
                Ok(savepoint) => client.savepoints.push((savepoint, client.changes.len())),
                Err(error) => return self.sort(Err(error)),
            },
            19..22 => self.rollback_to(&mut client)?,
            _ => {
                if !self.row_step(&mut client)? {
                    return self.rollback(client);
                }
            }
        }
        self.clients[at] = Some(client);
        Ok(())
    }

    /// One read or change of rows; false when the transaction has to be rolled back.
    fn row_step(&mut self, client: &mut Client) -> Result<bool, Stop> {
        let Some((name, table)) = self.pick_table()? else {
            return Ok(true);
        };
        let key = self.key();
        let outcome = match self.choices.below(100) {
            0..33 => self.put(client, &name, &table, key),
            33..45 => self.modify(client, &name, &table, key),
            45..65 => self.delete(client, &name, &table, key),
            65..72 => self.delete_range(client, &name, &table),
            72..85 => self.get(client, &name, &table, &key),
            85..98 => self.scan(client, &name, &table),
            _ => self.lock_table(client, &name, &table),
        };
        match outcome {
            Ok(Ok(())) => Ok(true),
            Ok(Err(wrong)) => Err(Stop::Wrong(wrong)),
            Err(error) if error.is_retryable() => Ok(false),
            Err(error) => self.sort(Err(error)).map(|()| false),
        }
    }

    fn put(
        &mut self,
        client: &mut Client,
        name: &str,
        table: &Table,
        key: Vec<u8>,
    ) -> Result<Result<(), String>, Error> {
        let value = self.value();
        trace(|| format!("  put {name} {} {} bytes", Short(&key), value.len()));
        let violates = self.violates(client, name, &key, &value);
        let outcome = client.transaction.put(table, &key, &value);
        let refused = matches!(outcome, Err(Error::UniqueViolation { .. }));
        if !refused {
            outcome?;
            let change = Change::Put(name.to_owned(), key.clone(), value);
            client.changes.push(change);
        }
        Ok(same(refused, violates, || {
            format!("unique key of {name} {}", Short(&key))
        }))
    }

    fn modify(
        &mut self,
        client: &mut Client,
        name: &str,
        table: &Table,
        key: Vec<u8>,
    ) -> Result<Result<(), String>, Error> {
        let before = self.seen_by(client, name, &key).map(<[u8]>::to_vec);
        let after = before.as_ref().map(|before| self.variant(before));
        trace(|| format!("  modify {name} {}", Short(&key)));
        let violates = after
            .as_ref()
            .is_some_and(|after| self.violates(client, name, &key, after));
        let mut found = None;
        let outcome = client.transaction.modify(table, &key, |value| {
            found = Some(value.clone());
            if let Some(after) = &after {
                value.clone_from(after);
            }
            Ok(())
        });
        let refused = matches!(outcome, Err(Error::UniqueViolation { .. }));
        let changed = !refused && outcome?;
        client.reads.push(Read::key(name, &key));
        let is_row = changed == (after.is_some() && !violates);
        // A row that is left as it was is not logged, so a commit of that alone makes nothing durable.
        let is_logged = |after: &Vec<u8>| changed && before.as_ref() != Some(after);
        if let Some(after) = after.filter(is_logged) {
            let change = Change::Put(name.to_owned(), key.clone(), after);
            client.changes.push(change);
        }
        Ok(same(
            (found, refused, is_row),
            (before, violates, true),
            || format!("modification of {name} {}", Short(&key)),
        ))
    }

    /// The same value, or one with other bytes from some place on.
    fn variant(&mut self, value: &[u8]) -> Vec<u8> {
        if self.choices.one_in(4) {
            return value.to_vec();
        }
        let kept = self.choices.index(value.len() + 1);
        let mut variant = self.value();
        variant.splice(0..0, value[..kept].iter().copied());
        variant
    }

    /// Whether another row that the client sees has the unique key that this value has.
    fn violates(&self, client: &Client, name: &str, key: &[u8], value: &[u8]) -> bool {
        let unique = indexes::unique_key(value);
        if unique.is_none() || !self.history.now().has_index(name, "unique") {
            return false;
        }
        let rows = self.rows_seen_by(client, name, &[], &[u8::MAX]);
        let mut others = rows.iter().filter(|(other, _)| *other != key);
        others.any(|(_, value)| indexes::unique_key(value) == unique)
    }

    fn delete(
        &mut self,
        client: &mut Client,
        name: &str,
        table: &Table,
        key: Vec<u8>,
    ) -> Result<Result<(), String>, Error> {
        let expected = self.seen_by(client, name, &key).is_some();
        trace(|| format!("  delete {name} {}", Short(&key)));
        let found = client.transaction.delete(table, &key)?;
        client.reads.push(Read::key(name, &key));
        if found {
            let change = Change::Delete(name.to_owned(), key.clone());
            client.changes.push(change);
        }
        Ok(same(found, expected, || {
            format!("delete of {name} {}", Short(&key))
        }))
    }

    fn delete_range(
        &mut self,
        client: &mut Client,
        name: &str,
        table: &Table,
    ) -> Result<Result<(), String>, Error> {
        let (from, to) = self.range();
        let rows = self.rows_seen_by(client, name, &from, &to);
        trace(|| {
            format!(
                "  delete {name} {}..{}: {} rows",
                Short(&from),
                Short(&to),
                rows.len()
            )
        });
        let deleted = client
            .transaction
            .delete_range(table, from.clone()..to.clone())?;
        client.reads.push(Read::range(name, &from, &to));
        for key in rows.keys() {
            client
                .changes
                .push(Change::Delete(name.to_owned(), key.clone()));
        }
        Ok(same(deleted, rows.len() as u64, || {
            format!("delete of {name} {}..{}", Short(&from), Short(&to))
        }))
    }

    fn get(
        &mut self,
        client: &mut Client,
        name: &str,
        table: &Table,
        key: &[u8],
    ) -> Result<Result<(), String>, Error> {
        let found = client.transaction.get(table, key)?;
        client.reads.push(Read::key(name, key));
        let expected = self.seen_by(client, name, key);
        Ok(same(found.as_deref(), expected, || {
            format!("get of {name} {}", Short(key))
        }))
    }

    fn lock_table(
        &mut self,
        client: &mut Client,
        name: &str,
        table: &Table,
    ) -> Result<Result<(), String>, Error> {
        let locks = [
            TableLock::Shared,
            TableLock::SharedIntentExclusive,
            TableLock::Exclusive,
        ];
        let lock = locks[self.choices.index(locks.len())];
        trace(|| format!("  lock {name} {lock:?}"));
        client.transaction.lock_table(table, lock)?;
        Ok(Ok(()))
    }

    fn scan(
        &mut self,
        client: &mut Client,
        name: &str,
        table: &Table,
    ) -> Result<Result<(), String>, Error> {
        let (from, to) = self.range();
        let backwards = self.choices.one_in(2);
        let cursor = client.transaction.scan(table, from.clone()..to.clone())?;
        let found: Result<Vec<_>, Error> = if backwards {
            cursor.reverse().collect()
        } else {
            cursor.collect()
        };
        client.reads.push(Read::range(name, &from, &to));
        let mut expected: Vec<_> = self
            .rows_seen_by(client, name, &from, &to)
            .into_iter()
            .collect();
        if backwards {
            expected.reverse();
        }
        Ok(same(found?, expected, || {
            format!("scan of {name} {}..{}", Short(&from), Short(&to))
        }))
    }

    pub(crate) fn commit(&mut self, client: Client) -> Result<(), Stop> {
        let durability = match self.choices.below(4) {
            0 => Durability::None,
            1 => Durability::Os,
            _ => Durability::Sync,
        };
        let logged = !client.changes.is_empty();
        trace(|| format!("  commit {durability:?}, {} changes", client.changes.len()));
        match client
            .transaction
            .commit_with(durability)
            .and_then(|handle| handle.wait())
        {
            Ok(_) => {
                let checked = self.history.prepared.check(&client.changes);
                checked.map_err(Stop::Wrong)?;
                self.history.committed(client.changes);
                // The log is one sequence: what is durable takes everything before it along.
                if durability == Durability::Sync && logged {
                    self.history.all_durable();
                }
                Ok(())
            }
            // It may have reached the log.
            Err(error) => {
                if has_failed(self.disk) {
                    self.history.in_doubt(client.changes);
                }
                self.sort(Err(error))
            }
        }
    }

    pub(crate) fn rollback(&mut self, client: Client) -> Result<(), Stop> {
        trace(|| "  rollback".to_owned());
        self.sort(client.transaction.rollback())
    }

    fn rollback_to(&mut self, client: &mut Client) -> Result<(), Stop> {
        let Some((savepoint, changes)) = client.savepoints.pop() else {
            return Ok(());
        };
        if let Err(error) = client.transaction.rollback_to(&savepoint) {
            return self.sort(Err(error));
        }
        trace(|| format!("  rolled back to savepoint, {changes} changes left"));
        let taken_back = client.changes.split_off(changes);
        client
            .reads
            .extend(taken_back.iter().filter_map(Read::is_of));
        Ok(())
    }

    /// One step after a savepoint, and back to it; false when the transaction has to be rolled back.
    pub(crate) fn try_and_take_back(&mut self, client: &mut Client) -> Result<bool, Stop> {
        match client.transaction.savepoint() {
            Ok(savepoint) => client.savepoints.push((savepoint, client.changes.len())),
            Err(error) => return self.sort(Err(error)).map(|()| false),
        }
        Ok(self.row_step(client)? && self.rollback_to(client).map(|()| true)?)
    }

    pub(crate) fn pick_table(&mut self) -> Result<Option<(String, Table)>, Stop> {
        let tables = &self.history.now().tables;
        if tables.is_empty() {
            return Ok(None);
        }
        let at = self.choices.index(tables.len());
        let name = tables.keys().nth(at).cloned().unwrap_or_default();
        match self.db.table(&name) {
            Ok(table) => Ok(Some((name, table))),
            Err(error) => self.sort(Err(error)).map(|()| None),
        }
    }

    pub(crate) fn key(&mut self) -> Vec<u8> {
        let n = self.choices.below(self.profile.keys);
        let mut key = format!("key/{n:06}").into_bytes();
        // Long keys now and then, the same for the same number.
        if n % 17 == 3 {
            key.extend(std::iter::repeat_n(b'x', 300));
        }
        key
    }

    fn range(&mut self) -> (Vec<u8>, Vec<u8>) {
        let from = self.choices.below(self.profile.keys);
        let length = self.choices.log_uniform(self.profile.keys / 3 + 1);
        (
            format!("key/{from:06}").into_bytes(),
            format!("key/{:06}", from + length).into_bytes(),
        )
    }

    pub(crate) fn value(&mut self) -> Vec<u8> {
        let large = self.profile.large_bytes_max > 0 && self.choices.one_in(12);
        let max = if large {
            self.profile.large_bytes_max
        } else {
            self.profile.value_bytes_max
        };
        let len = self.choices.below(max + 1) as usize;
        self.choices.bytes(len)
    }

    fn seen_by<'c>(&'c self, client: &'c Client, name: &str, key: &[u8]) -> Option<&'c [u8]> {
        for change in client.changes.iter().rev() {
            match change {
                Change::Put(table, k, value) if table == name && k == key => return Some(value),
                Change::Delete(table, k) if table == name && k == key => return None,
                _ => {}
            }
        }
        self.history
            .now()
            .tables
            .get(name)?
            .get(key)
            .map(Vec::as_slice)
    }

    fn rows_seen_by(
        &self,
        client: &Client,
        name: &str,
        from: &[u8],
        to: &[u8],
    ) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut state = State::default();
        let committed = self
            .history
            .now()
            .tables
            .get(name)
            .cloned()
            .unwrap_or_default();
        state.tables.insert(name.to_owned(), committed);
        let own = client.changes.iter().filter(
            |change| matches!(change, Change::Put(t, ..) | Change::Delete(t, _) if t == name),
        );
        own.for_each(|change| state.apply(change));
        let mut rows = state.tables.remove(name).unwrap_or_default();
        rows.retain(|key, _| from <= key.as_slice() && key.as_slice() < to);
        rows
    }

    /// Tells a crash, and what a client must live with, from what must not happen.
    pub(crate) fn sort(&self, outcome: Result<(), Error>) -> Result<(), Stop> {
        match outcome {
            Ok(()) => Ok(()),
            Err(error) if error.is_retryable() => Ok(()),
            Err(error) if has_failed(self.disk) => Err(Stop::Failed(error)),
            Err(error) => Err(Stop::Wrong(format!("unexpected error: {error}"))),
        }
    }
}

/// Whether the disk has crashed or a planned fault has struck.
pub fn has_failed(disk: &SimDisk) -> bool {
    disk.is_crashed() || disk.faults_hit() > 0
}

pub(crate) fn same<T: PartialEq + std::fmt::Debug>(
    found: T,
    expected: T,
    what: impl FnOnce() -> String,
) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let mut found = format!("{found:?}");
    let mut expected = format!("{expected:?}");
    found.truncate(300);
    expected.truncate(300);
    Err(format!("{}: found {found}, expected {expected}", what()))
}
