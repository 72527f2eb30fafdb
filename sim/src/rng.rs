//! Random choices of a run, all from its seed.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// A seeded source of choices.
pub struct Choices(SmallRng);

impl Choices {
    /// The choices of `seed`.
    pub fn new(seed: u64) -> Choices {
        Choices(SmallRng::seed_from_u64(seed))
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.random_range(0..bound.max(1))
    }

    /// A number below `bound`, for indexes.
    pub fn index(&mut self, bound: usize) -> usize {
        self.below(bound as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A number from 1 to `max`, small ones as likely as large ones: uniform in its logarithm.
    pub fn log_uniform(&mut self, max: u64) -> u64 {
        let exponent = self.0.random_range(0.0..=(max.max(1) as f64).log2());
        (exponent.exp2() as u64).clamp(1, max.max(1))
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0.random()
    }

    /// Bytes that a later reader can tell from others.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.0.fill(&mut bytes[..]);
        bytes
    }
}
