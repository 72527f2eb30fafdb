//! Row operations: what to redo, and what undo needs.

use longshore_base::{Lsn, PageId, StoreId};

use crate::action::PageAction;
use crate::bytes::{Decoder, Malformed};
use crate::node::RowFlags;

/// Bytes of a row body before key and values.
const ROW_HEAD: usize = 40;
/// Bytes of a CLR body before the row operation.
const UNDO_NEXT: usize = 8;

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
    /// The value after an insert or update.
    pub value: &'a [u8],
    /// The flags before an update.
    pub old_flags: RowFlags,
    /// The value before an update.
    pub old_value: &'a [u8],
}

/// A row record's fixed part, with the `undo_next` of a CLR before it; see [`RowRecord::head`].
#[derive(Clone, Copy, Debug)]
pub struct RowHead {
    bytes: [u8; UNDO_NEXT + ROW_HEAD],
    start: usize,
}

impl RowHead {
    fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

impl<'a> RowRecord<'a> {
    /// The fixed part of the body, for [`parts`](Self::parts); with `undo_next`, that of a CLR.
    #[inline]
    pub fn head(&self, undo_next: Option<Lsn>) -> RowHead {
        let mut bytes = [0; UNDO_NEXT + ROW_HEAD];
        let (next, fixed) = bytes.split_at_mut(UNDO_NEXT);
        next.copy_from_slice(&undo_next.unwrap_or(Lsn::ZERO).get().to_le_bytes());
        fixed[0..8].copy_from_slice(&self.page.get().to_le_bytes());
        fixed[8..16].copy_from_slice(&self.previous.get().to_le_bytes());
        fixed[16..24].copy_from_slice(&self.root.get().to_le_bytes());
        fixed[24..28].copy_from_slice(&self.store.get().to_le_bytes());
        fixed[28] = self.op as u8;
        fixed[30..32].copy_from_slice(&self.flags.bits().to_le_bytes());
        fixed[32..34].copy_from_slice(&self.old_flags.bits().to_le_bytes());
        fixed[34..36].copy_from_slice(&(self.key.len() as u16).to_le_bytes());
        fixed[36..38].copy_from_slice(&(self.value.len() as u16).to_le_bytes());
        fixed[38..40].copy_from_slice(&(self.old_value.len() as u16).to_le_bytes());
        RowHead {
            bytes,
            start: if undo_next.is_some() { 0 } else { UNDO_NEXT },
        }
    }

    /// The body in the pieces that the log copies together.
    #[inline]
    pub fn parts<'b>(&'b self, head: &'b RowHead) -> [&'b [u8]; 4] {
        [head.as_slice(), self.key, self.value, self.old_value]
    }

    /// Bytes of the body, as [`ROW`](super::ROW).
    pub fn body_bytes(&self) -> usize {
        ROW_HEAD + self.key.len() + self.value.len() + self.old_value.len()
    }

    /// Bytes of the body of the CLR that would undo this.
    pub fn undo_body_bytes(&self) -> usize {
        UNDO_NEXT + self.inverse().body_bytes()
    }

    /// Reads the body of a [`ROW`](super::ROW) record.
    ///
    /// # Errors
    /// [`Malformed`] when it is none.
    pub fn decode(body: &'a [u8]) -> Result<RowRecord<'a>, Malformed> {
        let mut from = Decoder::new(body);
        let page = PageId::new(from.u64()?);
        let previous = Lsn::new(from.u64()?);
        let root = PageId::new(from.u64()?);
        let store = StoreId::new(from.u32()?);
        let op = RowOp::from_raw(from.u8()?).ok_or(Malformed("unknown row operation"))?;
        if from.u8()? != 0 {
            return Err(Malformed("a reserved byte is in use"));
        }
        let flags = take_flags(&mut from)?;
        let old_flags = take_flags(&mut from)?;
        let key_len = from.u16()? as usize;
        let value_len = from.u16()? as usize;
        let old_len = from.u16()? as usize;
        let key = from.bytes(key_len)?;
        let value = from.bytes(value_len)?;
        let old_value = from.bytes(old_len)?;
        from.finish()?;
        Ok(RowRecord {
            store,
            root,
            page,
            previous,
            op,
            key,
            flags,
            value,
            old_flags,
            old_value,
        })
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
            key, flags, value, ..
        } = *self;
        match self.op {
            RowOp::Insert => PageAction::InsertRow { key, flags, value },
            RowOp::Update => PageAction::UpdateRow { key, flags, value },
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
                value: self.old_value,
                ..nothing
            },
        }
    }
}

impl RowOp {
    const fn from_raw(raw: u8) -> Option<RowOp> {
        match raw {
            0 => Some(RowOp::Insert),
            1 => Some(RowOp::Update),
            2 => Some(RowOp::Ghost),
            3 => Some(RowOp::Revive),
            _ => None,
        }
    }
}

fn take_flags(from: &mut Decoder<'_>) -> Result<RowFlags, Malformed> {
    RowFlags::from_bits(from.u16()?).ok_or(Malformed("unknown row flags"))
}
