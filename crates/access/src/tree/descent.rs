//! From the root to the node that owns a key.
//!
//! # Protocol
//! **Optimistic**, the normal way, stores nothing into shared memory: read the child pointer,
//! validate the parent, read the child's version, validate the parent *again*. The second
//! validation proves that the child was the right one at a moment at which its version is known; so
//! if the child is not a node of this store and level, and validates, the tree is corrupt. Pages
//! may be freed and used again at any time: nothing read is trusted before its validation.
//! Whoever meets a change starts over at the root, after a pause that grows.
//!
//! **Patient**, after [`ATTEMPTS_MAX`] attempts in vain: shared latches, hand over hand, and the
//! wanted latch on the last node. It waits in line instead of racing, so nobody starves.
//!
//! # Order
//! A parent is latched before its child, a node before its foster child. An optimistic reader holds
//! nothing.

use super::Tree;
use crate::access::Access;
use crate::error::AccessError;
use crate::node::{NodeRef, Owns};
use longshore_base::{PageId, PageType};
use longshore_pool::{Changed, ExclusiveGuard, OptimisticGuard, PageRef, PoolError, SharedGuard};

/// Optimistic attempts before a descent latches its way down.
pub(super) const ATTEMPTS_MAX: u32 = 24;

/// Nodes visited on one level before the foster chain is called endless.
const CHAIN_MAX: u32 = 1 << 20;

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Seek<'k> {
    /// The node that owns this key.
    Key(&'k [u8]),
    /// The node that owns what lies just below this key.
    Before(&'k [u8]),
    /// The last node.
    Last,
}

/// What a descent is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To read some rows, perhaps again soon.
    Read,
    /// To read the leaf once, on the way through many.
    Scan,
    /// To change rows; and to tell of foster children on the way, which their parent could adopt.
    Write,
    /// To change rows, whatever is on the way.
    WriteOnly,
}

/// Why an attempt ended without its node.
#[derive(Debug)]
pub(super) enum Blocked {
    /// Somebody changed a page meanwhile: start over.
    Changed,
    /// No use trying again.
    Failed(AccessError),
}

impl From<Changed> for Blocked {
    fn from(_: Changed) -> Blocked {
        Blocked::Changed
    }
}

impl From<PoolError> for Blocked {
    fn from(error: PoolError) -> Blocked {
        Blocked::Failed(error.into())
    }
}

impl From<AccessError> for Blocked {
    fn from(error: AccessError) -> Blocked {
        Blocked::Failed(error)
    }
}

/// Where to go from a node.
enum Next {
    Here,
    Child(PageId),
    Foster(PageId),
    /// The node's fences exclude the key, which its parent led to it.
    Astray,
}

/// A node that an optimistic descent ended at.
pub(super) struct Arrival<'a> {
    pub node: OptimisticGuard<'a>,
    /// The node's parent, and the child of it from which a foster pointer led on.
    pub orphan: Option<Orphan<'a>>,
}

/// A node that its parent does not know: the foster child of `left`.
pub(super) struct Orphan<'a> {
    pub parent: OptimisticGuard<'a>,
    pub parent_level: u8,
    pub left: OptimisticGuard<'a>,
}

impl Tree {
    /// One optimistic attempt to reach the node on `level` that `seek` names.
    ///
    /// `Ok(None)` when the tree has no such level.
    #[inline]
    pub(super) fn try_descend<'a>(
        &self,
        access: &'a Access,
        seek: Seek<'_>,
        level: u8,
        purpose: Purpose,
    ) -> Result<Option<Arrival<'a>>, Blocked> {
        let mut node = access.pool.read(self.root)?;
        let mut orphan = None;
        let mut parent: Option<OptimisticGuard<'a>> = None;
        let is_passing = purpose == Purpose::Scan;
        let mut expected = None;
        let mut steps = 0;
        loop {
            let view = NodeRef::new(node.page());
            if !self.is_node(node.page(), expected) {
                let error = self.not_a_node(node.page_id(), node.page(), expected);
                node.validate()?;
                return Err(error.into());
            }
            let here = view.level();
            if here < level {
                node.validate()?;
                return Ok(None);
            }
            match next(&view, seek, level) {
                Next::Here => {
                    return Ok(Some(Arrival { node, orphan }));
                }
                Next::Child(child) => {
                    node.validate()?;
                    let below = read_child(access, &node, child, is_passing && here == level + 1)?;
                    expected = Some(here - 1);
                    parent = (purpose == Purpose::Write).then_some(node);
                    node = below;
                }
                Next::Foster(foster) => {
                    node.validate()?;
                    steps += 1;
                    self.check_chain(steps, foster)?;
                    let right = read_child(access, &node, foster, is_passing && here == level)?;
                    expected = Some(here);
                    match parent.take() {
                        // The highest one first: the tree is tidied from above.
                        Some(parent) if orphan.is_none() => {
                            orphan = Some(Orphan {
                                parent,
                                parent_level: here + 1,
                                left: node,
                            });
                        }
                        _ => {}
                    }
                    node = right;
                }
                Next::Astray => {
                    node.validate()?;
                    return Err(self.astray(node.page_id()).into());
                }
            }
        }
    }

    /// Reaches the node that `seek` names with shared latches, hand over hand.
    pub(super) fn descend_shared<'a>(
        &self,
        access: &'a Access,
        seek: Seek<'_>,
        level: u8,
    ) -> Result<Option<SharedGuard<'a>>, AccessError> {
        let mut node = access.pool.fix_shared(self.root)?;
        let mut expected = None;
        let mut steps = 0;
        loop {
            if !self.is_node(node.page(), expected) {
                return Err(self.not_a_node(node.page_id(), node.page(), expected));
            }
            let view = NodeRef::new(node.page());
            let here = view.level();
            if here < level {
                return Ok(None);
            }
            let to = match next(&view, seek, level) {
                Next::Here => return Ok(Some(node)),
                Next::Child(child) => {
                    expected = Some(here - 1);
                    child
                }
                Next::Foster(foster) => {
                    expected = Some(here);
                    foster
                }
                Next::Astray => return Err(self.astray(node.page_id())),
            };
            steps += 1;
            self.check_chain(steps, to)?;
            node = access.pool.fix_shared(to)?;
        }
    }

    /// Reaches the node on `level` that owns `key` and latches it exclusively; `None` when the tree
    /// has no such level. The nodes above are latched shared, hand over hand.
    pub(super) fn descend_exclusive<'a>(
        &self,
        access: &'a Access,
        key: &[u8],
        level: u8,
    ) -> Result<Option<ExclusiveGuard<'a>>, AccessError> {
        loop {
            let Some(above) = self.descend_shared(access, Seek::Key(key), level + 1)? else {
                match self.latch_root(access, key, level)? {
                    Root::Owner(root) => return Ok(Some(root)),
                    Root::TooLow => return Ok(None),
                    Root::Grown => continue,
                }
            };
            let child = NodeRef::new(above.page()).child_for(key);
            let mut node = access.pool.fix_exclusive(child)?;
            drop(above);
            let mut steps = 0;
            loop {
                if !self.is_node(node.page(), Some(level)) {
                    return Err(self.not_a_node(node.page_id(), node.page(), Some(level)));
                }
                match NodeRef::new(node.page()).owns(key) {
                    Owns::Own => return Ok(Some(node)),
                    Owns::Foster(foster) => {
                        steps += 1;
                        self.check_chain(steps, foster)?;
                        node = access.pool.fix_exclusive(foster)?;
                    }
                    Owns::Below | Owns::Above => return Err(self.astray(node.page_id())),
                }
            }
        }
    }

    /// Latches the root, where it is the node on `level`.
    fn latch_root<'a>(
        &self,
        access: &'a Access,
        key: &[u8],
        level: u8,
    ) -> Result<Root<'a>, AccessError> {
        let root = access.pool.fix_exclusive(self.root)?;
        if !self.is_node(root.page(), None) {
            return Err(self.not_a_node(self.root, root.page(), None));
        }
        let view = NodeRef::new(root.page());
        if view.level() < level {
            return Ok(Root::TooLow);
        }
        if view.level() > level {
            return Ok(Root::Grown);
        }
        match view.owns(key) {
            Owns::Own => Ok(Root::Owner(root)),
            _ => Err(self.astray(self.root)),
        }
    }

    /// Whether `page` is a node of this tree, on the expected level.
    #[inline]
    pub(super) fn is_node(&self, page: PageRef<'_>, level: Option<u8>) -> bool {
        page.page_type() == Some(PageType::Node)
            && page.store() == self.store
            && level.is_none_or(|level| NodeRef::new(page).level() == level)
    }

    /// The error for a page that is no node of this tree.
    #[cold]
    pub(super) fn not_a_node(
        &self,
        id: PageId,
        page: PageRef<'_>,
        level: Option<u8>,
    ) -> AccessError {
        let expected = match level {
            Some(level) => format!("a node of level {level}"),
            None => "the root node of the tree".to_owned(),
        };
        let found = match page.page_type() {
            Some(PageType::Node) => format!(
                "a node of level {} of store {}",
                NodeRef::new(page).level(),
                page.store()
            ),
            Some(PageType::Blank) => "a page that is not in use".to_owned(),
            Some(other) => format!("a page of type {other:?}"),
            None => "a page of unknown type".to_owned(),
        };
        AccessError::corrupt(id, self.store, expected, found)
    }

    /// The error for a node that does not cover the key its parent sends there.
    #[cold]
    pub(super) fn astray(&self, page: PageId) -> AccessError {
        let found = "a node whose fences exclude the key";
        AccessError::corrupt(
            page,
            self.store,
            "a node that covers the key its parent leads to it",
            found,
        )
    }

    pub(super) fn check_chain(&self, steps: u32, page: PageId) -> Result<(), AccessError> {
        if steps > CHAIN_MAX {
            let found = "one that leads in a circle";
            return Err(AccessError::corrupt(
                page,
                self.store,
                "a path that ends",
                found,
            ));
        }
        Ok(())
    }
}

enum Root<'a> {
    Owner(ExclusiveGuard<'a>),
    TooLow,
    Grown,
}

/// Reads the version of a child after its parent's pointer, and proves that the pointer still holds.
#[inline]
fn read_child<'a>(
    access: &'a Access,
    parent: &OptimisticGuard<'a>,
    child: PageId,
    is_passing: bool,
) -> Result<OptimisticGuard<'a>, Blocked> {
    let read = if is_passing {
        access.pool.read_scan(child)
    } else {
        access.pool.read(child)
    };
    match read {
        Ok(guard) => {
            NodeRef::prefetch_slots(guard.page());
            parent.validate()?;
            Ok(guard)
        }
        Err(error) => {
            // A page freed meanwhile may be anything, also unreadable; that is no error.
            parent.validate()?;
            Err(error.into())
        }
    }
}

#[inline]
fn next(node: &NodeRef<'_>, seek: Seek<'_>, level: u8) -> Next {
    match seek {
        Seek::Key(key) => match node.owns_in_descent(key) {
            Owns::Own if node.level() == level => Next::Here,
            Owns::Own => Next::Child(node.child_for(key)),
            Owns::Foster(foster) => Next::Foster(foster),
            Owns::Below | Owns::Above => Next::Astray,
        },
        Seek::Before(bound) => match node.owns_before(bound) {
            Owns::Own if node.level() == level => Next::Here,
            Owns::Own => Next::Child(node.child_before(bound)),
            Owns::Foster(foster) => Next::Foster(foster),
            Owns::Below | Owns::Above => Next::Astray,
        },
        Seek::Last => match node.foster() {
            Some(foster) => Next::Foster(foster),
            None if node.level() == level => Next::Here,
            None => Next::Child(node.child(node.count().wrapping_sub(1))),
        },
    }
}

/// Lets others get on before the next attempt: the longer the more attempts were in vain.
#[cold]
pub(super) fn back_off(attempt: u32) {
    if attempt < 6 {
        (0..1u32 << attempt).for_each(|_| std::hint::spin_loop());
    } else {
        std::thread::yield_now();
    }
}
