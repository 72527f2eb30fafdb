//! Handles to tables.

use crate::catalog::TableRow;
use crate::error::{Error, Result};
use crate::gate::{Entered, Epoch, Gate, Refused};
use crate::index::{IndexInfo, IndexSets, IndexState};
use longshore_access::Tree;
use longshore_base::sync::Mutex;
use longshore_base::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use longshore_base::{Environment, Lsn, PageId, StoreId};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A table of a database: an ordered map from keys to values.
///
/// A handle is cheap to clone and stays good while the table is renamed; once the table is dropped,
/// every use is [`Error::TableDropped`]. Keys are bytes, ordered as bytes, up to a quarter of a page
/// long; values are bytes, up to 1 GiB.
#[derive(Clone)]
pub struct Table {
    pub(crate) state: Arc<TableState>,
}

impl Table {
    /// The table's present name.
    pub fn name(&self) -> String {
        self.state.name()
    }

    /// The number under which the table's pages and log records are found, now: loading an empty
    /// table in bulk gives it another. None is ever used again.
    pub fn id(&self) -> StoreId {
        self.state.tree().store
    }

    /// The table's indexes, in the order in which they were created.
    pub fn indexes(&self) -> Vec<IndexInfo> {
        let indexes = self.state.indexes().iter();
        indexes.map(|index| index.info()).collect()
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({:?}, {:?})", self.name(), self.id())
    }
}

/// What all handles of a table share; there is one per table and open database.
pub(crate) struct TableState {
    /// Which open database this belongs to.
    owner: u64,
    pub(crate) gate: Gate,
    /// The tree. Changed behind the closed gate only: whoever is inside may rely on it, whoever is
    /// not checks the gate's epoch.
    store: AtomicU32,
    root: AtomicU64,
    /// The log's end when the rows were loaded in bulk: what came before is in no snapshot.
    loaded_at: AtomicU64,
    name: Mutex<String>,
    /// The indexes that every change of a row keeps; they change behind the closed gate only.
    indexes: IndexSets,
}

impl TableState {
    /// A table without indexes.
    pub(crate) fn new(owner: u64, name: &str, tree: Tree) -> TableState {
        TableState::with_indexes(owner, name, tree, Vec::new())
    }

    /// The table that the row of the catalog describes.
    pub(crate) fn of_row(owner: u64, name: &str, row: &TableRow) -> TableState {
        let indexes = row.indexes.iter();
        let indexes = indexes.map(|index| Arc::new(IndexState::new(owner, name, index)));
        TableState::with_indexes(owner, name, row.tree, indexes.collect())
    }

    fn with_indexes(
        owner: u64,
        name: &str,
        tree: Tree,
        indexes: Vec<Arc<IndexState>>,
    ) -> TableState {
        TableState {
            owner,
            gate: Gate::new(),
            store: AtomicU32::new(tree.store.get()),
            root: AtomicU64::new(tree.root.get()),
            loaded_at: AtomicU64::new(0),
            name: Mutex::new(name.to_owned()),
            indexes: IndexSets::new(indexes),
        }
    }

    /// The indexes; the same ones as long as the caller is inside the gate.
    #[inline]
    pub(crate) fn indexes(&self) -> &[Arc<IndexState>] {
        self.indexes.now()
    }

    /// Gives the table other indexes; the caller holds `ddl` and has closed the gate.
    pub(crate) fn replace_indexes(&self, indexes: Vec<Arc<IndexState>>) {
        self.indexes.replace(indexes);
    }

    /// The tree that holds the rows.
    #[inline]
    pub(crate) fn tree(&self) -> Tree {
        // Relaxed: the gate orders changes against those who enter, and its epoch finds out those
        // who read store and root of different trees.
        Tree {
            store: StoreId::new(self.store.load(Ordering::Relaxed)),
            root: PageId::new(self.root.load(Ordering::Relaxed)),
        }
    }

    /// Fails if a transaction that sees the commits below `position` has come too late to see the table as
    /// it was then. The caller is inside the gate.
    pub(crate) fn check_snapshot(&self, position: Lsn) -> Result<()> {
        // Relaxed: the gate orders it.
        if position.get() >= self.loaded_at.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(Error::SnapshotTooOld { table: self.name() })
    }

    /// Says that the rows were complete only when the log's end was at `loaded_at`.
    pub(crate) fn set_loaded_at(&self, loaded_at: Lsn) {
        // Relaxed: ordered by the gate, or by what tells readers that the rows are complete.
        self.loaded_at.store(loaded_at.get(), Ordering::Relaxed);
    }

    /// Lets the handle lead to another tree, loaded when the log's end was at `loaded_at`; the caller has
    /// closed the gate.
    pub(crate) fn set_tree(&self, tree: Tree, loaded_at: Lsn) {
        // Relaxed: the gate opens after this, with SeqCst.
        self.store.store(tree.store.get(), Ordering::Relaxed);
        self.root.store(tree.root.get(), Ordering::Relaxed);
        self.set_loaded_at(loaded_at);
    }

    pub(crate) fn name(&self) -> String {
        self.name.lock().clone()
    }

    pub(crate) fn set_name(&self, name: &str) {
        name.clone_into(&mut self.name.lock());
        self.indexes()
            .iter()
            .for_each(|index| index.table_renamed(name));
    }

    /// Enters the table's gate for the time of a transaction.
    pub(crate) fn enter(&self, env: &dyn Environment, limit: Duration) -> Result<Entered> {
        self.gate
            .enter(env, limit)
            .map_err(|refused| self.refusal(refused, 1, limit))
    }

    /// The epoch of the table's gate.
    #[inline]
    pub(crate) fn epoch(&self) -> Result<Epoch> {
        self.gate
            .epoch()
            .map_err(|refused| self.refusal(refused, 1, Duration::ZERO))
    }

    /// Fails unless the table belongs to the open database `instance`.
    #[inline]
    pub(crate) fn check_owner(&self, instance: u64) -> Result<()> {
        if self.owner == instance {
            return Ok(());
        }
        Err(Error::ForeignTable { table: self.name() })
    }

    /// The error for being kept out.
    #[cold]
    pub(crate) fn refusal(&self, refused: Refused, transactions: u64, waited: Duration) -> Error {
        let table = self.name();
        match refused {
            Refused::Gone => Error::TableDropped { table },
            Refused::Busy => Error::TableBusy {
                table,
                transactions,
                waited,
            },
        }
    }
}
