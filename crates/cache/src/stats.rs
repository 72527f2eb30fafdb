//! What a cache counts.

use longshore_base::metrics::Counter;

/// What a cache did since it was made, and what it holds.
///
/// Taken while others work it is a picture of no single moment; each figure is exact when they are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Questions answered from the cache.
    pub hits: u64,
    /// Questions that found nothing.
    pub misses: u64,
    /// Values put in, by `insert` or by a loader.
    pub inserts: u64,
    /// Of these, those that replaced another.
    pub replaced: u64,
    /// Values that had to leave.
    pub evictions: u64,
    /// Values removed by name.
    pub removed: u64,
    /// Values refused, as they cost more than there is room.
    pub too_heavy: u64,
    /// Loaders that gave a value.
    pub loads: u64,
    /// Values loaded and not kept, since the key was put or removed meanwhile.
    pub loads_overtaken: u64,
    /// Times that a thread slept for another's loader.
    pub load_waits: u64,
    /// Slots that the hands looked at.
    pub sweep_steps: u64,
    /// Entries there are.
    pub entries: u64,
    /// Of these, those that have not shown yet that they will be wanted again.
    pub probation: u64,
    /// What they cost together.
    pub cost: u64,
}

impl CacheStats {
    /// Hits among the questions, from 0 to 1; 0 if there were none.
    pub fn hit_ratio(&self) -> f64 {
        match self.hits + self.misses {
            0 => 0.0,
            questions => self.hits as f64 / questions as f64,
        }
    }
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) hits: Counter,
    pub(crate) misses: Counter,
    pub(crate) inserts: Counter,
    pub(crate) replaced: Counter,
    pub(crate) evictions: Counter,
    pub(crate) removed: Counter,
    pub(crate) too_heavy: Counter,
    pub(crate) loads: Counter,
    pub(crate) loads_overtaken: Counter,
    pub(crate) load_waits: Counter,
    pub(crate) sweep_steps: Counter,
}

impl Counters {
    pub(crate) fn stats(&self, cost: u64, probation: u64, proven: u64) -> CacheStats {
        CacheStats {
            hits: self.hits.get(),
            misses: self.misses.get(),
            inserts: self.inserts.get(),
            replaced: self.replaced.get(),
            evictions: self.evictions.get(),
            removed: self.removed.get(),
            too_heavy: self.too_heavy.get(),
            loads: self.loads.get(),
            loads_overtaken: self.loads_overtaken.get(),
            load_waits: self.load_waits.get(),
            sweep_steps: self.sweep_steps.get(),
            entries: probation + proven,
            probation,
            cost,
        }
    }
}
