//! The page table: which frame holds a page, or who is bringing it in.
//!
//! # Protocol
//! ```text
//!            reserve                 publish
//!   Absent ---------> Loading(t) ------------> Frame(f)
//!     ^                 |  ^ | claim               |
//!     |                 |  +-+                     |
//!     +----- cancel ----+                          |
//!     +------------------ remove ------------------+
//! ```
//! A page id is *reserved* before anything is done for it. The ticket `t` names one bringing-in: a
//! reader that took part in an earlier one, and was slow, cannot publish what it read then. Where several take
//! part, the first to have the bytes *claims* it, and the others wait for what comes of it. Only the
//! thread that evicted frame `f` removes `Frame(f)`, before it gives the frame to anybody.
//!
//! # Invariants
//! T1. A page has at most one entry; it is Frame(f) for at most one f.
//! T2. Look-up is wait-free: a bounded number of loads, no stores.
//! T3. From eviction to removal an entry names a frame without page; whoever meets that looks again.
//!
//! # Implementations
//! [`Translation`] is an array indexed by page number, [`HashTable`] a fixed number of slots. Figures
//! and choice: `docs/decisions/0001-page-table.md`.

mod hash;
mod translation;

use crate::error::PoolError;
use crate::frame::FrameId;
use crate::options::PageTableKind;
use hash::HashTable;
use longshore_base::PageId;
use translation::Translation;

/// Page ids must lie below this, so that an entry of the hash table holds one: at 8 KiB, 512 TiB.
pub(crate) const PAGES_MAX: u64 = 1 << 36;

/// Bits of an entry.
const ENTRY_BITS: u32 = 28;
/// Set in entries that are being loaded; the bits below are the ticket.
const LOADING: u32 = 1 << (ENTRY_BITS - 1);

/// Set in tickets of those who have the page's bytes already, and take part with nobody.
const CLAIMED: u32 = LOADING >> 1;

/// Tickets in use: the two greatest are left to the hash table for marks of its own.
const TICKETS: u64 = CLAIMED as u64 - 2;

/// Names one bringing-in of a page. Unique among those under way: 26 bits, so up to 67 million others
/// may begin while one lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u32);

impl Ticket {
    pub(crate) fn new(number: u64) -> Ticket {
        Ticket((number % TICKETS) as u32)
    }

    /// Whether whoever reads the page under it is done, and about to publish.
    pub(crate) fn is_claimed(self) -> bool {
        self.0 & CLAIMED != 0
    }
}

/// What the table says of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Nothing.
    Absent,
    /// It is being brought in.
    Loading(Ticket),
    /// It is in this frame, or was until a moment ago (T3).
    Frame(FrameId),
}

impl Entry {
    #[inline]
    fn from_raw(raw: u32) -> Entry {
        match raw {
            0 => Entry::Absent,
            _ if raw & LOADING != 0 => Entry::Loading(Ticket(raw & (LOADING - 1))),
            _ => Entry::Frame(FrameId::new(raw - 1)),
        }
    }

    #[inline]
    fn to_raw(self) -> u32 {
        match self {
            Entry::Absent => 0,
            Entry::Loading(ticket) => LOADING | ticket.0,
            Entry::Frame(frame) => frame.get() + 1,
        }
    }
}

// Every frame + 1 fits below the bit that says "loading".
const _: () = assert!(FrameId::LIMIT < LOADING);

/// How a reservation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Reserve {
    /// The page is the caller's to bring in.
    Won,
    /// Somebody else's entry is there.
    Found(Entry),
    /// No slot: one of these frames' pages must go first (only in a hash table).
    Crowded(Vec<FrameId>),
}

/// Memory that the translation array may use for a file of `pages` pages.
pub(crate) fn translation_bytes(pages: u64) -> usize {
    Translation::bytes(pages)
}

/// One of the implementations.
pub(crate) enum PageTable {
    Translation(Translation),
    Hash(HashTable),
}

impl PageTable {
    /// A table for a pool of `frames` frames.
    pub(crate) fn new(kind: PageTableKind, frames: u32) -> Result<PageTable, PoolError> {
        Ok(match kind {
            PageTableKind::Translation => PageTable::Translation(Translation::new()?),
            PageTableKind::Hash => PageTable::Hash(HashTable::new(frames)?),
        })
    }

    /// What the table says of `page`.
    #[inline]
    pub(crate) fn lookup(&self, page: PageId) -> Entry {
        match self {
            PageTable::Translation(table) => table.lookup(page),
            PageTable::Hash(table) => table.lookup(page),
        }
    }

    /// Turns Absent into Loading.
    pub(crate) fn reserve(&self, page: PageId, ticket: Ticket) -> Result<Reserve, PoolError> {
        match self {
            PageTable::Translation(table) => table.reserve(page, ticket),
            PageTable::Hash(table) => Ok(table.reserve(page, ticket)),
        }
    }

    /// Claims a bringing-in in which several take part, for one who has the bytes: the ticket by which to publish
    /// or cancel now; `None` if it is over, or claimed.
    pub(crate) fn claim(&self, page: PageId, ticket: Ticket) -> Option<Ticket> {
        let claimed = Ticket(ticket.0 | CLAIMED);
        self.exchange(page, Entry::Loading(ticket), Entry::Loading(claimed))
            .then_some(claimed)
    }

    /// Turns Loading(ticket) into Frame(frame); false if that bringing-in is over.
    #[must_use]
    pub(crate) fn publish(&self, page: PageId, ticket: Ticket, frame: FrameId) -> bool {
        self.exchange(page, Entry::Loading(ticket), Entry::Frame(frame))
    }

    /// Turns Loading(ticket) into Absent; false if that bringing-in is over.
    pub(crate) fn cancel(&self, page: PageId, ticket: Ticket) -> bool {
        self.exchange(page, Entry::Loading(ticket), Entry::Absent)
    }

    /// Turns Frame(frame) into Absent, by the one who evicted the frame.
    pub(crate) fn remove(&self, page: PageId, frame: FrameId) {
        let removed = self.exchange(page, Entry::Frame(frame), Entry::Absent);
        assert!(removed, "T1: {page:?} was not in the table as {frame:?}");
    }

    /// Bytes of memory that the table may use by now, for a file of `pages` pages.
    pub(crate) fn bytes(&self, pages: u64) -> usize {
        match self {
            PageTable::Translation(_) => Translation::bytes(pages),
            PageTable::Hash(table) => table.bytes(),
        }
    }

    /// The most frames that the table can serve.
    pub(crate) fn frames_max(&self) -> u32 {
        match self {
            PageTable::Translation(_) => FrameId::LIMIT,
            PageTable::Hash(table) => table.frames_max(),
        }
    }

    fn exchange(&self, page: PageId, from: Entry, to: Entry) -> bool {
        match self {
            PageTable::Translation(table) => table.exchange(page, from, to),
            PageTable::Hash(table) => table.exchange(page, from, to),
        }
    }
}
