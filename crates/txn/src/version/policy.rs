//! What happens when older images take more memory than they may.
//!
//! # Protocol
//! Before a writer changes a row it makes sure that the row's image will have room ([`Versions::make_room`]),
//! with no latch held. If there is none, or little is left of the budget, the policy decides:
//!
//! | policy | with kept versions | without |
//! |---|---|---|
//! | end the oldest | the oldest snapshot is ended, again and again, until there is room | the writer's images stay incomplete from here on |
//! | refuse growth | the writer waits for snapshots to close, then its statement fails | the same, if no snapshot is open |
//!
//! No transaction's images take more than an eighth of the budget: beyond that they stay incomplete, or, under
//! the second policy with a snapshot open, the statement fails.

use super::{SnapshotView, Versions};
use longshore_base::{Lsn, TxnId};
use std::time::Duration;

/// How older images of rows are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VersionOptions {
    /// Memory that they may take.
    pub bytes_max: usize,
    /// What happens when that does not suffice.
    pub long_readers: LongReaders,
}

impl Default for VersionOptions {
    fn default() -> VersionOptions {
        VersionOptions {
            bytes_max: 64 << 20,
            long_readers: LongReaders::default(),
        }
    }
}

/// What happens to readers of old snapshots, or to writers, when older images need more memory than there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LongReaders {
    /// The oldest snapshot is ended; its transaction is told so with its next read.
    #[default]
    EndOldest,
    /// Writers wait for snapshots to close, as long as for a lock; then their statement fails.
    RefuseGrowth,
}

/// Memory that a transaction's images may take, as a part of the budget.
const SHARE: usize = 8;
/// Bytes that an arena has at least.
const ARENA_MIN: usize = 2 << 10;
/// Time between two looks whether snapshots have closed.
const LOOK: Duration = Duration::from_millis(5);

/// What a writer brings along that makes room.
pub(crate) struct Patience<'a> {
    /// How long it may wait.
    pub limit: Duration,
    pub tail: &'a dyn Fn() -> Lsn,
}

/// What a writer has got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Room {
    /// So many bytes.
    Bytes(usize),
    /// None, and it needs to capture no more.
    Incomplete,
}

/// There is no room, and the writer is not to go on without.
#[derive(Clone, Debug)]
pub(crate) struct Shortage {
    pub bytes_max: usize,
    /// The oldest snapshot, which stands in the way.
    pub oldest: Option<SnapshotView>,
}

impl Versions {
    /// Whether a writer with `room` bytes left must make room before it captures `need` bytes.
    #[inline]
    pub fn is_short(&self, room: usize, need: usize) -> bool {
        room < need || self.past.budget.is_tight()
    }

    /// Makes room for at least `need` more bytes in the arena of `slot`, which is that of `txn` from now on.
    #[cold]
    pub fn make_room(
        &self,
        slot: usize,
        txn: TxnId,
        need: usize,
        patience: &Patience<'_>,
    ) -> Result<Room, Shortage> {
        let since = self.env.now();
        let has_time = || self.env.now().saturating_sub(since) < patience.limit;
        while self.past.budget.is_tight() && !self.relieve(patience) {
            if !has_time() {
                return Err(self.shortage());
            }
            self.past.budget.wait(LOOK);
        }
        let share = self.past.budget.bytes_max() / SHARE;
        loop {
            let wanted = match self.try_room(slot, txn, need, share) {
                Ok(room) => return Ok(room),
                Err(wanted) => wanted,
            };
            let is_own_fault = wanted > share;
            let has_readers = !self.past.registry.open_ones(patience.tail).is_empty();
            match self.options.long_readers {
                LongReaders::EndOldest if !is_own_fault && self.end_oldest(patience) => {}
                LongReaders::RefuseGrowth if has_readers && !is_own_fault && has_time() => {
                    self.past.budget.wait(LOOK);
                    self.sweep(patience.tail);
                }
                LongReaders::RefuseGrowth if has_readers => return Err(self.shortage()),
                _ => return Ok(self.give_up_images(slot)),
            }
        }
    }

    /// Room for `need` bytes, or the capacity that was not to be had.
    fn try_room(&self, slot: usize, txn: TxnId, need: usize, share: usize) -> Result<Room, usize> {
        let mut arena = self.writers[slot].arena();
        arena.txn = txn.get();
        if arena.is_incomplete {
            return Ok(Room::Incomplete);
        }
        if arena.room() >= need {
            return Ok(Room::Bytes(arena.room()));
        }
        let least = (arena.len() + need).max(ARENA_MIN);
        let twice = (2 * arena.capacity()).min(share);
        let wanted = least.max(twice);
        if wanted > share || !self.past.budget.try_charge(wanted - arena.capacity()) {
            return Err(wanted);
        }
        let before = arena.capacity();
        arena.grow_to(wanted);
        // The allocator may give more than was asked for.
        self.past
            .budget
            .charge(arena.capacity() - before - (wanted - before));
        Ok(Room::Bytes(arena.room()))
    }

    #[cold]
    fn give_up_images(&self, slot: usize) -> Room {
        self.counters.incomplete.add(1);
        self.writers[slot].arena().is_incomplete = true;
        Room::Incomplete
    }

    /// Little is left: sees what can be done; false when there is nothing but to wait.
    fn relieve(&self, patience: &Patience<'_>) -> bool {
        if self.past.kept.count() == 0 {
            return true;
        }
        match self.options.long_readers {
            LongReaders::EndOldest => {
                let Some(_alone) = self.relieving.try_lock() else {
                    return true;
                };
                self.sweep(patience.tail);
                while self.past.budget.is_tight()
                    && self.past.kept.count() > 0
                    && self.end_oldest(patience)
                {}
                true
            }
            LongReaders::RefuseGrowth => {
                self.sweep(patience.tail);
                !self.past.budget.is_tight() || self.past.kept.count() == 0
            }
        }
    }

    /// Ends the oldest snapshot and drops what only it needed; false when there is none, or nothing would be
    /// gained.
    fn end_oldest(&self, patience: &Patience<'_>) -> bool {
        if self.past.kept.count() == 0 || !self.past.registry.doom_oldest() {
            return false;
        }
        self.counters.too_old.add(1);
        self.sweep(patience.tail);
        true
    }

    /// After a commit has kept versions: they may have used up what was left.
    #[cold]
    pub(super) fn relieve_after_commit(&self, tail: &dyn Fn() -> Lsn) {
        if self.options.long_readers == LongReaders::EndOldest {
            let limit = Duration::ZERO;
            self.relieve(&Patience { limit, tail });
        }
    }

    fn shortage(&self) -> Shortage {
        self.counters.refused.add(1);
        Shortage {
            bytes_max: self.past.budget.bytes_max(),
            oldest: self.past.registry.views(self.env.now()).first().copied(),
        }
    }
}
