//! The B+tree: rows in key order, for many readers and writers at a time.
//!
//! # Protocol
//! A Foster B-tree (Graefe, Kimura, Kuno 2012): each node owns the keys between its fences, and may
//! have a *foster child*, the right neighbour that its parent does not know yet. Every change of
//! structure is small, local and content-neutral, and one mini-transaction:
//!
//! | change | pages, in latch order | file |
//! |---|---|---|
//! | split | node, new right node, map page | `split.rs` |
//! | root growth | root, new child, map page | `split.rs` |
//! | adoption | parent, child with the foster child | `adopt.rs` |
//! | purge of ghosts | leaf | `purge.rs` |
//! | merge | parent (if it knows both), left, right, map page | `merge.rs` |
//! | root shrinking | root, only child, map page | `merge.rs` |
//! | load of a leaf | last leaf, new leaf, map page | `bulk_load.rs` |
//! | freeing a dropped tree | one node and who points to it, map page | `free.rs` |
//!
//! Readers latch nothing; writers of rows latch one leaf. See `descent.rs` for why that is safe.
//! Undo is logical: it looks the key up from the root, so it never needs to know of structure.
//!
//! # Invariants
//! T1. The nodes of one level, in foster chains under the entries of the level above, cover all keys
//!     without gap or overlap; each node's low fence is its left neighbour's upper fence.
//! T2. The root's page id never changes, and the root has no foster child.
//! T3. The fence between two leaves is, or was, the key of a row. A boundary vanishes only after
//!     [`Boundaries::may_remove`](crate::Boundaries::may_remove) agreed.
//! T4. A page that leaves a tree is reset in the record that unlinks it, so whoever still holds its number
//!     sees that it is no node of the tree.
//!
//! # Order
//! Parent before child, left before right, map page last; a latch out of this order is tried only.

mod adopt;
mod bulk_load;
mod descent;
mod free;
mod leaf_read;
mod leaf_write;
mod merge;
mod purge;
mod split;
mod undo;
mod verify;

pub use bulk_load::Loaded;
pub use free::Freeing;
pub use leaf_read::{Boundary, LeafRead, Patience, Slot, ValueKind};
pub use leaf_write::{LeafHint, LeafWrite};
pub use purge::Purged;
pub use verify::{PageSet, TreeReport, verify_dropped_chain};

use crate::access::{Access, LogContext};
use crate::action::PageAction;
use crate::error::AccessError;
use crate::mtr::{MiniTransaction, Steps};
use crate::node::ImageBuf;
use longshore_base::{PageId, StoreId};

const CREATE: Steps = Steps::new("create.latched", "create.logged", "create.applied");

/// A tree, by name: its store and where its root is. Says nothing about whether it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tree {
    /// The store that owns the tree's pages.
    pub store: StoreId,
    /// The root node, for the tree's whole life.
    pub root: PageId,
}

impl Tree {
    /// Creates an empty tree for `store`, which must have none.
    ///
    /// # Errors
    /// When space, log or a page cannot be had; then there is no tree.
    pub fn create(
        access: &Access,
        cx: &mut LogContext,
        store: StoreId,
    ) -> Result<Tree, AccessError> {
        Tree::create_announced(access, cx, store, |_| Ok(()))
    }

    /// Creates an empty tree for `store`, after `announce` was told where it will be.
    ///
    /// Whoever has noted that down for good can free the tree if it comes to nothing: pages that a
    /// crash leaves behind are lost unless somebody knows the tree. No latch is held meanwhile.
    ///
    /// # Errors
    /// Those of `announce`; else as [`Tree::create`].
    pub fn create_announced<E: From<AccessError>>(
        access: &Access,
        cx: &mut LogContext,
        store: StoreId,
        announce: impl FnOnce(Tree) -> Result<(), E>,
    ) -> Result<Tree, E> {
        let reserved = access.reserve_page(store)?;
        let tree = Tree {
            store,
            root: reserved.page(),
        };
        announce(tree)?;
        let image = ImageBuf::new(store, 0, &[], None);
        let mut mtr = MiniTransaction::begin(access);
        mtr.allocate(reserved, PageAction::FormatNode(image.as_image()))?;
        mtr.commit(cx, &CREATE)?;
        Ok(tree)
    }
}
