//! Purging: ghosts that nobody needs any more leave their leaf.
//!
//! # Protocol
//! A ghost bounds the gap below its key, and holds the space that undo of its deletion would need.
//! It may go when nobody holds or awaits a lock on its key: then its deletion has committed, and
//! no gap is guarded by that name. The lock manager is asked under the leaf's latch; whoever wants to
//! lock that gap must come through this leaf, and will then see another boundary.

use super::Tree;
use super::leaf_write::Latched;
use crate::access::{Access, LogContext};
use crate::action::PageAction;
use crate::error::AccessError;
use crate::mtr::{MiniTransaction, Steps};
use crate::node::NodeRef;
use longshore_pool::ExclusiveGuard;

const PURGE: Steps = Steps::new("purge.latched", "purge.logged", "purge.applied");

/// What a purge achieved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Ghosts that are gone.
    pub ghosts: usize,
    /// Ghosts in the leaf that had to stay.
    pub kept: usize,
    /// Pages that merging gave back.
    pub pages: usize,
}

/// A leaf from which ghosts were purged, still latched.
pub(super) struct PurgedLeaf<'a> {
    pub leaf: ExclusiveGuard<'a>,
    pub purged: Purged,
}

impl Tree {
    /// Purges the ghosts in the leaf that owns `key`, and merges the leaf with a neighbour if both are
    /// sparse.
    ///
    /// # Errors
    /// When log space or a page cannot be had; what was done before stays done.
    pub fn purge(
        &self,
        access: &Access,
        cx: &mut LogContext,
        key: &[u8],
    ) -> Result<Purged, AccessError> {
        let Latched::Leaf(leaf) = self.latch_leaf(access, key, false)? else {
            unreachable!("no orphans were asked for")
        };
        let PurgedLeaf { leaf, mut purged } = self.purge_latched(access, cx, leaf)?;
        let is_sparse = self.is_sparse(&NodeRef::new(leaf.page()));
        drop(leaf);
        if is_sparse {
            purged.pages = self.merge_near(access, cx, key)?;
        }
        Ok(purged)
    }

    /// Purges what may go from a latched leaf.
    pub(super) fn purge_latched<'a>(
        &self,
        access: &'a Access,
        cx: &mut LogContext,
        leaf: ExclusiveGuard<'a>,
    ) -> Result<PurgedLeaf<'a>, AccessError> {
        let node = NodeRef::new(leaf.page());
        let ghosts = (0..node.count())
            .filter(|&slot| node.is_ghost(slot))
            .map(|slot| node.key(slot));
        let (gone, kept): (Vec<_>, Vec<_>) =
            ghosts.partition(|key| access.boundaries.may_remove(self.store, key));
        let purged = Purged {
            ghosts: gone.len(),
            kept: kept.len(),
            pages: 0,
        };
        let Some((first, others)) = gone.split_first() else {
            return Ok(PurgedLeaf { leaf, purged });
        };
        let mut mtr = MiniTransaction::begin(access);
        mtr.change(leaf, PageAction::Purge { key: first });
        others
            .iter()
            .for_each(|key| mtr.also(PageAction::Purge { key }));
        let leaf = mtr.commit(cx, &PURGE)?.pop().expect("one page was changed");
        Ok(PurgedLeaf { leaf, purged })
    }
}
