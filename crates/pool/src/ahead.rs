//! Memory ahead of its first use.
//!
//! # Protocol
//! The system gives a frame its memory when it is first touched, and lets the toucher wait: for a huge
//! page about a millisecond, and several in a virtual machine whose host must bring it in. Frames that
//! were never used are handed out in order (`free_list.rs`), so the next ones are known. A miss that comes
//! near the end of what has been brought in rings the bell, and [`Pool::maintain`] brings in more: as
//! much again as is in use, so that a small database stays small, up to [`AHEAD_BYTES_MAX`].
//!
//! # Failure
//! Where the system does not give memory on request, or nobody runs `maintain`, it comes when touched.

use crate::pool::Pool;
use longshore_base::sync::atomic::{AtomicU32, Ordering};

/// Memory that is brought in ahead of the frames in use, at most.
const AHEAD_BYTES_MAX: usize = 32 << 20;

/// How far memory has been brought in.
#[derive(Default)]
pub(crate) struct Ahead {
    /// The frames below have their memory, or somebody is about to bring it in; a hint, any value is safe.
    reached: AtomicU32,
}

impl Ahead {
    fn reached(&self) -> u32 {
        // Relaxed: a hint.
        self.reached.load(Ordering::Relaxed)
    }

    /// Notes that the memory of the frames from `limit` on is given back; returns how far it went.
    pub(crate) fn fall_back(&self, limit: u32) -> u32 {
        // Relaxed: a hint.
        self.reached.fetch_min(limit, Ordering::Relaxed)
    }
}

impl Pool {
    /// Whether fresh frames are about to be handed out whose memory has not been brought in.
    #[inline]
    pub(crate) fn wants_memory(&self) -> bool {
        let (fresh, reached) = (self.free.fresh(), self.ahead.reached());
        reached < self.free.limit() && reached < fresh + self.frames_ahead(fresh) / 2
    }

    /// Brings in the memory of the frames that will be used next.
    pub(crate) fn bring_memory_in(&self) {
        if !self.wants_memory() {
            return;
        }
        let fresh = self.free.fresh();
        let to = self.free.limit().min(fresh + self.frames_ahead(fresh));
        // Relaxed: a hint; it also keeps two from bringing in the same.
        let reached = self.ahead.reached.fetch_max(to, Ordering::Relaxed);
        self.frames.bring_in(reached.max(fresh).min(to), to);
    }

    /// Frames to be ready when so many are in use.
    fn frames_ahead(&self, fresh: u32) -> u32 {
        fresh.min((AHEAD_BYTES_MAX / self.options.page_size.bytes()) as u32)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::options::PoolOptions;
    use longshore_base::{Durability, DurabilityLost, Lsn, PageId, SystemEnvironment};
    use longshore_disk::{Disk, MemoryDisk, OpenMode};
    use std::sync::Arc;

    struct Unlogged;

    impl Durability for Unlogged {
        fn is_durable(&self, _: Lsn) -> bool {
            true
        }

        fn make_durable(&self, _: Lsn) -> Result<(), DurabilityLost> {
            Ok(())
        }
    }

    fn pool() -> Arc<Pool> {
        let data = MemoryDisk::new().open("data", OpenMode::Create).unwrap();
        let options = PoolOptions {
            bytes_max: 8 << 20,
            ..PoolOptions::default()
        };
        let env = Arc::new(SystemEnvironment::new());
        Pool::new(options, data, None, Arc::new(Unlogged), env).unwrap()
    }

    fn use_pages(pool: &Pool, pages: std::ops::Range<u64>) {
        pages.for_each(|page| drop(pool.fix_new(PageId::new(page)).unwrap()));
    }

    #[test]
    fn as_much_again_as_is_in_use_is_brought_in() {
        let pool = pool();
        use_pages(&pool, 0..64);
        assert!(pool.wants_memory());
        pool.maintain(0).unwrap();
        assert_eq!(pool.ahead.reached(), 2 * pool.free.fresh());
        assert!(!pool.wants_memory());
        use_pages(&pool, 64..512);
        pool.maintain(0).unwrap();
        assert_eq!(pool.ahead.reached(), pool.free.limit(), "and no more");
        use_pages(&pool, 512..700);
        assert!(!pool.wants_memory());
    }

    #[test]
    fn what_is_ahead_is_given_back_by_shrinking() {
        let pool = pool();
        use_pages(&pool, 0..300);
        pool.maintain(0).unwrap();
        pool.resize(4 << 20).unwrap();
        assert!(pool.ahead.reached() <= pool.free.limit());
    }
}
