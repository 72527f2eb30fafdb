//! Lossy buffers: hits go into one of a few striped buffers that threads share, and may be lost.
//!
//! # Protocol
//! A thread reserves a place in the buffer of its number by one exchange, and fills it. Whoever finds its buffer full
//! tries the policy's lock and, with it, drains all buffers: there is one drainer at a time. Who does not get it, or
//! loses the exchange to another thread, forgets the hit. A miss has the lock and drains all. Nobody ever waits to note a
//! hit; in one thread nothing is lost.
//!
//! # Invariants
//! B1. A place between `head` and `tail` is empty until its owner has filled it; the drainer stops at such a one, and
//!     empties those that it reads.
//!
//! # Source
//! Caffeine's read buffer (B. Manes). We differ: a fixed number of stripes; the thread drains, not an executor.

use super::keeper::Hit;
use super::part::{Held, Part};
use crate::pool::Pool;
use crossbeam_utils::CachePadded;
use longshore_base::metrics::{Counter, thread_number};
use longshore_base::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const STRIPES: usize = if cfg!(loom) { 1 } else { 16 };
const LEN: u32 = if cfg!(loom) { 2 } else { 16 };

/// All buffers.
pub(super) struct Buffers {
    stripes: Box<[CachePadded<Buffer>]>,
    dropped: Counter,
}

/// What came of noting a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// It waits.
    Noted,
    /// The buffer is full.
    Full,
    /// Another thread was faster.
    Lost,
}

struct Buffer {
    /// Places reserved so far; wraps.
    tail: AtomicU32,
    /// Places emptied so far; wraps. Written under the policy's lock.
    head: AtomicU32,
    /// 0: empty.
    hits: [AtomicU64; LEN as usize],
}

impl Buffers {
    pub(super) const BYTES: usize = STRIPES * size_of::<CachePadded<Buffer>>();

    pub(super) fn new() -> Buffers {
        let buffer = |_| {
            CachePadded::new(Buffer {
                tail: AtomicU32::new(0),
                head: AtomicU32::new(0),
                hits: std::array::from_fn(|_| AtomicU64::new(0)),
            })
        };
        Buffers {
            stripes: (0..STRIPES).map(buffer).collect(),
            dropped: Counter::new(),
        }
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.stripes)
    }

    /// Notes a hit, if there is a place for it.
    #[inline(always)]
    pub(super) fn offer(&self, hit: Hit) -> Offer {
        self.stripes[thread_number() % STRIPES].offer(hit)
    }

    /// Drains all buffers, of which one is full, and tells the policy of `hit` too; or forgets it.
    #[inline(never)]
    pub(super) fn drain_full(&self, pool: &Pool, part: &Part, hit: Hit) {
        match part.try_lock() {
            Some(mut held) => {
                self.drain(pool, &mut held);
                held.tell(&pool.frames, hit);
            }
            None => self.drop_hit(),
        }
    }

    /// Forgets a hit.
    #[cold]
    pub(super) fn drop_hit(&self) {
        self.dropped.add(1);
    }

    /// Hits lost so far.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.get()
    }

    /// Tells the policy of all hits that are noted.
    pub(super) fn drain(&self, pool: &Pool, held: &mut Held<'_>) {
        for buffer in &self.stripes {
            held.replay(&pool.frames, std::iter::from_fn(|| buffer.take()));
        }
    }
}

impl Buffer {
    #[inline(always)]
    fn offer(&self, hit: Hit) -> Offer {
        // Relaxed: decided by the exchange.
        let tail = self.tail.load(Ordering::Relaxed);
        // Acquire: pairs with Release in `take`: the place is empty.
        let head = self.head.load(Ordering::Acquire);
        if tail.wrapping_sub(head) >= LEN {
            return Offer::Full;
        }
        let next = tail.wrapping_add(1);
        // Relaxed: it gives a place, no hit.
        let reserved = self
            .tail
            .compare_exchange(tail, next, Ordering::Relaxed, Ordering::Relaxed);
        if reserved.is_err() {
            return Offer::Lost;
        }
        // Relaxed: the hit is all there is to see.
        self.hits[(tail % LEN) as usize].store(hit.to_raw(), Ordering::Relaxed);
        Offer::Noted
    }

    /// Takes the oldest hit, by the holder of the policy's lock.
    fn take(&self) -> Option<Hit> {
        // Relaxed: written under the lock.
        let head = self.head.load(Ordering::Relaxed);
        let place = &self.hits[(head % LEN) as usize];
        // Relaxed: a place not filled yet reads as empty (B1).
        let hit = Hit::from_raw(place.load(Ordering::Relaxed))?;
        place.store(0, Ordering::Relaxed);
        // Release: pairs with Acquire in `offer`.
        self.head.store(head.wrapping_add(1), Ordering::Release);
        Some(hit)
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::frame::FrameId;
    use longshore_base::PageId;
    use longshore_base::sync::{Arc, Mutex, thread};

    #[test]
    fn a_noted_hit_is_taken_once_or_still_waits() {
        loom::model(|| {
            let shared = Arc::new((Buffers::new(), Mutex::new(())));
            let note = |page: u64| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let hit = Hit::new(FrameId::new(0), PageId::new(page));
                    u32::from(shared.0.offer(hit) == Offer::Noted)
                })
            };
            let writers = [note(1), note(2)];
            let take_all = || {
                let _lock = shared.1.lock();
                std::iter::from_fn(|| shared.0.stripes[0].take()).count() as u32
            };
            let early = take_all();
            let noted: u32 = writers
                .into_iter()
                .map(|writer| writer.join().unwrap())
                .sum();
            assert!(noted >= 1, "somebody wins");
            assert_eq!(early + take_all(), noted);
        });
    }
}
