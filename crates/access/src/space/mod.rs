//! Which pages are in use: map pages in the file, and what memory knows beyond them.
//!
//! # Protocol
//! One bit a page, in map pages: page 1 and every [`map_span`](MapPlace::span) pages after it. The bit is
//! set or cleared by the mini-transaction that begins or ends the use of the page, in the same log
//! record, so that no crash loses a page.
//!
//! Memory goes ahead of the bits. A mini-transaction first *reserves* a page ([`Reserved`]): from
//! its thread's extent of the store, an extent taken from the [`FreeMap`] when that is used up,
//! and the file grown when there is none. If it then fails, the page goes back. A freed page is
//! offered again only after the record that frees it is in the log.
//!
//! # Invariants
//! S1. A page with a set bit is taken in the [`FreeMap`]; see there for S2 and S3.
//! S4. A page is in at most one of: use, one thread's extent, the free pages.
//! S5. The map page of a span is formatted before any page of the span is reserved.
//!
//! # Order
//! `growing`, then `free`; a stripe, then `free`. Page latches are taken before none of them, except
//! that a latch holder may take `free` for moments (to give pages back). Reserving never happens under a latch.
//!
//! # Failure
//! The file is grown before anything is changed: a full disk is an error of the reservation. A rollback must
//! not fail for that: rows that it makes longer again may find that others have taken the room, so that
//! leaves are split. A share of the file is kept free for it ([`FreeMap::kept`]); who may use the pool's
//! reserve of frames may have those pages too.

mod attach;
mod free_map;
mod truncate;

pub use attach::SpaceReport;
use free_map::EXTENT_PAGES;
pub(crate) use free_map::{Extent, FreeMap};

use crate::access::Access;
use crate::action::{PageAction, map_bits};
use crate::error::AccessError;
use crate::mtr::{MiniTransaction, Steps};
use longshore_base::metrics::{STRIPES, thread_number};
use longshore_base::sync::Mutex;
use longshore_base::{Lsn, PageId, PageSize, StoreId};
use std::sync::atomic::{AtomicU64, Ordering};

/// Extents that one stripe keeps before it gives the oldest back.
const EXTENTS_MAX: usize = 8;
/// Least number of pages that the file grows by.
const GROW_MIN: u64 = 16;
/// Greatest number of pages that the file grows by: 64 MiB of 8 KiB pages.
const GROW_MAX: u64 = 8192;

/// Crash points of the record that begins a new span.
const FORMAT_MAP: Steps = Steps::new(
    "allocate.map_latched",
    "allocate.map_logged",
    "allocate.map_applied",
);

/// Where the bit of a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MapPlace {
    /// The map page.
    pub map: PageId,
    /// The bit's number in it.
    pub bit: u32,
}

impl MapPlace {
    /// Pages that one map page describes.
    pub(crate) const fn span(page_size: PageSize) -> u64 {
        map_bits(page_size)
    }

    /// The place of `page`'s bit.
    pub(crate) fn of(page: PageId, page_size: PageSize) -> MapPlace {
        let span = MapPlace::span(page_size);
        MapPlace {
            map: PageId::new(page.get() / span * span + 1),
            bit: (page.get() % span) as u32,
        }
    }
}

/// The extents that threads whose numbers fall on this stripe hold, the oldest first.
#[derive(Default)]
#[repr(align(128))]
struct Stripe(Mutex<Vec<(StoreId, Extent)>>);

/// The memory side of the map of used pages.
#[derive(Default)]
pub(crate) struct Space {
    stripes: [Stripe; STRIPES],
    free: Mutex<FreeMap>,
    /// Held while the file grows or shrinks.
    growing: Mutex<()>,
    /// LSN of the newest record that ended the use of a page.
    last_freeing: AtomicU64,
}

/// Whom a page is reserved for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    /// Work that may be refused; what is kept for undo stays.
    Work,
    /// A rollback.
    Undo,
}

impl For {
    /// Whether there is an extent to take.
    fn may_take(self, free: &FreeMap) -> bool {
        match self {
            For::Work => free.free() >= FreeMap::kept(free.pages()) + EXTENT_PAGES,
            For::Undo => free.free() > 0,
        }
    }
}

/// A page that nobody else will get. Goes back unless it is used.
pub(crate) struct Reserved<'a> {
    space: &'a Space,
    store: StoreId,
    page: Option<PageId>,
}

impl Reserved<'_> {
    pub(crate) fn page(&self) -> PageId {
        self.page.expect("reserved pages are used once")
    }

    /// The page's bit is set: it stays taken.
    pub(crate) fn used(mut self) {
        self.page = None;
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if let Some(page) = self.page {
            self.space.put_back(self.store, page);
        }
    }
}

impl Space {
    /// The page's use has ended, and the record that says so is in the log.
    pub(crate) fn release(&self, page: PageId) {
        self.free.lock().give_back(page);
    }

    /// A record at `lsn` ends the use of a page, which nobody can have yet.
    pub(crate) fn note_freeing(&self, lsn: Lsn) {
        // Relaxed: whoever gets the page takes `free` after `release`, which comes after this.
        self.last_freeing.fetch_max(lsn.get(), Ordering::Relaxed);
    }

    /// A position at or behind the record that freed any page that is now reserved.
    pub(crate) fn last_freeing(&self) -> Lsn {
        // Relaxed: see `note_freeing`.
        Lsn::new(self.last_freeing.load(Ordering::Relaxed))
    }

    fn stripe(&self) -> &Stripe {
        &self.stripes[thread_number() % STRIPES]
    }

    fn next_cached(&self, store: StoreId) -> Option<PageId> {
        let mut extents = self.stripe().0.lock();
        let at = extents.iter().position(|(owner, _)| *owner == store)?;
        let page = extents[at].1.next();
        if page.is_none() {
            extents.remove(at);
        }
        page
    }

    /// Takes an extent from the free pages; false when there are none for `whom`.
    fn refill(&self, store: StoreId, whom: For) -> bool {
        let mut extents = self.stripe().0.lock();
        let mut free = self.free.lock();
        if !whom.may_take(&free) {
            return false;
        }
        let Some(extent) = free.take_extent() else {
            return false;
        };
        if extents.len() == EXTENTS_MAX {
            let (_, oldest) = extents.remove(0);
            free.give_back_extent(oldest);
        }
        extents.push((store, extent));
        true
    }

    fn put_back(&self, store: StoreId, page: PageId) {
        let mut extents = self.stripe().0.lock();
        for (owner, extent) in extents.iter_mut() {
            if *owner == store && extent.put_back(page) {
                return;
            }
        }
        drop(extents);
        self.free.lock().give_back(page);
    }

    /// Replaces what memory knows. What threads hold in reserve goes with it.
    fn replace(&self, map: FreeMap) {
        for stripe in &self.stripes {
            stripe.0.lock().clear();
        }
        *self.free.lock() = map;
    }

    /// Gives back what all threads hold in reserve.
    fn drain_stripes(&self) {
        for stripe in &self.stripes {
            let extents = std::mem::take(&mut *stripe.0.lock());
            let mut free = self.free.lock();
            extents
                .into_iter()
                .for_each(|(_, extent)| free.give_back_extent(extent));
        }
    }
}

impl Access {
    /// Sets a page aside for `store`; grows the file when it is full. Not to be called under a latch.
    pub(crate) fn reserve_page(&self, store: StoreId) -> Result<Reserved<'_>, AccessError> {
        let space = &self.space;
        loop {
            if let Some(page) = space.next_cached(store) {
                return Ok(Reserved {
                    space,
                    store,
                    page: Some(page),
                });
            }
            let whom = match self.pool.uses_reserve() {
                true => For::Undo,
                false => For::Work,
            };
            if !space.refill(store, whom) {
                self.grow_file(whom)?;
            }
        }
    }

    /// Adds free pages at the end of the file.
    fn grow_file(&self, whom: For) -> Result<(), AccessError> {
        let _growing = self.space.growing.lock();
        let pages = {
            let free = self.space.free.lock();
            if whom.may_take(&free) {
                return Ok(());
            }
            free.pages()
        };
        let ahead = (pages / 8).clamp(GROW_MIN, GROW_MAX);
        // On a disk that is nearly full, less is better than nothing.
        let grown = match self.pool.grow(pages + ahead) {
            Ok(()) => pages + ahead,
            Err(_) => {
                self.pool.grow(pages + GROW_MIN)?;
                pages + GROW_MIN
            }
        };
        longshore_base::crash_point("allocate.grown");
        self.begin_spans(pages, grown)?;
        let mut free = self.space.free.lock();
        free.grow(grown);
        for map in self.maps_between(pages, grown) {
            assert!(free.take(map), "space S5: map page {map} was in use");
        }
        Ok(())
    }

    /// Map pages among the pages `from..to`.
    fn maps_between(&self, from: u64, to: u64) -> impl Iterator<Item = PageId> + use<> {
        let span = MapPlace::span(self.page_size);
        let first = from.saturating_sub(1).div_ceil(span);
        (first..)
            .map(move |k| PageId::new(k * span + 1))
            .take_while(move |map| map.get() < to)
    }

    /// Formats the map pages among the pages `from..to`.
    fn begin_spans(&self, from: u64, to: u64) -> Result<(), AccessError> {
        for map in self.maps_between(from, to) {
            let mut cx = self.system_context(256)?;
            let mut mtr = MiniTransaction::begin(self);
            mtr.begin_page(map, PageAction::FormatMap)?;
            mtr.commit(&mut cx, &FORMAT_MAP)?;
        }
        Ok(())
    }
}
