//! The translation array: an entry for every page number there could be, mapped as pages are touched.
//!
//! Segment 0 covers the first pages, and each further segment as many as all before it, so the segment
//! of a page follows from its highest bit. A look-up is two loads: the segment's place, which is one
//! of few and stays in the processor's cache, and the entry. Segments are address space until touched:
//! a database costs 4 bytes of memory per page that was ever in the pool, in units of 4 KiB.

use super::{Entry, Reserve, Ticket};
use crate::error::PoolError;
use crate::memory::Memory;
use longshore_base::PageId;
use longshore_base::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;

/// log2 of the pages that segment 0 covers.
const FIRST_LOG2: u32 = if cfg!(loom) { 2 } else { 12 };
/// Segments up to `PAGES_MAX`.
const SEGMENTS: usize = (super::PAGES_MAX.ilog2() - FIRST_LOG2) as usize;

pub(crate) struct Translation {
    segment0: Memory<AtomicU32>,
    /// Segment `i + 1`, made when the first of its pages is reserved.
    more: Box<[OnceLock<Memory<AtomicU32>>]>,
}

impl Translation {
    pub(super) fn new() -> Result<Translation, PoolError> {
        Ok(Translation {
            segment0: Memory::zeroed(1 << FIRST_LOG2).map_err(PoolError::memory)?,
            more: (0..SEGMENTS).map(|_| OnceLock::new()).collect(),
        })
    }

    /// Memory in use when every page of the file has been in the pool.
    pub(super) fn bytes(pages: u64) -> usize {
        pages.max(1 << FIRST_LOG2) as usize * size_of::<u32>()
    }

    #[inline]
    pub(super) fn lookup(&self, page: PageId) -> Entry {
        match self.entry(page) {
            // Acquire: pairs with Release in `exchange`: the frame's header is seen as published.
            Some(entry) => Entry::from_raw(entry.load(Ordering::Acquire)),
            None => Entry::Absent,
        }
    }

    pub(super) fn reserve(&self, page: PageId, ticket: Ticket) -> Result<Reserve, PoolError> {
        let entry = match self.entry(page) {
            Some(entry) => entry,
            None => self.make_entry(page)?,
        };
        // Acquire: pairs with Release in `exchange`: what the last remover did to the page on disk is
        // done, and a frame that we find is seen as published. Release: nothing of ours is read by
        // who finds the ticket, but the remover of the next turn builds on it.
        let reserved = entry.compare_exchange(
            Entry::Absent.to_raw(),
            Entry::Loading(ticket).to_raw(),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        Ok(match reserved {
            Ok(_) => Reserve::Won,
            Err(found) => Reserve::Found(Entry::from_raw(found)),
        })
    }

    pub(super) fn exchange(&self, page: PageId, from: Entry, to: Entry) -> bool {
        let Some(entry) = self.entry(page) else {
            return false;
        };
        // Release: pairs with Acquire in `lookup` and `reserve`. Acquire: pairs with Release here, so that who comes
        // next sees what all before did. Relaxed on failure: it is only told.
        entry
            .compare_exchange(
                from.to_raw(),
                to.to_raw(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    #[inline]
    fn entry(&self, page: PageId) -> Option<&AtomicU32> {
        let page = page.get();
        let over = page >> FIRST_LOG2;
        if over == 0 {
            return self.segment0.as_slice().get(page as usize);
        }
        let above = over.ilog2();
        let segment = self.more.get(above as usize)?.get()?;
        let start = 1u64 << (FIRST_LOG2 + above);
        segment.as_slice().get((page - start) as usize)
    }

    #[cold]
    fn make_entry(&self, page: PageId) -> Result<&AtomicU32, PoolError> {
        let above = (page.get() >> FIRST_LOG2).ilog2();
        let slot = self
            .more
            .get(above as usize)
            .ok_or(PoolError::NoSuchPage { page })?;
        if slot.get().is_none() {
            let made = Memory::zeroed(1 << (FIRST_LOG2 + above)).map_err(PoolError::memory)?;
            // Somebody else may have been faster; theirs serves.
            let _ = slot.set(made);
        }
        Ok(self.entry(page).expect("the segment is there now"))
    }
}
