//! Freeing a dropped tree, page by page.
//!
//! # Protocol
//! Nobody uses the tree any more, and no row of the catalog refers to it. Each step walks from the root to
//! the last node of the last chain, and takes that one page out in one mini-transaction, so that the
//! rest is a tree that can be walked, whatever happens: a crash between steps costs nothing. A branch
//! that loses its last child becomes an empty leaf, to be taken next. The root goes last. Before a leaf
//! goes, the overflow chains of its rows do, link by link; those of ghosts are listed as garbage
//! themselves, by whoever deleted the row.
//!
//! The caller forgets the tree only after the root is gone; if it crashes before, it will ask again. That
//! is safe since a store is never used again: a page that is no node of the store is the answer "done".

use super::Tree;
use crate::access::{Access, LogContext};
use crate::action::PageAction;
use crate::error::AccessError;
use crate::mtr::{MiniTransaction, Steps};
use crate::node::{ImageBuf, NodeRef};
use crate::overflow::{self, Stub};
use longshore_base::{PageId, StoreId};
use longshore_pool::ExclusiveGuard;

const FREE: Steps = Steps::new("free.latched", "free.logged", "free.applied");

/// How far the freeing of a tree has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freeing {
    /// There is more to free.
    Underway,
    /// No page of the tree is left.
    Done,
}

impl Tree {
    /// Frees at most `pages` pages of a dropped tree.
    ///
    /// # Errors
    /// When log space or a page cannot be had; call again later.
    pub fn free_step(
        &self,
        access: &Access,
        cx: &mut LogContext,
        pages: usize,
    ) -> Result<Freeing, AccessError> {
        for _ in 0..pages {
            if self.free_last(access, cx)? == Freeing::Done {
                return Ok(Freeing::Done);
            }
        }
        Ok(Freeing::Underway)
    }

    /// Frees the last page of the tree.
    fn free_last(&self, access: &Access, cx: &mut LogContext) -> Result<Freeing, AccessError> {
        let mut node = access.pool.fix_exclusive(self.root)?;
        if !self.is_node(node.page(), None) {
            return Ok(Freeing::Done);
        }
        let mut pointing = None;
        let mut steps = 0;
        while let Some(next) = last_of(&NodeRef::new(node.page())) {
            steps += 1;
            self.check_chain(steps, next)?;
            let below = access.pool.fix_exclusive(next)?;
            if !self.is_node(below.page(), None) {
                return Err(self.not_a_node(next, below.page(), None));
            }
            pointing = Some(std::mem::replace(&mut node, below));
        }
        if free_link(access, cx, self.store, &node)? {
            return Ok(Freeing::Underway);
        }
        let progress = if pointing.is_some() {
            Freeing::Underway
        } else {
            Freeing::Done
        };
        let mut kept = Kept::default();
        let mut mtr = MiniTransaction::begin(access);
        if let Some(guard) = pointing {
            let action = kept.without_last(self, &guard);
            mtr.change(guard, action);
        }
        mtr.free(node);
        mtr.commit(cx, &FREE)?;
        Ok(progress)
    }
}

/// Where the tree goes on from this node: to the right first, then down.
fn last_of(node: &NodeRef<'_>) -> Option<PageId> {
    let child = || node.child(node.count().saturating_sub(1));
    node.foster()
        .or_else(|| (!node.is_leaf() && node.count() > 0).then(child))
}

/// Frees one link of a chain that a row of this leaf refers to; false if there is none left.
fn free_link(
    access: &Access,
    cx: &mut LogContext,
    store: StoreId,
    leaf: &ExclusiveGuard<'_>,
) -> Result<bool, AccessError> {
    let node = NodeRef::new(leaf.page());
    for slot in (0..node.count()).rev() {
        let flags = node.flags(slot);
        if !flags.is_overflow() || flags.is_ghost() {
            continue;
        }
        let Some(stub) = Stub::from_bytes(&node.value(slot)) else {
            continue;
        };
        if overflow::is_left(access, store, stub.chain)? {
            overflow::free_step(access, cx, store, stub.chain, 1)?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// What the action borrows.
#[derive(Default)]
struct Kept {
    key: Vec<u8>,
    image: Option<ImageBuf>,
}

impl Kept {
    /// What makes the node forget the last page that it points to.
    fn without_last<'k>(&'k mut self, tree: &Tree, guard: &ExclusiveGuard<'_>) -> PageAction<'k> {
        let node = NodeRef::new(guard.page());
        if node.foster().is_some() {
            return PageAction::ClearFoster;
        }
        if node.count() > 1 {
            node.key_into(node.count() - 1, &mut self.key);
            return PageAction::RemoveChild { key: &self.key };
        }
        let empty = ImageBuf::new(tree.store, 0, &node.low(), node.upper().as_deref());
        PageAction::FormatNode(self.image.insert(empty).as_image())
    }
}
