//! Which keys are in use: a few at a time, each for so long.

use std::sync::atomic::{AtomicU64, Ordering};

/// Keys in use at a time.
const SLOTS: usize = 32;

/// Uses of a key until it is left for another.
pub(super) const USES: u64 = 256;

/// The keys of a run. The n-th use of a slot tells its key: nobody decides when one is left.
pub(super) struct Keys {
    uses: [AtomicU64; SLOTS],
}

/// A key, and whether this is its first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) key: i64,
    pub(super) is_first: bool,
}

impl Keys {
    pub(super) fn new() -> Keys {
        Keys {
            uses: Default::default(),
        }
    }

    /// A key for two random numbers; the lower its slot, the more often it is drawn.
    pub(super) fn take(&self, draws: [u64; 2]) -> Use {
        let slot = draws.map(|draw| draw as usize % SLOTS).into_iter().min();
        let slot = slot.expect("two draws");
        // Relaxed: only the count matters.
        let uses = self.uses[slot].fetch_add(1, Ordering::Relaxed);
        Use {
            key: key(slot, uses / USES),
            is_first: uses.is_multiple_of(USES),
        }
    }

    /// All keys that were ever taken.
    pub(super) fn used(&self) -> Vec<i64> {
        let slots = self.uses.iter().enumerate();
        let keys_of = |(slot, uses): (usize, &AtomicU64)| {
            let turns = uses.load(Ordering::Relaxed).div_ceil(USES);
            (0..turns).map(move |turn| key(slot, turn))
        };
        slots.flat_map(keys_of).collect()
    }
}

fn key(slot: usize, turn: u64) -> i64 {
    (turn * SLOTS as u64 + slot as u64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn keys_are_left_after_their_uses_and_all_are_told() {
        let keys = Keys::new();
        let mut uses: BTreeMap<i64, u64> = BTreeMap::new();
        for draw in 0..10 * USES * SLOTS as u64 {
            let taken = keys.take([draw, draw]);
            let count = uses.entry(taken.key).or_default();
            assert_eq!(taken.is_first, *count == 0);
            *count += 1;
        }
        assert!(uses.values().all(|count| *count == USES));
        assert_eq!(uses.len(), 10 * SLOTS);
        let used: BTreeSet<i64> = keys.used().into_iter().collect();
        assert_eq!(used, uses.into_keys().collect());
    }
}
