//! How a cache is set up.

use crate::cache::Cache;
use std::hash::{BuildHasher, Hash, RandomState};

/// What a cache may hold at most, whatever was asked for; the sum of costs cannot overflow below it.
const CAPACITY_MAX: u64 = 1 << 48;

pub(crate) type Weigher<K, V> = Box<dyn Fn(&K, &V) -> u64 + Send + Sync>;

/// Sets up a [`Cache`].
pub struct CacheBuilder<K, V, S = RandomState> {
    pub(crate) capacity: u64,
    pub(crate) weight_max: u8,
    pub(crate) weigher: Option<Weigher<K, V>>,
    pub(crate) hasher: S,
}

impl<K, V> CacheBuilder<K, V> {
    /// A cache whose entries may cost `capacity` together.
    ///
    /// Zero is allowed: such a cache keeps nothing. More than 2^48 is taken for 2^48.
    pub fn new(capacity: u64) -> CacheBuilder<K, V> {
        CacheBuilder {
            capacity: capacity.min(CAPACITY_MAX),
            weight_max: 3,
            weigher: None,
            hasher: RandomState::new(),
        }
    }
}

impl<K: Hash + Eq, V: Clone, S: BuildHasher> CacheBuilder<K, V, S> {
    /// What an entry costs: at least 1, and 1 each unless this is called.
    ///
    /// (GCLOCK has a weight of its own: see [`weight_max`](Self::weight_max).)
    #[must_use]
    pub fn weigher(self, weigher: impl Fn(&K, &V) -> u64 + Send + Sync + 'static) -> Self {
        CacheBuilder {
            weigher: Some(Box::new(weigher)),
            ..self
        }
    }

    /// Sweeps that an often used entry survives without a hit: 1 to 15, 3 unless this is called.
    ///
    /// More keeps what was used often for longer, and makes for longer sweeps. What lies outside is
    /// taken for the nearest.
    #[must_use]
    pub fn weight_max(self, weight_max: u8) -> Self {
        CacheBuilder { weight_max, ..self }
    }

    /// Hashes keys so. The standard library's hasher withstands whoever chooses keys with ill will; others are
    /// faster.
    #[must_use]
    pub fn hasher<T: BuildHasher>(self, hasher: T) -> CacheBuilder<K, V, T> {
        CacheBuilder {
            capacity: self.capacity,
            weight_max: self.weight_max,
            weigher: self.weigher,
            hasher,
        }
    }

    /// The cache, empty.
    pub fn build(self) -> Cache<K, V, S> {
        Cache::from_builder(self)
    }
}
