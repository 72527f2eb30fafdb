//! Reading a snapshot: one row; the rows of a leaf are in `visible`. The protocol is told in `version`.
//!
//! A transaction reads by [`Reads`]: under locks, in one snapshot from its begin to its end, or in one for
//! each statement. What takes several calls, a cursor or a reader of a large value, is one statement.

use super::batch::Batch;
use super::manager::Core;
use super::scan::Range;
use super::work::Work;
use crate::error::{Result, TxnError};
use crate::lock::{Dependency, LockName};
use crate::version::{Origin, Seen, Snapshot};
use longshore_access::{Patience, Slot, Tree, ValueKind};
use longshore_base::{Durability, Lsn};

/// How a transaction reads.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reads {
    /// What is there now, under locks.
    Locked,
    /// One state, from begin to end.
    Snapshot(Snapshot),
    /// One state for each statement.
    Statements,
}

/// A statement that takes several calls, in a transaction that reads a snapshot for each statement.
///
/// It ends with [`Transaction::end_statement`](super::Transaction::end_statement), or with the transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statement(usize);

impl Work {
    /// Opens a snapshot.
    #[inline]
    pub(super) fn open_snapshot(&self, core: &Core) -> Result<Snapshot> {
        core.look_for_horizon();
        let opened = core.versions.open(|| core.log.tail());
        opened.ok_or(TxnError::TooManySnapshots)
    }

    /// Reads one snapshot from now on, whose origin is shown in views.
    pub(super) fn read_snapshot(&mut self, core: &Core, label: &'static str) -> Result<()> {
        let snapshot = self.open_snapshot(core)?;
        self.describe(core, &snapshot, label);
        self.reads = Reads::Snapshot(snapshot);
        Ok(())
    }

    fn describe(&self, core: &Core, snapshot: &Snapshot, label: &'static str) {
        let origin = Origin {
            txn: self.txn(),
            since: core.locks.env().now(),
            label,
        };
        core.versions.describe(snapshot, origin);
    }

    /// Runs `read` in the snapshot of the transaction, or in one of its own.
    #[inline]
    pub(super) fn in_snapshot<T>(
        &mut self,
        core: &Core,
        statement: Option<Statement>,
        read: impl FnOnce(&mut Work, &Snapshot) -> Result<T>,
    ) -> Result<T> {
        let of_statement = statement.and_then(|Statement(at)| self.statements[at]);
        match (self.reads, of_statement) {
            (Reads::Snapshot(snapshot), _) | (_, Some(snapshot)) => read(self, &snapshot),
            (Reads::Statements | Reads::Locked, None) => {
                let snapshot = self.open_snapshot(core)?;
                let outcome = read(self, &snapshot);
                core.close(snapshot);
                outcome
            }
        }
    }

    /// Begins a statement that takes several calls; `None` if the transaction reads no such.
    pub(super) fn begin_statement(&mut self, core: &Core) -> Result<Option<Statement>> {
        if !matches!(self.reads, Reads::Statements) {
            return Ok(None);
        }
        let snapshot = self.open_snapshot(core)?;
        self.describe(core, &snapshot, "");
        let at = match self.statements.iter().position(Option::is_none) {
            Some(free) => free,
            None => {
                self.statements.push(None);
                self.statements.len() - 1
            }
        };
        self.statements[at] = Some(snapshot);
        Ok(Some(Statement(at)))
    }

    pub(super) fn end_statement(&mut self, core: &Core, Statement(at): Statement) {
        if let Some(snapshot) = self.statements.get_mut(at).and_then(Option::take) {
            core.close(snapshot);
        }
    }

    /// Closes all snapshots.
    #[inline]
    pub(super) fn close_snapshots(&mut self, core: &Core) {
        if let Reads::Snapshot(snapshot) = self.reads {
            core.close(snapshot);
            self.reads = Reads::Locked;
        }
        for snapshot in self.statements.drain(..).flatten() {
            core.close(snapshot);
        }
    }

    /// Replaces the content of `out` by the value of `key`, or by its stub; says what it is.
    #[inline]
    pub(super) fn read_row(
        &mut self,
        core: &Core,
        snapshot: &Snapshot,
        tree: Tree,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<ValueKind>> {
        let mut patience = Patience::new();
        loop {
            let leaf = tree.read_leaf_patiently(&core.access, key, &mut patience)?;
            let mut found = match leaf.find(key) {
                Slot::Present(slot) => Some(leaf.value_into(slot, out)),
                Slot::Ghost(_) | Slot::Absent(_) => {
                    out.clear();
                    None
                }
            };
            let seen = if leaf.page_lsn() < snapshot.low {
                Seen::InPage(snapshot.covers)
            } else {
                let name = LockName::of_key(tree.store, key);
                let (me, image) = (self.owner.txn(), &mut self.image);
                core.versions
                    .look(&core.locks, snapshot, me, name, key, image)
            };
            if leaf.validate().is_err() {
                patience.lost();
                continue;
            }
            drop(leaf);
            match seen {
                Seen::InPage(dependency) => self.owner.depend_on(dependency),
                Seen::Image(dependency) => {
                    self.owner.depend_on(dependency);
                    found = self.image.copy_to(out);
                }
                Seen::Again => {
                    patience.lost();
                    continue;
                }
                Seen::TooOld => return Err(TxnError::SnapshotTooOld),
            }
            core.check_snapshot(snapshot)?;
            return Ok(found);
        }
    }

    /// The value of `key`, chains included; false, with nothing in `out`, when there is none.
    #[inline]
    pub(super) fn read_value(
        &mut self,
        core: &Core,
        snapshot: &Snapshot,
        tree: Tree,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        match self.read_row(core, snapshot, tree, key, out)? {
            None => {
                out.clear();
                Ok(false)
            }
            Some(ValueKind::Inline) => Ok(true),
            Some(ValueKind::Overflow) => {
                let stub = std::mem::take(out);
                self.read_kept_chain(core, snapshot, tree, &stub, out)?;
                Ok(true)
            }
        }
    }

    /// Reads the chain of a row that the snapshot sees, which keeps it from being freed.
    fn read_kept_chain(
        &mut self,
        core: &Core,
        snapshot: &Snapshot,
        tree: Tree,
        stub: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let outcome = self.read_chain(core, tree.store, stub, out);
        // Nothing keeps the chain of a snapshot that was ended.
        core.check_snapshot(snapshot)?;
        outcome
    }

    /// Fills `batch` with the rows of one leaf that the snapshot sees.
    pub(super) fn scan_leaf_in_snapshot(
        &mut self,
        core: &Core,
        snapshot: &Snapshot,
        tree: Tree,
        range: Range<'_>,
        batch: &mut Batch,
    ) -> Result<()> {
        self.visible_rows(core, snapshot, tree, range, batch)?;
        if let Some(stub) = batch.large.take() {
            let mut value = Vec::new();
            self.read_kept_chain(core, snapshot, tree, &stub, &mut value)?;
            batch.large = Some(value);
        }
        Ok(())
    }

    /// Fails if `key`, which this transaction has just locked, was changed since its snapshot.
    #[inline]
    pub(super) fn check_conflict(&mut self, core: &Core, name: LockName, key: &[u8]) -> Result<()> {
        match self.reads {
            Reads::Locked | Reads::Statements => Ok(()),
            Reads::Snapshot(snapshot) => self.check_unchanged(core, &snapshot, name, key),
        }
    }

    fn check_unchanged(
        &mut self,
        core: &Core,
        snapshot: &Snapshot,
        name: LockName,
        key: &[u8],
    ) -> Result<()> {
        // The lists of the GARBAGE tree are no data.
        if name.store() == core.options.garbage.store {
            return Ok(());
        }
        if core.versions.has_changed(&core.locks, snapshot, name, key) {
            return Err(TxnError::WriteConflict { name });
        }
        core.check_snapshot(snapshot)
    }
}

impl Core {
    #[inline]
    pub(super) fn close(&self, snapshot: Snapshot) {
        self.versions.close(snapshot, || self.log.tail());
    }

    /// Fails if the snapshot was ended by policy; asked after everything was looked up.
    #[inline]
    pub(super) fn check_snapshot(&self, snapshot: &Snapshot) -> Result<()> {
        match self.versions.is_doomed(snapshot) {
            false => Ok(()),
            true => Err(TxnError::SnapshotTooOld),
        }
    }

    /// Looks for the horizon that later snapshots use, when enough has been written since the last time.
    #[inline]
    fn look_for_horizon(&self) {
        let tail = self.log.tail();
        if self.versions.horizon.is_due(tail) {
            self.find_horizon(tail);
        }
    }

    #[cold]
    fn find_horizon(&self, tail: Lsn) {
        let is_safe = |covers: Dependency| covers.is_none() || self.log.is_durable(covers.lsn());
        self.versions.horizon.look(tail, is_safe, || {
            let (tail, first) = (|| self.log.tail(), || self.slots.oldest_first());
            crate::version::Found::find(tail, first, || self.versions.strictest())
        });
    }
}
