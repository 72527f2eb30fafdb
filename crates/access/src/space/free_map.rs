//! Which pages of the file may be given to somebody: the memory side of the map of used pages.
//!
//! A page is *taken* here when its bit is set in a map page, and also from the moment somebody
//! reserves it until the mini-transaction that uses it has set the bit. What is reserved and never
//! used is simply forgotten by a crash, because the bits on disk do not know of it.
//!
//! # Invariants
//! S1. A page with a set bit on disk is taken here.
//! S2. `free` counts the pages below `pages` that are not taken.
//! S3. Below `hint` there is no free page.

use longshore_base::PageId;

/// Pages of an extent: what a thread reserves in one go.
pub(crate) const EXTENT_PAGES: u64 = 16;
/// One page of so many is kept for undo, but at least an extent.
const KEPT_SHARE: u64 = 16;
/// Most pages that are kept for undo: 8 MiB of 8 KiB pages.
const KEPT_MAX: u64 = 1024;
/// Extents in a word of the bitmap.
const EXTENTS_PER_WORD: u64 = 64 / EXTENT_PAGES;

/// Up to sixteen pages that one thread may hand out for one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    first: u64,
    /// The pages not handed out yet; bit `i` is page `first + i`.
    left: u16,
}

impl Extent {
    /// Hands out the lowest page left.
    pub(crate) fn next(&mut self) -> Option<PageId> {
        if self.left == 0 {
            return None;
        }
        let bit = self.left.trailing_zeros();
        self.left &= self.left - 1;
        Some(PageId::new(self.first + u64::from(bit)))
    }

    /// Puts a page back that [`Extent::next`] gave; false when it belongs to another extent.
    pub(crate) fn put_back(&mut self, page: PageId) -> bool {
        let bit = page.get().wrapping_sub(self.first);
        if bit < EXTENT_PAGES {
            self.left |= 1 << bit;
        }
        bit < EXTENT_PAGES
    }
}

/// The bitmap of taken pages. Guarded by a mutex of [`Space`](super::Space).
#[derive(Debug, Default)]
pub(crate) struct FreeMap {
    /// Bit `i` of word `w` is page `64 w + i`; bits from `pages` on are set.
    taken: Vec<u64>,
    pages: u64,
    free: u64,
    /// Index of a word; see S3.
    hint: usize,
}

impl FreeMap {
    /// The map of a file of `pages` pages, none of which is taken.
    pub(crate) fn new(pages: u64) -> FreeMap {
        let mut map = FreeMap::default();
        map.grow(pages);
        map
    }

    /// Pages of the file.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Pages that nobody has.
    pub(crate) fn free(&self) -> u64 {
        self.free
    }

    /// Free pages of a file of `pages` pages that only undo may have: a rollback whose old rows find the room
    /// taken by others splits leaves, and must not fail because the disk is full.
    pub(crate) fn kept(pages: u64) -> u64 {
        (pages / KEPT_SHARE).clamp(EXTENT_PAGES, KEPT_MAX)
    }

    /// The file has grown to `pages` pages; the new ones are free.
    pub(crate) fn grow(&mut self, pages: u64) {
        if pages <= self.pages {
            return;
        }
        self.taken.resize(pages.div_ceil(64) as usize, u64::MAX);
        let old = self.pages;
        self.pages = pages;
        self.hint = self.hint.min((old / 64) as usize);
        let mut at = old;
        while at < pages {
            let end = pages.min((at / 64 + 1) * 64);
            self.taken[(at / 64) as usize] &= !bits(at % 64, end - at);
            at = end;
        }
        self.free += pages - old;
    }

    /// The file has shrunk to `pages` pages.
    ///
    /// # Panics
    /// If a page behind the new end is taken.
    pub(crate) fn shrink(&mut self, pages: u64) {
        assert!(self.end() <= pages, "space S1: cut off a page in use");
        self.free -= self.pages - pages;
        self.pages = pages;
        self.taken.truncate(pages.div_ceil(64) as usize);
        if !pages.is_multiple_of(64) {
            let last = self.taken.len() - 1;
            self.taken[last] |= !bits(0, pages % 64);
        }
        self.hint = self.hint.min(self.taken.len());
    }

    /// Whether somebody has `page`, or the file does not reach it.
    pub(crate) fn is_taken(&self, page: PageId) -> bool {
        let (word, bit) = place(page.get());
        self.taken.get(word).is_none_or(|w| w & bit != 0)
    }

    /// Takes one named page; false when it was taken.
    pub(crate) fn take(&mut self, page: PageId) -> bool {
        if self.is_taken(page) {
            return false;
        }
        let (word, bit) = place(page.get());
        self.taken[word] |= bit;
        self.free -= 1;
        true
    }

    /// Takes what is free of the lowest extent that has a free page.
    pub(crate) fn take_extent(&mut self) -> Option<Extent> {
        while let Some(word) = self.taken.get_mut(self.hint) {
            if *word == u64::MAX {
                self.hint += 1;
                continue;
            }
            let extent = u64::from((!*word).trailing_zeros()) / EXTENT_PAGES;
            let shift = extent * EXTENT_PAGES;
            let left = !(*word >> shift) as u16;
            *word |= u64::from(left) << shift;
            self.free -= u64::from(left.count_ones());
            return Some(Extent {
                first: (self.hint as u64 * EXTENTS_PER_WORD + extent) * EXTENT_PAGES,
                left,
            });
        }
        None
    }

    /// Gives a page back.
    ///
    /// # Panics
    /// If nobody had it: a page freed twice would be given out twice.
    pub(crate) fn give_back(&mut self, page: PageId) {
        assert!(
            page.get() < self.pages,
            "space S1: freed {page:?} past the end"
        );
        let (word, bit) = place(page.get());
        assert!(
            self.taken[word] & bit != 0,
            "space S1: {page:?} freed twice"
        );
        self.taken[word] &= !bit;
        self.free += 1;
        self.hint = self.hint.min(word);
    }

    /// Gives back what an extent has left.
    pub(crate) fn give_back_extent(&mut self, mut extent: Extent) {
        while let Some(page) = extent.next() {
            self.give_back(page);
        }
    }

    /// One more than the last taken page.
    pub(crate) fn end(&self) -> u64 {
        let mut end = self.pages;
        while end > 0 {
            let start = (end - 1) / 64 * 64;
            let used = self.taken[(start / 64) as usize] & bits(0, end - start);
            if used != 0 {
                return start + 64 - u64::from(used.leading_zeros());
            }
            end = start;
        }
        0
    }
}

/// `count` set bits from `first` on; `count` is 1 to 64.
fn bits(first: u64, count: u64) -> u64 {
    (u64::MAX >> (64 - count)) << first
}

fn place(page: u64) -> (usize, u64) {
    ((page / 64) as usize, 1 << (page % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn page(raw: u64) -> PageId {
        PageId::new(raw)
    }

    #[test]
    fn extents_come_from_the_low_end_and_skip_taken_pages() {
        let mut map = FreeMap::new(40);
        assert!(map.take(page(0)) && map.take(page(1)) && !map.take(page(1)));
        let mut first = map.take_extent().unwrap();
        assert_eq!(first.next(), Some(page(2)));
        assert!(first.put_back(page(2)) && !first.put_back(page(20)));
        let second = map.take_extent().unwrap();
        let third = map.take_extent().unwrap();
        assert_eq!((second.first, third.first, third.left), (16, 32, 0xff));
        assert_eq!((map.take_extent(), map.free(), map.end()), (None, 0, 40));
        map.give_back_extent(third);
        assert_eq!((map.free(), map.end()), (8, 32));
    }

    #[test]
    #[should_panic(expected = "freed twice")]
    fn freeing_twice_is_our_bug() {
        let mut map = FreeMap::new(64);
        map.give_back(page(3));
    }

    proptest! {
        #[test]
        fn acts_like_a_set(steps in proptest::collection::vec((0u8..6, 0u64..400), 1..200)) {
            let mut map = FreeMap::new(100);
            let mut free: BTreeSet<u64> = (0..100).collect();
            let mut pages = 100;
            for (step, raw) in steps {
                match step {
                    0 => prop_assert_eq!(map.take(page(raw)), free.remove(&raw)),
                    1 => if let Some(mut extent) = map.take_extent() {
                        let lowest = *free.first().unwrap();
                        prop_assert_eq!(extent.first, lowest / 16 * 16);
                        while let Some(p) = extent.next() {
                            prop_assert!(free.remove(&p.get()));
                        }
                    } else {
                        prop_assert!(free.is_empty());
                    },
                    2 | 3 => if raw < pages && free.insert(raw) {
                        map.give_back(page(raw));
                    },
                    4 => if raw > pages {
                        map.grow(raw);
                        free.extend(pages..raw);
                        pages = raw;
                    },
                    _ => {
                        let end = (0..pages).rev().find(|p| !free.contains(p)).map_or(0, |p| p + 1);
                        prop_assert_eq!(map.end(), end);
                        map.shrink(end);
                        free.retain(|p| *p < end);
                        pages = end;
                    }
                }
                prop_assert_eq!(map.free(), free.len() as u64);
                prop_assert!((0..420).all(|p| map.is_taken(page(p)) != free.contains(&p)));
            }
        }
    }
}
