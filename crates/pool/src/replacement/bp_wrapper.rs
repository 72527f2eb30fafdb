//! BP-Wrapper: each thread notes its hits in a queue of its own, and tells the policy of a batch of them.
//!
//! # Protocol
//! The queue is a ring with one producer, the thread; its consumer is whoever holds the policy's lock. From `batch`
//! waiting hits on the thread tries the lock at each hit; with `len` of them it waits for it. Before either it fetches
//! the policy's nodes of the waiting frames, so that the lock is not held while memory is awaited. A miss takes the lock
//! anyway and drains the thread's queue first, so that one thread's references reach the policy in their order.
//!
//! *Idle queues.* Each miss also looks at one queue of another thread, in turn, and drains it if nothing was added since
//! the last look. So the hits of a thread that sleeps or has ended are told within two rounds of misses over the queues
//! there are, and those of a busy one are left to it. Without misses nobody asks the policy anything.
//!
//! # Invariants
//! Q1. `head` is written under the policy's lock, `tail` by the owner; `head <= tail <= head + len`.
//! Q2. What lies between them was written by the owner and is read before `head` passes it.
//!
//! A thread's number is handed on when it ends. If it uses the pool even then, two threads may share a queue for a
//! moment: hits are lost or told twice, and stale ones are dropped as ever; nothing else depends on them.
//!
//! # Ordering
//! | store | load | carries |
//! |---|---|---|
//! | `tail` (Release) in `push` | `tail` (Acquire) in `drain` | the hits |
//! | `head` (Release) in `drain` | `head` (Acquire) in `push` | that they were read |

use super::keeper::Hit;
use super::part::{Held, Part};
use super::prefetch_nodes;
use crate::frame::Frames;
use crate::pool::Pool;
use crossbeam_utils::CachePadded;
use longshore_base::metrics::thread_number;
use longshore_base::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;

/// The longest queue there can be.
pub(super) const LEN_MAX: u32 = if cfg!(loom) { 4 } else { 64 };
/// Queues are made so many at a time.
const CHUNK: usize = if cfg!(loom) { 2 } else { 32 };
/// Threads beyond this many chunks have no queue, and take the lock for each hit.
const CHUNKS: usize = if cfg!(loom) { 1 } else { 32 };

/// What came of noting a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// It waits with others.
    Waiting,
    /// So does it, and they are enough to try the lock.
    Enough,
    /// This thread has no queue yet, or gets none.
    NoQueue,
}

/// The queues of all threads.
pub(super) struct Queues {
    batch: u32,
    len: u32,
    chunks: [OnceLock<Box<[CachePadded<Queue>; CHUNK]>>; CHUNKS],
    /// The number of the queue to be looked at next. Guarded by the policy's lock.
    round: AtomicUsize,
}

impl Queues {
    /// Queues of `len` hits, of which `batch` are worth trying the lock.
    pub(super) fn new(batch: u32, len: u32) -> Queues {
        let queues = Queues {
            batch: batch.min(LEN_MAX),
            len: len.min(LEN_MAX),
            chunks: [const { OnceLock::new() }; CHUNKS],
            round: AtomicUsize::new(0),
        };
        if cfg!(loom) {
            // The model checker does not see what a `OnceLock` orders.
            queues.make(0);
        }
        queues
    }

    /// Notes a hit of this thread.
    #[inline(always)]
    pub(super) fn note(&self, hit: Hit) -> Noted {
        match self.find(thread_number()) {
            None => Noted::NoQueue,
            Some(queue) if queue.push(hit) < self.batch => Noted::Waiting,
            Some(_) => Noted::Enough,
        }
    }

    /// Notes a hit of a thread that has no queue yet, or gets none.
    #[cold]
    #[inline(never)]
    pub(super) fn note_first(&self, pool: &Pool, part: &Part, hit: Hit) {
        match self.make(thread_number()) {
            Some(queue) if queue.push(hit) < self.batch => {}
            Some(_) => self.commit(pool, part),
            None => part.lock().replay(&pool.frames, [hit]),
        }
    }

    /// Tells the policy of the hits of this thread, which are enough, if the lock can be had or must be.
    #[inline(never)]
    pub(super) fn commit(&self, pool: &Pool, part: &Part) {
        let Some(queue) = self.find(thread_number()) else {
            return;
        };
        let waiting = queue.len();
        if waiting >= self.len {
            prefetch_nodes(part, queue.waiting());
            queue.drain(&mut part.lock(), &pool.frames);
            return;
        }
        if waiting == self.batch {
            prefetch_nodes(part, queue.waiting());
        }
        if let Some(mut held) = part.try_lock() {
            queue.drain(&mut held, &pool.frames);
        }
    }

    /// Takes the lock for a miss of this thread, and drains its queue and perhaps that of an idle one.
    pub(super) fn lock_for_miss<'a>(&self, pool: &Pool, part: &'a Part) -> Held<'a> {
        let queue = self.find(thread_number());
        if let Some(queue) = queue {
            prefetch_nodes(part, queue.waiting());
        }
        let mut held = part.lock();
        if let Some(queue) = queue {
            queue.drain(&mut held, &pool.frames);
        }
        if let Some(queue) = self.next_in_round()
            && queue.is_idle()
        {
            queue.drain(&mut held, &pool.frames);
        }
        held
    }

    /// The queue of the thread with this number, if it was made.
    #[inline]
    fn find(&self, number: usize) -> Option<&Queue> {
        let queues = self.chunks.get(number / CHUNK)?.get()?;
        Some(&queues[number % CHUNK])
    }

    /// The queue of the thread with this number, unless there are too many threads.
    fn make(&self, number: usize) -> Option<&Queue> {
        let chunk = self.chunks.get(number / CHUNK)?;
        chunk.get_or_init(|| Box::new(std::array::from_fn(|_| CachePadded::default())));
        self.find(number)
    }

    /// The queues in turn; by the holder of the lock.
    fn next_in_round(&self) -> Option<&Queue> {
        // Relaxed: guarded by the lock.
        let at = self.round.load(Ordering::Relaxed);
        let made = |number: &usize| self.chunks[number / CHUNK % CHUNKS].get().is_some();
        let numbers =
            std::iter::once(at).chain((1..=CHUNKS).map(|skip| (at / CHUNK + skip) * CHUNK));
        let number = { numbers }.find(made)? % (CHUNK * CHUNKS);
        self.round.store(number + 1, Ordering::Relaxed);
        self.find(number)
    }
}

/// The hits of one thread.
struct Queue {
    /// Hits noted so far; wraps.
    tail: AtomicU32,
    /// Hits drained so far; wraps.
    head: AtomicU32,
    /// `tail` at the last look of the round. Guarded by the policy's lock.
    seen: AtomicU32,
    hits: [AtomicU64; LEN_MAX as usize],
}

impl Default for Queue {
    fn default() -> Queue {
        Queue {
            tail: AtomicU32::new(0),
            head: AtomicU32::new(0),
            seen: AtomicU32::new(0),
            hits: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Queue {
    /// Adds a hit, by the owner; how many are waiting now.
    #[inline]
    fn push(&self, hit: Hit) -> u32 {
        // Relaxed: ours.
        let tail = self.tail.load(Ordering::Relaxed);
        // Acquire: pairs with Release in `drain`; what lay in this place has been read (Q2).
        let head = self.head.load(Ordering::Acquire);
        // Relaxed: published by `tail`.
        self.hits[place(tail)].store(hit.to_raw(), Ordering::Relaxed);
        let next = tail.wrapping_add(1);
        // Release: pairs with Acquire in `drain`.
        self.tail.store(next, Ordering::Release);
        next.wrapping_sub(head)
    }

    /// Tells the policy of all that is waiting.
    fn drain(&self, held: &mut Held<'_>, frames: &Frames) {
        // Acquire: pairs with Release in `push`.
        let tail = self.tail.load(Ordering::Acquire);
        held.replay(frames, self.hits_to(tail));
        // Release: pairs with Acquire in `push`.
        self.head.store(tail, Ordering::Release);
    }

    /// Whether nothing was added since the last call, but is waiting still. By the holder of the lock.
    fn is_idle(&self) -> bool {
        // Relaxed: `seen` and `head` are guarded by the lock; `drain` loads `tail` again.
        let tail = self.tail.load(Ordering::Relaxed);
        let was_seen = self.seen.load(Ordering::Relaxed) == tail;
        self.seen.store(tail, Ordering::Relaxed);
        was_seen && self.head.load(Ordering::Relaxed) != tail
    }

    /// How many hits are waiting, to the owner.
    fn len(&self) -> u32 {
        // Relaxed: ours, and a hint that another may only lower.
        let tail = self.tail.load(Ordering::Relaxed);
        tail.wrapping_sub(self.head.load(Ordering::Relaxed))
    }

    /// What the owner will drain.
    fn waiting(&self) -> impl Iterator<Item = Hit> {
        // Relaxed: ours.
        self.hits_to(self.tail.load(Ordering::Relaxed))
    }

    fn hits_to(&self, tail: u32) -> impl Iterator<Item = Hit> {
        // Relaxed: guarded by the lock, or a hint to the owner.
        let head = self.head.load(Ordering::Relaxed);
        // More than fit there are only if two threads shared the queue.
        let waiting = tail.wrapping_sub(head).min(LEN_MAX);
        (0..waiting).filter_map(move |nth| {
            let at = place(tail.wrapping_sub(waiting - nth));
            // Relaxed: ordered by `tail`.
            Hit::from_raw(self.hits[at].load(Ordering::Relaxed))
        })
    }
}

/// The place of the hit with this number.
#[inline]
fn place(number: u32) -> usize {
    (number % LEN_MAX) as usize
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::frame::FrameId;
    use crate::replacement::keeper::Arrival;
    use crate::replacement::part::LockKind;
    use longshore_base::sync::{Arc, thread};
    use longshore_base::{PageId, PageSize};

    /// A policy over two frames, and the queue of one thread.
    struct World {
        frames: Frames,
        part: Part,
        queue: Queue,
    }

    impl World {
        fn new() -> Arc<World> {
            let world = World {
                frames: Frames::new(2, PageSize::MIN).unwrap(),
                part: Part::new(LockKind::Mutex, &"lru".parse().unwrap(), 2),
                queue: Queue::default(),
            };
            (0..2).for_each(|frame| world.bring_in(frame, u64::from(frame)));
            Arc::new(world)
        }

        fn bring_in(&self, frame: u32, page: u64) {
            let (id, page) = (FrameId::new(frame), PageId::new(page));
            self.frames.header(id).set_page(page);
            let mut held = self.part.lock();
            let at = held.miss(page);
            held.insert(&self.frames, id, (page, at), Arrival::Wanted);
        }

        /// Another page takes the place of that in frame 0.
        fn replace(&self) {
            self.part.lock().remove(&self.frames, FrameId::new(0));
            self.bring_in(0, 2);
        }

        fn note(&self, frame: u32, page: u64) -> u32 {
            self.queue
                .push(Hit::new(FrameId::new(frame), PageId::new(page)))
        }

        fn drain(&self) {
            self.queue.drain(&mut self.part.lock(), &self.frames);
        }

        /// Hits drained and stale.
        fn counts(&self) -> (u64, u64) {
            let mut stats = crate::ReplacementStats::default();
            self.part.add_to(&mut stats);
            (stats.hits_drained, stats.hits_stale)
        }
    }

    #[test]
    fn each_hit_is_told_once_whoever_drains() {
        loom::model(|| {
            let world = World::new();
            let other = {
                let world = Arc::clone(&world);
                thread::spawn(move || world.drain())
            };
            for _ in 0..LEN_MAX + 1 {
                if world.note(1, 1) >= LEN_MAX {
                    world.drain();
                }
            }
            other.join().unwrap();
            world.drain();
            assert_eq!(world.counts(), (u64::from(LEN_MAX) + 1, 0));
            assert_eq!(world.part.lock().verify(&world.frames), Ok(2));
        });
    }

    #[test]
    fn owner_never_overwrites_what_is_being_drained() {
        loom::model(|| {
            let world = World::new();
            // The queue is full of hits of one page; hits of the other come in as places fall free.
            (0..LEN_MAX).for_each(|_| {
                world.note(0, 0);
            });
            let other = {
                let world = Arc::clone(&world);
                thread::spawn(move || world.drain())
            };
            if world.queue.len() == 0 {
                world.note(1, 9);
            }
            other.join().unwrap();
            let (drained, stale) = world.counts();
            assert_eq!((drained, stale), (u64::from(LEN_MAX), 0), "Q2");
        });
    }

    #[test]
    fn a_hit_of_a_frame_that_moved_on_is_dropped() {
        loom::model(|| {
            let world = World::new();
            let evictor = {
                let world = Arc::clone(&world);
                thread::spawn(move || world.replace())
            };
            world.note(0, 0);
            world.note(1, 1);
            world.drain();
            evictor.join().unwrap();
            let (drained, stale) = world.counts();
            assert!(drained == 2 && stale <= 1);
            // By now it is stale for sure.
            world.note(0, 0);
            world.drain();
            assert_eq!(world.counts(), (3, stale + 1));
            assert_eq!(world.part.lock().verify(&world.frames), Ok(2));
        });
    }

    #[test]
    fn an_ended_thread_leaves_its_hits_to_others() {
        loom::model(|| {
            let world = World::new();
            let owner = {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    world.note(0, 0);
                    world.note(1, 1);
                })
            };
            let look = |world: &World| {
                let mut held = world.part.lock();
                if world.queue.is_idle() {
                    world.queue.drain(&mut held, &world.frames);
                }
            };
            look(&world);
            owner.join().unwrap();
            look(&world);
            look(&world);
            assert_eq!(world.counts(), (2, 0));
        });
    }
}
