//! Searching a node: binary search over key heads, suffixes only on ties.
//!
//! Heads stand in the slots, eight to a cache line, so the search touches a record only where a
//! head equals the key's; with distinct heads that is the record looked for and no other.
//!
//! The low fence's own record stores no key and takes no part: it is looked at last, when the key would
//! come right behind it.

use std::cmp::Ordering;
use std::hint::select_unpredictable;

use super::layout::{RECORD_HEADER, Slot, WORD, first_word};
use super::read::NodeRef;

/// A key without the bytes that the fences settle, its first eight bytes as a number, and its head.
#[derive(Clone, Copy)]
struct Probe<'k> {
    rest: &'k [u8],
    word: u64,
    head: u32,
    /// Where `rest` starts in the suffix of a record.
    skip: usize,
}

impl NodeRef<'_> {
    /// Finds the slot that holds `key`, or the slot before which it would be inserted.
    ///
    /// `key` must be one that the node [owns](Self::owns); of another the answer is meaningless.
    #[inline]
    pub fn find(&self, key: &[u8]) -> Result<usize, usize> {
        let first = self.first_stored();
        match self.find_stored(first, key) {
            Err(1) if first == 1 && self.is_low(key) => Ok(0),
            found => found,
        }
    }

    /// Whether `key` is the low fence.
    fn is_low(&self, key: &[u8]) -> bool {
        let low_len = self.fences.low as usize;
        low_len == key.len() && self.page.compare(self.low_at(), low_len, key).is_eq()
    }

    /// [`find`](Self::find) among the slots from `first` on, whose records store their keys.
    #[inline]
    fn find_stored(&self, first: usize, key: &[u8]) -> Result<usize, usize> {
        if self.count() <= first {
            return Err(first);
        }
        let heads = self.heads();
        let shared = heads.shared as usize;
        let word = first_word(key, shared);
        match heads.compare(word) {
            Ordering::Less => return Err(first),
            Ordering::Equal => {}
            Ordering::Greater => return Err(self.count()),
        }
        let probe = Probe {
            rest: key.get(shared..).unwrap_or_default(),
            word,
            head: heads.head(word),
            skip: shared.saturating_sub(self.fences.prefix as usize),
        };
        let last = self.count() - 1;
        // Ascending inserts come behind the last row: one look, however long the tie it ends.
        let slot = self.slot(last);
        if probe.head >= slot.head() {
            match self.compare_suffix(slot, &probe) {
                Ordering::Less => return Err(last + 1),
                Ordering::Equal => return Ok(last),
                Ordering::Greater => {}
            }
        }
        let all_tie = self.slot(first).head() == probe.head;
        let slot = if all_tie {
            first
        } else {
            self.lower_bound(first, last, probe.head)
        };
        let word = self.slot(slot);
        if word.head() != probe.head {
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
        if self.slot(first).head() != probe.head {
            return Err(first);
        }
        // The page may be changing: by now it may have no slot left.
        let last = self.count().saturating_sub(1);
        let end = match probe.head.checked_add(1) {
            Some(next) if self.slot(last).head() != probe.head => {
                self.lower_bound(first, last, next)
            }
            _ => last,
        };
        let mut slot = partition_point(first, end, |slot| {
            self.suffix_word(self.slot(slot), probe.skip) < probe.word
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

    /// Eight bytes of the suffix in the record of `slot`, from its byte `skip` on; the slot is not the low
    /// fence's.
    #[inline]
    pub(super) fn suffix_word(&self, slot: Slot, skip: usize) -> u64 {
        let word = self.page.u64(slot.record_at() + RECORD_HEADER + skip);
        // Past the suffix stands the value: cut it off.
        let len = slot.stored_len().saturating_sub(skip);
        let beyond = u64::MAX.checked_shr(8 * len as u32).unwrap_or(0);
        word.swap_bytes() & !beyond
    }

    /// Compares the key in `slot`, which is not the low fence's, with the one looked for.
    #[inline]
    fn compare_suffix(&self, slot: Slot, probe: &Probe<'_>) -> Ordering {
        let word = self.suffix_word(slot, probe.skip);
        if word != probe.word {
            return word.cmp(&probe.word);
        }
        let len = slot.stored_len().saturating_sub(probe.skip);
        if len <= WORD || probe.rest.len() <= WORD {
            return len.cmp(&probe.rest.len());
        }
        let at = slot.record_at() + RECORD_HEADER + probe.skip + WORD;
        self.page.compare(at, len - WORD, &probe.rest[WORD..])
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
