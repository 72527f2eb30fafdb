//! Statements on one row.
//!
//! # Protocol
//! Lock the row's name; then, for a change, latch the leaf and look. The lock is taken with no latch
//! held; the gap, for a key without a slot, is looked at under the latch. Whatever has to be waited for
//! or made room for, the latch is dropped first and the leaf is looked at anew.

use super::manager::Core;
use super::purge::note_ghost;
use super::snapshot::Reads;
use super::work::Work;
use crate::error::{Result, TxnError};
use crate::lock::{GapCheck, LockName, Mode};
use crate::version::Snapshot;
use longshore_access::{Boundary, LeafWrite, RowFlags, Slot, Tree, ValueKind, WriteError};

/// What a change does when the row is there, and when it is not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Insert,
    Update,
    Put,
}

/// A value as it lies in the leaf.
#[derive(Clone, Copy)]
pub(super) struct Stored<'a> {
    pub flags: RowFlags,
    pub bytes: &'a [u8],
}

/// What one look at the leaf led to.
enum Step {
    /// The row is as wanted; with what it was before.
    Done,
    /// There is a row, and the change wants none.
    Exists,
    /// There is no row, and the change wants one.
    Missing,
    /// The old value is a chain, whose stub is in `value_buffer` and must be enlisted first.
    Replaces,
    /// The lock must be waited for.
    Wait(LockName, Mode),
    /// The leaf is full.
    NoRoom,
}

/// Whether the chain that a change sets free is on its way to be freed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OldChain {
    NotSeen,
    Enlisted,
}

impl Work {
    #[inline]
    pub fn get_into(
        &mut self,
        core: &Core,
        tree: Tree,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        match self.reads {
            Reads::Locked => self.get_locked(core, tree, key, out),
            Reads::Snapshot(_) | Reads::Statements => {
                self.in_snapshot(core, None, |work, snapshot| {
                    work.read_value(core, snapshot, tree, key, out)
                })
            }
        }
    }

    /// The value as it is now, under a lock that keeps it so.
    #[inline]
    pub(super) fn get_locked(
        &mut self,
        core: &Core,
        tree: Tree,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        self.lock(core, LockName::of_key(tree.store, key), Mode::READ)?;
        match tree.get(&core.access, key, out)? {
            None => {
                out.clear();
                Ok(false)
            }
            Some(ValueKind::Inline) => Ok(true),
            Some(ValueKind::Overflow) => {
                let stub = std::mem::take(out);
                self.read_chain(core, tree.store, &stub, out)?;
                Ok(true)
            }
        }
    }

    /// The values of `keys`. They are visited in their order, so that each leaf is near the one before, and
    /// that two who ask for the same keys never wait for each other.
    pub fn get_many(
        &mut self,
        core: &Core,
        tree: Tree,
        keys: &[&[u8]],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by_key(|&at| keys[at]);
        let mut values = vec![None; keys.len()];
        let mut get_all = |work: &mut Work, snapshot: Option<&Snapshot>| {
            for &at in &order {
                let mut value = Vec::new();
                let found = match snapshot {
                    None => work.get_locked(core, tree, keys[at], &mut value)?,
                    Some(snapshot) => {
                        work.read_value(core, snapshot, tree, keys[at], &mut value)?
                    }
                };
                values[at] = found.then_some(value);
            }
            Ok(())
        };
        match self.reads {
            Reads::Locked => get_all(self, None)?,
            Reads::Snapshot(_) | Reads::Statements => {
                self.in_snapshot(core, None, |work, snapshot| get_all(work, Some(snapshot)))?;
            }
        }
        Ok(values)
    }

    pub fn contains(&mut self, core: &Core, tree: Tree, key: &[u8]) -> Result<bool> {
        if let Reads::Locked = self.reads {
            return self.contains_locked(core, tree, key);
        }
        let mut value = std::mem::take(&mut self.value_buffer);
        let found = self.in_snapshot(core, None, |work, snapshot| {
            work.read_row(core, snapshot, tree, key, &mut value)
        });
        self.value_buffer = value;
        Ok(found?.is_some())
    }

    /// Whether the row is there now, under a lock that keeps it so.
    pub(super) fn contains_locked(&mut self, core: &Core, tree: Tree, key: &[u8]) -> Result<bool> {
        self.lock(core, LockName::of_key(tree.store, key), Mode::READ)?;
        let mut value = std::mem::take(&mut self.value_buffer);
        let found = tree.get(&core.access, key, &mut value);
        self.value_buffer = value;
        Ok(found?.is_some())
    }

    pub fn lock_for_update(&mut self, core: &Core, tree: Tree, key: &[u8]) -> Result<()> {
        let name = LockName::of_key(tree.store, key);
        self.lock(core, name, Mode::UPDATE)?;
        self.check_conflict(core, name, key)
    }

    #[inline]
    pub fn insert(&mut self, core: &Core, tree: Tree, key: &[u8], value: &[u8]) -> Result<()> {
        match self.store(core, tree, key, value, Change::Insert)? {
            true => Ok(()),
            false => Err(TxnError::KeyExists),
        }
    }

    pub fn put(&mut self, core: &Core, tree: Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.store(core, tree, key, value, Change::Put).map(|_| ())
    }

    pub fn update(&mut self, core: &Core, tree: Tree, key: &[u8], value: &[u8]) -> Result<bool> {
        self.store(core, tree, key, value, Change::Update)
    }

    /// Makes the row what `new` says if it is what `expected` says. The lock to change it comes first, so
    /// two who compare the same row never wait for each other.
    pub fn compare_and_set(
        &mut self,
        core: &Core,
        tree: Tree,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        self.lock_for_update(core, tree, key)?;
        let mut value = Vec::new();
        let found = self.get_locked(core, tree, key, &mut value)?;
        if found.then_some(value.as_slice()) != expected {
            return Ok(false);
        }
        match (expected, new) {
            (Some(_), Some(new)) => self.update(core, tree, key, new),
            (None, Some(new)) => self.insert(core, tree, key, new).map(|()| true),
            (Some(_), None) => self.delete(core, tree, key),
            (None, None) => Ok(true),
        }
    }

    /// Makes `value` the value of `key`; false when the row's presence or absence forbids it.
    #[inline]
    fn store(
        &mut self,
        core: &Core,
        tree: Tree,
        key: &[u8],
        value: &[u8],
        change: Change,
    ) -> Result<bool> {
        if value.len() > core.access.limits().inline_max(key.len()) {
            return self.store_large(core, tree, key, &mut { value }, change);
        }
        let stored = Stored {
            flags: RowFlags::NONE,
            bytes: value,
        };
        self.store_row(core, tree, key, stored, change)
    }

    /// Makes a row of what is given; false when the row's presence or absence forbids it.
    #[inline]
    pub(super) fn store_row(
        &mut self,
        core: &Core,
        tree: Tree,
        key: &[u8],
        stored: Stored<'_>,
        change: Change,
    ) -> Result<bool> {
        let name = LockName::of_key(tree.store, key);
        self.lock_to_change(core, name, key)?;
        let mut old_chain = OldChain::NotSeen;
        loop {
            match self.try_store(core, tree, key, name, stored, change, old_chain)? {
                Step::Done => return Ok(true),
                Step::Exists | Step::Missing => return Ok(false),
                Step::Replaces => {
                    self.enlist_old_chain(core, tree.store)?;
                    old_chain = OldChain::Enlisted;
                }
                Step::Wait(name, mode) => self.lock(core, name, mode)?,
                Step::NoRoom => {
                    let cx = self.context(core)?;
                    tree.make_room(&core.access, cx, key, stored.bytes.len())?;
                }
            }
        }
    }

    #[inline]
    #[expect(clippy::too_many_arguments, reason = "one call, kept flat for speed")]
    fn try_store(
        &mut self,
        core: &Core,
        tree: Tree,
        key: &[u8],
        name: LockName,
        stored: Stored<'_>,
        change: Change,
        old_chain: OldChain,
    ) -> Result<Step> {
        self.context(core)?;
        self.prepare_capture(core, tree, key)?;
        let mut leaf = tree.write_leaf_near(&core.access, &mut self.leaf_hint, key)?;
        let found = leaf.find(key);
        let written = match found {
            Slot::Present(_) if change == Change::Insert => return Ok(Step::Exists),
            Slot::Ghost(_) | Slot::Absent(_) if change == Change::Update => {
                return Ok(Step::Missing);
            }
            Slot::Present(slot) => {
                let kind = leaf.value_into(slot, &mut self.value_buffer);
                if old_chain == OldChain::NotSeen && kind == ValueKind::Overflow {
                    return Ok(Step::Replaces);
                }
                self.capture(core, tree, name, key, Some(kind));
                let cx = self.cx.as_mut().expect("begun above");
                leaf.update(cx, key, stored.flags, stored.bytes)
            }
            Slot::Ghost(_) => {
                self.capture(core, tree, name, key, None);
                let cx = self.cx.as_mut().expect("begun above");
                leaf.insert_at(cx, found, key, stored.flags, stored.bytes)
            }
            Slot::Absent(slot) => {
                if let Some(blocked) = self.enter_gap(core, tree, &leaf, slot, name)? {
                    return Ok(blocked);
                }
                self.capture(core, tree, name, key, None);
                let cx = self.cx.as_mut().expect("begun above");
                leaf.insert_at(cx, found, key, stored.flags, stored.bytes)
            }
        };
        match written {
            Ok(_) => Ok(Step::Done),
            Err(WriteError::NoRoom) => Ok(Step::NoRoom),
            Err(WriteError::RowExists) => Ok(Step::Exists),
            Err(WriteError::RowMissing) => Ok(Step::Missing),
            Err(WriteError::Failed(error)) => Err(error.into()),
        }
    }

    /// Sees, under the leaf's latch, that nobody else has read the gap below `slot`; inherits the gap
    /// lock if this transaction has. Says what to wait for if that cannot be.
    #[inline]
    fn enter_gap(
        &mut self,
        core: &Core,
        tree: Tree,
        leaf: &LeafWrite<'_>,
        slot: usize,
        name: LockName,
    ) -> Result<Option<Step>> {
        let boundary = match leaf.boundary_into(slot, &mut self.key_buffer) {
            Boundary::Slot(_) | Boundary::Fence => LockName::of_key(tree.store, &self.key_buffer),
            Boundary::Supremum => LockName::of_supremum(tree.store),
        };
        match core.locks.check_gap(&self.owner, boundary) {
            GapCheck::Free => Ok(None),
            GapCheck::Blocked => Ok(Some(Step::Wait(boundary, Mode::INSERT))),
            GapCheck::Mine => {
                let inherited = core.locks.try_lock(&mut self.owner, name, Mode::READ_GAP)?;
                Ok((!inherited).then_some(Step::Wait(name, Mode::READ_GAP)))
            }
        }
    }

    pub fn delete(&mut self, core: &Core, tree: Tree, key: &[u8]) -> Result<bool> {
        let name = LockName::of_key(tree.store, key);
        self.lock_to_change(core, name, key)?;
        self.context(core)?;
        let mut old_chain = OldChain::NotSeen;
        loop {
            match self.try_delete(core, tree, key, name, old_chain)? {
                Step::Done => break,
                Step::Replaces => {
                    self.enlist_old_chain(core, tree.store)?;
                    old_chain = OldChain::Enlisted;
                    self.context(core)?;
                }
                _ => return Ok(false),
            }
        }
        note_ghost(&mut self.ghosts, tree, key);
        Ok(true)
    }

    fn try_delete(
        &mut self,
        core: &Core,
        tree: Tree,
        key: &[u8],
        name: LockName,
        old_chain: OldChain,
    ) -> Result<Step> {
        self.prepare_capture(core, tree, key)?;
        let mut leaf = tree.write_leaf_near(&core.access, &mut self.leaf_hint, key)?;
        let Slot::Present(slot) = leaf.find(key) else {
            return Ok(Step::Missing);
        };
        let kind = leaf.value_into(slot, &mut self.value_buffer);
        if old_chain == OldChain::NotSeen && kind == ValueKind::Overflow {
            return Ok(Step::Replaces);
        }
        self.capture(core, tree, name, key, Some(kind));
        let cx = self.cx.as_mut().expect("the caller has begun writing");
        match leaf.ghost(cx, key) {
            Ok(_) => Ok(Step::Done),
            Err(WriteError::Failed(error)) => Err(error.into()),
            Err(_) => Ok(Step::Missing),
        }
    }
}
