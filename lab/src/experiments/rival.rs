//! Who competes.

use longshore_pool::{HandKind, PoolOptions, Replacement};

/// A way to choose the pages that leave, under the paper's name.
#[derive(Clone, Debug)]
pub(super) struct Rival {
    pub(super) name: String,
    pub(super) replacement: Replacement,
    pub(super) hand: HandKind,
    pub(super) weight_max: u8,
}

/// The papers' 2Q.
pub(super) const TWO_QUEUES: &str = "2q:in=20%,out=30%";
/// What Nb-GCLOCK of our pool is, with one thread.
pub(super) const NATIVE: &str = crate::contenders::NATIVE;

impl Rival {
    /// A policy in one of the pool's forms.
    pub(super) fn new(name: impl Into<String>, replacement: &str) -> Rival {
        let defaults = PoolOptions::default();
        Rival {
            name: name.into(),
            replacement: replacement.parse().expect("the text is ours"),
            hand: defaults.hand,
            weight_max: defaults.weight_max,
        }
    }

    /// Nb-GCLOCK as it is by default.
    pub(super) fn native() -> Rival {
        Rival::new("Nb-GCLOCK", "nb-gclock")
    }

    /// The papers' rivals under one lock that is spun for, and Nb-GCLOCK.
    pub(super) fn locked_and_native() -> Vec<Rival> {
        vec![
            Rival::new("LRU", "spin/lru"),
            Rival::new("2Q", &format!("spin/{TWO_QUEUES}")),
            Rival::new("GCLOCK", "spin/gclock"),
            Rival::native(),
        ]
    }
}
