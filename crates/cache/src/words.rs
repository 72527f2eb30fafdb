//! Words in a row, to which more are added, and which never move.
//!
//! # Protocol
//! Segments, each twice as long as the one before, are made when the first of their words is wanted. A word is counted
//! before its segment is there: who has not been given that word may find nothing.

use longshore_base::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;

/// Words of the first segment.
const FIRST: u32 = if cfg!(loom) { 8 } else { 64 };
/// Their words together are those that a number of 32 bits can name, but for the last `FIRST`.
const SEGMENTS: usize = (u32::BITS - FIRST.ilog2()) as usize;

pub(crate) struct Words {
    segments: [OnceLock<Box<[AtomicU64]>>; SEGMENTS],
    len: AtomicU32,
}

impl Default for Words {
    fn default() -> Words {
        let words = Words {
            segments: [const { OnceLock::new() }; SEGMENTS],
            len: AtomicU32::new(0),
        };
        // The model checker would not see that who makes a segment comes before who uses it.
        words.segment(0);
        words
    }
}

impl Words {
    /// Adds a word.
    ///
    /// # Panics
    /// when there are four thousand million.
    pub(crate) fn push(&self, word: u64) -> u32 {
        // Relaxed: whoever reads the word finds it through its segment.
        let index = self.len.fetch_add(1, Relaxed);
        self.make(index).store(word, Relaxed);
        index
    }

    /// The word of a number, which need not have been added; zero at first.
    pub(crate) fn make(&self, index: u32) -> &AtomicU64 {
        let (segment, offset) = place(index);
        &self.segment(segment)[offset]
    }

    fn segment(&self, segment: usize) -> &[AtomicU64] {
        self.segments[segment].get_or_init(|| {
            let words = 0..FIRST << segment;
            words.map(|_| AtomicU64::new(0)).collect()
        })
    }

    /// A word that was added.
    pub(crate) fn get(&self, index: u32) -> &AtomicU64 {
        self.try_get(index).expect("a word that was added")
    }

    /// A word whose segment is there.
    pub(crate) fn try_get(&self, index: u32) -> Option<&AtomicU64> {
        let (segment, offset) = place(index);
        self.segments[segment].get().map(|words| &words[offset])
    }

    /// Words that were counted.
    pub(crate) fn len(&self) -> u32 {
        self.len.load(Relaxed)
    }
}

/// In which segment a word lies, and where.
fn place(index: u32) -> (usize, usize) {
    let from_first = index.checked_add(FIRST).expect("fewer than 2^32 words");
    let segment = from_first.ilog2() - FIRST.ilog2();
    (segment as usize, (from_first - (FIRST << segment)) as usize)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn places_follow_each_other() {
        let mut expected = (0, 0);
        for index in 0..10_000 {
            assert_eq!(place(index), expected);
            expected.1 += 1;
            if expected.1 == (FIRST << expected.0) as usize {
                expected = (expected.0 + 1, 0);
            }
        }
        assert_eq!(place(u32::MAX - FIRST).0, SEGMENTS - 1);
    }

    #[test]
    fn threads_never_share_a_word_and_words_stay() {
        let words = Words::default();
        let add = || (0..1000).map(|_| words.push(7)).collect::<Vec<u32>>();
        let added: BTreeSet<u32> = std::thread::scope(|scope| {
            let adders: Vec<_> = (0..4).map(|_| scope.spawn(add)).collect();
            let added = adders.into_iter().flat_map(|it| it.join().unwrap());
            added.collect()
        });
        assert_eq!((added.len(), words.len()), (4000, 4000));
        assert!(
            added
                .iter()
                .all(|index| words.get(*index).load(Relaxed) == 7)
        );
    }
}
