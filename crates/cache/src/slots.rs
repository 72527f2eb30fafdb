//! Slots: one word for each entry, which the hands sweep.
//!
//! | bits  | field  | meaning                                                                  |
//! |-------|--------|--------------------------------------------------------------------------|
//! | 0     | taken  | some entry has this slot, or who is about to put one in                  |
//! | 1     | proven | the entry was hit while it was on probation, or its key is known         |
//! | 2..64 | hash   | of the entry's key; with it a hand finds the entry                       |
//!
//! ```text
//!            take                 prove
//!   vacant --------> probation ----------> proven
//!     ^  |               |                   ^ |
//!     |  +---------------|------- take ------+ |
//!     +-------- give ----+-----------<---------+
//! ```
//!
//! # Protocol
//! `take` gives a slot that nobody else has; whoever puts the entry into the table gives it to the entry, and
//! whoever takes the entry out of the table, and nobody else, brings it back with `give` (C1). There are as many
//! slots as there were entries at a time, at most. They are given out in the order in which they came back, so that a hand
//! meets who came in last after all others.
//!
//! # Invariants
//! S1. A slot belongs to one entry, or to one thread, or is in `free`.
//! S2. While nobody is at work, as many slots are of each standing as are counted to be.
//!
//! # Ordering
//! Relaxed throughout: a word orders nothing but itself. A stale word leads to an entry that is not in this slot, which
//! the table refuses; a stale count moves one hand for the other.

use crate::words::Words;
use crossbeam_queue::SegQueue;
use crossbeam_utils::CachePadded;
use longshore_base::bits::Field;
// The standard library's also under the model checker: the words, which are explored, say who counts.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const TAKEN: Field = Field::new(0, 1);
const PROVEN: Field = TAKEN.then(1);
const HASH: Field = PROVEN.then(62);
const VACANT: u64 = 0;

/// Of so many entries, one may be on probation while the hand of the proven moves.
const PROBATION_SHARE: u64 = 10;

/// The hash of a key, as far as a word has room for it: the lowest bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    #[inline]
    pub(crate) fn new(hash: u64) -> KeyHash {
        KeyHash(hash & HASH.mask())
    }

    #[inline]
    pub(crate) fn get(self) -> u64 {
        self.0
    }
}

/// Names a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotId(u32);

impl SlotId {
    pub(crate) fn new(index: u32) -> SlotId {
        SlotId(index)
    }
}

/// How an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Probation,
    Proven,
}

impl Standing {
    fn of(word: u64) -> Standing {
        match PROVEN.is_set(word) {
            true => Standing::Proven,
            false => Standing::Probation,
        }
    }
}

#[derive(Default)]
pub(crate) struct Slots {
    words: Words,
    free: SegQueue<SlotId>,
    counts: CachePadded<Counts>,
}

/// Slots of each standing. Never less than there are: raised before, and lowered after.
#[derive(Default)]
struct Counts {
    probation: AtomicU64,
    proven: AtomicU64,
}

impl Slots {
    /// A slot for an entry whose key has this hash.
    pub(crate) fn take(&self, hash: KeyHash, standing: Standing) -> SlotId {
        let proven = u64::from(standing == Standing::Proven);
        let word = PROVEN.with(hash.get() | TAKEN.mask(), proven);
        self.count(standing).fetch_add(1, Relaxed);
        match self.free.pop() {
            Some(id) => {
                // An exchange where a store would do: it checks, and the model checker, which does not see
                // into the queue, knows by it that this comes after `give`.
                let former = self.words.get(id.0).swap(word, Relaxed);
                assert_eq!(former, VACANT, "S1");
                id
            }
            None => SlotId(self.words.push(word)),
        }
    }

    /// Takes a slot back that is the caller's. Says how its entry stood.
    pub(crate) fn give(&self, id: SlotId) -> Standing {
        let word = self.words.get(id.0).swap(VACANT, Relaxed);
        let standing = Standing::of(word);
        self.count(standing).fetch_sub(1, Relaxed);
        self.free.push(id);
        standing
    }

    /// Marks the entry of this slot as proven, if it is that of a key of this hash, and on probation.
    pub(crate) fn prove(&self, id: SlotId, hash: KeyHash) {
        let found = hash.get() | TAKEN.mask();
        let word = self.words.get(id.0);
        self.counts.proven.fetch_add(1, Relaxed);
        let outcome = word.compare_exchange(found, found | PROVEN.mask(), Relaxed, Relaxed);
        let counted_twice = match outcome {
            Ok(_) => Standing::Probation,
            Err(_) => Standing::Proven,
        };
        self.count(counted_twice).fetch_sub(1, Relaxed);
    }

    /// The hash of the key of the entry in a slot, if there is one that stands so.
    pub(crate) fn visit(&self, index: u32, standing: Standing) -> Option<KeyHash> {
        let word = self.words.try_get(index)?.load(Relaxed);
        let is_there = TAKEN.is_set(word) && Standing::of(word) == standing;
        is_there.then(|| KeyHash::new(word))
    }

    /// Among which entries a victim is to be looked for.
    pub(crate) fn due(&self) -> Standing {
        let (probation, proven) = self.counts();
        match proven == 0 || probation > (probation + proven) / PROBATION_SHARE {
            true => Standing::Probation,
            false => Standing::Proven,
        }
    }

    /// Slots taken by entries on probation, and by proven ones.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let Counts { probation, proven } = &*self.counts;
        (probation.load(Relaxed), proven.load(Relaxed))
    }

    /// Slots that there are.
    pub(crate) fn len(&self) -> u32 {
        self.words.len()
    }

    fn count(&self, standing: Standing) -> &AtomicU64 {
        match standing {
            Standing::Probation => &self.counts.probation,
            Standing::Proven => &self.counts.proven,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Standing::{Probation, Proven};
    use super::*;

    #[test]
    fn a_slot_is_taken_once() {
        let slots = Slots::default();
        let hash = KeyHash::new(77 << 8);
        let (first, second) = (slots.take(hash, Probation), slots.take(hash, Proven));
        assert_ne!(first, second);
        assert_eq!(slots.counts(), (1, 1));
        assert_eq!((slots.give(first), slots.give(second)), (Probation, Proven));
        assert_eq!(slots.visit(first.0, Probation), None);
        assert_eq!((slots.take(hash, Proven), slots.len()), (first, 2));
    }

    #[test]
    fn a_slot_is_proven_while_it_is_its_keys() {
        for (hash, other) in [(0, 4), (u64::MAX, 77), (0x9e37_79b9_7f4a_7c15, 0)] {
            let slots = Slots::default();
            let (hash, other) = (KeyHash::new(hash), KeyHash::new(other));
            let slot = slots.take(hash, Probation);
            slots.prove(slot, other);
            assert_eq!(slots.visit(slot.0, Probation), Some(hash));
            assert_eq!(
                (slots.visit(slot.0, Proven), slots.counts()),
                (None, (1, 0))
            );
            (0..2).for_each(|_| slots.prove(slot, hash));
            assert_eq!(slots.visit(slot.0, Proven), Some(hash));
            assert_eq!(
                (slots.visit(slot.0, Probation), slots.counts()),
                (None, (0, 1))
            );
            slots.give(slot);
            slots.prove(slot, hash);
            assert_eq!(slots.counts(), (0, 0));
        }
    }

    #[test]
    fn a_tenth_is_on_probation() {
        let slots = Slots::default();
        let hash = KeyHash::new(8);
        assert_eq!(slots.due(), Probation);
        for _ in 0..9 {
            slots.take(hash, Proven);
        }
        assert_eq!(slots.due(), Proven);
        slots.take(hash, Probation);
        assert_eq!(slots.due(), Proven);
        slots.take(hash, Probation);
        assert_eq!(slots.due(), Probation);
    }
}
