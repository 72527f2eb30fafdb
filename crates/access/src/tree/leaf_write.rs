//! Changing the rows of one leaf under its exclusive latch.
//!
//! # Protocol
//! 1. [`Tree::write_leaf`] descends without latches and latches the one leaf that owns the key. On its way
//!    it has parents adopt foster children that it meets. [`Tree::write_leaf_near`] looks first whether the
//!    leaf of the writer's last change owns the key as well, which spares the descent.
//! 2. Look: [`find`](LeafWrite::find), [`boundary_into`](LeafWrite::boundary_into). Locks are tried now,
//!    never waited for: who must wait drops the latch first.
//! 3. Change rows. Each operation checks for room, reserves log space for itself and its undo, appends one
//!    record, applies it, stamps the page. An error leaves everything as it was.
//! 4. Drop it. On [`WriteError::NoRoom`], drop it, call [`Tree::make_room`], and begin at 1 again.
//!
//! A deleted row stays as a *ghost* with its space and its value, so that undo never lacks room,
//! and as a boundary of the gap below it. An insert of the same key gives the ghost a new value.
//!
//! # Order
//! One leaf latch; nothing is waited for under it except a place in the log buffer.

use super::Tree;
use super::descent::{ATTEMPTS_MAX, Arrival, Blocked, Orphan, Purpose, Seek, back_off};
use super::leaf_read::{Boundary, Slot, ValueKind, boundary_into};
use crate::access::{Access, LogContext};
use crate::error::{AccessError, WriteError};
use crate::node::{Kept, NodeRef, Owns, RowFlags};
use crate::record::{self, RowOp, RowRecord};
use longshore_base::{Lsn, PageId, crash_point};
use longshore_log::Log;
use longshore_pool::{ExclusiveGuard, OptimisticGuard, PageRef};

/// Adoptions that one descent may be held up by.
const ADOPTIONS_MAX: u32 = 4;

/// A leaf under its exclusive latch.
pub struct LeafWrite<'a> {
    access: &'a Access,
    tree: Tree,
    leaf: ExclusiveGuard<'a>,
}

/// The leaf that a writer last changed, or read to change it: the next change often goes there too.
///
/// Any value is safe. Whether the page is still a leaf, and the right one, its content tells.
#[derive(Clone, Copy, Debug)]
pub struct LeafHint(Option<(Tree, PageId)>);

impl LeafHint {
    /// Nothing was changed yet.
    pub const NONE: LeafHint = LeafHint(None);

    /// The leaf on `page` of `tree`.
    pub(super) fn at(tree: Tree, page: PageId) -> LeafHint {
        LeafHint(Some((tree, page)))
    }
}

/// Where a writer's descent ended.
pub(super) enum Latched<'a> {
    Leaf(ExclusiveGuard<'a>),
    /// A foster child was met that its parent could adopt first.
    Orphan(Orphan<'a>),
}

impl Tree {
    /// Latches the leaf that owns `key` exclusively.
    ///
    /// # Errors
    /// When a page cannot be had, or the tree is corrupt.
    #[inline]
    pub fn write_leaf<'a>(
        &self,
        access: &'a Access,
        key: &[u8],
    ) -> Result<LeafWrite<'a>, AccessError> {
        let mut adoptions = 0;
        loop {
            match self.latch_leaf(access, key, adoptions < ADOPTIONS_MAX)? {
                Latched::Leaf(leaf) => {
                    return Ok(LeafWrite {
                        access,
                        tree: *self,
                        leaf,
                    });
                }
                Latched::Orphan(orphan) => {
                    let went_on = self.adopt_in_passing(access, key, orphan)?;
                    adoptions += if went_on { 1 } else { ADOPTIONS_MAX };
                }
            }
        }
    }

    /// [`write_leaf`](Self::write_leaf) for a writer that keeps a hint, which becomes the leaf found.
    ///
    /// # Errors
    /// As [`write_leaf`](Self::write_leaf).
    #[inline]
    pub fn write_leaf_near<'a>(
        &self,
        access: &'a Access,
        hint: &mut LeafHint,
        key: &[u8],
    ) -> Result<LeafWrite<'a>, AccessError> {
        if let Some(leaf) = self.latch_hinted(access, *hint, key) {
            return Ok(LeafWrite {
                access,
                tree: *self,
                leaf,
            });
        }
        let found = self.write_leaf(access, key)?;
        *hint = LeafHint::at(*self, found.page_id());
        Ok(found)
    }

    /// Latches the leaf of the hint if it is there, is free, and owns `key`.
    #[inline]
    fn latch_hinted<'a>(
        &self,
        access: &'a Access,
        hint: LeafHint,
        key: &[u8],
    ) -> Option<ExclusiveGuard<'a>> {
        self.read_hinted(access, hint, key)?.try_exclusive().ok()
    }

    /// The leaf of the hint if it is there, is free, and owns `key`, unless it is changing.
    ///
    /// Nothing is stored to shared memory, and nothing waited for, on account of a hint that is wrong.
    #[inline]
    pub(super) fn read_hinted<'a>(
        &self,
        access: &'a Access,
        hint: LeafHint,
        key: &[u8],
    ) -> Option<OptimisticGuard<'a>> {
        let (_, page) = hint.0.filter(|(tree, _)| tree == self)?;
        let node = access.pool.read_resident(page)?;
        self.is_owner(node.page(), key).then_some(node)
    }

    /// Whether `page` is the leaf that owns `key`.
    ///
    /// The fences decide: a live leaf of this store whose range holds the key owns it, however one came
    /// to it (T1, T4).
    #[inline]
    fn is_owner(&self, page: PageRef<'_>, key: &[u8]) -> bool {
        self.is_node(page, Some(0)) && NodeRef::new(page).owns(key) == Owns::Own
    }

    /// Latches the leaf that owns `key`, or reports a foster child on the way when asked to.
    #[inline]
    pub(super) fn latch_leaf<'a>(
        &self,
        access: &'a Access,
        key: &[u8],
        find_orphans: bool,
    ) -> Result<Latched<'a>, AccessError> {
        let purpose = if find_orphans {
            Purpose::Write
        } else {
            Purpose::WriteOnly
        };
        for attempt in 0..ATTEMPTS_MAX {
            match self.try_descend(access, Seek::Key(key), 0, purpose) {
                Ok(Some(Arrival {
                    orphan: Some(orphan),
                    ..
                })) => return Ok(Latched::Orphan(orphan)),
                Ok(Some(Arrival { node, orphan: None })) => {
                    let page = node.page_id();
                    if let Ok(leaf) = node.try_exclusive() {
                        return Ok(Latched::Leaf(leaf));
                    }
                    if let Some(leaf) = self.wait_for_leaf(access, page, key) {
                        return Ok(Latched::Leaf(leaf));
                    }
                }
                Ok(None) => unreachable!("every tree has a level 0"),
                Err(Blocked::Changed) => back_off(attempt),
                Err(Blocked::Failed(error)) => return Err(error),
            }
        }
        let leaf = self.descend_exclusive(access, key, 0)?;
        Ok(Latched::Leaf(leaf.expect("every tree has a level 0")))
    }

    /// Waits in line for a leaf that was the right one a moment ago, and looks whether it still is.
    ///
    /// A page that cannot be had is left to the next descent to judge.
    #[cold]
    fn wait_for_leaf<'a>(
        &self,
        access: &'a Access,
        page: PageId,
        key: &[u8],
    ) -> Option<ExclusiveGuard<'a>> {
        let leaf = access.pool.fix_exclusive(page).ok()?;
        self.is_owner(leaf.page(), key).then_some(leaf)
    }
}

impl LeafWrite<'_> {
    #[inline]
    fn node(&self) -> NodeRef<'_> {
        NodeRef::new(self.leaf.page())
    }

    /// The page of the leaf.
    pub fn page_id(&self) -> PageId {
        self.leaf.page_id()
    }

    /// Looks for `key`, which the leaf must own.
    #[inline]
    pub fn find(&self, key: &[u8]) -> Slot {
        Slot::of(&self.node(), key)
    }

    /// Slots of the leaf, ghosts included.
    #[inline]
    pub fn count(&self) -> usize {
        self.node().count()
    }

    /// Whether the leaf owns `key`: true for the key it was latched for.
    #[inline]
    pub fn owns(&self, key: &[u8]) -> bool {
        self.node().owns(key) == Owns::Own
    }

    /// Whether the row in `slot` is deleted.
    #[inline]
    pub fn is_ghost(&self, slot: usize) -> bool {
        self.node().is_ghost(slot)
    }

    /// Replaces the content of `out` by the key in `slot`.
    #[inline]
    pub fn key_into(&self, slot: usize, out: &mut Vec<u8>) {
        self.node().key_into(slot, out);
    }

    /// Replaces the content of `out` by the value in `slot`, and says what it is.
    #[inline]
    pub fn value_into(&self, slot: usize, out: &mut Vec<u8>) -> ValueKind {
        let node = self.node();
        node.value_into(slot, out);
        ValueKind::of(&node, slot)
    }

    /// What bounds the gap below `slot` from above; see [`LeafRead::boundary_into`](super::LeafRead::boundary_into).
    #[inline]
    pub fn boundary_into(&self, slot: usize, out: &mut Vec<u8>) -> Boundary {
        boundary_into(&self.node(), slot, out)
    }

    /// Replaces the content of `out` by the low fence: the empty key in the first leaf.
    pub fn low_fence_into(&self, out: &mut Vec<u8>) {
        self.node().low_into(out);
    }

    /// Replaces the content of `out` by the upper fence; false when the leaf is the last.
    pub fn upper_fence_into(&self, out: &mut Vec<u8>) -> bool {
        self.node().upper_into(out)
    }

    /// Whether the row in `slot` is what `record` left: what its undo builds on.
    pub(super) fn is_as_left_by(&self, slot: usize, record: &RowRecord<'_>) -> bool {
        let value = self.node().value(slot);
        record.op != RowOp::Update || record.kept.middle(&value) == Some(record.value)
    }

    /// Whether the row in `slot` can take a value of `value_len` bytes.
    pub(super) fn has_room_for_update(&self, slot: usize, value_len: usize) -> bool {
        self.node().room_for_update(slot, value_len).is_there()
    }

    /// Adds a row. Where a ghost has the key, it becomes the row.
    ///
    /// # Errors
    /// [`WriteError::NoRoom`] when the leaf must be split first; [`WriteError::RowExists`].
    #[inline]
    pub fn insert(
        &mut self,
        cx: &mut LogContext,
        key: &[u8],
        flags: RowFlags,
        value: &[u8],
    ) -> Result<Lsn, WriteError> {
        self.insert_at(cx, self.find(key), key, flags, value)
    }

    /// [`insert`](Self::insert) for a caller that has just looked where `key` is.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_at(
        &mut self,
        cx: &mut LogContext,
        found: Slot,
        key: &[u8],
        flags: RowFlags,
        value: &[u8],
    ) -> Result<Lsn, WriteError> {
        match found {
            Slot::Absent(slot) => {
                self.access.check_row(key.len(), value.len())?;
                if !self
                    .node()
                    .room_for_insert(key.len(), value.len())
                    .is_there()
                {
                    return Err(WriteError::NoRoom);
                }
                let row = RowRecord {
                    flags,
                    value,
                    ..self.row(RowOp::Insert, key)
                };
                self.perform(cx, &row, Err(slot))
            }
            Slot::Ghost(slot) => self.replace(cx, slot, key, flags, value),
            Slot::Present(_) => Err(WriteError::RowExists),
        }
    }

    /// Gives the row of `key` another value.
    ///
    /// # Errors
    /// [`WriteError::NoRoom`] when the leaf must be split first; [`WriteError::RowMissing`].
    #[inline]
    pub fn update(
        &mut self,
        cx: &mut LogContext,
        key: &[u8],
        flags: RowFlags,
        value: &[u8],
    ) -> Result<Lsn, WriteError> {
        match self.find(key) {
            Slot::Present(slot) => self.replace(cx, slot, key, flags, value),
            Slot::Ghost(_) | Slot::Absent(_) => Err(WriteError::RowMissing),
        }
    }

    /// [`update`](Self::update) for a caller that has just looked where `key` is, and what value it has.
    ///
    /// # Errors
    /// [`WriteError::NoRoom`] when the leaf must be split first.
    pub fn update_at(
        &mut self,
        cx: &mut LogContext,
        slot: usize,
        key: &[u8],
        old_value: &[u8],
        flags: RowFlags,
        value: &[u8],
    ) -> Result<Lsn, WriteError> {
        self.access.check_row(key.len(), value.len())?;
        let node = self.node();
        if !node.room_for_update(slot, value.len()).is_there() {
            return Err(WriteError::NoRoom);
        }
        let kept = Kept::between(old_value, value);
        let middle = |value| kept.middle(value).expect("as long as what is kept of it");
        let row = RowRecord {
            flags,
            kept,
            value: middle(value),
            old_flags: node.flags(slot),
            old_value: middle(old_value),
            ..self.row(RowOp::Update, key)
        };
        self.perform(cx, &row, Ok(slot))
    }

    /// Deletes the row of `key`: it becomes a ghost.
    ///
    /// # Errors
    /// [`WriteError::RowMissing`].
    #[inline]
    pub fn ghost(&mut self, cx: &mut LogContext, key: &[u8]) -> Result<Lsn, WriteError> {
        match self.find(key) {
            Slot::Present(slot) => self.perform(cx, &self.row(RowOp::Ghost, key), Ok(slot)),
            Slot::Ghost(_) | Slot::Absent(_) => Err(WriteError::RowMissing),
        }
    }

    /// Changes flags and value of the row or ghost in `slot`; undo restores both.
    fn replace(
        &mut self,
        cx: &mut LogContext,
        slot: usize,
        key: &[u8],
        flags: RowFlags,
        value: &[u8],
    ) -> Result<Lsn, WriteError> {
        let mut old_value = std::mem::take(&mut cx.scratch);
        self.node().value_into(slot, &mut old_value);
        let done = self.update_at(cx, slot, key, &old_value, flags, value);
        cx.scratch = old_value;
        done
    }

    /// What all records of this leaf's rows have in common.
    #[inline]
    fn row<'k>(&self, op: RowOp, key: &'k [u8]) -> RowRecord<'k> {
        RowRecord {
            store: self.tree.store,
            root: self.tree.root,
            page: self.leaf.page_id(),
            previous: self.leaf.page().page_lsn(),
            op,
            key,
            flags: RowFlags::NONE,
            kept: Kept::NOTHING,
            value: &[],
            old_flags: RowFlags::NONE,
            old_value: &[],
        }
    }

    /// Logs and applies a row operation that was found to fit.
    #[inline]
    fn perform(
        &mut self,
        cx: &mut LogContext,
        row: &RowRecord<'_>,
        slot: Result<usize, usize>,
    ) -> Result<Lsn, WriteError> {
        let head = row.head(None);
        let parts = row.parts(&head);
        let undo = Log::record_bytes(row.undo_body_bytes_max());
        let bytes = parts.iter().map(|part| part.len()).sum();
        cx.reserve(Log::record_bytes(bytes), undo)?;
        let log = &self.access.log;
        let lsn = log
            .append(&mut cx.claim, record::ROW, cx.txn, cx.last, &parts)
            .map_err(AccessError::Log)?;
        cx.undo_bytes += undo;
        cx.last = lsn;
        crash_point("row.logged");
        self.apply(row, slot, lsn);
        crash_point("row.applied");
        Ok(lsn)
    }

    /// Undoes a row operation: `row` is its inverse, and the next record to undo is `undo_next`.
    pub(super) fn compensate(
        &mut self,
        cx: &mut LogContext,
        inverse: &RowRecord<'_>,
        slot: Result<usize, usize>,
        undo_next: Lsn,
    ) -> Result<Lsn, AccessError> {
        let row = RowRecord {
            page: self.leaf.page_id(),
            previous: self.leaf.page().page_lsn(),
            ..*inverse
        };
        let head = row.head(Some(undo_next));
        let parts = row.parts(&head);
        let lsn = self
            .access
            .log
            .append(&mut cx.claim, record::CLR, cx.txn, cx.last, &parts)?;
        cx.last = lsn;
        crash_point("undo.logged");
        self.apply(&row, slot, lsn);
        crash_point("undo.applied");
        Ok(lsn)
    }

    /// Applies what is in the log already.
    #[inline]
    fn apply(&mut self, row: &RowRecord<'_>, slot: Result<usize, usize>, lsn: Lsn) {
        let page = self.leaf.page_id();
        if let Err(why) = row.action().apply_at(page, &mut self.leaf.page_mut(), slot) {
            panic!("mtr M2: {row} is in the log at {lsn:?}, but the page does not take it: {why}");
        }
        self.leaf.stamp(lsn);
    }
}
