//! Adoption: a parent takes over the foster child of its child.
//!
//! # Protocol
//! Whoever writes and, on the way down, came to its leaf by a foster pointer right below a
//! parent tries to latch both from the versions it saw, and gives up at once if that fails: the next
//! one will try. Both pages change in one mini-transaction: the parent gets an entry, the
//! child's foster pointer is cleared. Keys stay where they are, and so do all fences.
//!
//! A parent without room is split first, at its own level, like a leaf.

use super::Tree;
use super::descent::Orphan;
use crate::access::{Access, LogContext};
use crate::action::PageAction;
use crate::error::AccessError;
use crate::mtr::{MiniTransaction, Steps};
use crate::node::NodeRef;
use longshore_base::PageId;

const ADOPT: Steps = Steps::new("adopt.latched", "adopt.logged", "adopt.applied");

/// How an attempt to adopt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Adoption {
    Done,
    /// Somebody else is at work there.
    Busy,
    /// The parent has no room for a key of that many bytes.
    ParentIsFull(usize),
}

impl Tree {
    /// Has the parent adopt the foster child of `orphan.left`, unless somebody is in the way.
    pub(super) fn adopt(
        &self,
        access: &Access,
        cx: &mut LogContext,
        orphan: Orphan<'_>,
    ) -> Result<Adoption, AccessError> {
        let Ok(parent) = orphan.parent.try_exclusive() else {
            return Ok(Adoption::Busy);
        };
        let Ok(left) = orphan.left.try_exclusive() else {
            return Ok(Adoption::Busy);
        };
        let node = NodeRef::new(left.page());
        let (Some(child), Some(key)) = (node.foster(), node.upper()) else {
            return Err(self.fosterless(left.page_id()));
        };
        if !NodeRef::new(parent.page())
            .room_for_child(key.len())
            .is_there()
        {
            return Ok(Adoption::ParentIsFull(key.len()));
        }
        let mut mtr = MiniTransaction::begin(access);
        mtr.change(parent, PageAction::InsertChild { key: &key, child });
        mtr.change(left, PageAction::ClearFoster);
        mtr.commit(cx, &ADOPT)?;
        Ok(Adoption::Done)
    }

    /// Adopts, or makes room in the parent so that the next one can; false when somebody else is at
    /// work there, and adopting had better wait for another descent.
    pub(super) fn adopt_or_split_above(
        &self,
        access: &Access,
        cx: &mut LogContext,
        key: &[u8],
        orphan: Orphan<'_>,
    ) -> Result<bool, AccessError> {
        let level = orphan.parent_level;
        match self.adopt(access, cx, orphan)? {
            Adoption::Done => Ok(true),
            Adoption::Busy => Ok(false),
            Adoption::ParentIsFull(key_len) => {
                self.split_above(access, cx, key, level, key_len)?;
                Ok(true)
            }
        }
    }

    /// Adopts on behalf of nobody, on the way to a leaf; false when that has to wait.
    ///
    /// Without space in log or file the foster chain serves as well: that is no reason to fail.
    #[cold]
    pub(super) fn adopt_in_passing(
        &self,
        access: &Access,
        key: &[u8],
        orphan: Orphan<'_>,
    ) -> Result<bool, AccessError> {
        let Ok(mut cx) = access.system_context(0) else {
            return Ok(false);
        };
        match self.adopt_or_split_above(access, &mut cx, key, orphan) {
            Err(AccessError::Pool(_) | AccessError::Log(_)) => Ok(false),
            other => other,
        }
    }

    #[cold]
    fn fosterless(&self, page: PageId) -> AccessError {
        AccessError::corrupt(
            page,
            self.store,
            "a foster child and a fence below it",
            "only one of both",
        )
    }
}
