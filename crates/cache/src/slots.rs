//! Slots: one word for each entry, which the hand sweeps.
//!
//! | bits  | field  | meaning                                                         |
//! |-------|--------|-----------------------------------------------------------------|
//! | 0..4  | weight | sweeps that the entry survives without a hit                    |
//! | 4..64 | hash   | of the entry's key; with it the sweep finds the entry           |
//!
//! A word of zero is a vacant slot.
//!
//! # Protocol
//! `take` gives a slot that nobody else has; whoever puts the entry into the table gives it to the entry, and
//! whoever takes the entry out of the table, and nobody else, brings it back with `give` (C1). There are as many
//! slots as there were entries at a time, at most.
//!
//! # Invariants
//! S1. A slot belongs to one entry, or to one thread, or is in `free`.
//! S2. The weight is at most its cap, and is not written when at the cap.
//! S3. A hit changes the weight of a slot only while the hash is that of its key.
//!
//! # Ordering
//! Relaxed throughout: a word orders nothing but itself. A stale weight costs a sweep more or less, and a
//! stale hash leads to an entry that is not in this slot, which the table refuses.

use crate::words::Words;
use crossbeam_queue::SegQueue;
use longshore_base::bits::Field;
use longshore_base::sync::atomic::Ordering::Relaxed;

const WEIGHT: Field = Field::new(0, 4);
const HASH: Field = WEIGHT.then(60);
const VACANT: u64 = 0;

/// The greatest cap of the weight.
pub(crate) const WEIGHT_MAX: u8 = WEIGHT.max() as u8;

/// The hash of a key, known from its upper 60 bits, and never zero there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    pub(crate) fn new(hash: u64) -> KeyHash {
        KeyHash::of_word(hash.max(HASH.one()))
    }

    /// The lowest bits, which a word has no room for, are a copy of others: the table takes the highest
    /// and the lowest ones for two numbers that should have nothing to do with each other.
    fn of_word(word: u64) -> KeyHash {
        KeyHash((word & HASH.mask()) | ((word >> 28) & WEIGHT.mask()))
    }

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

/// What the hand met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visit {
    /// Nobody, or somebody who stays.
    Passed,
    /// An entry of no weight, with a key of this hash.
    Victim(KeyHash),
}

pub(crate) struct Slots {
    words: Words,
    free: SegQueue<SlotId>,
    weight_max: u64,
}

impl Slots {
    pub(crate) fn new(weight_max: u8) -> Slots {
        Slots {
            words: Words::new(),
            free: SegQueue::new(),
            weight_max: u64::from(weight_max.clamp(1, WEIGHT_MAX)),
        }
    }

    /// A slot for an entry whose key has this hash, of no weight.
    pub(crate) fn take(&self, hash: KeyHash) -> SlotId {
        let word = hash.get() & HASH.mask();
        match self.free.pop() {
            Some(id) => {
                self.words.get(id.0).store(word, Relaxed);
                id
            }
            None => SlotId(self.words.push(word)),
        }
    }

    /// Takes a slot back that is the caller's.
    pub(crate) fn give(&self, id: SlotId) {
        self.words.get(id.0).store(VACANT, Relaxed);
        self.free.push(id);
    }

    /// Notes a hit.
    #[inline]
    pub(crate) fn touch(&self, id: SlotId, hash: KeyHash) {
        self.raise(id, hash, 1);
    }

    /// Lets an entry have the weight of the one it replaces, and a hit.
    pub(crate) fn inherit(&self, id: SlotId, hash: KeyHash, former: SlotId) {
        let weight = WEIGHT.get(self.words.get(former.0).load(Relaxed));
        self.raise(id, hash, weight + 1);
    }

    #[inline]
    fn raise(&self, id: SlotId, hash: KeyHash, by: u64) {
        let word = self.words.get(id.0);
        let found = word.load(Relaxed);
        let weight = WEIGHT.get(found);
        if weight < self.weight_max && (found ^ hash.get()) & HASH.mask() == 0 {
            let raised = WEIGHT.with(found, (weight + by).min(self.weight_max));
            // Whoever came between us counts for us.
            let _ = word.compare_exchange(found, raised, Relaxed, Relaxed);
        }
    }

    /// What the hand does at one slot.
    pub(crate) fn visit(&self, index: u32) -> Visit {
        let Some(word) = self.words.try_get(index) else {
            return Visit::Passed;
        };
        let found = word.load(Relaxed);
        if found == VACANT {
            return Visit::Passed;
        }
        if !WEIGHT.is_set(found) {
            return Visit::Victim(KeyHash::of_word(found));
        }
        let _ = word.compare_exchange(found, found - WEIGHT.one(), Relaxed, Relaxed);
        Visit::Passed
    }

    /// Slots that there are.
    pub(crate) fn len(&self) -> u32 {
        self.words.len()
    }

    /// Steps after which a sweep has met every entry without weight.
    pub(crate) fn steps_max(&self) -> u64 {
        u64::from(self.len()) * (self.weight_max + 1)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_taken_once() {
        let slots = Slots::new(3);
        let hash = KeyHash::new(77 << 8);
        let (first, second) = (slots.take(hash), slots.take(hash));
        assert_ne!(first, second);
        slots.give(first);
        assert_eq!(slots.visit(first.0), Visit::Passed);
        assert_eq!((slots.take(hash), slots.len()), (first, 2));
    }

    #[test]
    fn a_weight_stays_within_its_cap_and_its_slot() {
        for weight_max in [1, 3, 15, 200] {
            let slots = Slots::new(weight_max);
            let (ours, other) = (KeyHash::new(u64::MAX), KeyHash::new(0));
            let slot = slots.take(ours);
            (0..20).for_each(|_| slots.touch(slot, other));
            assert_eq!(slots.visit(slot.0), Visit::Victim(ours));
            (0..20).for_each(|_| slots.touch(slot, ours));
            let sweeps = (0..).take_while(|_| slots.visit(slot.0) == Visit::Passed);
            assert_eq!(sweeps.count(), usize::from(weight_max.min(WEIGHT_MAX)));
            assert_eq!(slots.visit(slot.0), Visit::Victim(ours));
        }
    }

    #[test]
    fn a_hash_is_known_from_its_word() {
        for hash in [0, 1, 15, 16, 0x9e37_79b9_7f4a_7c15, u64::MAX] {
            let slots = Slots::new(3);
            let hash = KeyHash::new(hash);
            let slot = slots.take(hash);
            assert_eq!(slots.visit(slot.0), Visit::Victim(hash));
        }
    }
}
