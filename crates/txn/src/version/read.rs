//! What a row is for a snapshot, where the glance at the lock table does not tell: steps 2 and 3.

use super::image::{ImageBuffer, RowRef};
use super::writer::State;
use super::{Snapshot, Versions};
use crate::lock::{Dependency, LockManager, LockName};
use longshore_base::TxnId;
use longshore_base::sync::atomic::Ordering;

/// What a look has shown. All but the last two hold if the leaf has not changed meanwhile.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    /// The row is as in the page.
    InPage(Dependency),
    /// The row is the image copied out.
    Image(Dependency),
    /// Somebody is just ending: look again, at the leaf too.
    Again,
    /// The image is not there any more.
    TooOld,
}

/// What the slot of the lock's holder has shown.
enum Holder {
    /// Its image of the row was copied out.
    Image(Dependency),
    /// The row is as in the page.
    InPage(Dependency),
    /// It has no image of this row.
    Nothing,
    /// The slot is another transaction's by now, or not yet this one's.
    Another,
    /// It is just committing.
    Committing,
    /// It may have changed the row, but has no images any more.
    Incomplete,
}

impl Versions {
    /// What the row of `key` is for `snapshot`, read by the transaction `me`.
    ///
    /// The caller has read the row's leaf before and checks afterwards that it has not changed.
    #[inline]
    pub fn look(
        &self,
        locks: &LockManager,
        snapshot: &Snapshot,
        me: TxnId,
        name: LockName,
        key: &[u8],
        image: &mut ImageBuffer,
    ) -> Seen {
        match locks.unlocked_for_read(name) {
            Some(last_commit) if last_commit.lsn() < snapshot.at => Seen::InPage(last_commit),
            _ => self.look_closer(locks, snapshot, me, name, key, image),
        }
    }

    #[cold]
    fn look_closer(
        &self,
        locks: &LockManager,
        snapshot: &Snapshot,
        me: TxnId,
        name: LockName,
        key: &[u8],
        image: &mut ImageBuffer,
    ) -> Seen {
        // Relaxed: set before anybody works, if at all.
        if self.ignores_versions.load(Ordering::Relaxed) {
            return Seen::InPage(Dependency::NONE);
        }
        let row = RowRef::new(name, key);
        let writer = locks.key_writer(name);
        let last_commit = writer.last_commit;
        if last_commit.lsn() >= snapshot.at && self.past.is_incomplete_since(snapshot.at) {
            return Seen::TooOld;
        }
        let (own, other) = match writer.holder {
            Some((slot, txn)) if txn == me => (Some(slot), None),
            holder => (None, holder),
        };
        if own.is_some_and(|slot| self.has_captured(slot, row)) {
            return Seen::InPage(Dependency::NONE);
        }
        if let Some(seen) = self.past.kept.find(row, snapshot.at, image) {
            self.counters.images_read.add(1);
            return Seen::Image(snapshot.cut(seen.and(last_commit)));
        }
        let Some((slot, txn)) = other else {
            return Seen::InPage(snapshot.cut(last_commit));
        };
        match self.look_at_holder(snapshot, slot, txn, row, image) {
            Holder::Image(seen) => {
                self.counters.images_read.add(1);
                Seen::Image(snapshot.cut(seen.and(last_commit)))
            }
            Holder::InPage(own) => Seen::InPage(own),
            Holder::Nothing => Seen::InPage(snapshot.cut(last_commit)),
            Holder::Committing => Seen::Again,
            Holder::Incomplete => Seen::TooOld,
            Holder::Another => match locks.key_writer(name).holder {
                Some((_, still)) if still == txn => Seen::InPage(snapshot.cut(last_commit)),
                _ => Seen::Again,
            },
        }
    }

    fn has_captured(&self, slot: usize, row: RowRef<'_>) -> bool {
        self.writers[slot].arena().find(row).is_some()
    }

    fn look_at_holder(
        &self,
        snapshot: &Snapshot,
        slot: usize,
        txn: TxnId,
        row: RowRef<'_>,
        image: &mut ImageBuffer,
    ) -> Holder {
        let writer = &self.writers[slot];
        let mut arena = writer.arena();
        if arena.txn != txn.get() {
            return Holder::Another;
        }
        match writer.state() {
            State::Committing => return Holder::Committing,
            State::Committed(lsn, level) if lsn < snapshot.at => {
                return Holder::InPage(Dependency::new(lsn, level));
            }
            State::Committed(..) | State::Active => {}
        }
        let (seen, is_incomplete) = (arena.seen, arena.is_incomplete);
        match arena.find(row) {
            Some(found) => {
                image.set(found);
                Holder::Image(seen)
            }
            None if is_incomplete => Holder::Incomplete,
            None => Holder::Nothing,
        }
    }

    /// Whether `row` has been changed by a commit that `snapshot` does not see. The caller holds the lock to
    /// change it.
    #[inline]
    pub fn has_changed(
        &self,
        locks: &LockManager,
        snapshot: &Snapshot,
        name: LockName,
        key: &[u8],
    ) -> bool {
        if locks.key_writer(name).last_commit.lsn() < snapshot.at {
            return false;
        }
        // Relaxed: set before anybody works, if at all.
        if self.ignores_conflicts.load(Ordering::Relaxed) {
            return false;
        }
        let has_changed = self.past.is_incomplete_since(snapshot.at)
            || self
                .past
                .kept
                .has_changed(RowRef::new(name, key), snapshot.at);
        self.counters.conflicts.add(u64::from(has_changed));
        has_changed
    }
}
