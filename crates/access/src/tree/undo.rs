//! Undo of one row operation, by key.
//!
//! # Protocol
//! The row may be in another page by now, and other rows may have taken the space beside it; so undo
//! is an operation like any other: descend, latch the leaf, do the inverse, and log it as a *compensation
//! record* (CLR) that names the next record to undo. A CLR is never undone, so a rollback that a crash
//! interrupts goes on where it stopped. The record of an update holds only what differs between its values,
//! and the row, which nobody else may have changed, has the rest. If the old value does not fit any more, the leaf is
//! split first, in mini-transactions that belong to nobody.
//!
//! # Failure
//! Undo must not fail for want of log space or frames: it may use the pool's reserve. CLRs are paid from what the operation set aside
//! ([`LogContext::undo_bytes`]), splits from the log's emergency reserve.

use super::Tree;
use super::leaf_read::Slot;
use crate::access::{Access, LogContext};
use crate::error::AccessError;
use crate::record::{RowOp, RowRecord};
use longshore_base::{Lsn, PageId, TxnId};
use longshore_log::Log;

impl Tree {
    /// The tree that a record speaks of.
    pub fn of_record(record: &RowRecord<'_>) -> Tree {
        Tree {
            store: record.store,
            root: record.root,
        }
    }

    /// Reverses what `record` says was done; `undo_next` is the transaction's record before it, where
    /// rollback goes on. Returns the position of the CLR, which `cx.last` becomes.
    ///
    /// # Errors
    /// When a page cannot be had, the log has failed, or the tree contradicts the record.
    pub fn undo(
        &self,
        access: &Access,
        cx: &mut LogContext,
        record: &RowRecord<'_>,
        undo_next: Lsn,
    ) -> Result<Lsn, AccessError> {
        let _frames = access.pool.use_reserve();
        let inverse = record.inverse();
        let bytes = Log::record_bytes(record.undo_body_bytes_max());
        loop {
            let mut leaf = self.write_leaf(access, record.key)?;
            let (Slot::Present(slot) | Slot::Ghost(slot)) = leaf.find(record.key) else {
                return Err(self.nothing_to_undo(leaf.page_id(), record, "no such row"));
            };
            if !leaf.is_as_left_by(slot, record) {
                return Err(self.nothing_to_undo(leaf.page_id(), record, "another value"));
            }
            if inverse.op != RowOp::Update || leaf.has_room_for_update(slot, inverse.value_bytes())
            {
                if cx.claim.remaining() < bytes {
                    cx.claim = access.log.claim_reserve();
                }
                cx.undo_bytes = cx.undo_bytes.saturating_sub(bytes);
                return leaf.compensate(cx, &inverse, Ok(slot), undo_next);
            }
            drop(leaf);
            let mut nobody = LogContext::new(TxnId::SYSTEM, access.log.claim_reserve());
            self.make_room(access, &mut nobody, record.key, inverse.value_bytes())?;
        }
    }

    #[cold]
    fn nothing_to_undo(
        &self,
        page: PageId,
        record: &RowRecord<'_>,
        found: &'static str,
    ) -> AccessError {
        let expected = format!("the row that a transaction changed ({record})");
        AccessError::corrupt(page, self.store, expected, found)
    }
}
