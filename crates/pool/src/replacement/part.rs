//! A policy's lock, and what it has seen.
//!
//! A *contention* is a request for the lock that cannot be granted without blocking, as in BP-Wrapper's paper.

use super::keeper::{Arrival, Hit, Keeper, Replayed};
use crate::frame::{FrameId, Frames};
use crate::stats::ReplacementStats;
use longshore_base::metrics::Counter;
use longshore_base::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use longshore_base::sync::{Mutex, MutexGuard, hint, thread};
use longshore_base::{Environment, PageId};
use longshore_policy::{Nodes, Placement, Spec, Take};
use std::sync::Arc;
use std::time::Duration;

/// How a lock that is not free is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockKind {
    /// Asleep.
    Mutex,
    /// Testing until it looks free, then testing and setting; backing off, in the end to the scheduler.
    Spin,
}

/// Pauses before a spinning thread gives its processor away.
const PAUSES_MAX: u32 = 1 << 10;

/// A policy under its lock.
pub(super) struct Part {
    kind: LockKind,
    keeper: Mutex<Keeper>,
    /// Whether a spinning thread need not try; a hint.
    is_held: AtomicBool,
    /// Where the policy's nodes were when the lock was last held: a hint, for prefetching.
    nodes_address: AtomicUsize,
    nodes_stride: AtomicUsize,
    counts: Counts,
    try_locks_failed: Counter,
    /// What the lock's times are read from, where they are wanted.
    clock: Option<Arc<dyn Environment>>,
}

/// Written under the lock, read at any time.
#[derive(Default)]
struct Counts {
    acquisitions: AtomicU64,
    blocked: AtomicU64,
    drained: AtomicU64,
    stale: AtomicU64,
    wait_nanos: AtomicU64,
    held_nanos: AtomicU64,
}

impl Part {
    /// A part whose policy has `frames` frames to itself.
    pub(super) fn new(
        kind: LockKind,
        spec: &Spec,
        frames: u32,
        clock: Option<Arc<dyn Environment>>,
    ) -> Part {
        let part = Part {
            kind,
            keeper: Mutex::new(Keeper::new(spec, frames)),
            is_held: AtomicBool::new(false),
            nodes_address: AtomicUsize::new(0),
            nodes_stride: AtomicUsize::new(0),
            counts: Counts::default(),
            try_locks_failed: Counter::new(),
            clock,
        };
        part.note_nodes(part.keeper.lock().nodes());
        part
    }

    /// Waits for the lock.
    pub(super) fn lock(&self) -> Held<'_> {
        let asked = self.now();
        if let Some(keeper) = self.keeper.try_lock() {
            return Held::new(self, keeper, asked);
        }
        let keeper = match self.kind {
            LockKind::Mutex => self.keeper.lock(),
            LockKind::Spin => self.spin(),
        };
        raise(&self.counts.blocked, 1);
        Held::new(self, keeper, asked)
    }

    /// Takes the lock if it is free.
    pub(super) fn try_lock(&self) -> Option<Held<'_>> {
        let asked = self.now();
        match self.keeper.try_lock() {
            Some(keeper) => Some(Held::new(self, keeper, asked)),
            None => {
                self.try_locks_failed.add(1);
                None
            }
        }
    }

    /// The time, where the lock is timed.
    fn now(&self) -> Option<Duration> {
        self.clock.as_ref().map(|clock| clock.now())
    }

    fn spin(&self) -> MutexGuard<'_, Keeper> {
        let mut pauses = 1;
        loop {
            // Relaxed: a hint; the mutex orders.
            while self.is_held.load(Ordering::Relaxed) {
                if pauses < PAUSES_MAX {
                    (0..pauses).for_each(|_| hint::spin_loop());
                    pauses *= 2;
                } else {
                    thread::yield_now();
                }
            }
            match self.keeper.try_lock() {
                Some(keeper) => return keeper,
                None => thread::yield_now(),
            }
        }
    }

    /// Where the policy's nodes lie, or lay a moment ago.
    pub(super) fn nodes(&self) -> Nodes {
        // Relaxed: any address may be prefetched.
        Nodes {
            address: self.nodes_address.load(Ordering::Relaxed),
            stride: self.nodes_stride.load(Ordering::Relaxed),
        }
    }

    fn note_nodes(&self, nodes: Nodes) {
        if nodes != self.nodes() {
            // Relaxed: see `nodes`.
            self.nodes_address.store(nodes.address, Ordering::Relaxed);
            self.nodes_stride.store(nodes.stride, Ordering::Relaxed);
        }
    }

    pub(super) fn add_to(&self, stats: &mut ReplacementStats) {
        // Relaxed: counts order nothing.
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        stats.lock_acquisitions += get(&self.counts.acquisitions);
        stats.lock_blocked += get(&self.counts.blocked);
        stats.hits_drained += get(&self.counts.drained);
        stats.hits_stale += get(&self.counts.stale);
        stats.lock_wait_nanos += get(&self.counts.wait_nanos);
        stats.lock_held_nanos += get(&self.counts.held_nanos);
        stats.try_locks_failed += self.try_locks_failed.get();
    }
}

/// The lock of a part, held.
pub(super) struct Held<'a> {
    part: &'a Part,
    keeper: MutexGuard<'a, Keeper>,
    /// When it was had, where the lock is timed.
    since: Option<Duration>,
}

impl<'a> Held<'a> {
    /// The lock, which was asked for then.
    fn new(part: &'a Part, keeper: MutexGuard<'a, Keeper>, asked: Option<Duration>) -> Held<'a> {
        let since = part.now();
        if let (Some(asked), Some(since)) = (asked, since) {
            raise(&part.counts.wait_nanos, nanos(asked, since));
        }
        raise(&part.counts.acquisitions, 1);
        if part.kind == LockKind::Spin {
            // Relaxed: a hint.
            part.is_held.store(true, Ordering::Relaxed);
        }
        Held {
            part,
            keeper,
            since,
        }
    }

    /// Tells the policy of hits.
    pub(super) fn replay(&mut self, frames: &Frames, hits: impl IntoIterator<Item = Hit>) {
        let replayed = self.keeper.replay(frames, hits);
        self.count(replayed);
    }

    /// Tells the policy of one hit.
    pub(super) fn tell(&mut self, frames: &Frames, hit: Hit) {
        let replayed = self.keeper.tell(frames, hit);
        self.count(replayed);
    }

    fn count(&self, replayed: Replayed) {
        raise(&self.part.counts.drained, replayed.drained);
        raise(&self.part.counts.stale, replayed.stale);
    }

    /// See [`Keeper::miss`].
    pub(super) fn miss(&mut self, page: PageId) -> Placement {
        self.keeper.miss(page)
    }

    /// See [`Keeper::evict`].
    pub(super) fn evict(
        &mut self,
        frames: &Frames,
        incoming: Option<(PageId, Placement)>,
        offer: &mut dyn FnMut(FrameId, PageId) -> Take,
    ) -> Option<FrameId> {
        self.keeper.evict(frames, incoming, offer)
    }

    /// See [`Keeper::insert`].
    pub(super) fn insert(
        &mut self,
        frames: &Frames,
        id: FrameId,
        incoming: (PageId, Placement),
        arrival: Arrival,
    ) {
        self.keeper.insert(frames, id, incoming, arrival);
        self.part.note_nodes(self.keeper.nodes());
    }

    /// See [`Keeper::remove`].
    pub(super) fn remove(&mut self, frames: &Frames, id: FrameId) {
        self.keeper.remove(frames, id);
    }

    pub(super) fn set_capacity(&mut self, frames: u32) {
        self.keeper.set_capacity(frames);
        self.part.note_nodes(self.keeper.nodes());
    }

    /// See [`Keeper::likely_victims`].
    pub(super) fn likely_victims(&self, limit: usize) -> Vec<FrameId> {
        self.keeper.likely_victims(limit)
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn bytes(&self) -> usize {
        self.keeper.bytes()
    }

    /// See [`Keeper::verify`].
    pub(super) fn verify(&self, frames: &Frames) -> Result<usize, String> {
        self.keeper.verify(frames)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let (Some(since), Some(now)) = (self.since, self.part.now()) {
            raise(&self.part.counts.held_nanos, nanos(since, now));
        }
        if self.part.kind == LockKind::Spin {
            // Relaxed: a hint; the mutex is let go right after.
            self.part.is_held.store(false, Ordering::Relaxed);
        }
    }
}

fn nanos(from: Duration, to: Duration) -> u64 {
    to.saturating_sub(from).as_nanos() as u64
}

/// Adds to a count that only the holder of the lock writes.
fn raise(count: &AtomicU64, by: u64) {
    // Relaxed: ordered by the lock.
    count.store(count.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}
