//! What the database must hold: a map of maps, and the commits that may or may not have survived.
//!
//! The log is one sequence, so what a crash leaves is always a *prefix* of the commits in their
//! order. [`History`] keeps the state up to the last commit that was acknowledged as durable, and
//! behind it the commits that were not: the recovered database must equal the state after some
//! number of those, none torn, none skipped.

use crate::prepared::InDoubt;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The rows of one table.
pub type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// All tables by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The tables.
    pub tables: BTreeMap<String, Rows>,
    /// The names of the indexes of those tables that have any.
    pub indexes: BTreeMap<String, BTreeSet<String>>,
}

/// One step of a committed transaction, or a change of the set of tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The row has this value now.
    Put(String, Vec<u8>, Vec<u8>),
    /// The row is gone.
    Delete(String, Vec<u8>),
    /// A new, empty table.
    Create(String),
    /// The table is gone with all its rows.
    Drop(String),
    /// The table has a new name.
    Rename(String, String),
    /// The table has an index of this name now.
    CreateIndex(String, String),
    /// The table has no index of this name any more.
    DropIndex(String, String),
}

impl State {
    /// Applies one change.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Put(table, key, value) => {
                self.rows_mut(table).insert(key.clone(), value.clone());
            }
            Change::Delete(table, key) => {
                self.rows_mut(table).remove(key);
            }
            Change::Create(table) => {
                self.tables.insert(table.clone(), Rows::new());
            }
            Change::Drop(table) => {
                self.tables.remove(table);
                self.indexes.remove(table);
            }
            Change::Rename(source, target) => {
                if let Some(rows) = self.tables.remove(source) {
                    self.tables.insert(target.clone(), rows);
                }
                if let Some(indexes) = self.indexes.remove(source) {
                    self.indexes.insert(target.clone(), indexes);
                }
            }
            Change::CreateIndex(table, index) => {
                let indexes = self.indexes.entry(table.clone()).or_default();
                indexes.insert(index.clone());
            }
            Change::DropIndex(table, index) => {
                if let Some(indexes) = self.indexes.get_mut(table) {
                    indexes.remove(index);
                }
                self.indexes.retain(|_, indexes| !indexes.is_empty());
            }
        }
    }

    /// Whether the table has an index of this name.
    pub fn has_index(&self, table: &str, index: &str) -> bool {
        let indexes = self.indexes.get(table);
        indexes.is_some_and(|indexes| indexes.contains(index))
    }

    fn rows_mut(&mut self, table: &str) -> &mut Rows {
        self.tables.entry(table.to_owned()).or_default()
    }

    /// The first difference, for a failure report.
    pub fn difference(&self, found: &State) -> Option<String> {
        for (name, rows) in &self.tables {
            let Some(other) = found.tables.get(name) else {
                return Some(format!("table {name} is missing"));
            };
            for (key, value) in rows {
                match other.get(key) {
                    None => return Some(format!("{name}: row {} is missing", Short(key))),
                    Some(v) if v != value => {
                        return Some(format!(
                            "{name}: row {} is {} and should be {}",
                            Short(key),
                            Short(v),
                            Short(value)
                        ));
                    }
                    Some(_) => {}
                }
            }
            if let Some(key) = other.keys().find(|key| !rows.contains_key(*key)) {
                return Some(format!("{name}: row {} should not be there", Short(key)));
            }
        }
        let mut names = found.tables.keys();
        if let Some(extra) = names.find(|name| !self.tables.contains_key(*name)) {
            return Some(format!("table {extra} should not be there"));
        }
        let (expected, found) = (&self.indexes, &found.indexes);
        (expected != found).then(|| format!("indexes are {found:?} and should be {expected:?}"))
    }
}

/// A byte string cut to what a report can show.
pub struct Short<'a>(pub &'a [u8]);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = &self.0[..self.0.len().min(24)];
        write!(f, "\"{}\"", head.escape_ascii())?;
        if self.0.len() > head.len() {
            write!(f, "… ({} bytes)", self.0.len())?;
        }
        Ok(())
    }
}

/// The commits of a run, split at the last one that must survive.
#[derive(Clone, Debug, Default)]
pub struct History {
    durable: State,
    pending: Vec<Pending>,
    must_survive: usize,
    now: State,
    /// The prepared transactions.
    pub prepared: InDoubt,
}

#[derive(Clone, Debug)]
struct Pending {
    changes: Vec<Change>,
    /// The commit was answered with an error: it may have happened or not.
    in_doubt: bool,
}

impl History {
    /// The state after all commits so far.
    pub fn now(&self) -> &State {
        &self.now
    }

    /// Records a commit that may still be lost, but only together with all that follow it.
    pub fn committed(&mut self, changes: Vec<Change>) {
        self.push(changes, false);
    }

    /// Records a commit that was answered with an error.
    pub fn in_doubt(&mut self, changes: Vec<Change>) {
        self.push(changes, true);
    }

    fn push(&mut self, changes: Vec<Change>, in_doubt: bool) {
        changes.iter().for_each(|change| self.now.apply(change));
        self.pending.push(Pending { changes, in_doubt });
    }

    /// Every commit so far has been acknowledged as durable, those in doubt excepted.
    pub fn all_durable(&mut self) {
        self.must_survive = self.pending.len();
        self.prepared.all_durable();
        if self.pending.iter().all(|commit| !commit.in_doubt) {
            let now = std::mem::take(&mut self.now);
            self.start_at(now);
        }
    }

    /// Takes the recovered state as the truth from here on.
    ///
    /// # Errors
    /// The first difference from the nearest legal states, when `found` is none of them.
    pub fn recovered(&mut self, found: State) -> Result<(), String> {
        let mut candidates = vec![self.durable.clone()];
        for survivors in 0..=self.pending.len() {
            if survivors >= self.must_survive && candidates.contains(&found) {
                self.start_at(found);
                return Ok(());
            }
            let Some(commit) = self.pending.get(survivors) else {
                break;
            };
            let without = if commit.in_doubt {
                candidates.clone()
            } else {
                Vec::new()
            };
            for change in &commit.changes {
                candidates.iter_mut().for_each(|state| state.apply(change));
            }
            candidates.extend(without);
        }
        let least = self.durable.difference(&found).unwrap_or_default();
        let most = self.now.difference(&found).unwrap_or_default();
        Err(format!(
            "the database holds no state that {} commits after the last acknowledged one allow; \
             against the acknowledged state: {least}; against the last one: {most}",
            self.pending.len()
        ))
    }

    fn start_at(&mut self, state: State) {
        self.durable = state.clone();
        self.pending.clear();
        self.must_survive = 0;
        self.now = state;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str) -> Vec<Change> {
        vec![Change::Put("t".into(), key.into(), b"v".to_vec())]
    }

    fn state(keys: &[&str]) -> State {
        let mut state = State::default();
        state.apply(&Change::Create("t".into()));
        keys.iter()
            .flat_map(|key| put(key))
            .for_each(|change| state.apply(&change));
        state
    }

    fn history() -> History {
        let mut history = History::default();
        history.committed(vec![Change::Create("t".into())]);
        history.committed(put("a"));
        history.all_durable();
        history.committed(put("b"));
        history.committed(put("c"));
        history
    }

    #[test]
    fn any_prefix_behind_the_acknowledged_is_legal() {
        for keys in [&["a"][..], &["a", "b"], &["a", "b", "c"]] {
            assert_eq!(history().recovered(state(keys)), Ok(()));
        }
    }

    #[test]
    fn commit_in_doubt_may_be_there_or_not() {
        let mut history = history();
        history.in_doubt(put("d"));
        history.committed(put("e"));
        history.all_durable();
        for keys in [&["a", "b", "c", "d", "e"][..], &["a", "b", "c", "e"]] {
            assert_eq!(history.clone().recovered(state(keys)), Ok(()));
        }
        assert!(history.recovered(state(&["a", "b", "c", "d"])).is_err());
    }

    #[test]
    fn lost_skipped_and_invented_commits_are_found() {
        for keys in [&[][..], &["a", "c"], &["b"], &["a", "b", "c", "d"]] {
            assert!(history().recovered(state(keys)).is_err(), "{keys:?}");
        }
    }
}
