//! Searching a node: binary search over key heads, suffixes only on ties.
//!
//! Heads stand in the slots, eight to a cache line, so the search touches a record only where a
//! head equals the key's; with distinct heads that is the record looked for and no other.

use std::cmp::Ordering;
use std::hint::select_unpredictable;

use super::layout::{RECORD_HEADER, Slot, WORD, first_word};
use super::read::NodeRef;

/// A key without the node's prefix, and its first eight bytes as a number.
#[derive(Clone, Copy)]
struct Probe<'k> {
    suffix: &'k [u8],
    word: u64,
}

impl Probe<'_> {
    #[inline]
    fn head(&self) -> u32 {
        (self.word >> 32) as u32
    }
}

impl NodeRef<'_> {
    /// Finds the slot that holds `key`, or the slot before which it would be inserted.
    ///
    /// `key` must be one that the node [owns](Self::owns); of another the answer is meaningless.
    #[inline]
    pub fn find(&self, key: &[u8]) -> Result<usize, usize> {
        let prefix = self.fences.prefix as usize;
        let suffix = key.get(prefix..).unwrap_or_default();
        let probe = Probe {
            suffix,
            word: first_word(key, prefix),
        };
        let Some(last) = self.count().checked_sub(1) else {
            return Err(0);
        };
        // Ascending inserts come behind the last row: one look, however long the tie it ends.
        let word = self.slot(last);
        if probe.head() >= word.head() {
            match self.compare_suffix(word, &probe) {
                Ordering::Less => return Err(last + 1),
                Ordering::Equal => return Ok(last),
                Ordering::Greater => {}
            }
        }
        let all_tie = self.slot(0).head() == probe.head();
        let slot = if all_tie {
            0
        } else {
            self.lower_bound(0, last, probe.head())
        };
        let word = self.slot(slot);
        if word.head() != probe.head() {
            return Err(slot);
        }
        match self.compare_suffix(word, &probe) {
            Ordering::Equal => Ok(slot),
            Ordering::Greater => Err(slot),
            Ordering::Less => self.find_in_tie(slot + 1, &probe),
        }
    }

    /// Goes on where the slot before `first` has the head looked for, but sorts before the key;
    /// the last slot sorts behind it.
    fn find_in_tie(&self, first: usize, probe: &Probe<'_>) -> Result<usize, usize> {
        if self.slot(first).head() != probe.head() {
            return Err(first);
        }
        // The page may be changing: by now it may have no slot left.
        let last = self.count().saturating_sub(1);
        let end = match probe.head().checked_add(1) {
            Some(next) if self.slot(last).head() != probe.head() => {
                self.lower_bound(first, last, next)
            }
            _ => last,
        };
        let mut slot = partition_point(first, end, |slot| {
            self.suffix_word(self.slot(slot)) < probe.word
        });
        let mut end = end;
        // Where eight bytes tie as well, whole suffixes are compared: the first, which mostly is it,
        // and then by halves.
        let mut step = 0;
        while slot < end {
            let middle = slot + step.min((end - slot) / 2);
            step = end;
            match self.compare_suffix(self.slot(middle), probe) {
                Ordering::Less => slot = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => end = middle,
            }
        }
        Err(slot)
    }

    /// The first slot in `first..end` whose head is at least `head`, or `end`.
    #[inline]
    fn lower_bound(&self, first: usize, end: usize, head: u32) -> usize {
        let bound = u64::from(head) << 32;
        partition_point(first, end, |slot| self.slot(slot).0 < bound)
    }

    /// The first eight bytes of the suffix in the record of `slot`, which is not the low fence's.
    #[inline]
    fn suffix_word(&self, slot: Slot) -> u64 {
        // Records are aligned: one load holds them. Past the suffix stands the value: cut it off.
        let word = self
            .page
            .word((slot.record_at() + RECORD_HEADER) / WORD)
            .swap_bytes();
        let cut = 8 * WORD.saturating_sub(slot.stored_len()) as u32;
        word.checked_shr(cut)
            .unwrap_or(0)
            .checked_shl(cut)
            .unwrap_or(0)
    }

    /// Compares the suffix in `slot` with the key's.
    #[inline]
    fn compare_suffix(&self, slot: Slot, probe: &Probe<'_>) -> Ordering {
        if slot.is_low() {
            let (at, len) = self.suffix_span(slot);
            return self.page.compare(at, len, probe.suffix);
        }
        let word = self.suffix_word(slot);
        if word != probe.word {
            return word.cmp(&probe.word);
        }
        let len = slot.stored_len();
        if len <= WORD || probe.suffix.len() <= WORD {
            return len.cmp(&probe.suffix.len());
        }
        let at = slot.record_at() + RECORD_HEADER + WORD;
        self.page.compare(at, len - WORD, &probe.suffix[WORD..])
    }
}

/// The first number in `first..end` of which `below` is false, or `end`; `first` if the range is
/// empty, as it may be where the two come from different moments of a page that changes.
///
/// The loop runs a number of times that depends on the range only and selects without a branch,
/// so that nothing in it can be predicted wrongly.
#[inline]
fn partition_point(first: usize, end: usize, below: impl Fn(usize) -> bool) -> usize {
    let mut base = first;
    let mut size = end.saturating_sub(first);
    if size == 0 {
        return first;
    }
    while size > 1 {
        let half = size / 2;
        base = select_unpredictable(below(base + half), base + half, base);
        size -= half;
    }
    base + usize::from(below(base))
}
