//! The indexes of an open table.

use super::error::IndexError;
use super::extract::Extract;
use crate::catalog::IndexRow;
use crate::error::{Error, Result};
use crate::table::{Table, TableState};
use longshore_base::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

/// What is known of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexInfo {
    /// Its name; no other index of the table has it.
    pub name: String,
    /// What it was said to be when it was created.
    pub definition: String,
    /// Whether no two rows may have the same key in it.
    pub is_unique: bool,
    /// Whether it can be read: it has been built to the end.
    pub is_ready: bool,
    /// Whether it has been opened since the database was: the table may be changed then.
    pub is_registered: bool,
}

/// How far an index has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Status {
    /// A builder is at work.
    Building,
    /// Complete.
    Ready,
    /// The builder has given up, and could not close the gate to take the index away.
    Failed,
}

/// One index of an open table.
pub(crate) struct IndexState {
    pub(crate) name: String,
    pub(crate) definition: String,
    pub(crate) is_unique: bool,
    /// The tree of entries, with a gate of its own for those who read through the index.
    pub(crate) entries: Table,
    /// A [`Status`]. Written under `ddl`; hint for writers, checked by readers.
    status: AtomicU8,
    extract: OnceLock<Arc<dyn Extract>>,
}

impl IndexState {
    pub(crate) fn new(owner: u64, table: &str, row: &IndexRow) -> IndexState {
        let name = entries_name(table, &row.name);
        let status = if row.is_ready {
            Status::Ready
        } else {
            Status::Failed
        };
        IndexState {
            name: row.name.clone(),
            definition: row.definition.clone(),
            is_unique: row.is_unique,
            entries: Table {
                state: Arc::new(TableState::new(owner, &name, row.tree)),
            },
            status: AtomicU8::new(status as u8),
            extract: OnceLock::new(),
        }
    }

    pub(crate) fn status(&self) -> Status {
        // Acquire: pairs with `set_status`; who reads a ready index sees all its entries.
        match self.status.load(Ordering::Acquire) {
            0 => Status::Building,
            1 => Status::Ready,
            _ => Status::Failed,
        }
    }

    pub(crate) fn set_status(&self, status: Status) {
        // Release: pairs with `status`.
        self.status.store(status as u8, Ordering::Release);
    }

    /// Takes the extractor, unless there is one; the first stays.
    pub(crate) fn register(&self, table: &str, extract: &Arc<dyn Extract>) -> Result<()> {
        let first = self.extract.get_or_init(|| Arc::clone(extract));
        if first.types() == extract.types() {
            return Ok(());
        }
        Err(Error::Index(IndexError::Differs {
            table: table.to_owned(),
            index: self.name.clone(),
            found: format!("open with the types {}", first.type_names()),
            asked: format!("one with the types {}", extract.type_names()),
        }))
    }

    /// The extractor, if it was registered.
    pub(crate) fn registered(&self) -> Option<&dyn Extract> {
        self.extract.get().map(|extract| &**extract)
    }

    /// The extractor.
    pub(crate) fn extract(&self, table: &TableState) -> Result<&dyn Extract> {
        self.registered().ok_or_else(|| {
            Error::Index(IndexError::NotRegistered {
                table: table.name(),
                index: self.name.clone(),
            })
        })
    }

    /// Fails unless the index may be read.
    pub(crate) fn check_ready(&self, table: &TableState) -> Result<()> {
        match self.status() {
            Status::Ready => Ok(()),
            Status::Building | Status::Failed => Err(self.not_ready(table)),
        }
    }

    pub(crate) fn not_ready(&self, table: &TableState) -> Error {
        Error::Index(IndexError::NotReady {
            table: table.name(),
            index: self.name.clone(),
        })
    }

    pub(crate) fn mismatch(&self, table: &TableState, what: impl Into<String>) -> Error {
        Error::Index(IndexError::Mismatch {
            table: table.name(),
            index: self.name.clone(),
            what: what.into(),
        })
    }

    /// The table has another name now.
    pub(crate) fn table_renamed(&self, table: &str) {
        let name = entries_name(table, &self.name);
        self.entries.state.set_name(&name);
    }

    pub(crate) fn info(&self) -> IndexInfo {
        IndexInfo {
            name: self.name.clone(),
            definition: self.definition.clone(),
            is_unique: self.is_unique,
            is_ready: self.status() == Status::Ready,
            is_registered: self.registered().is_some(),
        }
    }
}

/// What the tree of entries is called in messages.
fn entries_name(table: &str, index: &str) -> String {
    format!("{table}.{index}")
}

/// The sets of indexes that a table has had since it was opened, the newest last.
///
/// A list that only grows: who is inside the gate reads the newest without taking or counting anything.
/// There is one more element for each change, and they go with the table.
pub(crate) struct IndexSets {
    indexes: Vec<Arc<IndexState>>,
    newer: OnceLock<Box<IndexSets>>,
}

impl IndexSets {
    pub(crate) fn new(indexes: Vec<Arc<IndexState>>) -> IndexSets {
        IndexSets {
            indexes,
            newer: OnceLock::new(),
        }
    }

    /// The newest set.
    #[inline]
    pub(crate) fn now(&self) -> &[Arc<IndexState>] {
        &self.newest().indexes
    }

    /// Makes `indexes` the newest; the caller holds `ddl` and has closed the gate.
    pub(crate) fn replace(&self, indexes: Vec<Arc<IndexState>>) {
        let set = Box::new(IndexSets::new(indexes));
        let is_newest = self.newest().newer.set(set).is_ok();
        assert!(is_newest, "index N2: two changed the set at once");
    }

    #[inline]
    fn newest(&self) -> &IndexSets {
        let mut set = self;
        while let Some(newer) = set.newer.get() {
            set = newer;
        }
        set
    }
}
