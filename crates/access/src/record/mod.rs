//! Bodies of the log records of this crate: rows, compensations, structure changes.
//!
//! | kind    | body                                                                        |
//! |---------|-----------------------------------------------------------------------------|
//! | [`ROW`] | one row operation: which page, what to redo, what to undo                   |
//! | [`CLR`] | `undo_next` u64, then a row operation that undoes another; is never undone  |
//! | [`SMO`] | a mini-transaction: for each page its actions; belongs to nobody, redo only |
//!
//! A row operation: its head (`head.rs`), then key, value, old value. Of the values of an update only the
//! stretch that differs is there. Numbers are little-endian.
//! A structure change: `pages u16`, then for each page `page u64, previous u64, len u32`
//! and `len` bytes of actions, one behind the other.

mod display;
mod head;
mod row;
mod smo;

use longshore_base::{Lsn, PageId};
use smallvec::SmallVec;

use crate::action::PageAction;
use crate::bytes::{Decoder, Malformed};

pub use display::Readable;
pub use head::RowHead;
pub use row::{RowOp, RowRecord};
pub use smo::SmoBody;

/// Kind of a row operation's record.
pub const ROW: u8 = 1;
/// Kind of a compensation log record: the undo of a row operation.
pub const CLR: u8 = 2;
/// Kind of a structure change's record.
pub const SMO: u8 = 3;

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
        SMO => smo::decode_smo(body),
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
