//! Making room: splitting a node, and growing the root.
//!
//! # Protocol
//! A split is local. The upper part of a node moves into a new page, its *foster child*, and the node
//! keeps a pointer to it: one mini-transaction of node, new page and map page. No parent is touched;
//! it [adopts](super::adopt) the child later. The fence between the two is the key of a slot,
//! so no gap between keys gets a boundary that it did not have.
//!
//! The root has no parent that could adopt, so it never gets a foster child: its content moves down into
//! a new page, and the root, one level higher, points to that. The root's page id never changes.
//!
//! Ghosts that nobody needs are purged before a leaf is split.

use super::Tree;
use super::leaf_write::Latched;
use crate::access::{Access, LogContext};
use crate::action::PageAction;
use crate::error::AccessError;
use crate::mtr::{MiniTransaction, Steps};
use crate::node::{ImageBuf, NodeRef};
use crate::space::Reserved;
use longshore_pool::ExclusiveGuard;

const SPLIT: Steps = Steps::new("split.latched", "split.logged", "split.applied");
const GROW_ROOT: Steps = Steps::new(
    "root_growth.latched",
    "root_growth.logged",
    "root_growth.applied",
);

/// Bytes of a page's child pointer, the value of a branch entry.
pub(super) const CHILD_BYTES: usize = 8;

impl Tree {
    /// Makes room for a row in the leaf that owns `key`: purges ghosts, or splits, as often as it takes.
    ///
    /// Room can be used up again by others before the caller comes back to the leaf; then call again.
    ///
    /// # Errors
    /// [`AccessError::KeyTooLong`] and [`AccessError::ValueTooLong`] when no leaf could ever hold the
    /// row; otherwise when space, log or a page cannot be had. The tree is sound after every error.
    pub fn make_room(
        &self,
        access: &Access,
        cx: &mut LogContext,
        key: &[u8],
        value_len: usize,
    ) -> Result<(), AccessError> {
        access.check_row(key.len(), value_len)?;
        let mut adopt = true;
        loop {
            let leaf = match self.latch_leaf(access, key, adopt)? {
                Latched::Leaf(leaf) => leaf,
                Latched::Orphan(orphan) => {
                    adopt = self.adopt_or_split_above(access, cx, key, orphan)?;
                    continue;
                }
            };
            if has_room(&NodeRef::new(leaf.page()), key, value_len) {
                return Ok(());
            }
            let leaf = self.purge_latched(access, cx, leaf)?.leaf;
            if has_room(&NodeRef::new(leaf.page()), key, value_len) {
                return Ok(());
            }
            drop(leaf);
            self.split_at(access, cx, key, value_len)?;
        }
    }

    /// Splits the leaf that owns `key`, if a row with that key has no room in it; grows the root
    /// instead when it is that leaf.
    fn split_at(
        &self,
        access: &Access,
        cx: &mut LogContext,
        key: &[u8],
        value_len: usize,
    ) -> Result<(), AccessError> {
        let reserved = access.reserve_page(self.store)?;
        let Some(node) = self.descend_exclusive(access, key, 0)? else {
            return Ok(());
        };
        if has_room(&NodeRef::new(node.page()), key, value_len) {
            return Ok(());
        }
        if node.page_id() == self.root {
            self.grow_root(access, cx, node, reserved)
        } else {
            self.split(access, cx, node, reserved, key, value_len)
        }
    }

    /// Makes room for a child with a key of `child_key_len` bytes in the branch on `level` that owns `key`.
    pub(super) fn split_above(
        &self,
        access: &Access,
        cx: &mut LogContext,
        key: &[u8],
        level: u8,
        child_key_len: usize,
    ) -> Result<(), AccessError> {
        let reserved = access.reserve_page(self.store)?;
        let Some(node) = self.descend_exclusive(access, key, level)? else {
            return Ok(());
        };
        if NodeRef::new(node.page())
            .room_for_child(child_key_len)
            .is_there()
        {
            return Ok(());
        }
        if node.page_id() == self.root {
            self.grow_root(access, cx, node, reserved)
        } else {
            self.split(access, cx, node, reserved, key, CHILD_BYTES)
        }
    }

    /// Moves the upper part of `left` into the reserved page, so that an entry can go in beside `key`.
    fn split<'a>(
        &self,
        access: &'a Access,
        cx: &mut LogContext,
        left: ExclusiveGuard<'a>,
        reserved: Reserved<'a>,
        key: &[u8],
        value_len: usize,
    ) -> Result<(), AccessError> {
        let node = NodeRef::new(left.page());
        let position = node.find(key).unwrap_or_else(|position| position);
        let Some(slot) = node.split_slot(position, key.len(), value_len) else {
            let found = "one that is full with a single key";
            return Err(AccessError::corrupt(
                left.page_id(),
                self.store,
                "a node of several keys",
                found,
            ));
        };
        let separator = node.key(slot);
        let image = node.image_right_of(slot);
        let foster = reserved.page();
        let mut mtr = MiniTransaction::begin(access);
        mtr.change(
            left,
            PageAction::SplitOff {
                key: &separator,
                foster,
            },
        );
        mtr.allocate(reserved, PageAction::FormatNode(image.as_image()))?;
        mtr.commit(cx, &SPLIT)?;
        Ok(())
    }

    /// Gives a tree that consists of one leaf a second level.
    pub(super) fn grow_leaf_root(
        &self,
        access: &Access,
        cx: &mut LogContext,
    ) -> Result<(), AccessError> {
        let reserved = access.reserve_page(self.store)?;
        match self.descend_exclusive(access, &[], 0)? {
            Some(root) if root.page_id() == self.root => self.grow_root(access, cx, root, reserved),
            _ => Ok(()),
        }
    }

    /// Moves the root's content into the reserved page, which becomes its only child.
    fn grow_root<'a>(
        &self,
        access: &'a Access,
        cx: &mut LogContext,
        root: ExclusiveGuard<'a>,
        reserved: Reserved<'a>,
    ) -> Result<(), AccessError> {
        let node = NodeRef::new(root.page());
        let content = node.image();
        let mut grown = ImageBuf::new(self.store, node.level() + 1, &[], None);
        grown.push_child(&[], reserved.page());
        let mut mtr = MiniTransaction::begin(access);
        mtr.change(root, PageAction::FormatNode(grown.as_image()));
        mtr.allocate(reserved, PageAction::FormatNode(content.as_image()))?;
        mtr.commit(cx, &GROW_ROOT)?;
        Ok(())
    }
}

/// Whether an entry of `key` with a value of `value_len` bytes fits, in place of the one that is there.
pub(super) fn has_room(node: &NodeRef<'_>, key: &[u8], value_len: usize) -> bool {
    match node.find(key) {
        Ok(slot) => node.room_for_update(slot, value_len).is_there(),
        Err(_) => node.room_for_insert(key.len(), value_len).is_there(),
    }
}
