//! BP-Wrapper: each thread notes its hits in a queue of its own, and tells the policy of a batch of them.
//!
//! # Protocol
//! The queue is a ring with one producer, the thread; its consumer is whoever holds the policy's lock. From `batch`
//! waiting hits on the thread tries the lock at each hit; with `len` of them it waits for it. `visit` tells it when, so
//! that up to then noting a hit is two stores, and a prefetch of the policy's node of the frame: the lock is not held while
//! memory is awaited. A miss takes the lock anyway and drains the thread's queue first, so that one thread's references reach
//! the policy in their order. Hits of young pages never come here (`young.rs`).
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
//! | `head` (Release) in `drain` | `head` (Acquire) in `len` | that they were read |

use super::keeper::Hit;
use super::part::{Held, Part};
use crate::frame::Frames;
use crate::memory::{Memory, prefetch_address};
use crate::pool::Pool;
use longshore_base::metrics::{thread_number, thread_number_if_known};
use longshore_base::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use longshore_policy::Nodes;
use std::io;

/// The longest queue there can be.
pub(super) const LEN_MAX: u32 = if cfg!(loom) { 4 } else { 64 };
/// Threads with greater numbers have no queue, and take the lock for each hit.
const QUEUES: usize = if cfg!(loom) { 2 } else { 1024 };

/// What came of noting a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// It waits with others.
    Waiting,
    /// So does it, and they are enough to try the lock; or it is the first ever.
    Enough,
    /// This thread has no queue, or not yet a number.
    NoQueue,
}

/// The queues of all threads.
pub(super) struct Queues {
    batch: u32,
    len: u32,
    /// By the thread's number. Memory for as many as are used.
    queues: Memory<Queue>,
    /// One more than the greatest number whose queue is used.
    used: AtomicUsize,
    /// The number of the queue to be looked at next. Guarded by the policy's lock.
    round: AtomicUsize,
}

impl Queues {
    /// Memory when all are used. One that never is takes address space only.
    pub(super) const BYTES_MAX: usize = QUEUES * size_of::<Queue>();

    /// Queues of `len` hits, of which `batch` are worth trying the lock.
    ///
    /// # Errors
    /// There is no memory.
    pub(super) fn new(batch: u32, len: u32) -> io::Result<Queues> {
        Ok(Queues {
            batch: batch.min(LEN_MAX),
            len: len.min(LEN_MAX),
            queues: Memory::zeroed(QUEUES)?,
            used: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
        })
    }

    /// No queue for anybody.
    ///
    /// # Errors
    /// There is no memory.
    pub(super) fn none() -> io::Result<Queues> {
        Ok(Queues {
            queues: Memory::zeroed(0)?,
            ..Queues::new(1, 1)?
        })
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.queues.as_slice())
    }

    /// Notes a hit of this thread.
    #[inline(always)]
    pub(super) fn note(&self, hit: Hit) -> Noted {
        match self.queues.as_slice().get(thread_number_if_known()) {
            None => Noted::NoQueue,
            Some(queue) => queue.push(hit),
        }
    }

    /// Notes a hit of a thread that had no number, or that has no queue.
    #[cold]
    pub(super) fn note_first(&self, pool: &Pool, part: &Part, hit: Hit) {
        thread_number();
        match self.note(hit) {
            Noted::Waiting => {}
            Noted::Enough => self.commit(pool, part),
            Noted::NoQueue => part.lock().tell(&pool.frames, hit),
        }
    }

    /// Tells the policy of the hits of this thread, if they are enough and the lock can be had, or must be.
    pub(super) fn commit(&self, pool: &Pool, part: &Part) {
        let number = thread_number();
        let queue = &self.queues.as_slice()[number];
        // Relaxed: whoever misses the queue in this round will see it in a later one.
        if self.used.load(Ordering::Relaxed) <= number {
            self.used.fetch_max(number + 1, Ordering::Relaxed);
        }
        let waiting = queue.len();
        if waiting >= self.len {
            queue.drain(&mut part.lock(), &pool.frames);
        } else if waiting >= self.batch
            && let Some(mut held) = part.try_lock()
        {
            queue.drain(&mut held, &pool.frames);
        }
        queue.come_back(self.batch, part.nodes());
    }

    /// Takes the lock for a miss of this thread, and drains its queue and perhaps that of an idle one.
    pub(super) fn lock_for_miss<'a>(&self, pool: &Pool, part: &'a Part) -> Held<'a> {
        let mut held = part.lock();
        if let Some(queue) = self.queues.as_slice().get(thread_number()) {
            queue.drain(&mut held, &pool.frames);
            queue.come_back(self.batch, part.nodes());
        }
        if let Some(queue) = self.next_in_round()
            && queue.is_idle()
        {
            queue.drain(&mut held, &pool.frames);
        }
        held
    }

    /// The queues that are used, in turn; by the holder of the lock.
    fn next_in_round(&self) -> Option<&Queue> {
        // Relaxed: `round` is guarded by the lock; `used` only grows.
        let used = self.used.load(Ordering::Relaxed);
        let at = self.round.load(Ordering::Relaxed) % used.max(1);
        self.round.store(at + 1, Ordering::Relaxed);
        self.queues.as_slice()[..used].get(at)
    }
}

/// The hits of one thread. Zeros are a queue that was never used.
#[repr(C, align(128))]
#[cfg_attr(loom, derive(Default))]
pub(crate) struct Queue {
    /// Hits noted so far; wraps.
    tail: AtomicU32,
    /// Hits drained so far; wraps.
    head: AtomicU32,
    /// The owner looks after its hits when `tail` gets here, or beyond. Written by the owner.
    visit: AtomicU32,
    /// `tail` at the last look of the round. Guarded by the policy's lock.
    seen: AtomicU32,
    /// Where the policy's nodes lay when the owner last looked, as in [`Nodes`].
    nodes_address: AtomicUsize,
    nodes_stride: AtomicUsize,
    hits: [AtomicU64; LEN_MAX as usize],
}

impl Queue {
    /// Adds a hit, by the owner, who has made room in time (Q1).
    #[inline(always)]
    fn push(&self, hit: Hit) -> Noted {
        // Relaxed: ours. What lay in this place was read: pairs with Release in `drain`, by Acquire in `len` (Q2).
        let tail = self.tail.load(Ordering::Relaxed);
        // Relaxed: published by `tail`.
        self.hits[place(tail)].store(hit.to_raw(), Ordering::Relaxed);
        let next = tail.wrapping_add(1);
        // Release: pairs with Acquire in `drain`.
        self.tail.store(next, Ordering::Release);
        // Relaxed: any address may be prefetched.
        let stride = self.nodes_stride.load(Ordering::Relaxed);
        let offset = (hit.frame().get() as usize).wrapping_mul(stride);
        prefetch_address(
            self.nodes_address
                .load(Ordering::Relaxed)
                .wrapping_add(offset),
        );
        // Relaxed: ours.
        match (next.wrapping_sub(self.visit.load(Ordering::Relaxed)) as i32) < 0 {
            true => Noted::Waiting,
            false => Noted::Enough,
        }
    }

    /// Has the owner look again when `batch` hits wait, or at the next if they do already.
    fn come_back(&self, batch: u32, nodes: Nodes) {
        let left = batch.saturating_sub(self.len()).max(1);
        // Relaxed: ours, as `tail` is.
        let visit = self.tail.load(Ordering::Relaxed).wrapping_add(left);
        self.visit.store(visit, Ordering::Relaxed);
        self.nodes_address.store(nodes.address, Ordering::Relaxed);
        self.nodes_stride.store(nodes.stride, Ordering::Relaxed);
    }

    /// Tells the policy of all that is waiting.
    fn drain(&self, held: &mut Held<'_>, frames: &Frames) {
        // Acquire: pairs with Release in `push`.
        let tail = self.tail.load(Ordering::Acquire);
        let pieces = self.pieces_to(tail).into_iter();
        pieces
            .filter(|piece| !piece.is_empty())
            .for_each(|piece| held.replay(frames, hits_in(piece)));
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
        // Relaxed: ours.
        let tail = self.tail.load(Ordering::Relaxed);
        // Acquire: pairs with Release in `drain`; what lay before has been read (Q2).
        tail.wrapping_sub(self.head.load(Ordering::Acquire))
    }

    /// The hits from `head` on, which lie in two pieces where they go round the end.
    #[inline]
    fn pieces_to(&self, tail: u32) -> [&[AtomicU64]; 2] {
        // Relaxed: guarded by the lock, or a hint to the owner.
        let head = self.head.load(Ordering::Relaxed);
        // More than fit there are only if two threads shared the queue.
        let waiting = tail.wrapping_sub(head).min(LEN_MAX) as usize;
        let (start, all) = (place(tail.wrapping_sub(waiting as u32)), LEN_MAX as usize);
        let end = all.min(start + waiting);
        [&self.hits[start..end], &self.hits[..start + waiting - end]]
    }
}

#[inline(always)]
fn hits_in(piece: &[AtomicU64]) -> impl Iterator<Item = Hit> {
    // Relaxed: ordered by `tail`.
    let hit = |hit: &AtomicU64| Hit::from_raw(hit.load(Ordering::Relaxed));
    piece.iter().filter_map(hit)
}

/// The place of the hit with this number.
#[inline(always)]
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
                part: Part::new(LockKind::Mutex, &"lru".parse().unwrap(), 2, None),
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

        /// How many hits wait, then.
        fn note(&self, frame: u32, page: u64) -> u32 {
            self.queue
                .push(Hit::new(FrameId::new(frame), PageId::new(page)));
            self.queue.len()
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
