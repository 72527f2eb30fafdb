//! Bodies of the log records of this crate: rows, compensations, structure changes.
//!
//! | kind    | body                                                                        |
//! |---------|-----------------------------------------------------------------------------|
//! | [`ROW`] | one row operation: which page, what to redo, what to undo                   |
//! | [`CLR`] | `undo_next` u64, then a row operation that undoes another; is never undone  |
//! | [`SMO`] | a mini-transaction: for each page its actions; belongs to nobody, redo only |
//!
//! A row operation, little-endian:
//! ```text
//!  0..8  page   8..16 previous LSN of the page   16..24 root   24..28 store
//! 28 op  29 zero  30..32 flags  32..34 old flags  34..36 key len  36..38 value len  38..40 old len
//! 40.. key, value, old value
//! ```
//! A structure change: `pages u16`, then for each page `page u64, previous u64, len u32`
//! and `len` bytes of actions, one behind the other.

use std::fmt;

use longshore_base::{Lsn, PageId, StoreId};
use smallvec::SmallVec;

use crate::action::{PageAction, Shown};
use crate::bytes::{Decoder, Malformed};
use crate::node::RowFlags;

/// Kind of a row operation's record.
pub const ROW: u8 = 1;
/// Kind of a compensation log record: the undo of a row operation.
pub const CLR: u8 = 2;
/// Kind of a structure change's record.
pub const SMO: u8 = 3;

/// Bytes of a row body before key and values.
const ROW_HEAD: usize = 40;
/// Bytes of a CLR body before the row operation.
const UNDO_NEXT: usize = 8;
/// Bytes of a page's entry in a structure change before its actions.
const PAGE_HEAD: usize = 20;

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

    /// Bytes of the body, as [`ROW`].
    pub fn body_bytes(&self) -> usize {
        ROW_HEAD + self.key.len() + self.value.len() + self.old_value.len()
    }

    /// Bytes of the body of the CLR that would undo this.
    pub fn undo_body_bytes(&self) -> usize {
        UNDO_NEXT + self.inverse().body_bytes()
    }

    /// Reads the body of a [`ROW`] record.
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

    /// Reads the body of a [`CLR`] record: where undo goes on, and what was done to undo.
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

impl fmt::Display for RowRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "store {} page {}: {}",
            self.store,
            self.page,
            self.action()
        )?;
        if self.op == RowOp::Update {
            write!(f, " (was {}{})", Shown(self.old_value), self.old_flags)?;
        }
        Ok(())
    }
}

/// What a record does to one page.
#[derive(Clone, Copy, Debug)]
pub struct PageChange<'a> {
    /// The page.
    pub page: PageId,
    /// The page's LSN before the record.
    pub previous: Lsn,
    actions: Actions<'a>,
}

/// The actions of one record on one page, in order: decoded already, or still to be.
#[derive(Clone, Copy, Debug)]
enum Actions<'a> {
    One(PageAction<'a>),
    Encoded(&'a [u8]),
}

impl<'a> PageChange<'a> {
    /// The actions, to be applied in this order and then stamped together.
    pub fn actions(&self) -> impl Iterator<Item = Result<PageAction<'a>, Malformed>> + use<'a> {
        let (mut one, mut rest) = match self.actions {
            Actions::One(action) => (Some(action), Decoder::new(&[])),
            Actions::Encoded(bytes) => (None, Decoder::new(bytes)),
        };
        std::iter::from_fn(move || {
            if let Some(action) = one.take() {
                return Some(Ok(action));
            }
            if rest.is_empty() {
                return None;
            }
            let action = PageAction::decode_next(&mut rest);
            if action.is_err() {
                rest = Decoder::new(&[]);
            }
            Some(action)
        })
    }

    /// Whether the page's former content does not matter, as the first action resets it.
    ///
    /// # Errors
    /// [`Malformed`] when the first action cannot be read.
    pub fn resets_page(&self) -> Result<bool, Malformed> {
        self.actions()
            .next()
            .map_or(Ok(false), |first| Ok(first?.resets_page()))
    }
}

/// The page changes of a record of this crate's kinds.
///
/// # Errors
/// [`Malformed`] when `kind` is none of them or `body` cannot be read.
pub fn changes(kind: u8, body: &[u8]) -> Result<SmallVec<[PageChange<'_>; 4]>, Malformed> {
    match kind {
        ROW => Ok(SmallVec::from_iter([row_change(RowRecord::decode(body)?)])),
        CLR => Ok(SmallVec::from_iter([row_change(
            RowRecord::decode_clr(body)?.1,
        )])),
        SMO => decode_smo(body),
        _ => Err(Malformed("its kind is none of this crate's")),
    }
}

fn row_change(row: RowRecord<'_>) -> PageChange<'_> {
    PageChange {
        page: row.page,
        previous: row.previous,
        actions: Actions::One(row.action()),
    }
}

fn decode_smo(body: &[u8]) -> Result<SmallVec<[PageChange<'_>; 4]>, Malformed> {
    let mut from = Decoder::new(body);
    let pages = from.u16()?;
    let mut changes = SmallVec::new();
    for _ in 0..pages {
        let page = PageId::new(from.u64()?);
        let previous = Lsn::new(from.u64()?);
        let len = from.u32()? as usize;
        let actions = Actions::Encoded(from.bytes(len)?);
        changes.push(PageChange {
            page,
            previous,
            actions,
        });
    }
    from.finish()?;
    Ok(changes)
}

/// Gathers the body of a structure change, page by page.
#[derive(Debug, Default)]
pub struct SmoBody {
    pages: SmallVec<[(PageId, Vec<u8>); 4]>,
    count: [u8; 2],
}

impl SmoBody {
    /// A structure change of no page.
    pub fn new() -> SmoBody {
        SmoBody::default()
    }

    /// Adds an action on `page`, whose LSN before the structure change is `previous`.
    pub fn push(&mut self, page: PageId, previous: Lsn, action: &PageAction<'_>) {
        let index = self
            .pages
            .iter()
            .position(|(id, _)| *id == page)
            .unwrap_or_else(|| {
                let mut head = Vec::with_capacity(PAGE_HEAD + 64);
                head.extend_from_slice(&page.get().to_le_bytes());
                head.extend_from_slice(&previous.get().to_le_bytes());
                head.extend_from_slice(&0u32.to_le_bytes());
                self.pages.push((page, head));
                self.pages.len() - 1
            });
        let bytes = &mut self.pages[index].1;
        action.encode(bytes);
        let len = (bytes.len() - PAGE_HEAD) as u32;
        bytes[PAGE_HEAD - 4..PAGE_HEAD].copy_from_slice(&len.to_le_bytes());
        self.count = (self.pages.len() as u16).to_le_bytes();
    }

    /// Whether no page is changed.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Bytes of the body so far.
    pub fn body_bytes(&self) -> usize {
        self.count.len()
            + self
                .pages
                .iter()
                .map(|(_, bytes)| bytes.len())
                .sum::<usize>()
    }

    /// The body in the pieces that the log copies together.
    pub fn parts(&self) -> SmallVec<[&[u8]; 8]> {
        let pages = self.pages.iter().map(|(_, bytes)| bytes.as_slice());
        std::iter::once(self.count.as_slice())
            .chain(pages)
            .collect()
    }
}

/// A record of this crate, for human eyes: one line, and one more for each further page.
pub struct Readable<'a> {
    /// Kind of the record.
    pub kind: u8,
    /// Body of the record.
    pub body: &'a [u8],
}

impl fmt::Display for Readable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.write(f) {
            Ok(outcome) => outcome,
            Err(malformed) => write!(f, "{malformed}"),
        }
    }
}

impl Readable<'_> {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> Result<fmt::Result, Malformed> {
        Ok(match self.kind {
            ROW => write!(f, "row {}", RowRecord::decode(self.body)?),
            CLR => {
                let (undo_next, row) = RowRecord::decode_clr(self.body)?;
                write!(f, "undo {row}; next to undo {undo_next}")
            }
            _ => write_changes(f, &changes(self.kind, self.body)?),
        })
    }
}

fn write_changes(f: &mut fmt::Formatter<'_>, changes: &[PageChange<'_>]) -> fmt::Result {
    write!(f, "structure change of {} pages", changes.len())?;
    for change in changes {
        write!(f, "\n    page {}:", change.page)?;
        for action in change.actions() {
            match action {
                Ok(action) => write!(f, " {action};")?,
                Err(malformed) => write!(f, " {malformed}")?,
            }
        }
    }
    Ok(())
}

fn take_flags(from: &mut Decoder<'_>) -> Result<RowFlags, Malformed> {
    RowFlags::from_bits(from.u16()?).ok_or(Malformed("unknown row flags"))
}
