//! The trait that every replacement policy implements, and the words it speaks.
//!
//! # Protocol
//! - hit: `on_hit(frame)`; several at once: `on_hits(frames)`.
//! - miss: `at = on_miss(page)`; while no frame is free, `evict(Some((page, at)), …)`; then `on_insert(frame, page, at)`.
//!   With a free frame at hand there is no `evict`; after a failed read no `on_insert`; with nothing but dirty victims
//!   there are several `evict`. Between these calls hits, removals and misses of *other* pages may come in.
//! - a page that leaves without being chosen: `on_remove(frame, why)`.
//! - a pool that grows or shrinks: `set_capacity`, then, to shrink, `evict(None, …)` or `on_remove` frame by frame.
//!
//! # Invariants (what a policy may rely on)
//! I1. `on_hit` and `on_remove` name resident frames only; `on_insert` only frames that are not resident.
//! I2. A page is resident in one frame at most, and not missed while it is.
//! I3. There may be more residents than the capacity (reserve frames; a pool that is shrinking), and frame numbers
//!     beyond it; there may be fewer, for as long as the caller likes.
//!
//! # Invariants (what a policy owes)
//! P1. `evict` offers resident frames only, each at most twice a call, and none after `Taken` or `Enough`.
//! P2. A frame declined stays as good a victim as it was: being busy is no reference.
//! P3. Work is O(1) a call, amortised, but for frames declined. No hashing in `on_hit`.
//! P4. It works with one frame and with two.
//! P5. Time is counted in references; chance comes from a seed. Which frame a page gets makes no difference.

use longshore_base::PageId;

use crate::inspect::Inspector;

/// A place for one page: `0..frames`, dense.
pub type Frame = u32;

/// What the caller says to a victim that it is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// It is taken: it is resident no more.
    Taken,
    /// Pinned or in I/O: look on, and keep its place.
    Busy,
    /// A clean one would be better: look on. It may be offered once more in this call.
    Dirty,
    /// Stop looking; as if all others were busy.
    Enough,
}

/// Asked about one victim after the other.
pub type Taker<'a> = &'a mut (dyn FnMut(Frame, PageId) -> Take + 'a);

/// The page that wants in and where, or `None` where room is made ahead of need or the pool shrinks.
pub type Incoming = Option<(PageId, Placement)>;

/// Why a page left without being chosen. No history is kept of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// The page is no longer valid: deallocated, or dropped.
    Invalidated,
    /// The page moves to another frame, where it comes in as after a miss.
    Relocated,
}

/// What `on_miss` decided, carried to `evict` and `on_insert`. Means something to the policy alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement(u32);

impl Placement {
    /// The placement of a policy that has one only.
    pub const ONLY: Placement = Placement(0);

    /// Wraps what the policy wants to remember.
    pub const fn new(raw: u32) -> Placement {
        Placement(raw)
    }

    /// What was wrapped.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// Where the nodes of the frames lie in memory: that of frame `f` at `address + f * stride`. For prefetching only;
/// a stale address is harmless there, and of no use elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// Address of frame 0's node; 0 where there is nothing to prefetch.
    pub address: usize,
    /// Bytes from one node to the next.
    pub stride: usize,
}

impl Nodes {
    /// Nothing to prefetch.
    pub const NONE: Nodes = Nodes {
        address: 0,
        stride: 0,
    };
}

/// Chooses which page leaves. See the protocol at the head of `policy.rs`.
pub trait Policy: Send {
    /// The page in `frame` was used.
    fn on_hit(&mut self, frame: Frame);

    /// The pages in `frames`, 64 at most, were used, one after the other: what `on_hit` does for each, in one call through a
    /// table. Says which of them were [settled](Policy::is_settled) right after, the first in the lowest bit.
    fn on_hits(&mut self, frames: &[Frame]) -> u64 {
        debug_assert!(frames.len() <= 64, "one bit for each");
        let mut settled = 0;
        for (at, &frame) in frames.iter().enumerate() {
            self.on_hit(frame);
            settled |= u64::from(self.is_settled(frame)) << at;
        }
        settled
    }

    /// Whether another hit of the page in `frame` would change its place by no more than the pages used since the last
    /// one, or nothing at all. Then hits that come before many others were used need not be told. Never so where uses are
    /// counted.
    fn is_settled(&self, _frame: Frame) -> bool {
        false
    }

    /// `page` is not resident and will be: once a fault, before a frame is chosen. Histories are consulted here, and
    /// what adapts, adapts.
    fn on_miss(&mut self, _page: PageId) -> Placement {
        Placement::ONLY
    }

    /// Offers victims in order of preference until `take` says `Taken`, and returns that one; it has left the resident
    /// set, for a list of ghosts if the policy keeps one. `None`: all offered were declined, or enough.
    fn evict(&mut self, incoming: Incoming, take: Taker<'_>) -> Option<Frame>;

    /// `page` is resident in `frame` from now on.
    fn on_insert(&mut self, frame: Frame, page: PageId, at: Placement);

    /// The page in `frame` is gone, unchosen.
    fn on_remove(&mut self, frame: Frame, why: Gone);

    /// `page` exists no more; drops what is remembered of it. It is not resident.
    fn forget_ghost(&mut self, _page: PageId) {}

    /// The pool has `frames` frames now, at least one. Histories are cut to measure; residents stay until they are
    /// evicted or removed.
    fn set_capacity(&mut self, frames: u32);

    /// Bytes of memory that it holds now: no more than its entry in the catalogue says.
    fn bytes(&self) -> usize;

    /// Where the nodes lie, for prefetching.
    fn nodes(&self) -> Nodes {
        Nodes::NONE
    }

    /// Fills `out`, which is empty, with up to `limit` frames that will probably be offered next, best first: what a
    /// cleaner writes ahead.
    fn likely_victims(&self, limit: usize, out: &mut Vec<Frame>);

    /// Shows queues and counters. Every resident frame is in at least one queue.
    fn inspect(&self, out: &mut dyn Inspector);

    /// Verifies the structure.
    ///
    /// # Errors
    /// Says which invariant does not hold.
    fn check(&self) -> Result<(), String>;
}
