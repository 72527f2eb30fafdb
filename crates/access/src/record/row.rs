//! Row operations: what to redo, and what undo needs.

use longshore_base::{Lsn, PageId, StoreId};

use super::head::{HEAD_BYTES_MAX, RowHead, UNDO_NEXT_BYTES};
use crate::action::PageAction;
use crate::bytes::{Decoder, Malformed};
use crate::node::{Kept, RowFlags};

/// What happens to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOp {
    /// It is added.
    Insert,
    /// It gets other flags and another value; a ghost may thereby become a row, or the reverse.
    Update,
    /// It becomes a ghost and keeps its value.
    Ghost,
    /// A ghost becomes a row again.
    Revive,
}

/// One operation on one row, with all that redo and undo need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRecord<'a> {
    /// The tree's store.
    pub store: StoreId,
    /// The tree's root: undo looks the key up from there, as the row may have moved.
    pub root: PageId,
    /// The page changed.
    pub page: PageId,
    /// That page's LSN before the change.
    pub previous: Lsn,
    /// What happens.
    pub op: RowOp,
    /// The row's key.
    pub key: &'a [u8],
    /// The flags after an insert or update.
    pub flags: RowFlags,
    /// What an update keeps of the value: the same before and after it.
    pub kept: Kept,
    /// The value after an insert; after an update, what stands where the value is not kept.
    pub value: &'a [u8],
    /// The flags before an update.
    pub old_flags: RowFlags,
    /// What stood there before an update.
    pub old_value: &'a [u8],
}

impl<'a> RowRecord<'a> {
    /// The first part of the body, for [`parts`](Self::parts); with `undo_next`, that of a CLR.
    #[inline]
    pub fn head(&self, undo_next: Option<Lsn>) -> RowHead {
        RowHead::new(self, undo_next)
    }

    /// The body in the pieces that the log copies together.
    #[inline]
    pub fn parts<'b>(&'b self, head: &'b RowHead) -> [&'b [u8]; 4] {
        [head.as_slice(), self.key, self.value, self.old_value]
    }

    /// Bytes that the body of the CLR that undoes this may take, wherever the row is by then.
    #[inline]
    pub fn undo_body_bytes_max(&self) -> usize {
        UNDO_NEXT_BYTES + HEAD_BYTES_MAX + self.key.len() + self.inverse().value.len()
    }

    /// Bytes of the row's value after an insert or update.
    #[inline]
    pub fn value_bytes(&self) -> usize {
        self.kept.bytes() + self.value.len()
    }

    /// Reads the body of a [`ROW`](super::ROW) record.
    ///
    /// # Errors
    /// [`Malformed`] when it is none.
    pub fn decode(body: &'a [u8]) -> Result<RowRecord<'a>, Malformed> {
        RowHead::decode(body)
    }

    /// Reads the body of a [`CLR`](super::CLR) record: where undo goes on, and what was done to undo.
    ///
    /// # Errors
    /// [`Malformed`] when it is none.
    pub fn decode_clr(body: &'a [u8]) -> Result<(Lsn, RowRecord<'a>), Malformed> {
        let mut from = Decoder::new(body);
        let undo_next = Lsn::new(from.u64()?);
        Ok((undo_next, RowRecord::decode(from.remainder())?))
    }

    /// The change of the page.
    pub fn action(&self) -> PageAction<'a> {
        let RowRecord {
            key,
            flags,
            kept,
            value,
            ..
        } = *self;
        match self.op {
            RowOp::Insert => PageAction::InsertRow { key, flags, value },
            RowOp::Update => PageAction::UpdateRow {
                key,
                flags,
                kept,
                middle: value,
            },
            RowOp::Ghost => PageAction::Ghost { key },
            RowOp::Revive => PageAction::Revive { key },
        }
    }

    /// The operation that undoes this one; `page` and `previous` are for the caller to set, once it
    /// knows where the row is now.
    ///
    /// An insert is undone by a ghost, not by taking the row out: others may have come to lock
    /// the gap below its key by that name. It is purged when nobody does any longer.
    pub fn inverse(&self) -> RowRecord<'a> {
        let nothing = RowRecord {
            flags: RowFlags::NONE,
            kept: Kept::NOTHING,
            value: &[],
            old_flags: RowFlags::NONE,
            old_value: &[],
            ..*self
        };
        match self.op {
            RowOp::Insert | RowOp::Revive => RowRecord {
                op: RowOp::Ghost,
                ..nothing
            },
            RowOp::Ghost => RowRecord {
                op: RowOp::Revive,
                ..nothing
            },
            // The undo of an undo is never asked for: the new old value stays out of the log.
            RowOp::Update => RowRecord {
                flags: self.old_flags,
                kept: self.kept,
                value: self.old_value,
                ..nothing
            },
        }
    }
}

impl RowOp {
    pub(super) const fn from_raw(raw: u64) -> Option<RowOp> {
        match raw {
            0 => Some(RowOp::Insert),
            1 => Some(RowOp::Update),
            2 => Some(RowOp::Ghost),
            3 => Some(RowOp::Revive),
            _ => None,
        }
    }
}
