//! Searching a node: binary search over key heads, suffixes only on ties.
//!
//! Heads stand in the slots, eight to a cache line, so the search touches a record only where a
//! head equals the key's; with distinct heads that is the record looked for and no other.

use std::cmp::Ordering;

use super::layout::{SLOT_WORD, head_of};
use super::read::NodeRef;

impl NodeRef<'_> {
    /// Finds the slot that holds `key`, or the slot before which it would be inserted.
    ///
    /// `key` must be one that the node [owns](Self::owns); of another the answer is meaningless.
    #[inline]
    pub fn find(&self, key: &[u8]) -> Result<usize, usize> {
        let suffix = key.get(self.fences.prefix as usize..).unwrap_or_default();
        let head = head_of(suffix);
        let slot = self.lower_bound(0, self.count(), u64::from(head) << 32);
        if slot == self.count() || self.slot(slot).head() != head {
            return Err(slot);
        }
        match self.compare_suffix(slot, suffix) {
            Ordering::Equal => Ok(slot),
            Ordering::Greater => Err(slot),
            Ordering::Less => self.find_in_tie(slot + 1, head, suffix),
        }
    }

    /// Goes on where the slot before `first` has the head looked for, but sorts before the key.
    fn find_in_tie(&self, first: usize, head: u32, suffix: &[u8]) -> Result<usize, usize> {
        let count = self.count();
        if first == count || self.slot(first).head() != head {
            return Err(first);
        }
        let mut low = first;
        let mut high = match head.checked_add(1) {
            Some(next) => self.lower_bound(first, count, u64::from(next) << 32),
            None => count,
        };
        // Ascending inserts meet one long tie in the rightmost leaf: look at its end first.
        if high == count && low < high {
            match self.compare_suffix(high - 1, suffix) {
                Ordering::Less => return Err(high),
                Ordering::Equal => return Ok(high - 1),
                Ordering::Greater => high -= 1,
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            match self.compare_suffix(middle, suffix) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// The first slot in `first..end` whose word is at least `bound`, or `end`.
    ///
    /// The loop runs a number of times that depends on the range only and selects without a
    /// branch, so that nothing in it can be predicted wrongly.
    #[inline]
    fn lower_bound(&self, first: usize, end: usize, bound: u64) -> usize {
        let mut base = first;
        let mut size = end - first;
        if size == 0 {
            return first;
        }
        while size > 1 {
            let half = size / 2;
            let below = self.page.word(SLOT_WORD + base + half) < bound;
            base = if below { base + half } else { base };
            size -= half;
        }
        base + usize::from(self.page.word(SLOT_WORD + base) < bound)
    }

    /// Compares the suffix in `slot` with `suffix`.
    #[inline]
    fn compare_suffix(&self, slot: usize, suffix: &[u8]) -> Ordering {
        let (at, len) = self.suffix_span(self.slot(slot));
        self.page.compare(at, len, suffix)
    }
}
