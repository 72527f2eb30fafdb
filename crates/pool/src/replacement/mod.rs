//! Replacement: who chooses the page that leaves, and how it learns which pages are used.
//!
//! Nb-GCLOCK, the default, lives in the frame words (`evict.rs`), and nothing of this folder is there for it: a hit
//! tests one pointer. Any policy of `longshore-policy` can take its place. It is sequential code, so it stands under a
//! lock; what differs between the *forms* is how a hit reaches it:
//!
//! | form | a hit | lock |
//! |---|---|---|
//! | `bp-wrapper` | goes into the thread's own queue (`bp_wrapper.rs`) | tried from 32 hits on, taken at 64 |
//! | `lossy` | goes into a striped buffer, or is lost (`lossy.rs`) | tried when a buffer is full |
//! | `spin`, `mutex` | is told to the policy at once | for each hit: test-and-test-and-set, or sleeping |
//! | `partitioned` | is told at once to the policy of the page's part | for each hit: one of several |
//!
//! # Protocol
//! *Hit*: the frame is held or read as ever, then (frame, page) is noted, unless the page is
//! young (`young.rs`). Reads in passing are not noted.
//!
//! *Miss* (`fault.rs`): the page is reserved and read as ever, without the lock. Then one critical section: the hits
//! that wait are replayed, `on_miss`, `evict`, `on_insert`. The policy's choice is claimed by the frame word's own
//! exchange, in the answer to its offer; pinned frames are `Busy`, dirty ones `Dirty`. The page is copied into the frame
//! and published after that. Dirty victims are written in a batch without the lock, and stay where they are, clean;
//! then the policy is asked again.
//!
//! *Removal* of a page otherwise (truncation, a shrinking pool, a crowded hash table): the frame is claimed, taken
//! from the policy, then from the table, then given to whoever needs one.
//!
//! *Ahead of need* nothing is evicted, as the miss has the lock anyway; `maintain` writes the dirty pages among those
//! that the policy would offer next. A page brought in ahead is known to the policy; its first hit is its reference.
//!
//! # Invariants
//! R1. Under the lock: the policy has a page resident in a frame if, and only if, the frame is *tracked* as that page's.
//! R2. A frame in the free list or in the reserve, or Loading for another page, is not tracked as the former's.
//! R3. A hit is replayed only if its frame is still tracked as its page's; else it is stale, and dropped. The tag is the
//!     page, not the frame's version, which moves with every change of the page as well. (A page that left and came back
//!     into the same frame meanwhile gets the hit: it is a reference to that page all the same.)
//! R4. No page is missed while it is tracked: its frame is taken from the policy before its entry leaves the table, and
//!     of several readers one claims the load before it takes a frame.
//!
//! # Order
//! The policy's lock is a leaf: it is taken under latches, under `resizing` and under `cleaner`; nothing is waited for
//! under it, no I/O is done, and no second lock is taken, not another part's either.
//!
//! # Source
//! BP-Wrapper: X. Ding, S. Jiang, X. Zhang, ICDE 2009. Lossy buffers: Caffeine's. We differ: whoever holds the lock may
//! drain any queue, so those of idle and ended threads are; pages are read before the lock is taken.

mod bp_wrapper;
mod choice;
mod fault;
mod keeper;
mod lossy;
mod part;
mod young;

pub use choice::{AboutForm, Form, FormParameter, Replacement, ReplacementError};

#[cfg(not(loom))]
pub(crate) use bp_wrapper::Queue;
pub(crate) use young::Young;

use crate::frame::{FrameId, FrameRef, Frames};
use crate::options::PoolOptions;
use crate::pool::Pool;
use crate::stats::ReplacementStats;
use crate::trace::PageUse;
use bp_wrapper::{Noted, Queues};
use keeper::Hit;
use longshore_base::{Environment, PageId};
use lossy::{Buffers, Offer};
use part::{Held, LockKind, Part};
use std::io;
use std::sync::Arc;

/// A policy of the catalogue at work.
pub(crate) struct Live {
    /// Of BP-Wrapper; in other forms nobody has one.
    queues: Queues,
    hits: HitPath,
    /// The share of the pool that is used while a page is young, in percent.
    young: u32,
    /// One, unless pages are divided by a hash of their numbers.
    parts: Box<[Part]>,
}

/// How hits reach the policy.
#[expect(clippy::large_enum_variant, reason = "one for each pool, in a box")]
enum HitPath {
    Queues,
    Buffers(Buffers),
    AtOnce,
}

impl Live {
    /// What the options say, for a pool of `size` frames; `None` for Nb-GCLOCK.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn new(
        options: &PoolOptions,
        frames: &Frames,
        size: u32,
        env: &Arc<dyn Environment>,
    ) -> io::Result<Option<Box<Live>>> {
        let Replacement::Policy { form, policy } = &options.replacement else {
            return Ok(None);
        };
        let clock = options.times_replacement.then_some(env);
        let (hits, lock, parts) = match *form {
            Form::BpWrapper { .. } => (HitPath::Queues, LockKind::Mutex, 1),
            Form::Lossy { .. } => (HitPath::Buffers(Buffers::new()), LockKind::Mutex, 1),
            Form::Spin => (HitPath::AtOnce, LockKind::Spin, 1),
            Form::Mutex => (HitPath::AtOnce, LockKind::Mutex, 1),
            Form::Partitioned { parts } => (HitPath::AtOnce, LockKind::Mutex, parts),
        };
        let queues = match *form {
            Form::BpWrapper { batch, queue, .. } => Queues::new(batch, queue),
            _ => Queues::none(),
        };
        let share = size.div_ceil(parts).max(1);
        let part = |_| Part::new(lock, policy, share, clock.cloned());
        let live = Live {
            queues: queues?,
            hits,
            // Whoever traces uses is told of all.
            young: match options.trace {
                None => form.young_percent(),
                Some(_) => 0,
            },
            parts: (0..parts).map(part).collect(),
        };
        frames.young.set_share(live.young, size);
        Ok(Some(Box::new(live)))
    }

    /// The part that answers for `page`.
    #[inline]
    fn part_of(&self, page: PageId) -> &Part {
        match &*self.parts {
            [only] => only,
            parts => {
                // Fibonacci hashing (Knuth 6.4).
                let hash = page.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                &parts[hash as usize % parts.len()]
            }
        }
    }

    /// Notes a hit.
    #[inline(always)]
    fn hit(&self, pool: &Pool, id: FrameId, page: PageId) {
        let hit = Hit::new(id, page);
        match self.queues.note(hit) {
            Noted::Waiting => {}
            noted => self.hit_beyond(pool, page, hit, noted),
        }
    }

    /// Does what is left to do for a hit that does not simply wait with others.
    #[inline(never)]
    fn hit_beyond(&self, pool: &Pool, page: PageId, hit: Hit, noted: Noted) {
        match (&self.hits, noted) {
            (HitPath::Queues, Noted::NoQueue) => self.queues.note_first(pool, &self.parts[0], hit),
            (HitPath::Queues, _) => self.queues.commit(pool, &self.parts[0]),
            (HitPath::Buffers(buffers), _) => match buffers.offer(hit) {
                Offer::Noted => {}
                Offer::Full => buffers.drain_full(pool, &self.parts[0], hit),
                Offer::Lost => buffers.drop_hit(),
            },
            (HitPath::AtOnce, _) => self.tell(pool, page, hit),
        }
    }

    /// Tells the policy of a hit at once.
    #[inline(never)]
    fn tell(&self, pool: &Pool, page: PageId, hit: Hit) {
        self.part_of(page).lock().tell(&pool.frames, hit);
    }

    /// Locks the part of a page that is missed, and replays the hits that came before.
    fn lock_for_miss(&self, pool: &Pool, page: PageId) -> Held<'_> {
        let part = self.part_of(page);
        match &self.hits {
            HitPath::Queues => self.queues.lock_for_miss(pool, part),
            HitPath::Buffers(buffers) => {
                let mut held = part.lock();
                buffers.drain(pool, &mut held);
                held
            }
            HitPath::AtOnce => part.lock(),
        }
    }

    /// The pool has `size` frames now.
    pub(crate) fn set_capacity(&self, frames: &Frames, size: u32) {
        let share = size.div_ceil(self.parts.len() as u32).max(1);
        for part in &self.parts {
            let mut held = part.lock();
            held.set_capacity(share);
            frames.young.set_share(self.young, size);
        }
    }

    /// What the locks and queues have seen so far.
    pub(crate) fn stats(&self) -> ReplacementStats {
        let mut stats = ReplacementStats::default();
        self.parts.iter().for_each(|part| part.add_to(&mut stats));
        if let HitPath::Buffers(buffers) = &self.hits {
            stats.hits_dropped = buffers.dropped();
        }
        stats
    }

    /// Memory held, with that of queues that nobody has used yet.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn bytes(&self) -> usize {
        let buffers = match &self.hits {
            HitPath::Buffers(buffers) => buffers.bytes(),
            HitPath::Queues | HitPath::AtOnce => 0,
        };
        let policies: usize = self.parts.iter().map(|part| part.lock().bytes()).sum();
        self.queues.bytes() + buffers + size_of_val(&*self.parts) + policies
    }
}

impl Pool {
    /// Notes that a page was found in a frame, and used.
    #[inline(always)]
    pub(crate) fn note_hit(&self, frame: FrameRef<'_>, page: PageId, what: PageUse) {
        if self.has_listener && !self.frames.young.is(frame.header) {
            self.tell_hit(frame.id, page, what);
        }
    }

    #[inline(never)]
    fn tell_hit(&self, id: FrameId, page: PageId, what: PageUse) {
        match self.options.trace {
            None => self.tell_policy(id, page),
            // Elsewhere, so that the way above needs no registers saved.
            Some(_) => self.tell_both(id, page, what),
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_both(&self, id: FrameId, page: PageId, what: PageUse) {
        self.trace_use(page, what);
        self.tell_policy(id, page);
    }

    #[inline(always)]
    fn tell_policy(&self, id: FrameId, page: PageId) {
        if let Some(live) = &self.live {
            live.hit(self, id, page);
        }
    }

    /// Takes the page in `id`, a frame that we have claimed, from the policy (R2).
    pub(crate) fn untrack(&self, page: PageId, id: FrameId) {
        if let Some(live) = &self.live {
            live.part_of(page).lock().remove(&self.frames, id);
        }
    }
}
