//! Clock and randomness: the only way to either, so that a seed reproduces a run.

// The standard library's also under the model checker: time and chance are no part of a protocol.
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Where time and chance come from.
pub trait Environment: Send + Sync {
    /// Time since some fixed moment; never runs backwards.
    fn now(&self) -> Duration;

    /// A number that nobody can foresee, or that a seed determines.
    fn random(&self) -> u64;
}

/// The machine's own clock and randomness.
#[derive(Debug)]
pub struct SystemEnvironment {
    start: Instant,
    keys: RandomState,
    calls: AtomicU64,
}

impl SystemEnvironment {
    /// An environment whose clock starts now.
    pub fn new() -> SystemEnvironment {
        SystemEnvironment {
            start: Instant::now(),
            keys: RandomState::new(),
            calls: AtomicU64::new(0),
        }
    }
}

impl Default for SystemEnvironment {
    fn default() -> Self {
        SystemEnvironment::new()
    }
}

impl Environment for SystemEnvironment {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn random(&self) -> u64 {
        let mut hasher = self.keys.build_hasher();
        // Relaxed: only distinct values matter.
        hasher.write_u64(self.calls.fetch_add(1, Ordering::Relaxed));
        hasher.write_u128(self.start.elapsed().as_nanos());
        hasher.finish()
    }
}

/// A clock that moves one microsecond a call, and random numbers from a seed.
#[derive(Debug)]
pub struct SeededEnvironment {
    seed: u64,
    micros: AtomicU64,
    calls: AtomicU64,
}

impl SeededEnvironment {
    /// The environment of `seed`.
    pub fn new(seed: u64) -> SeededEnvironment {
        SeededEnvironment {
            seed,
            micros: AtomicU64::new(0),
            calls: AtomicU64::new(0),
        }
    }

    /// Moves the clock on.
    pub fn advance(&self, by: Duration) {
        let micros = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        // Relaxed: the clock orders nothing but itself.
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }
}

impl Environment for SeededEnvironment {
    fn now(&self) -> Duration {
        // Relaxed: the clock orders nothing but itself.
        Duration::from_micros(self.micros.fetch_add(1, Ordering::Relaxed))
    }

    fn random(&self) -> u64 {
        // Relaxed: only distinct values matter.
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        mix(self.seed ^ mix(call.wrapping_add(0x9e37_79b9_7f4a_7c15)))
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): spreads every input bit over the word.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_reproduces_and_another_differs() {
        let draw = |seed| {
            let env = SeededEnvironment::new(seed);
            (0..8).map(|_| env.random()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn seeded_clock_moves_and_advances() {
        let env = SeededEnvironment::new(0);
        let first = env.now();
        env.advance(Duration::from_secs(1));
        assert!(env.now() >= first + Duration::from_secs(1));
    }

    #[test]
    fn system_numbers_differ() {
        let env = SystemEnvironment::new();
        assert_ne!(env.random(), env.random());
        assert!(env.now() <= env.now());
    }
}
