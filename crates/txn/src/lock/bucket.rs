//! One bucket of the lock table: a latch, the requests, and two words that readers may look at
//! without the latch.
//!
//! # Protocol
//! All changes are made through [`Bucket::latch`]. When the guard is dropped it publishes a
//! [`Summary`] of what the bucket holds. [`Bucket::glance`] reads the summary and the dependency with
//! two loads and no store, so a line that many threads look at stays in all their caches.
//!
//! # Invariants
//! B1. While the latch is free the summary equals the counts over the requests.
//! B2. `last_commit` is stored before the summary in which the committing owner's lock is missing.
//!
//! # Ordering
//! | store | load | so that |
//! |---|---|---|
//! | summary, Release (guard drop) | summary, Acquire (`glance`) | who sees a lock gone sees the commit that dropped it (B2) |
//! | summary, then fence SeqCst, then page version (a scan) | page version, then fence SeqCst, then summary (an insert, a purge) | one of the two sees the other; see the header of `lock` |
//!
//! The latch is a futex word that spins briefly and then parks, so a thread that is descheduled while
//! holding it does not make the others burn its time slice.

use super::dependency::Dependency;
use super::mode::{Mode, PACKED};
use super::name::LockName;
use super::queue::Queue;
use longshore_base::bits::Field;
use longshore_base::sync::atomic::{AtomicU64, Ordering};
use longshore_base::sync::{Mutex, MutexGuard};
use std::ops::{Deref, DerefMut};

/// One bucket; it fills one cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Bucket {
    /// Written under the latch, read by anybody.
    summary: AtomicU64,
    /// The newest commit that gave up the right to change a key here. Written under the latch.
    last_commit: AtomicU64,
    queue: Mutex<Queue>,
}

/// Counts of the requests in a bucket.
///
/// | bits   | field     | counts requests that                              |
/// |--------|-----------|---------------------------------------------------|
/// | 0..20  | requests  | exist, waiting or granted                         |
/// | 20..40 | writers   | hold a key exclusively                            |
/// | 40..60 | gaps      | hold a gap that they have read                    |
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Summary(u64);

const REQUESTS: Field = Field::new(0, 20);
const WRITERS: Field = REQUESTS.then(20);
const GAPS: Field = WRITERS.then(20);

impl Summary {
    pub fn is_empty(self) -> bool {
        !REQUESTS.is_set(self.0)
    }

    pub fn has_writers(self) -> bool {
        WRITERS.is_set(self.0)
    }

    pub fn has_gaps(self) -> bool {
        GAPS.is_set(self.0)
    }

    #[inline]
    fn of(queue: &Queue) -> Summary {
        let counts = queue
            .iter()
            .map(|r| COUNTS[usize::from(r.held.bits()) % PACKED]);
        Summary(counts.sum())
    }
}

/// What a request adds to the summary, by the mode it holds.
static COUNTS: [u64; PACKED] = counts();

const fn counts() -> [u64; PACKED] {
    let mut counts = [REQUESTS.one(); PACKED];
    let mut bits = 0;
    while bits < PACKED {
        let mode = Mode::from_bits(bits as u8);
        if mode.writes_key() {
            counts[bits] += WRITERS.one();
        }
        if mode.reads_gap() {
            counts[bits] += GAPS.one();
        }
        bits += 1;
    }
    counts
}

impl Bucket {
    /// Takes the latch if it is free.
    #[inline(always)]
    pub fn try_latch(&self) -> Option<Latched<'_>> {
        let queue = self.queue.try_lock()?;
        let bucket = self;
        Some(Latched { bucket, queue })
    }

    /// Takes the latch.
    pub fn latch(&self) -> Latched<'_> {
        let queue = self.queue.lock();
        let bucket = self;
        Latched { bucket, queue }
    }

    /// What the bucket holds and whom a reader of it depends on. Stores nothing.
    #[inline]
    pub fn glance(&self) -> (Summary, Dependency) {
        // Acquire: pairs with the Release in the drop of `Latched`. A summary without a writer's lock
        // brings along the `last_commit` that the writer left.
        let summary = Summary(self.summary.load(Ordering::Acquire));
        // Relaxed: ordered by the load above; a newer value only makes the reader wait longer.
        let last_commit = self.last_commit.load(Ordering::Relaxed);
        (summary, Dependency::from_word(last_commit))
    }

    /// Whether nobody holds `name` to change it, and if so, whose commit a reader of it depends on.
    /// Stores nothing unless somebody changes something in this bucket.
    #[inline]
    pub fn unlocked_for_read(&self, name: LockName) -> Option<Dependency> {
        let (summary, dependency) = self.glance();
        if !summary.has_writers() {
            return Some(dependency);
        }
        let latched = self.latch();
        let is_free = !latched.of(name).any(|r| r.held.writes_key());
        is_free.then(|| latched.last_commit())
    }
}

/// A bucket whose latch is held.
#[derive(Debug)]
pub(crate) struct Latched<'a> {
    bucket: &'a Bucket,
    queue: MutexGuard<'a, Queue>,
}

impl Latched<'_> {
    /// The newest commit that released a write lock here.
    #[inline]
    pub fn last_commit(&self) -> Dependency {
        // Relaxed: guarded by the latch.
        Dependency::from_word(self.bucket.last_commit.load(Ordering::Relaxed))
    }

    /// Makes everyone who takes a lock here from now on depend on `commit`.
    #[inline]
    pub fn raise_last_commit(&mut self, commit: Dependency) {
        // Relaxed: guarded by the latch; readers without it are ordered by the summary (B2).
        self.bucket
            .last_commit
            .store(commit.word(), Ordering::Relaxed);
    }
}

impl Deref for Latched<'_> {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        &self.queue
    }
}

impl DerefMut for Latched<'_> {
    fn deref_mut(&mut self) -> &mut Queue {
        &mut self.queue
    }
}

impl Drop for Latched<'_> {
    #[inline]
    fn drop(&mut self) {
        let summary = Summary::of(&self.queue).0;
        // Relaxed load: guarded by the latch. The store is spared when nothing changed.
        if self.bucket.summary.load(Ordering::Relaxed) != summary {
            // Release: pairs with the Acquire in `glance` (B2).
            self.bucket.summary.store(summary, Ordering::Release);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::mode::Mode;
    use super::super::queue::Acquired;
    use super::*;
    use longshore_base::Lsn;

    fn name(n: u64) -> LockName {
        LockName::of_parts(n, 0)
    }

    #[test]
    fn a_bucket_fills_one_cache_line() {
        assert_eq!(size_of::<Bucket>(), 64);
    }

    #[test]
    fn a_glance_sees_what_was_published() {
        let bucket = Bucket::default();
        assert!(bucket.glance().0.is_empty());
        {
            let mut latched = bucket.latch();
            assert!(bucket.try_latch().is_none());
            assert_eq!(latched.acquire(name(1), 1, Mode::WRITE), Acquired::Granted);
            assert_eq!(
                latched.acquire(name(2), 2, Mode::READ_GAP),
                Acquired::Granted
            );
        }
        let (summary, _) = bucket.glance();
        assert!(summary.has_writers() && summary.has_gaps() && !summary.is_empty());
        {
            let mut latched = bucket.try_latch().unwrap();
            latched.release(name(1), 1);
            latched.raise_last_commit(Dependency::sync(Lsn::new(64)));
        }
        let (summary, dependency) = bucket.glance();
        assert!(!summary.has_writers() && summary.has_gaps());
        assert_eq!(dependency, Dependency::sync(Lsn::new(64)));
    }
}
