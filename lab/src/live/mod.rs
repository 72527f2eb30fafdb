//! Workloads on the real pool: real pages, real reads, many threads.
//!
//! # Protocol
//! A [`Ground`] is a trace and a data file that has its pages; [`Ground::pool`] makes a pool of so many frames over it.
//! [`run`] lets threads use the pages, stretch by stretch, once through the trace or for some time, and tells what came
//! of it: throughput, misses, waits, processor time.
//!
//! Stretches come in the order of the trace, and whoever is free takes the next: the workload is the same whatever the
//! number of threads, and so is the order, but for what is under way. NBG and its kin are 64 streams merged draw by draw;
//! a stretch has one draw of each.

mod ground;
mod processor;
mod run;

pub use ground::{DISK_MEMORY_MAX, FRAMES_ENOUGH, Ground, Place, Reads, bytes_min};
pub use run::{Length, Measured, run};

use longshore_pool::{HandKind, MissMode, Replacement};

/// How a pool is set up.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Who chooses the pages that leave.
    pub replacement: Replacement,
    /// Nb-GCLOCK's hand.
    pub hand: HandKind,
    /// Nb-GCLOCK's greatest weight.
    pub weight_max: u8,
    /// What threads do that miss the same page.
    pub miss: MissMode,
    /// How the file is read.
    pub reads: Reads,
    /// Whether the policy's lock is timed.
    pub times_lock: bool,
    /// Frames that pages can have.
    pub frames: u32,
}

impl Setup {
    /// The pool as it is by default, with this policy and so many frames.
    pub fn new(replacement: Replacement, frames: u32) -> Setup {
        let defaults = longshore_pool::PoolOptions::default();
        Setup {
            replacement,
            hand: defaults.hand,
            weight_max: defaults.weight_max,
            miss: defaults.miss,
            reads: Reads::AsTheyCome,
            times_lock: false,
            frames,
        }
    }
}
