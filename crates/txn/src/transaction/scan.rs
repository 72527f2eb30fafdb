//! Scans: the rows of one leaf at a time, with the locks that keep the range as it was read.
//!
//! # Protocol
//! 1. Copy rows and boundaries from a leaf, without a latch; check that it was all there at one moment.
//! 2. Lock each boundary without waiting. If one cannot be had, let go of the leaf, wait for it, begin at 1.
//! 3. Make the locks public and check the leaf once more: what was copied is still there, and whoever
//!    changes the range from now on sees the locks. If it has changed, begin at 1; the locks are kept.
//!
//! Which boundaries: each slot in the range with key S and gap S, and the first boundary above it with
//! gap S. A slot whose key *is* the low bound needs no gap, and a high bound that is a slot's key needs
//! no boundary above. A scan that stops early has locked what it has seen, in its direction.

use super::batch::{Batch, Direction, Row};
use super::manager::Core;
use super::snapshot::{Reads, Statement};
use super::work::Work;
use crate::error::Result;
use crate::lock::{LockError, LockName, Mode};
use crate::version::ImageBuffer;
use longshore_access::{AccessError, Boundary, LeafRead, Patience, Slot, Tree, ValueKind};
use std::ops::Bound;

/// What a scan reads, and in which direction.
#[derive(Clone, Copy)]
pub(super) struct Range<'a> {
    pub low: Bound<&'a [u8]>,
    pub high: Bound<&'a [u8]>,
    pub direction: Direction,
}

/// Whether the rows read are to be changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Intent {
    Read,
    Change,
}

/// The part of a leaf that lies in the range.
pub(super) struct Window {
    /// Slots `start..end` are in the range.
    pub start: usize,
    pub end: usize,
    /// The range's low bound is the key of slot `start`.
    starts_exactly: bool,
    /// The range's high bound is the key of slot `end - 1`.
    ends_exactly: bool,
    /// The range does not reach below, or above, the leaf.
    covers_low: bool,
    covers_high: bool,
}

impl Work {
    pub(super) fn scan_leaf(
        &mut self,
        core: &Core,
        tree: Tree,
        range: Range<'_>,
        batch: &mut Batch,
        statement: Option<Statement>,
    ) -> Result<()> {
        if !matches!(self.reads, Reads::Locked) {
            return self.in_snapshot(core, statement, |work, snapshot| {
                work.scan_leaf_in_snapshot(core, snapshot, tree, range, batch)
            });
        }
        self.lock_leaf(core, tree, range, Intent::Read, batch)?;
        if let Some(stub) = batch.large.take() {
            let mut value = Vec::new();
            self.read_chain(core, tree.store, &stub, &mut value)?;
            batch.large = Some(value);
        }
        Ok(())
    }

    /// Fills the batch; a large value's stub is left in `batch.large`.
    pub(super) fn lock_leaf(
        &mut self,
        core: &Core,
        tree: Tree,
        range: Range<'_>,
        intent: Intent,
        batch: &mut Batch,
    ) -> Result<()> {
        batch.clear();
        if range.is_empty() {
            return Ok(());
        }
        let mut patience = Patience::new();
        loop {
            let leaf = range.leaf(core, tree, &mut patience)?;
            self.copy_rows(&leaf, tree, range, intent, batch);
            if leaf.validate().is_err() {
                patience.lost();
                continue;
            }
            if let Some((name, mode)) = self.lock_without_waiting(core)? {
                drop(leaf);
                self.lock(core, name, mode)?;
                continue;
            }
            core.locks.publish_locks();
            if leaf.validate().is_ok() {
                return Ok(());
            }
            patience.lost();
        }
    }

    /// Takes the locks in `names`; returns the first that must be waited for.
    fn lock_without_waiting(&mut self, core: &Core) -> Result<Option<(LockName, Mode)>> {
        for &(name, mode) in &self.names {
            match core.locks.try_lock(&mut self.owner, name, mode) {
                Ok(true) => {}
                // Whoever waits may trade what it has for a lock on the whole table.
                Ok(false) | Err(LockError::TableFull { .. }) => return Ok(Some((name, mode))),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Copies the leaf's part of the range to `batch`, and the locks that it needs to `names`. Both are
    /// of no use before the leaf is validated.
    fn copy_rows(
        &mut self,
        leaf: &LeafRead<'_>,
        tree: Tree,
        range: Range<'_>,
        intent: Intent,
        batch: &mut Batch,
    ) {
        batch.clear();
        self.names.clear();
        let window = range.window(leaf, &mut self.key_buffer);
        match range.direction {
            Direction::Forward => {
                for slot in window.start..window.end {
                    if self.copy_row(leaf, tree, &window, slot, intent, batch) {
                        return;
                    }
                }
                self.name_boundary(leaf, tree, &window);
            }
            Direction::Reverse => {
                self.name_boundary(leaf, tree, &window);
                for slot in (window.start..window.end).rev() {
                    if self.copy_row(leaf, tree, &window, slot, intent, batch) {
                        return;
                    }
                }
            }
        }
        batch.next = window.beyond(leaf, range.direction, &mut self.key_buffer);
    }

    /// Copies one slot and names its lock; true when the batch is full then.
    fn copy_row(
        &mut self,
        leaf: &LeafRead<'_>,
        tree: Tree,
        window: &Window,
        slot: usize,
        intent: Intent,
        batch: &mut Batch,
    ) -> bool {
        leaf.key_into(slot, &mut self.key_buffer);
        let is_ghost = leaf.is_ghost(slot);
        let has_gap = !(window.starts_exactly && slot == window.start);
        let mode = match (intent, has_gap) {
            (Intent::Change, true) if !is_ghost => Mode::WRITE_RANGE,
            (Intent::Change, false) if !is_ghost => Mode::WRITE,
            (_, true) => Mode::READ_RANGE,
            (_, false) => Mode::READ,
        };
        let name = LockName::of_key(tree.store, &self.key_buffer);
        self.names.push((name, mode));
        if is_ghost {
            return false;
        }
        let is_large = batch.push(leaf, slot, &self.key_buffer);
        let is_full = is_large || batch.rows.len() >= batch.rows_max;
        if is_full {
            batch.next = Some(Bound::Excluded(self.key_buffer.clone()));
        }
        is_full
    }

    /// Names the gap above the last slot of the window.
    fn name_boundary(&mut self, leaf: &LeafRead<'_>, tree: Tree, window: &Window) {
        if window.ends_exactly {
            return;
        }
        let name = match leaf.boundary_into(window.end, &mut self.key_buffer) {
            Boundary::Slot(_) | Boundary::Fence => LockName::of_key(tree.store, &self.key_buffer),
            Boundary::Supremum => LockName::of_supremum(tree.store),
        };
        self.names.push((name, Mode::READ_GAP));
    }
}

impl Batch {
    /// Appends the row in `slot` unless it is a ghost; true when its value is large.
    pub(super) fn push_visible(&mut self, leaf: &LeafRead<'_>, slot: usize, key: &[u8]) -> bool {
        !leaf.is_ghost(slot) && self.push(leaf, slot, key)
    }

    /// Appends what the row of `key` was, if it was there; true when its value is large.
    pub(super) fn push_image(&mut self, key: &[u8], image: &ImageBuffer) -> bool {
        let Some((kind, value)) = image.row() else {
            return false;
        };
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.close_row(start, start + key.len(), kind)
    }

    /// Appends a row; true when its value is large, which ends the batch.
    fn push(&mut self, leaf: &LeafRead<'_>, slot: usize, key: &[u8]) -> bool {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let value = self.bytes.len();
        let kind = leaf.value_append(slot, &mut self.bytes);
        self.close_row(start, value, kind)
    }

    /// The bytes from `key` and `value` on are a row; true when its value is large.
    fn close_row(&mut self, key: usize, value: usize, kind: ValueKind) -> bool {
        let end = self.bytes.len();
        self.rows.push(Row { key, value, end });
        let is_large = kind == ValueKind::Overflow;
        if is_large {
            self.large = Some(self.bytes[value..end].to_vec());
        }
        is_large
    }
}

impl Window {
    /// Where a scan that has come to the leaf's end goes on, if the range goes on.
    pub fn beyond(
        &self,
        leaf: &LeafRead<'_>,
        direction: Direction,
        key: &mut Vec<u8>,
    ) -> Option<Bound<Vec<u8>>> {
        match direction {
            Direction::Forward if !self.covers_high => {
                leaf.upper_fence_into(key);
                Some(Bound::Included(key.clone()))
            }
            Direction::Reverse if !self.covers_low => {
                leaf.low_fence_into(key);
                Some(Bound::Excluded(key.clone()))
            }
            _ => None,
        }
    }
}

impl<'a> Range<'a> {
    /// Whether no key can lie in the range.
    pub fn is_empty(&self) -> bool {
        match (self.low, self.high) {
            (_, Bound::Excluded([])) => true,
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(low), Bound::Included(high)) => low > high,
            (Bound::Included(low) | Bound::Excluded(low), Bound::Excluded(high))
            | (Bound::Excluded(low), Bound::Included(high)) => low >= high,
        }
    }

    /// The leaf at which the range begins, in its direction.
    pub fn leaf<'c>(
        &self,
        core: &'c Core,
        tree: Tree,
        patience: &mut Patience,
    ) -> std::result::Result<LeafRead<'c>, AccessError> {
        let access = &core.access;
        match (self.direction, self.low, self.high) {
            (Direction::Forward, Bound::Included(key) | Bound::Excluded(key), _) => {
                tree.read_leaf_patiently(access, key, patience)
            }
            (Direction::Forward, Bound::Unbounded, _) => {
                tree.read_leaf_patiently(access, &[], patience)
            }
            (Direction::Reverse, _, Bound::Included(key)) => {
                tree.read_leaf_patiently(access, key, patience)
            }
            (Direction::Reverse, _, Bound::Excluded(key)) => {
                tree.read_leaf_before(access, key, patience)
            }
            (Direction::Reverse, _, Bound::Unbounded) => tree.read_leaf_last(access, patience),
        }
    }

    /// The part of the range that lies in the leaf, whose fences are put into `low` and `high`.
    pub fn part_in<'b>(
        self,
        leaf: &LeafRead<'_>,
        window: &Window,
        low: &'b mut Vec<u8>,
        high: &'b mut Vec<u8>,
    ) -> Range<'b>
    where
        'a: 'b,
    {
        leaf.low_fence_into(low);
        leaf.upper_fence_into(high);
        Range {
            low: match window.covers_low {
                true => self.low,
                false => Bound::Included(low),
            },
            high: match window.covers_high {
                true => self.high,
                false => Bound::Excluded(high),
            },
            direction: self.direction,
        }
    }

    /// Which slots of the leaf lie in the range.
    pub fn window(&self, leaf: &LeafRead<'_>, key: &mut Vec<u8>) -> Window {
        let count = leaf.count();
        let (mut end, mut ends_exactly) = (count, false);
        let has_upper = leaf.upper_fence_into(key);
        let covers_high = match self.high {
            Bound::Unbounded => !has_upper,
            Bound::Included(high) => !has_upper || high < key.as_slice(),
            Bound::Excluded(high) => !has_upper || high <= key.as_slice(),
        };
        match self.high {
            Bound::Included(high) if covers_high => {
                let found = leaf.find(high);
                ends_exactly = is_slot(found);
                end = found.index() + usize::from(ends_exactly);
            }
            Bound::Excluded(high) if covers_high && (!has_upper || high < key.as_slice()) => {
                end = leaf.find(high).index();
            }
            _ => {}
        }
        let (mut start, mut starts_exactly) = (0, false);
        leaf.low_fence_into(key);
        let covers_low = match self.low {
            Bound::Unbounded => key.is_empty(),
            Bound::Included(low) | Bound::Excluded(low) => low >= key.as_slice(),
        };
        match self.low {
            Bound::Included(low) if covers_low => {
                let found = leaf.find(low);
                starts_exactly = is_slot(found);
                start = found.index();
            }
            Bound::Excluded(low) if covers_low => {
                let found = leaf.find(low);
                start = found.index() + usize::from(is_slot(found));
            }
            _ => {}
        }
        Window {
            // A leaf that changes while it is read may say anything.
            start: start.min(end),
            end,
            starts_exactly,
            ends_exactly,
            covers_low,
            covers_high,
        }
    }
}

fn is_slot(found: Slot) -> bool {
    !matches!(found, Slot::Absent(_))
}
