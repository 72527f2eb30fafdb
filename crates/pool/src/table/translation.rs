//! The translation array: an entry for every page number there could be, mapped as pages are touched.
//!
//! Segment 0 covers the first pages, and each further segment twice as many as the one before, so the segment
//! of a page follows from the highest bit of its number and segment 0's length together. A look-up is two loads: the
//! segment's place, which is one of few and stays in the processor's cache, and the entry. Segments are address space
//! until touched: a database costs 4 bytes of memory per page that was ever in the pool, in units of 4 KiB, or of
//! 2 MiB where its file has gigabytes.

use super::{Entry, Reserve, Ticket};
use crate::error::PoolError;
use crate::memory::Memory;
use longshore_base::PageId;
use longshore_base::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;

/// log2 of the pages that segment 0 covers.
const FIRST_LOG2: u32 = if cfg!(loom) { 2 } else { 12 };
const FIRST: u64 = 1 << FIRST_LOG2;
/// Segments up to `PAGES_MAX`.
const SEGMENTS: usize = ((super::PAGES_MAX + FIRST).ilog2() - FIRST_LOG2) as usize + 1;

pub(crate) struct Translation {
    /// Segment `i` has `FIRST << i` entries; made when the first of its pages is reserved, the first one at once.
    segments: Box<[OnceLock<Memory<AtomicU32>>]>,
    /// `FIRST`, as a number that the compiler does not know: see `place`.
    first: u64,
}

impl Translation {
    pub(super) fn new() -> Result<Translation, PoolError> {
        let table = Translation {
            segments: (0..SEGMENTS).map(|_| OnceLock::new()).collect(),
            first: FIRST,
        };
        table.make_entry(PageId::new(0))?;
        Ok(table)
    }

    /// Memory in use when every page of the file has been in the pool.
    pub(super) fn bytes(pages: u64) -> usize {
        pages.max(FIRST) as usize * size_of::<u32>()
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
        let (segment, index) = self.place(page);
        let segment = self.segments.get(segment)?.get()?;
        segment.as_slice().get(index)
    }

    #[cold]
    fn make_entry(&self, page: PageId) -> Result<&AtomicU32, PoolError> {
        let (number, _) = self.place(page);
        let no_such_page = PoolError::NoSuchPage { page };
        let segment = self.segments.get(number).ok_or(no_such_page)?;
        if segment.get().is_none() {
            let made = Memory::zeroed(1 << (FIRST_LOG2 as usize + number));
            // Somebody else may have been faster; theirs serves.
            let _ = segment.set(made.map_err(PoolError::memory)?);
        }
        Ok(self.entry(page).expect("the segment is there now"))
    }

    /// The segment of a page, and its place there.
    ///
    /// Without a branch: pages of the first segment and of others come in no order that a processor could foresee. And by
    /// `leading_zeros` of what might be zero, for all that the compiler knows: of what is not it makes an instruction of
    /// x86-64 that waits for the former content of its target register, which is often a word of the page that was read
    /// last. (With that, hits took twice the time.)
    #[inline]
    fn place(&self, page: PageId) -> (usize, usize) {
        // What overflows is below `FIRST`, and so in no segment.
        let shifted = page.get().wrapping_add(self.first);
        let log2 = (u64::BITS - 1).wrapping_sub(shifted.leading_zeros());
        let segment = log2.wrapping_sub(FIRST_LOG2);
        let index = shifted.wrapping_sub(FIRST.wrapping_shl(segment));
        (segment as usize, index as usize)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn segments_follow_each_other_without_gap() {
        let (table, mut expected) = (Translation::new().unwrap(), (0, 0));
        for page in 0..100_000 {
            assert_eq!(table.place(PageId::new(page)), expected);
            expected = match expected {
                (segment, index) if index as u64 + 1 == FIRST << segment => (segment + 1, 0),
                (segment, index) => (segment, index + 1),
            };
        }
        let last = PageId::new(super::super::PAGES_MAX - 1);
        assert_eq!(table.place(last).0, SEGMENTS - 1);
    }

    #[test]
    fn impossible_pages_are_absent() {
        let table = Translation::new().unwrap();
        for page in [u64::MAX, u64::MAX - FIRST, 1 << 40, 1 << 20] {
            assert_eq!(table.lookup(PageId::new(page)), Entry::Absent);
        }
    }
}
