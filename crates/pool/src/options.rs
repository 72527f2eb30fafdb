//! What a pool is made with.

use crate::replacement::Replacement;
use crate::trace::PageTrace;
use longshore_base::PageSize;
pub use longshore_base::hand::HandKind;
use std::sync::Arc;
use std::time::Duration;

/// How a pool is set up. The defaults are those that measured best; only `bytes_max` wants thought.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// The size of every page.
    pub page_size: PageSize,
    /// Memory for frames, page table, replacement policy and the cleaner's buffer together.
    pub bytes_max: usize,
    /// What the threads do that want the same absent page.
    pub miss: MissMode,
    /// How long a call waits for a frame, a page or a latch before it fails.
    pub wait: Duration,
    /// Sweeps that an often used page survives without a touch: 1 to 15. The paper's Nb-GCLOCK3 has 3.
    pub weight_max: u8,
    /// Whether pages go through the double-write area.
    pub double_write: DoubleWrite,
    /// The implementation of the page table.
    pub table: PageTableKind,
    /// The implementation of the clock hand.
    pub hand: HandKind,
    /// Who chooses the pages that leave. `weight_max` and `hand` are Nb-GCLOCK's, and mean nothing to others.
    pub replacement: Replacement,
    /// Whether it is timed how long the policy's lock is waited for and held; costs three looks at the clock each time.
    pub times_replacement: bool,
    /// Who is told of each use of a page.
    pub trace: Option<Arc<dyn PageTrace>>,
}

impl PoolOptions {
    /// The default options with this much memory.
    pub fn with_bytes(bytes_max: usize) -> PoolOptions {
        PoolOptions {
            bytes_max,
            ..PoolOptions::default()
        }
    }
}

impl Default for PoolOptions {
    fn default() -> Self {
        PoolOptions {
            page_size: PageSize::DEFAULT,
            bytes_max: 64 << 20,
            miss: MissMode::OneLoads,
            wait: Duration::from_secs(10),
            weight_max: 3,
            double_write: DoubleWrite::On,
            table: PageTableKind::Translation,
            hand: HandKind::Batched,
            replacement: Replacement::Native,
            times_replacement: false,
            trace: None,
        }
    }
}

/// What the threads do that want the same absent page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissMode {
    /// One reads it, the others wait.
    OneLoads,
    /// All read it, one wins, the others take the winner's (the paper's non-blocking I/O).
    Optimistic,
}

/// Whether pages are written twice, so that none can be torn by a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoubleWrite {
    /// Written to the double-write area first.
    On,
    /// Written home only: for file systems that write pages atomically, and for data that need not last.
    Off,
}

/// The implementations of the page table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageTableKind {
    /// An array indexed by page number: 4 bytes per page of the database.
    Translation,
    /// A hash table: 32 bytes per frame, however large the database. For databases more than some
    /// thousand times the size of the pool.
    Hash,
}
