//! Below which position every record of the log belongs to a transaction that all snapshots see.
//!
//! # Protocol
//! A page whose last change lies below the *horizon* is as every snapshot opened from now on sees it. It is
//! found out in this order, and used by snapshots that open afterwards:
//!
//! 1. `t` = the log's tail;
//! 2. `f` = the least position published by a writer (`slots`), if there is one;
//! 3. `e` = the tail again. The horizon is `min(t, f)`, and what it vouches for has committed below `e`.
//!
//! 1. *A record below the horizon belongs to a writer that had ended at step 2.* Had the writer published
//!    before step 2 and not ended, `f` would be at or below the record. Had it published after step 2, then
//!    also after step 1, and its records, which come later, would lie at or above `t`.
//! 2. *So its commit record lies below `e`*, and `e` is at or below the position of a snapshot that opens
//!    after step 3. The tail must be read again after step 2: a writer may commit, above a tail read
//!    before, and take back its position just before step 2 gets to it.
//!
//! Whoever reads such a page depends on any commit below `e`, at the strictest level ever asked for. So
//! that nobody has to wait for that, a horizon is kept back until all that it vouches for is safe.
//!
//! A horizon too low is right as well, so it is looked for again only when some log has been written.

use crate::lock::{CommitLevel, Dependency};
use longshore_base::Lsn;
use longshore_base::sync::Mutex;
use longshore_base::sync::atomic::{AtomicU64, Ordering};

/// Log written between two looks.
const STRIDE: u64 = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct Horizon {
    /// Only grows.
    low: AtomicU64,
    /// What readers of pages below `low` depend on. Stored before `low`; only grows.
    covers: AtomicU64,
    /// The tail when it was looked for last; a hint.
    looked_at: AtomicU64,
    /// The one kept back. Who holds the mutex looks.
    next: Mutex<Option<Found>>,
}

/// A horizon, and what readers below it depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub low: Lsn,
    pub covers: Dependency,
}

impl Found {
    /// Finds it out by the steps of the header; `first` looks for the least position published.
    pub fn find(
        tail: impl Fn() -> Lsn,
        first: impl FnOnce() -> Option<Lsn>,
        strictest: impl FnOnce() -> CommitLevel,
    ) -> Found {
        let before = tail();
        let first = first();
        let end = tail();
        Found {
            low: first.map_or(before, |first| first.min(before)),
            // The level after the tail: it is raised before the commit record is appended.
            covers: Dependency::new(Lsn::new(end.get() - 8), strictest()),
        }
    }
}

impl Horizon {
    /// The horizon for a snapshot that opens afterwards.
    #[inline]
    pub fn get(&self) -> Found {
        // Acquire: pairs with `publish`; what is loaded next covers at least this.
        let low = Lsn::new(self.low.load(Ordering::Acquire));
        // Relaxed: ordered by the load above.
        let covers = Dependency::from_word(self.covers.load(Ordering::Relaxed));
        Found { low, covers }
    }

    /// Whether it is worth looking for it again.
    #[inline]
    pub fn is_due(&self, tail: Lsn) -> bool {
        // Relaxed: a hint.
        tail.get() >= self.looked_at.load(Ordering::Relaxed) + STRIDE
    }

    /// Looks for it, unless somebody else does.
    #[cold]
    pub fn look(
        &self,
        tail: Lsn,
        is_safe: impl Fn(Dependency) -> bool,
        find: impl FnOnce() -> Found,
    ) {
        let Some(mut next) = self.next.try_lock() else {
            return;
        };
        // Relaxed: a hint.
        self.looked_at.store(tail.get(), Ordering::Relaxed);
        if let Some(found) = *next {
            if !is_safe(found.covers) {
                return;
            }
            self.publish(found);
        }
        let found = find();
        *next = None;
        if is_safe(found.covers) {
            self.publish(found);
        } else {
            *next = Some(found);
        }
    }

    /// Called with `next` locked.
    fn publish(&self, found: Found) {
        // Relaxed: published by the store below.
        self.covers.store(found.covers.word(), Ordering::Relaxed);
        // Release: pairs with `get`.
        self.low.store(found.low.get(), Ordering::Release);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::transaction::Slots;
    use longshore_base::sync::Arc;
    use loom::thread;

    struct World {
        slots: Slots,
        tail: AtomicU64,
        horizon: Horizon,
    }

    impl World {
        fn tail(&self) -> Lsn {
            Lsn::new(self.tail.load(Ordering::SeqCst))
        }

        fn append(&self) -> Lsn {
            Lsn::new(self.tail.fetch_add(8, Ordering::SeqCst))
        }

        /// A transaction of one change, the tail being at `at`; where the change lies, and where its commit.
        fn write(&self, at: u64) -> (Lsn, Lsn) {
            let taken = self.slots.take().unwrap();
            self.slots.publish_first(taken.index, Lsn::new(at));
            let ends = (self.append(), self.append());
            self.slots.give_back(taken.index);
            ends
        }

        fn look(&self) {
            self.horizon.look(
                self.tail(),
                |_| true,
                || {
                    let first = || self.slots.oldest_first();
                    Found::find(|| self.tail(), first, || CommitLevel::Sync)
                },
            );
        }
    }

    /// Whoever looks, and then opens a snapshot, beside a writer that comes and goes. The checker forgets what
    /// others have loaded once a thread loads it before storing there (see the crate's README). So the
    /// writer does not ask for the tail, which nobody else moves, and the slot is in use before it begins.
    #[test]
    fn what_lies_below_the_horizon_has_committed_below_what_it_covers() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let world = Arc::new(World {
                slots: Slots::new(1, 1),
                tail: AtomicU64::new(64),
                horizon: Horizon::default(),
            });
            world.slots.give_back(world.slots.take().unwrap().index);
            let theirs = Arc::clone(&world);
            let writer = thread::spawn(move || [theirs.write(64), theirs.write(80)]);
            world.look();
            let Found { low, covers } = world.horizon.get();
            let opened_at = world.tail();
            for (record, commit) in writer.join().unwrap() {
                if record < low {
                    assert!(commit <= covers.lsn(), "its reader waits for too little");
                    assert!(commit < opened_at, "it is not visible");
                }
            }
        });
    }
}
