//! Random numbers that a seed determines.

use longshore_base::{Environment, SeededEnvironment};

/// A stream of random numbers.
pub(super) struct Random(SeededEnvironment);

impl Random {
    /// Stream number `stream` of `seed`.
    pub(super) fn new(seed: u64, stream: u64) -> Random {
        Random(SeededEnvironment::new(seed ^ (stream << 32)))
    }

    /// A number below `bound`, which is not zero.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.random()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in 0..1.
    pub(super) fn fraction(&mut self) -> f64 {
        (self.0.random() >> 11) as f64 / (1u64 << 53) as f64
    }
}
