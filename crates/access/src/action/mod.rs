//! The changes that a page can undergo, each one a value: encoded into a log record and applied to
//! the page by forward work, decoded and applied again by redo.
//!
//! # Protocol
//! Forward work builds an action, applies it under the page's exclusive latch, logs it, and stamps
//! the page with the record's LSN. Redo decodes it and applies it to the page as it was before. As
//! both run [`PageAction::apply`], they cannot drift apart; and since an action names keys,
//! never slots or offsets, it yields the same logical page whatever the page's history (node N5).
//!
//! # Invariants
//! A1. `apply` is a function of the page's logical content and the action.
//! A2. `apply` either makes the whole change or, returning [`Corrupt`], leaves the page as it was.
//! A3. An action that [resets the page](PageAction::resets_page) reads nothing of it.

mod apply;
mod codec;
mod display;
mod map;

use longshore_base::{PageId, StoreId};

use crate::node::{Kept, NodeImage, RowFlags};
use crate::overflow::ChainId;

pub use apply::Corrupt;
pub(crate) use display::Shown;
pub use map::{MAP_AT, map_bits, map_is_used};

/// First byte of the meta page that [`PageAction::MetaSet`] may write.
pub const META_AT: usize = longshore_base::page::header::SIZE;

/// One change of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAction<'a> {
    /// Makes the page a node with this content.
    FormatNode(NodeImage<'a>),
    /// Adds a row whose key the leaf does not hold.
    InsertRow {
        /// Key of the row.
        key: &'a [u8],
        /// Flags of the row.
        flags: RowFlags,
        /// Value of the row.
        value: &'a [u8],
    },
    /// Gives a row, ghost or not, other flags and another value.
    UpdateRow {
        /// Key of the row.
        key: &'a [u8],
        /// Flags after the change.
        flags: RowFlags,
        /// What stays of the value.
        kept: Kept,
        /// What stands after the change where the value is not kept.
        middle: &'a [u8],
    },
    /// Makes a row a ghost: deleted, but keeping its space and its place.
    Ghost {
        /// Key of the row.
        key: &'a [u8],
    },
    /// Makes a ghost a row again, with the value that it kept.
    Revive {
        /// Key of the row.
        key: &'a [u8],
    },
    /// Takes a ghost out of the leaf.
    Purge {
        /// Key of the ghost.
        key: &'a [u8],
    },
    /// Hands the rows from `key` on to a new right neighbour: `key` becomes the upper bound and
    /// `foster` the foster child. What goes is in the neighbour's `FormatNode`.
    SplitOff {
        /// First key of the foster child; a key of this node.
        key: &'a [u8],
        /// The new right neighbour.
        foster: PageId,
    },
    /// Adds an entry to a branch, as when a parent adopts a foster child.
    InsertChild {
        /// Low fence of the child.
        key: &'a [u8],
        /// The child.
        child: PageId,
    },
    /// Takes an entry out of a branch; never the first one.
    RemoveChild {
        /// Low fence of the child.
        key: &'a [u8],
    },
    /// Makes the right neighbour a foster child: the reverse of adoption.
    SetFoster {
        /// The right neighbour.
        foster: PageId,
    },
    /// Lets the foster child go, as it now has a parent: the bound becomes the high fence.
    ClearFoster,
    /// Takes in the content of the right neighbour, whose low fence is this node's upper bound.
    Absorb(NodeImage<'a>),
    /// Makes the page a map of used pages, with no bit set.
    FormatMap,
    /// Sets or clears bits of a map page, all of which were otherwise.
    SetMapBits {
        /// First bit.
        first: u32,
        /// Number of bits.
        count: u32,
        /// What they become.
        used: bool,
    },
    /// Ends the use of the page: what is left is a blank page that keeps its LSN.
    FreePage,
    /// Makes the page a link of an overflow chain.
    OverflowImage {
        /// The store that the chain belongs to.
        store: StoreId,
        /// The chain.
        chain: ChainId,
        /// Number of the link in the chain, from 0.
        index: u32,
        /// The next link, or [`PageId::NONE`].
        next: PageId,
        /// The stretch of the value that this link holds.
        bytes: &'a [u8],
    },
    /// Points a link of an overflow chain to another next link.
    OverflowLink {
        /// The next link, or [`PageId::NONE`].
        next: PageId,
    },
    /// Makes the page the meta page, with nothing set.
    FormatMeta,
    /// Writes bytes into the meta page.
    MetaSet {
        /// Where, counted from the start of the page.
        at: u16,
        /// The bytes.
        bytes: &'a [u8],
    },
}

impl PageAction<'_> {
    /// Whether the action needs nothing of the page's former content: a page that such an action
    /// follows need not be read, and records before it need not be redone.
    pub fn resets_page(&self) -> bool {
        matches!(
            self,
            PageAction::FormatNode(_)
                | PageAction::FormatMap
                | PageAction::FreePage
                | PageAction::OverflowImage { .. }
                | PageAction::FormatMeta
        )
    }
}
