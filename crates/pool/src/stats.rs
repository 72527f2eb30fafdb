//! What the pool counts.
//!
//! Slow events count themselves, in striped counters. Fixes are too quick for that: each thread counts
//! its own and adds them to the pool in lots of [`FIXES_PER_LOT`], so the pool's count lags by up to a lot per
//! thread (and a thread that uses two pools may give one the other's rest of a lot).

use longshore_base::metrics::Counter;
use std::cell::Cell;

const FIXES_PER_LOT: u32 = 256;

/// What happened between hits and a replacement policy that stands under a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplacementStats {
    /// Times that the policy's lock was taken.
    pub lock_acquisitions: u64,
    /// Those among them that had to wait: contentions.
    pub lock_blocked: u64,
    /// Times that the lock was tried, and was not free.
    pub try_locks_failed: u64,
    /// Hits taken from queues and buffers, or told at once.
    pub hits_drained: u64,
    /// Those among them that were dropped because the frame had another page by then.
    pub hits_stale: u64,
    /// Hits that found no place in a buffer.
    pub hits_dropped: u64,
    /// Nanoseconds from asking for the lock to having it; 0 unless [`crate::PoolOptions::times_replacement`].
    pub lock_wait_nanos: u64,
    /// Nanoseconds for which it was held; likewise.
    pub lock_held_nanos: u64,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Boxed one by one: each is two KiB, and together they would not fit a small stack.
        #[derive(Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Box<Counter>,)*
        }

        /// The pool's counts since it was made, and its state now.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct PoolStats {
            $($(#[$doc])* pub $name: u64,)*
            /// Frames of the pool.
            pub frames: u64,
            /// Frames that are free now.
            pub frames_free: u64,
            /// Bytes of frames, page table, replacement policy and the cleaner's buffer.
            pub bytes: u64,
            /// Bytes of the page table among them.
            pub table_bytes: u64,
            /// Bytes among them set aside for what the replacement policy knows of pages, for its locks, and for queues of
            /// hits; none for Nb-GCLOCK.
            pub replacement_bytes: u64,
            /// What locks and queues of the replacement policy saw; all zero for Nb-GCLOCK.
            pub replacement: ReplacementStats,
        }

        impl Counters {
            pub(crate) fn snapshot(&self) -> PoolStats {
                PoolStats {
                    $($name: self.$name.get(),)*
                    ..PoolStats::default()
                }
            }
        }
    };
}

counters! {
    /// Pages fixed or read, hits and misses; lags a little.
    fixes,
    /// Pages that were not in the pool.
    misses,
    /// Pages read from the data file.
    page_reads,
    /// Pages made new, without reading.
    pages_new,
    /// Waits for a page that another thread was reading.
    load_waits,
    /// Pages read in vain, because another thread was faster (optimistic misses only).
    loads_lost,
    /// Latches that were not to be had at once after a short spin.
    latch_waits,
    /// Atomic exchanges on a frame word that lost against another thread, on the paths of the sweep.
    exchanges_failed,
    /// Frames that a sweep looked at.
    sweep_steps,
    /// Pages evicted.
    evictions,
    /// Pages on their way out that a fix took back.
    rescues,
    /// Waits for a free frame.
    frame_waits,
    /// Time in waits for frames, pages and latches, in microseconds.
    wait_us,
    /// Frames taken from the reserve.
    reserve_taken,
    /// Pages written home.
    page_writes,
    /// Pages that had changed again by the time they were written.
    page_writes_stale,
    /// Batches written.
    write_batches,
    /// Batches written by a miss that found no free frame.
    write_batches_inline,
    /// Syncs of the data file and of the double-write area.
    syncs,
}

impl Counters {
    /// Counts a fix, on the thread's own account.
    #[inline(always)]
    pub(crate) fn count_fix(&self) {
        thread_local! {
            static FIXES: Cell<u32> = const { Cell::new(0) };
        }
        let fixes = FIXES.get() + 1;
        if fixes < FIXES_PER_LOT {
            FIXES.set(fixes);
        } else {
            FIXES.set(0);
            self.fixes.add(u64::from(FIXES_PER_LOT));
        }
    }
}
