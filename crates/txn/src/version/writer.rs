//! A writer as those who read snapshots see it: whether it has committed, and what its rows were before.
//!
//! | state      | from → to                                                        |
//! |------------|------------------------------------------------------------------|
//! | Active     | until `begin_commit`; also while it is rolled back               |
//! | Committing | from before its commit record is placed until the place is known |
//! | Committed  | until its locks are released and its images dropped              |
//!
//! There is one for each slot of a transaction. Images and state are looked at under the mutex of the
//! images, and dropped under it, images first: whoever finds there the transaction that he looks for finds
//! its state, not that of the slot's next one.

use super::arena::Arena;
use crate::lock::CommitLevel;
use longshore_base::Lsn;
use longshore_base::bits::Field;
use longshore_base::sync::atomic::{AtomicU64, Ordering};
use longshore_base::sync::{Mutex, MutexGuard};

/// | bits  | field     | meaning                                            |
/// |-------|-----------|----------------------------------------------------|
/// | 0..2  | phase     | Active, Committing, Committed                      |
/// | 2..3  | –         |                                                    |
/// | 3..64 | position  | of the commit record, once Committed; in multiples of eight |
const PHASE: Field = Field::new(0, 2);
const ACTIVE: u64 = 0;
const COMMITTING: u64 = 1;
const COMMITTED: u64 = 2;

#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// Written by the slot's holder.
    state: AtomicU64,
    /// The level of the commit; stored before `state` says Committed.
    level: AtomicU64,
    arena: Mutex<Arena>,
}

/// What has become of a writer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Active,
    Committing,
    Committed(Lsn, CommitLevel),
}

impl Writer {
    /// The images, for the writer itself or for whoever needs one.
    #[inline]
    pub fn arena(&self) -> MutexGuard<'_, Arena> {
        self.arena.lock()
    }

    /// What has become of it. The caller holds the arena and has found there the transaction.
    pub fn state(&self) -> State {
        // Acquire: pairs with `committed`. That Committing is seen by whoever has seen the tail behind the
        // commit record, the tail orders: it is moved by a SeqCst addition after the store.
        let word = self.state.load(Ordering::Acquire);
        match PHASE.get(word) {
            ACTIVE => State::Active,
            COMMITTING => State::Committing,
            _ => {
                // Relaxed: ordered by the load above.
                let level = match self.level.load(Ordering::Relaxed) {
                    0 => CommitLevel::None,
                    1 => CommitLevel::Os,
                    _ => CommitLevel::Sync,
                };
                State::Committed(Lsn::new(word & !7), level)
            }
        }
    }

    /// The commit record is about to be placed.
    #[inline]
    pub fn begin_commit(&self) {
        // Relaxed: see `state`.
        self.state.store(COMMITTING, Ordering::Relaxed);
    }

    /// There will be no commit record after all.
    #[cold]
    pub fn give_up_commit(&self) {
        // Release: for symmetry with `committed`; nothing is published.
        self.state.store(ACTIVE, Ordering::Release);
    }

    /// The commit record is at `lsn`.
    #[inline]
    pub fn committed(&self, lsn: Lsn, level: CommitLevel) {
        // Relaxed: published by the store below.
        self.level.store(level as u64, Ordering::Relaxed);
        // Release: pairs with the Acquire in `state`.
        self.state.store(lsn.get() | COMMITTED, Ordering::Release);
    }

    /// Drops the images after the locks were released; returns how many bytes of memory were given back.
    pub fn end(&self) -> usize {
        let mut arena = self.arena.lock();
        let freed = arena.clear();
        // Relaxed: whoever looks at the state holds the mutex.
        self.state.store(ACTIVE, Ordering::Relaxed);
        freed
    }
}
