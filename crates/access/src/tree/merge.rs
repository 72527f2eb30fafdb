//! Merging: two sparse neighbours become one, and a page is given back.
//!
//! # Protocol
//! The left node absorbs the right one, under the latch of the parent that knows both; if the
//! right one is still the left one's foster child, no parent is concerned. One record holds all of
//! it: entry removed, content absorbed, page reset, map bit cleared. When the root is left with
//! one child, the child's content moves up into the root.
//!
//! The fence between two leaves may bound a gap. It vanishes only if the first row of the right leaf has
//! the same key, and so goes on bounding it, or if the lock manager agrees. Fences of branches are fences
//! of leaves as well, and stay as keys of the merged branch.
//!
//! Unless one of them is next to empty, both together must fill no more than [`FILL_MAX`], so that the
//! next insert does not split them again.

use super::Tree;
use crate::access::{Access, LogContext};
use crate::action::PageAction;
use crate::error::AccessError;
use crate::mtr::{MiniTransaction, Steps};
use crate::node::{ImageBuf, NodeRef};
use longshore_base::PageId;
use longshore_pool::ExclusiveGuard;

const MERGE: Steps = Steps::new("merge.latched", "merge.logged", "merge.applied");
const SHRINK_ROOT: Steps = Steps::new(
    "root_shrink.latched",
    "root_shrink.logged",
    "root_shrink.applied",
);

/// Percentage of a page that a merged node may fill.
const FILL_MAX: usize = 70;
/// Percentage of a page below which a node looks for a neighbour to merge with.
const SPARSE: usize = 35;

/// How an attempt to merge a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Merging {
    Done,
    /// The node has no neighbour under its parent; one may come when the parent is merged.
    OnlyChild,
    NotToBe,
}

/// Two neighbours under their latches.
struct Pair<'a> {
    left: ExclusiveGuard<'a>,
    right: ExclusiveGuard<'a>,
}

impl Tree {
    /// Merges the leaf that owns `key` with a neighbour, and then the branches above, as far as they
    /// are sparse. Returns the number of pages given back.
    ///
    /// # Errors
    /// When log space or a page cannot be had; merges made before stay made.
    pub fn merge_near(
        &self,
        access: &Access,
        cx: &mut LogContext,
        key: &[u8],
    ) -> Result<usize, AccessError> {
        let mut freed = 0;
        loop {
            let before = freed;
            let mut level = 0;
            loop {
                match self.merge_at(access, cx, key, level)? {
                    Merging::Done => freed += 1,
                    Merging::OnlyChild => {}
                    Merging::NotToBe => break,
                }
                level += 1;
            }
            // What was an only child may have got a neighbour.
            if freed == before {
                break;
            }
        }
        while self.shrink_root(access, cx)? {
            freed += 1;
        }
        Ok(freed)
    }

    /// Whether a node should look for a neighbour to merge with.
    pub(super) fn is_sparse(&self, node: &NodeRef<'_>) -> bool {
        rows_bytes(node) * 100 < node.page().len() * SPARSE
    }

    /// Merges the node on `level` that owns `key` with a neighbour.
    fn merge_at(
        &self,
        access: &Access,
        cx: &mut LogContext,
        key: &[u8],
        level: u8,
    ) -> Result<Merging, AccessError> {
        let Some(parent) = self.descend_exclusive(access, key, level + 1)? else {
            return Ok(Merging::NotToBe);
        };
        let branch = NodeRef::new(parent.page());
        let Some(own) = branch.child_slot(key) else {
            return Ok(Merging::NotToBe);
        };
        let left = self.latch_child(access, branch.child(own), level)?;
        if let Some(foster) = NodeRef::new(left.page()).foster() {
            drop(parent);
            let right = self.latch_child(access, foster, level)?;
            let pair = Pair { left, right };
            return self.merge_if_allowed(access, cx, None, pair);
        }
        drop(left);
        if branch.count() == 1 {
            return Ok(Merging::OnlyChild);
        }
        let right_of = (own + 1 < branch.count()).then_some((own, own + 1));
        let left_of = own.checked_sub(1).map(|before| (before, own));
        for (left, right) in [right_of, left_of].into_iter().flatten() {
            let left = self.latch_child(access, branch.child(left), level)?;
            if NodeRef::new(left.page()).foster().is_some() {
                continue;
            }
            let right = self.latch_child(access, branch.child(right), level)?;
            let pair = Pair { left, right };
            if self.may_merge(access, &pair) {
                return self.merge(access, cx, Some(parent), pair);
            }
        }
        Ok(Merging::NotToBe)
    }

    fn merge_if_allowed<'a>(
        &self,
        access: &'a Access,
        cx: &mut LogContext,
        parent: Option<ExclusiveGuard<'a>>,
        pair: Pair<'a>,
    ) -> Result<Merging, AccessError> {
        if self.may_merge(access, &pair) {
            self.merge(access, cx, parent, pair)
        } else {
            Ok(Merging::NotToBe)
        }
    }

    /// Whether the pair fits into one page, and its fence may go.
    fn may_merge(&self, access: &Access, pair: &Pair<'_>) -> bool {
        let (left, right) = (
            NodeRef::new(pair.left.page()),
            NodeRef::new(pair.right.page()),
        );
        fits_together(&left, &right) && self.may_drop_fence(access, &right, &right.low())
    }

    /// Merges a pair that may; with a parent, the right one leaves its entries.
    fn merge<'a>(
        &self,
        access: &'a Access,
        cx: &mut LogContext,
        parent: Option<ExclusiveGuard<'a>>,
        pair: Pair<'a>,
    ) -> Result<Merging, AccessError> {
        let right = NodeRef::new(pair.right.page());
        let (fence, content) = (right.low(), right.image());
        let mut mtr = MiniTransaction::begin(access);
        if let Some(parent) = parent {
            mtr.change(parent, PageAction::RemoveChild { key: &fence });
        }
        mtr.change(pair.left, PageAction::Absorb(content.as_image()));
        mtr.free(pair.right);
        mtr.commit(cx, &MERGE)?;
        Ok(Merging::Done)
    }

    /// Whether the key of the fence goes on bounding its gap, or nobody minds if it does not.
    fn may_drop_fence(&self, access: &Access, right: &NodeRef<'_>, fence: &[u8]) -> bool {
        !right.is_leaf()
            || right.find(fence).is_ok()
            || access.boundaries.may_remove(self.store, fence)
    }

    /// Moves the content of the root's only child up into the root; false when it has more, or none.
    fn shrink_root(&self, access: &Access, cx: &mut LogContext) -> Result<bool, AccessError> {
        let root = access.pool.fix_exclusive(self.root)?;
        if !self.is_node(root.page(), None) {
            return Err(self.not_a_node(self.root, root.page(), None));
        }
        let node = NodeRef::new(root.page());
        if node.is_leaf() || node.count() != 1 {
            return Ok(false);
        }
        let child = self.latch_child(access, node.child(0), node.level() - 1)?;
        if NodeRef::new(child.page()).foster().is_some() {
            return Ok(false);
        }
        let content = NodeRef::new(child.page()).image();
        let mut mtr = MiniTransaction::begin(access);
        mtr.change(root, PageAction::FormatNode(content.as_image()));
        mtr.free(child);
        mtr.commit(cx, &SHRINK_ROOT)?;
        Ok(true)
    }

    /// Latches a node that a latched node points to.
    pub(super) fn latch_child<'a>(
        &self,
        access: &'a Access,
        page: PageId,
        level: u8,
    ) -> Result<ExclusiveGuard<'a>, AccessError> {
        let child = access.pool.fix_exclusive(page)?;
        if self.is_node(child.page(), Some(level)) {
            return Ok(child);
        }
        Err(self.not_a_node(page, child.page(), Some(level)))
    }
}

/// Whether the content of both leaves enough of one page free.
fn fits_together(left: &NodeRef<'_>, right: &NodeRef<'_>) -> bool {
    let (low, upper) = (left.low(), right.upper());
    let mut both = ImageBuf::new(left.page().store(), left.level(), &low, upper.as_deref());
    both.push_image(&left.image().as_image());
    both.push_image(&right.image().as_image());
    // Next to nothing in one of them: no split will follow soon.
    let is_lopsided = left.count().min(right.count()) <= 1;
    let fill_max = if is_lopsided { 100 } else { FILL_MAX };
    both.as_image().page_bytes() * 100 <= left.page().len() * fill_max
}

/// Bytes that rows and slots take, without the fences.
fn rows_bytes(node: &NodeRef<'_>) -> usize {
    let fences = padded(node.low().len()) + padded(node.upper().map_or(0, |upper| upper.len()));
    node.used_bytes().saturating_sub(fences)
}

fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(8)
}
