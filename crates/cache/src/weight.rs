//! The weight of an entry: how many sweeps it survives without a hit.
//!
//! # Ordering
//! Relaxed throughout, and no exchange: of two who change a weight at once one counts, and a stale weight costs a sweep more or
//! less. So a hit has no step that another processor must answer, and writes nothing once the weight is at its cap.

// The standard library's also under the model checker: any weight is right, and each step of it would multiply the runs.
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The greatest cap of a weight.
pub(crate) const WEIGHT_MAX: u8 = 15;

/// Belongs to an entry of the table, beside its value.
pub(crate) struct Weight(AtomicU8);

impl Weight {
    pub(crate) fn none() -> Weight {
        Weight(AtomicU8::new(0))
    }

    /// Notes a hit.
    #[inline]
    pub(crate) fn raise(&self, max: u8) {
        let weight = self.0.load(Relaxed);
        if weight < max {
            self.0.store(weight + 1, Relaxed);
        }
    }

    /// Adds the weight of the entry that this one replaces, and a hit.
    pub(crate) fn inherit(&self, former: &Weight, max: u8) {
        let weight = self.0.load(Relaxed) + former.0.load(Relaxed) + 1;
        self.0.store(weight.min(max), Relaxed);
    }

    /// Takes one away; false if there was none.
    pub(crate) fn spend_one(&self) -> bool {
        let weight = self.0.load(Relaxed);
        if weight > 0 {
            self.0.store(weight - 1, Relaxed);
        }
        weight > 0
    }

    /// Takes all away; false if there was none.
    pub(crate) fn spend_all(&self) -> bool {
        let weight = self.0.load(Relaxed);
        if weight > 0 {
            self.0.store(0, Relaxed);
        }
        weight > 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_weight_stays_within_its_cap() {
        for max in [1, 3, WEIGHT_MAX] {
            let (weight, heir) = (Weight::none(), Weight::none());
            (0..20).for_each(|_| weight.raise(max));
            heir.raise(max);
            heir.inherit(&weight, max);
            for weight in [weight, heir] {
                let sweeps = (0..).take_while(|_| weight.spend_one());
                assert_eq!(sweeps.count(), usize::from(max));
            }
        }
    }

    #[test]
    fn all_of_a_weight_is_spent_at_once() {
        let weight = Weight::none();
        (0..3).for_each(|_| weight.raise(3));
        assert!(weight.spend_all());
        assert!(!weight.spend_all() && !weight.spend_one());
    }
}
