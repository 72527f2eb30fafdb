//! Statements on one row.
//!
//! # Protocol
//! Lock the row's name; then, for a change, latch the leaf and look. The lock is taken with no latch
//! held; the gap, for a key without a slot, is looked at under the latch. Whatever has to be waited for
//! or made room for, the latch is dropped first and the leaf is looked at anew.
//!
//! **A row changed by what it was** is found and changed in two calls, between which the user's program runs: the
//! first takes the lock that the second needs, and notes the leaf, so that the second neither locks nor
//! descends. No latch is held between them, so the second looks at the leaf again; and the program may have used
//! the transaction meanwhile.

use super::manager::Core;
use super::purge::note_ghost;
use super::snapshot::Reads;
use super::work::Work;
use crate::error::{Result, TxnError};
use crate::lock::{GapCheck, LockName, Mode};
use crate::version::Snapshot;
use longshore_access::{Boundary, LeafWrite, RowFlags, Slot, Tree, ValueKind, WriteError};
use longshore_base::TxnId;

/// What a change does when the row is there, and when it is not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Insert,
    Update,
    Put,
    /// Like an update, but a value that stays what it is is not written.
    Modify,
}

/// A row that a transaction has read to change it, and locked for that.
#[derive(Debug)]
pub struct Found {
    txn: TxnId,
    tree: Tree,
    name: LockName,
}

/// A value as it lies in the leaf.
#[derive(Clone, Copy)]
pub(super) struct Stored<'a> {
    pub flags: RowFlags,
    pub bytes: &'a [u8],
}

impl Stored<'_> {
    /// Whether both it and a value of this kind are the bytes that they stand for.
    fn is_inline(&self, kind: ValueKind) -> bool {
        kind == ValueKind::Inline && !self.flags.is_overflow()
    }
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

    /// Reads a row that is to be changed, under the lock that the change needs; the leaf becomes the hint.
    pub fn find_to_change(
        &mut self,
        core: &Core,
        tree: Tree,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Found>> {
        let name = LockName::of_key(tree.store, key);
        self.lock_to_change(core, name, key)?;
        let found = tree.get_near(&core.access, &mut self.leaf_hint, key, out)?;
        if found == Some(ValueKind::Overflow) {
            let stub = std::mem::take(out);
            self.read_chain(core, tree.store, &stub, out)?;
        }
        let txn = self.txn();
        Ok(found.map(|_| Found { txn, tree, name }))
    }

    /// Gives a row that was found another value; false when this transaction has taken it out since.
    pub fn change_found(
        &mut self,
        core: &Core,
        found: &Found,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let Found { txn, tree, name } = *found;
        assert_eq!(txn, self.txn(), "who has found the row holds its lock");
        debug_assert_eq!(name, LockName::of_key(tree.store, key), "the same key");
        match Self::as_stored(core, key, value) {
            Some(stored) => self.store_locked_row(core, tree, key, name, stored, Change::Modify),
            None => self.store_large(core, tree, key, &mut { value }, Change::Modify),
        }
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
        match Self::as_stored(core, key, value) {
            Some(stored) => self.store_row(core, tree, key, stored, change),
            None => self.store_large(core, tree, key, &mut { value }, change),
        }
    }

    /// The value as it will lie in the leaf, unless it is too long for one.
    #[inline]
    fn as_stored<'v>(core: &Core, key: &[u8], value: &'v [u8]) -> Option<Stored<'v>> {
        let is_short = value.len() <= core.access.limits().inline_max(key.len());
        is_short.then_some(Stored {
            flags: RowFlags::NONE,
            bytes: value,
        })
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
        self.store_locked_row(core, tree, key, name, stored, change)
    }

    /// [`store_row`](Self::store_row) where `name`, the row's, is locked for it.
    #[inline]
    fn store_locked_row(
        &mut self,
        core: &Core,
        tree: Tree,
        key: &[u8],
        name: LockName,
        stored: Stored<'_>,
        change: Change,
    ) -> Result<bool> {
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
            Slot::Ghost(_) | Slot::Absent(_)
                if matches!(change, Change::Update | Change::Modify) =>
            {
                return Ok(Step::Missing);
            }
            Slot::Present(slot) => {
                let kind = leaf.value_into(slot, &mut self.value_buffer);
                if old_chain == OldChain::NotSeen && kind == ValueKind::Overflow {
                    return Ok(Step::Replaces);
                }
                let is_same = || stored.is_inline(kind) && self.value_buffer == stored.bytes;
                if change == Change::Modify && is_same() {
                    return Ok(Step::Done);
                }
                self.capture(core, tree, name, key, Some(kind));
                let cx = self.cx.as_mut().expect("begun above");
                let old = &self.value_buffer;
                leaf.update_at(cx, slot, key, old, stored.flags, stored.bytes)
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
