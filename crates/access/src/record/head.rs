//! The head of a row operation: everything but key and values, each number in as few bytes as it needs.
//!
//! ```text
//! [undo_next u64, of a CLR]  control u32  page  previous LSN / 8  root  store
//!     key len  value len  old len  kept in front  kept at the back
//! ```
//! The control word says which operation it is, the row's flags, and how many bytes each of the
//! numbers takes; a number that is zero takes none. Zeros follow up to a multiple of eight, so that the log copies
//! what comes behind in whole words.

use longshore_base::bits::Field;
use longshore_base::{Lsn, PageId, StoreId};

use super::row::{RowOp, RowRecord};
use crate::bytes::{Decoder, Malformed};
use crate::node::{Kept, RowFlags};

const OP: Field = Field::new(0, 2);
const FLAGS: Field = OP.then(2);
const OLD_FLAGS: Field = FLAGS.then(2);
const PAGE: Field = OLD_FLAGS.then(4);
const PREVIOUS: Field = PAGE.then(4);
const ROOT: Field = PREVIOUS.then(4);
const STORE: Field = ROOT.then(3);
const KEY: Field = STORE.then(2);
const VALUE: Field = KEY.then(2);
const OLD: Field = VALUE.then(2);
const FRONT: Field = OLD.then(2);
const BACK: Field = FRONT.then(2);
/// Bits of the control word that mean nothing yet.
const UNUSED: u64 = !(BACK.then(1).one() - 1);

const _: () = assert!(RowFlags::from_bits(FLAGS.max() as u16 + 1).is_none());

const CONTROL_BYTES: usize = size_of::<u32>();
/// Bytes of a CLR's head before the row operation.
pub(super) const UNDO_NEXT_BYTES: usize = 8;
/// The head without `undo_next` is as long as a multiple of this.
const WORD: usize = 8;
/// The longest head of a row operation: three numbers of 8 bytes, the store's 4, and five lengths.
pub(super) const HEAD_BYTES_MAX: usize = (CONTROL_BYTES + 3 * 8 + 4 + 5 * 2).next_multiple_of(WORD);
/// LSNs are multiples of this.
const LSN_UNIT: u64 = 8;

/// What a row record says besides key and values; see [`RowRecord::head`].
#[derive(Clone, Copy, Debug)]
pub struct RowHead {
    /// Numbers are written eight bytes at a time, so there is room behind the last.
    bytes: [u8; UNDO_NEXT_BYTES + HEAD_BYTES_MAX + WORD],
    start: usize,
    end: usize,
}

impl RowHead {
    #[inline]
    pub(super) fn new(row: &RowRecord<'_>, undo_next: Option<Lsn>) -> RowHead {
        let mut head = RowHead {
            bytes: [0; _],
            start: UNDO_NEXT_BYTES,
            end: UNDO_NEXT_BYTES + CONTROL_BYTES,
        };
        if let Some(next) = undo_next {
            head.start = 0;
            head.bytes[..UNDO_NEXT_BYTES].copy_from_slice(&next.get().to_le_bytes());
        }
        let length = |bytes: &[u8]| u64::from(bytes.len() as u16);
        // One by one: what is no number of this operation is then known to be zero.
        let control = OP.with(0, row.op as u64)
            | FLAGS.with(0, row.flags.bits().into())
            | OLD_FLAGS.with(0, row.old_flags.bits().into())
            | PAGE.with(0, head.push(row.page.get()))
            | PREVIOUS.with(0, head.push(row.previous.get() / LSN_UNIT))
            | ROOT.with(0, head.push(row.root.get()))
            | STORE.with(0, head.push(row.store.get().into()))
            | KEY.with(0, head.push(length(row.key)))
            | VALUE.with(0, head.push(length(row.value)))
            | OLD.with(0, head.push(length(row.old_value)))
            | FRONT.with(0, head.push(row.kept.front.into()))
            | BACK.with(0, head.push(row.kept.back.into()));
        let at = UNDO_NEXT_BYTES;
        head.bytes[at..at + CONTROL_BYTES].copy_from_slice(&(control as u32).to_le_bytes());
        head.end = head.end.next_multiple_of(WORD);
        head
    }

    /// Appends a number, and returns how many bytes it takes.
    #[inline]
    fn push(&mut self, number: u64) -> u64 {
        let bytes = (u64::BITS - number.leading_zeros()).div_ceil(8);
        self.bytes[self.end..self.end + WORD].copy_from_slice(&number.to_le_bytes());
        self.end += bytes as usize;
        u64::from(bytes)
    }

    /// The head's bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Reads a row operation, which takes up all of `body`.
    pub(super) fn decode(body: &[u8]) -> Result<RowRecord<'_>, Malformed> {
        let mut from = Decoder::new(body);
        let control = u64::from(from.u32()?);
        if control & UNUSED != 0 {
            return Err(Malformed("reserved bits are in use"));
        }
        let mut number = |field: Field, bytes_max| match field.get(control) {
            bytes if bytes <= bytes_max => from.number(bytes as usize),
            _ => Err(Malformed("a number is longer than it can be")),
        };
        let page = PageId::new(number(PAGE, 8)?);
        let previous = number(PREVIOUS, 8)?.checked_mul(LSN_UNIT);
        let root = PageId::new(number(ROOT, 8)?);
        let store = StoreId::new(number(STORE, 4)? as u32);
        let mut length = |field| Ok(number(field, 2)? as u16);
        let (key, value, old) = (length(KEY)?, length(VALUE)?, length(OLD)?);
        let kept = Kept {
            front: length(FRONT)?,
            back: length(BACK)?,
        };
        let bytes = body.len() - from.remainder().len();
        if from.number(bytes.next_multiple_of(WORD) - bytes)? != 0 {
            return Err(Malformed("reserved bytes are in use"));
        }
        let row = RowRecord {
            store,
            root,
            page,
            previous: Lsn::new(previous.ok_or(Malformed("a position beyond all logs"))?),
            op: RowOp::from_raw(OP.get(control)).ok_or(Malformed("unknown row operation"))?,
            key: from.bytes(key.into())?,
            flags: take_flags(FLAGS, control)?,
            kept,
            value: from.bytes(value.into())?,
            old_flags: take_flags(OLD_FLAGS, control)?,
            old_value: from.bytes(old.into())?,
        };
        from.finish()?;
        Ok(row)
    }
}

fn take_flags(field: Field, control: u64) -> Result<RowFlags, Malformed> {
    RowFlags::from_bits(field.get(control) as u16).ok_or(Malformed("unknown row flags"))
}
