//! Free frames: a lock-free stack of used ones, and a counter over those never used.
//!
//! # Protocol
//! `take` gives a frame that nobody else has; `give` brings one back. Frames from `limit` on are beyond
//! the pool's size: whoever meets one retires it instead of using it, so that a pool shrinks as its
//! tail falls free. Frames below `fresh` have been used; those from `fresh` to `limit` are handed out
//! in order without ever having been linked, so a pool of many GiB is made without touching them.
//!
//! # Invariants
//! L1. A frame is in the stack at most once, and only in state Free. Whoever turns it from Retired to
//!     Free, which one can, either takes it or stacks it.
//! L2. `head` carries a tag that moves with every change, so a stale head never compares equal (within
//!     2^32 changes during one `take`).
//!
//! # Source
//! Treiber's stack (1986) with a counted head.

use crate::frame::{FrameId, Frames};
use crossbeam_utils::CachePadded;
use longshore_base::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

pub(crate) struct FreeList {
    stack: CachePadded<Stack>,
    /// The next frame that was never used.
    fresh: AtomicU32,
    /// The size of the pool in frames.
    limit: AtomicU32,
}

/// What each change of the stack writes; on a line of its own, as those who find it empty read the rest.
struct Stack {
    /// Tag in the upper half, frame + 1 in the lower, 0 for none.
    head: AtomicU64,
    /// Frames in the stack: a hint, behind or ahead of the truth by those at work on it.
    count: AtomicUsize,
}

impl FreeList {
    pub(crate) fn new(limit: u32) -> FreeList {
        FreeList {
            stack: CachePadded::new(Stack {
                head: AtomicU64::new(0),
                count: AtomicUsize::new(0),
            }),
            fresh: AtomicU32::new(0),
            limit: AtomicU32::new(limit),
        }
    }

    /// A free frame, now the caller's.
    pub(crate) fn take(&self, frames: &Frames) -> Option<FrameId> {
        loop {
            let Some(id) = self.pop(frames) else {
                match self.take_fresh(frames) {
                    Fresh::Taken(id) => return Some(id),
                    Fresh::Stacked => continue,
                    Fresh::None => return None,
                }
            };
            if id.get() < self.limit() {
                return Some(id);
            }
            self.retire(id, frames);
        }
    }

    /// Takes a frame back that is Free and the caller's; retires it if the pool has shrunk below it.
    pub(crate) fn give(&self, id: FrameId, frames: &Frames) {
        self.give_all(&[id], frames);
    }

    /// Takes frames back that are Free and the caller's, in one change of the stack; retires those that the pool has
    /// shrunk below.
    pub(crate) fn give_all(&self, ids: &[FrameId], frames: &Frames) {
        let limit = self.limit();
        if ids.iter().all(|id| id.get() < limit) {
            return self.push(ids, frames);
        }
        for id in ids {
            match id.get() < limit {
                true => self.push(&[*id], frames),
                false => self.retire(*id, frames),
            }
        }
    }

    /// Retires the frames in the stack that lie beyond the size of the pool.
    pub(crate) fn purge(&self, frames: &Frames) {
        let stacked: Vec<FrameId> = std::iter::from_fn(|| self.pop(frames)).collect();
        stacked.into_iter().for_each(|id| self.give(id, frames));
    }

    /// Takes a frame out of use that lies beyond the size of the pool.
    fn retire(&self, id: FrameId, frames: &Frames) {
        let word = &frames.get(id).header.word;
        word.retire();
        // SeqCst: store-then-load against `set_limit`: either we see the greater limit, or whoever set it
        // finds the frame retired.
        fence(Ordering::SeqCst);
        if id.get() < self.limit() && word.use_again() {
            self.push(&[id], frames);
        }
    }

    /// Puts frames on the stack, the first of them on top.
    fn push(&self, ids: &[FrameId], frames: &Frames) {
        let ([first, ..], [.., last]) = (ids, ids) else {
            return;
        };
        let link_of = |id: FrameId| u64::from(id.get()) + 1;
        for pair in ids.windows(2) {
            // Relaxed: published by the exchange below.
            let next = &frames.header(pair[0]).next;
            next.store(link_of(pair[1]), Ordering::Relaxed);
        }
        let last = frames.header(*last);
        // Relaxed: a hint.
        self.stack.count.fetch_add(ids.len(), Ordering::Relaxed);
        let mut head = self.stack.head.load(Ordering::Relaxed);
        loop {
            // Relaxed: published by the exchange below.
            last.next.store(head & LINK, Ordering::Relaxed);
            let top = tagged(head, link_of(*first));
            // Release: pairs with Acquire in `pop`: the taker sees `next` and the frame's word.
            match self.stack.head.compare_exchange_weak(
                head,
                top,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Frames that `take` could give: a hint.
    pub(crate) fn len(&self) -> usize {
        // Relaxed: a hint. A taker may have counted itself out before the giver counted in.
        let stacked = self.stack.count.load(Ordering::Relaxed) as isize;
        stacked.max(0) as usize + self.limit().saturating_sub(self.fresh()) as usize
    }

    /// The size of the pool in frames.
    pub(crate) fn limit(&self) -> u32 {
        // Acquire: pairs with Release in `set_limit`: the frames below it exist.
        self.limit.load(Ordering::Acquire)
    }

    /// The first frame that was never used; all frames in use lie below.
    pub(crate) fn fresh(&self) -> u32 {
        // Acquire: pairs with AcqRel in `take_fresh`; the frames below it exist.
        self.fresh.load(Ordering::Acquire)
    }

    /// Sets the size of the pool; the frames below it exist.
    pub(crate) fn set_limit(&self, limit: u32) {
        // Release: pairs with Acquire in `limit`.
        self.limit.store(limit, Ordering::Release);
        // SeqCst: see `retire`.
        fence(Ordering::SeqCst);
    }

    fn pop(&self, frames: &Frames) -> Option<FrameId> {
        // Acquire: pairs with Release in `give`.
        let mut head = self.stack.head.load(Ordering::Acquire);
        loop {
            let top = FrameId::new(((head & LINK) as u32).checked_sub(1)?);
            // Relaxed: ordered by the load of `head`. If the frame was taken meanwhile this is garbage,
            // and the exchange fails by the tag (L2).
            let next = frames.get(top).header.next.load(Ordering::Relaxed);
            // Acquire: pairs with Release in `give`; on failure too, as the link is read by what was found.
            match self.stack.head.compare_exchange_weak(
                head,
                tagged(head, next),
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    // Relaxed: a hint.
                    self.stack.count.fetch_sub(1, Ordering::Relaxed);
                    return Some(top);
                }
                Err(now) => head = now,
            }
        }
    }

    /// Takes the next frame that was never used.
    ///
    /// Once it is counted it looks like one that was retired. Who settles the tail at this moment may
    /// bring it into use before we do; the frame's word decides, and theirs goes to the stack.
    fn take_fresh(&self, frames: &Frames) -> Fresh {
        let mut fresh = self.fresh();
        loop {
            if fresh >= self.limit() {
                return Fresh::None;
            }
            // AcqRel: pairs with Acquire in `fresh`, and with the Acquire of a failure here.
            match self.fresh.compare_exchange_weak(
                fresh,
                fresh + 1,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    let id = FrameId::new(fresh);
                    if frames.get(id).header.word.use_again() {
                        return Fresh::Taken(id);
                    }
                    return Fresh::Stacked;
                }
                Err(now) => fresh = now,
            }
        }
    }
}

/// What became of the next frame that was never used.
enum Fresh {
    Taken(FrameId),
    /// Somebody else brought it into use, and it goes to the stack.
    Stacked,
    /// There is none.
    None,
}

const LINK: u64 = u32::MAX as u64;

fn tagged(head: u64, link: u64) -> u64 {
    let tag = (head >> 32).wrapping_add(1);
    (tag << 32) | (link & LINK)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use longshore_base::PageSize;
    use std::collections::BTreeSet;

    fn list(limit: u32) -> (FreeList, Frames) {
        (
            FreeList::new(limit),
            Frames::new(limit, PageSize::MIN).unwrap(),
        )
    }

    #[test]
    fn every_frame_is_given_once() {
        let (list, frames) = list(5);
        let taken: Vec<_> = std::iter::from_fn(|| list.take(&frames)).collect();
        assert_eq!(taken.len(), 5);
        assert_eq!(list.len(), 0);
        taken.iter().for_each(|id| list.give(*id, &frames));
        assert_eq!(list.len(), 5);
        let again: BTreeSet<_> = std::iter::from_fn(|| list.take(&frames)).collect();
        assert_eq!(again.len(), 5);
    }

    /// Once, the cleaner met a frame between being counted as used and being taken, thought it was a
    /// retired one, and put it on the stack; the taker stopped the program.
    #[test]
    fn frame_is_taken_once_while_the_tail_is_settled() {
        for _ in 0..if cfg!(miri) { 2 } else { 300 } {
            let (list, frames) = list(64);
            let settle = || {
                for id in (0..list.fresh()).map(FrameId::new) {
                    if frames.get(id).header.word.use_again() {
                        list.give(id, &frames);
                    }
                }
            };
            let take = || std::iter::from_fn(|| list.take(&frames)).collect::<Vec<_>>();
            let mut taken = std::thread::scope(|scope| {
                let settler = scope.spawn(|| (0..20).for_each(|_| settle()));
                let taken = [scope.spawn(take), scope.spawn(take)]
                    .into_iter()
                    .flat_map(|taker| taker.join().unwrap())
                    .collect::<Vec<_>>();
                settler.join().unwrap();
                taken
            });
            taken.extend(take());
            let distinct: BTreeSet<_> = taken.iter().copied().collect();
            assert_eq!((taken.len(), distinct.len()), (64, 64));
        }
    }

    #[test]
    fn frames_beyond_the_limit_retire() {
        let (list, frames) = list(4);
        let taken: Vec<_> = std::iter::from_fn(|| list.take(&frames)).collect();
        list.give(taken[3], &frames);
        list.set_limit(2);
        taken[..3].iter().for_each(|id| list.give(*id, &frames));
        let again: BTreeSet<_> = std::iter::from_fn(|| list.take(&frames)).collect();
        assert_eq!(again, BTreeSet::from([taken[0], taken[1]]));
    }

    #[test]
    fn frames_given_together_are_taken_in_their_order() {
        let (list, frames) = list(5);
        let taken: Vec<_> = std::iter::from_fn(|| list.take(&frames)).collect();
        list.give_all(&taken, &frames);
        list.give_all(&[], &frames);
        assert_eq!(list.len(), 5);
        let again: Vec<_> = std::iter::from_fn(|| list.take(&frames)).collect();
        assert_eq!(again, taken);
        list.set_limit(3);
        list.give_all(&taken, &frames);
        let again: Vec<_> = std::iter::from_fn(|| list.take(&frames)).collect();
        assert_eq!(again.len(), 3);
        assert!(again.iter().all(|id| id.get() < 3));
    }

    #[test]
    fn threads_never_share_a_frame() {
        let (list, frames) = list(6);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..if cfg!(miri) { 50 } else { 20_000 } {
                        let taken: Vec<_> = (0..2).filter_map(|_| list.take(&frames)).collect();
                        for id in &taken {
                            // Panics unless the frame is Free and ours.
                            frames.get(*id).header.word.begin_load();
                            frames.get(*id).header.word.abandon_load();
                        }
                        list.give_all(&taken, &frames);
                    }
                });
            }
        });
        assert_eq!(list.len(), 6);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use longshore_base::PageSize;
    use longshore_base::sync::{Arc, thread};

    /// See `frame_is_taken_once_while_the_tail_is_settled`.
    #[test]
    fn settling_the_tail_races_with_a_fresh_take() {
        loom::model(|| {
            let frames = Frames::new(1, PageSize::MIN).unwrap();
            let shared = Arc::new((FreeList::new(1), frames));
            let settler = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (list, frames) = &*shared;
                    for id in (0..list.fresh()).map(FrameId::new) {
                        if frames.get(id).header.word.use_again() {
                            list.give(id, frames);
                        }
                    }
                })
            };
            let (list, frames) = &*shared;
            let early = list.take(frames);
            settler.join().unwrap();
            let late = list.take(frames);
            assert_ne!(
                early.is_some(),
                late.is_some(),
                "L1: taken once, never lost"
            );
        });
    }
}
