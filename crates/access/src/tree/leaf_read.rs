//! Reading the rows of one leaf without a latch.
//!
//! # Protocol
//! 1. [`Tree::read_leaf`] (or `_before`, `_last`) ends at the leaf whose range holds the key.
//! 2. Copy out what is wanted. Until validated it may be garbage, but no call panics or runs long.
//! 3. [`LeafRead::validate`]: `Ok` says that everything copied was there at one moment; `Changed`
//!    says to throw it away and begin at 1 again, with [`Patience`] counting the attempts.
//!
//! A forward cursor goes on at the leaf's upper fence, a reverse cursor
//! [before](Tree::read_leaf_before) its low fence; neither holds anything between calls. A leaf
//! without rows is no end: only a missing fence is.

use super::Tree;
use super::descent::{ATTEMPTS_MAX, Arrival, Blocked, Purpose, Seek, back_off};
use super::leaf_write::LeafHint;
use crate::access::Access;
use crate::error::AccessError;
use crate::node::NodeRef;
use longshore_base::{Lsn, PageId};
use longshore_pool::{Changed, OptimisticGuard, PageRef, SharedGuard};

/// Where a key is in a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A row, in this slot.
    Present(usize),
    /// A deleted row, in this slot.
    Ghost(usize),
    /// Nowhere; it would go before this slot.
    Absent(usize),
}

impl Slot {
    /// The slot of the key, or before which it would go.
    pub fn index(self) -> usize {
        match self {
            Slot::Present(slot) | Slot::Ghost(slot) | Slot::Absent(slot) => slot,
        }
    }

    pub(super) fn of(node: &NodeRef<'_>, key: &[u8]) -> Slot {
        match node.find(key) {
            Ok(slot) if node.is_ghost(slot) => Slot::Ghost(slot),
            Ok(slot) => Slot::Present(slot),
            Err(slot) => Slot::Absent(slot),
        }
    }
}

/// What ends the gap below it: the name that a lock on the gap is taken under.
///
/// The key's bytes are in the buffer that was passed along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// The key of a slot, ghost or not.
    Slot(usize),
    /// The upper fence of the leaf.
    Fence,
    /// The end of the tree, which has no key.
    Supremum,
}

/// Counts attempts, so that a reader that is overtaken again and again comes to its turn: after some
/// optimistic reads in vain, the leaf is latched shared, and validation cannot fail.
///
/// Since a [`LeafRead`] may thus hold a latch, nothing may be waited for while it lives.
#[derive(Debug)]
pub struct Patience {
    lost: u32,
    purpose: Purpose,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience::new()
    }
}

impl Patience {
    /// For a first attempt.
    pub fn new() -> Patience {
        Patience {
            lost: 0,
            purpose: Purpose::Read,
        }
    }

    /// For a first attempt at a leaf on the way through many: it will not push out of memory what others
    /// use often.
    pub fn for_scan() -> Patience {
        Patience {
            lost: 0,
            purpose: Purpose::Scan,
        }
    }

    /// Notes that an attempt was in vain, and waits a moment.
    pub fn lost(&mut self) {
        self.lost += 1;
        back_off(self.lost);
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost >= ATTEMPTS_MAX
    }
}

enum Hold<'a> {
    Optimistic(OptimisticGuard<'a>),
    Shared(SharedGuard<'a>),
}

/// A leaf that is being read.
pub struct LeafRead<'a> {
    hold: Hold<'a>,
}

impl Tree {
    /// The leaf that owns `key`.
    ///
    /// # Errors
    /// When a page cannot be had, or the tree is corrupt.
    #[inline]
    pub fn read_leaf<'a>(
        &self,
        access: &'a Access,
        key: &[u8],
    ) -> Result<LeafRead<'a>, AccessError> {
        self.read_leaf_patiently(access, key, &mut Patience::new())
    }

    /// The leaf that owns `key`, for a caller that may have failed before.
    ///
    /// # Errors
    /// As [`Tree::read_leaf`].
    #[inline]
    pub fn read_leaf_patiently<'a>(
        &self,
        access: &'a Access,
        key: &[u8],
        patience: &mut Patience,
    ) -> Result<LeafRead<'a>, AccessError> {
        self.leaf_at(access, Seek::Key(key), patience)
    }

    /// The leaf that holds the greatest key below `bound`, if there is one there: the leaf whose low
    /// fence is below `bound` and whose upper fence is not.
    ///
    /// `bound` must not be empty, because no key is below the empty one.
    ///
    /// # Errors
    /// As [`Tree::read_leaf`].
    pub fn read_leaf_before<'a>(
        &self,
        access: &'a Access,
        bound: &[u8],
        patience: &mut Patience,
    ) -> Result<LeafRead<'a>, AccessError> {
        debug_assert!(!bound.is_empty(), "nothing is below the empty key");
        self.leaf_at(access, Seek::Before(bound), patience)
    }

    /// The last leaf of the tree.
    ///
    /// # Errors
    /// As [`Tree::read_leaf`].
    pub fn read_leaf_last<'a>(
        &self,
        access: &'a Access,
        patience: &mut Patience,
    ) -> Result<LeafRead<'a>, AccessError> {
        self.leaf_at(access, Seek::Last, patience)
    }

    #[inline]
    fn leaf_at<'a>(
        &self,
        access: &'a Access,
        seek: Seek<'_>,
        patience: &mut Patience,
    ) -> Result<LeafRead<'a>, AccessError> {
        while !patience.is_lost() {
            match self.try_descend(access, seek, 0, patience.purpose) {
                Ok(Some(Arrival { node, .. })) => {
                    return Ok(LeafRead {
                        hold: Hold::Optimistic(node),
                    });
                }
                Ok(None) => unreachable!("every tree has a level 0"),
                Err(Blocked::Changed) => patience.lost(),
                Err(Blocked::Failed(error)) => return Err(error),
            }
        }
        let leaf = self.descend_shared(access, seek, 0)?;
        Ok(LeafRead {
            hold: Hold::Shared(leaf.expect("every tree has a level 0")),
        })
    }

    /// Copies the value of `key` into `out`; `None` when there is no such row.
    ///
    /// # Errors
    /// As [`Tree::read_leaf`].
    pub fn get(
        &self,
        access: &Access,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<ValueKind>, AccessError> {
        let mut patience = Patience::new();
        loop {
            let leaf = self.read_leaf_patiently(access, key, &mut patience)?;
            let found = leaf.get_into(key, out);
            if leaf.validate().is_ok() {
                return Ok(found);
            }
            patience.lost();
        }
    }

    /// [`get`](Self::get) for a writer that keeps a hint and is about to change the row: it looks there first, and
    /// the hint becomes the leaf found.
    ///
    /// # Errors
    /// As [`Tree::read_leaf`].
    pub fn get_near(
        &self,
        access: &Access,
        hint: &mut LeafHint,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<ValueKind>, AccessError> {
        let mut patience = Patience::new();
        let mut hinted = self.read_hinted(access, *hint, key);
        loop {
            let leaf = match hinted.take() {
                Some(node) => LeafRead {
                    hold: Hold::Optimistic(node),
                },
                None => self.read_leaf_patiently(access, key, &mut patience)?,
            };
            let found = leaf.get_into(key, out);
            if leaf.validate().is_ok() {
                *hint = LeafHint::at(*self, leaf.page_id());
                return Ok(found);
            }
            patience.lost();
        }
    }
}

/// Whether the bytes of a value are the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// They are.
    Inline,
    /// They are the stub of an overflow chain.
    Overflow,
}

impl LeafRead<'_> {
    #[inline]
    fn page(&self) -> PageRef<'_> {
        match &self.hold {
            Hold::Optimistic(guard) => guard.page(),
            Hold::Shared(guard) => guard.page(),
        }
    }

    #[inline]
    fn node(&self) -> NodeRef<'_> {
        NodeRef::new(self.page())
    }

    /// The page of the leaf.
    pub fn page_id(&self) -> PageId {
        match &self.hold {
            Hold::Optimistic(guard) => guard.page_id(),
            Hold::Shared(guard) => guard.page_id(),
        }
    }

    /// The last change of the page: every record that has changed a row in it lies at or below this.
    #[inline]
    pub fn page_lsn(&self) -> Lsn {
        self.page().page_lsn()
    }

    /// Looks for `key`, which the leaf must own.
    #[inline]
    pub fn find(&self, key: &[u8]) -> Slot {
        Slot::of(&self.node(), key)
    }

    /// Replaces the content of `out` by the value of `key`; `None` when there is no such row.
    #[inline]
    fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Option<ValueKind> {
        match self.find(key) {
            Slot::Present(slot) => Some(self.value_into(slot, out)),
            Slot::Ghost(_) | Slot::Absent(_) => None,
        }
    }

    /// Slots of the leaf, ghosts included.
    #[inline]
    pub fn count(&self) -> usize {
        self.node().count()
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

    /// Appends the value in `slot` to `out`, and says what it is.
    #[inline]
    pub fn value_append(&self, slot: usize, out: &mut Vec<u8>) -> ValueKind {
        let node = self.node();
        node.value_append(slot, out);
        ValueKind::of(&node, slot)
    }

    /// What bounds the gap below `slot` from above: the slot's own key or, for `slot == count()`, the
    /// upper fence or the end of the tree. The key replaces the content of `out`.
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

    /// Says whether all that was read so far was there at one moment.
    ///
    /// # Errors
    /// [`Changed`] when it may not have been: nothing that was read may be used.
    #[inline]
    pub fn validate(&self) -> Result<(), Changed> {
        match &self.hold {
            Hold::Optimistic(guard) => guard.validate(),
            Hold::Shared(_) => Ok(()),
        }
    }
}

impl ValueKind {
    pub(super) fn of(node: &NodeRef<'_>, slot: usize) -> ValueKind {
        if node.flags(slot).is_overflow() {
            ValueKind::Overflow
        } else {
            ValueKind::Inline
        }
    }
}

#[inline]
pub(super) fn boundary_into(node: &NodeRef<'_>, slot: usize, out: &mut Vec<u8>) -> Boundary {
    if slot < node.count() {
        node.key_into(slot, out);
        Boundary::Slot(slot)
    } else if node.upper_into(out) {
        Boundary::Fence
    } else {
        Boundary::Supremum
    }
}
