//! Changes of the set of tables and indexes: create, fill, drop, rename, each acknowledged as durable.

use crate::indexes::{self, NAMES};
use crate::model::Change;
use crate::trace::trace;
use crate::workload::{Stop, Workload, has_failed};
use longshore::Error;
use std::collections::BTreeMap;
use std::io;

/// Tables at a time.
const TABLES_MAX: usize = 4;
/// Rows that a table is filled with at most.
const LOADED_MAX: u64 = 200;

impl Workload<'_> {
    /// Changes the set of tables, after every client has committed.
    pub(crate) fn change_tables(&mut self) -> Result<(), Stop> {
        for at in 0..self.clients.len() {
            if let Some(client) = self.clients[at].take() {
                self.commit(client)?;
            }
        }
        let names: Vec<String> = self.history.now().tables.keys().cloned().collect();
        let fresh = format!("table-{}", self.choices.below(1000));
        if names.contains(&fresh) {
            return Ok(());
        }
        let choice = self.choices.below(8);
        if names.is_empty() || choice == 0 && names.len() < TABLES_MAX {
            let outcome = self.db.create_table(&fresh).map(drop);
            return self.settle(vec![Change::Create(fresh)], outcome);
        }
        let picked = names[self.choices.index(names.len())].clone();
        match choice {
            1 if names.len() > 1 => {
                let outcome = self.db.drop_table(&picked);
                self.settle(vec![Change::Drop(picked)], outcome)
            }
            2 => self.fill(fresh),
            3..6 => self.create_index(&picked),
            6 => self.drop_index(&picked),
            // What is prepared knows its tables by name.
            _ if !self.history.prepared.is_empty() => Ok(()),
            _ => {
                let outcome = self.db.rename_table(&picked, &fresh);
                self.settle(vec![Change::Rename(picked, fresh)], outcome)
            }
        }
    }

    /// Creates an index that the table does not have, if there is one; two rows with one key forbid it.
    fn create_index(&mut self, table: &str) -> Result<(), Stop> {
        let now = self.history.now();
        let mut names = NAMES.into_iter();
        let Some(name) = names.find(|name| !now.has_index(table, name)) else {
            return Ok(());
        };
        let rows = now.tables.get(table);
        let is_forbidden = name == "unique" && rows.is_some_and(indexes::has_duplicates);
        match indexes::create(self.db, table, name) {
            Err(Error::UniqueViolation { .. }) if is_forbidden => Ok(()),
            Ok(()) if is_forbidden => Err(Stop::Wrong(format!("{table}: two rows, one key"))),
            outcome => {
                let created = Change::CreateIndex(table.to_owned(), name.to_owned());
                self.settle(vec![created], outcome)
            }
        }
    }

    fn drop_index(&mut self, table: &str) -> Result<(), Stop> {
        let Some(indexes) = self.history.now().indexes.get(table) else {
            return Ok(());
        };
        let name = indexes.iter().next().cloned().unwrap_or_default();
        let handle = self.db.table(table);
        let outcome = handle.and_then(|handle| self.db.drop_index(&handle, &name));
        self.settle(vec![Change::DropIndex(table.to_owned(), name)], outcome)
    }

    /// Creates a table and fills it in one go; now and then the source of the rows fails half way.
    fn fill(&mut self, name: String) -> Result<(), Stop> {
        let created = self.db.create_table(&name).map(drop);
        self.settle(vec![Change::Create(name.clone())], created)?;
        for _ in 0..self.choices.below(3) {
            self.create_index(&name)?;
        }
        let count = self.choices.log_uniform(LOADED_MAX);
        let rows: BTreeMap<Vec<u8>, Vec<u8>> =
            (0..count).map(|_| (self.key(), self.value())).collect();
        let fails = self.choices.one_in(4);
        let source = rows.iter().map(Ok::<_, Error>);
        let failure = fails.then(|| Err(Error::from(io::Error::other("the source has failed"))));
        let loaded = self
            .db
            .table(&name)
            .and_then(|table| self.db.bulk_load(&table, source.chain(failure)));
        let is_unique = self.history.now().has_index(&name, "unique");
        let is_forbidden = is_unique && indexes::has_duplicates(&rows);
        match loaded {
            Err(_) if fails && !has_failed(self.disk) => Ok(()),
            Err(Error::UniqueViolation { .. }) if is_forbidden => Ok(()),
            Ok(_) if is_forbidden => Err(Stop::Wrong(format!("{name}: two rows, one key"))),
            loaded => {
                let put = |(key, value)| Change::Put(name.clone(), key, value);
                self.settle(rows.into_iter().map(put).collect(), loaded.map(drop))
            }
        }
    }

    fn settle(&mut self, changes: Vec<Change>, outcome: Result<(), Error>) -> Result<(), Stop> {
        trace(|| {
            format!(
                "{} changes of tables, first {:?}",
                changes.len(),
                changes.first()
            )
        });
        match outcome {
            Ok(()) => {
                let checked = self.history.prepared.check(&changes);
                checked.map_err(Stop::Wrong)?;
                self.history.committed(changes);
                self.history.all_durable();
                Ok(())
            }
            Err(Error::TablePrepared { gid, .. }) if self.history.prepared.knows(&gid) => Ok(()),
            Err(error) => {
                if has_failed(self.disk) {
                    self.history.in_doubt(changes);
                }
                self.sort(Err(error))
            }
        }
    }
}
