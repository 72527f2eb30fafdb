//! Miss ratios at all sizes, exactly and from samples.
//!
//! [`stack_distance`] tells LRU's misses at every size in one pass. [`sample`] runs any policy over small parts of a
//! trace in caches scaled down with them, and says how far the answer may be off; [`estimate`] does so for policies × sizes.

pub mod estimate;
pub mod sample;
pub mod stack_distance;
