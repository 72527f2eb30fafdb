//! Views: who holds what, who waits for whom, and for how long. Each line is true of some moment
//! during the call.

use super::manager::LockManager;
use super::mode::Mode;
use super::name::LockName;
use super::owner::{Owner, OwnerSlot};
use super::queue::OwnerIndex;
use longshore_base::{StoreId, TxnId};
use std::time::Duration;

/// One transaction that waits for a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockWait {
    /// Who waits.
    pub waiter: TxnId,
    /// What for.
    pub name: LockName,
    /// The mode asked for.
    pub wanted: Mode,
    /// For how long so far.
    pub waited: Duration,
    /// Whom for: holders in the way, and waiters ahead that are incompatible.
    pub waits_for: Vec<TxnId>,
}

/// One lock that is held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockHold {
    /// Who holds it.
    pub holder: TxnId,
    /// The table; [`StoreId::NONE`] for the database.
    pub store: StoreId,
    /// The hash of the row's key; nothing for a table or the database.
    pub row: Option<u64>,
    /// How it is held.
    pub mode: Mode,
    /// How long it may have been held: since its transaction began. Coarse, see
    /// [`LockManager::note_time`].
    pub age: Duration,
}

impl LockManager {
    /// Who waits for whom, for how long.
    pub fn waits(&self) -> Vec<LockWait> {
        (0..self.owners_seen())
            .filter_map(|index| self.wait_of(index))
            .collect()
    }

    fn wait_of(&self, index: OwnerIndex) -> Option<LockWait> {
        let wait = self.slot(index).waiting()?;
        let mut owners = Vec::new();
        self.bucket(wait.name.hash())
            .latch()
            .waits_for(wait.name, index, &mut owners);
        Some(LockWait {
            waiter: wait.txn,
            name: wait.name,
            wanted: wait.wanted,
            waited: self.now().saturating_sub(wait.since),
            waits_for: owners.into_iter().map(|o| self.slot(o).txn()).collect(),
        })
    }

    /// All locks that are held, at most `max`: those on tables first.
    pub fn holds(&self, max: usize) -> Vec<LockHold> {
        let now = self.note_time();
        let mut holds = Vec::new();
        for index in 0..self.owners_seen() {
            let slot = self.slot(index);
            let held = |(store, mode)| hold_of(slot, now, store, None, mode);
            holds.extend(slot.intents.iter().map(held));
        }
        for bucket in self.buckets() {
            if bucket.glance().0.is_empty() || holds.len() >= max.saturating_mul(2) {
                continue;
            }
            for request in bucket.latch().iter().filter(|r| r.held != Mode::NONE) {
                let slot = self.slot(request.owner());
                let name = request.name();
                let row = (!name.is_table()).then_some(name.hash());
                holds.push(hold_of(slot, now, name.store(), row, request.held));
            }
        }
        holds.sort_by_key(|hold| (hold.row.is_some(), hold.holder, hold.store));
        holds.truncate(max);
        holds
    }

    /// One of those that `owner`'s waiting request waits for.
    pub(super) fn first_in_the_way(&self, owner: &Owner, name: LockName) -> Option<TxnId> {
        let mut owners = Vec::new();
        self.latch(name.hash())
            .waits_for(name, owner.index, &mut owners);
        owners.first().map(|&index| self.slot(index).txn())
    }

    /// One of those that would stand in the way of a new request.
    pub(super) fn first_in_the_way_of(
        &self,
        name: LockName,
        mode: Mode,
        me: OwnerIndex,
    ) -> Option<TxnId> {
        let latched = self.latch(name.hash());
        let index = latched
            .of(name)
            .find(|r| r.owner() != me && !r.wanted.is_compatible(mode))?
            .owner();
        Some(self.slot(index).txn())
    }

    /// Has the transaction `txn` give up the wait it is in, if any, and every later one; its next
    /// statement is refused. False if no open transaction has this number.
    pub fn cancel(&self, txn: TxnId) -> bool {
        let slot = (0..self.owners_seen())
            .map(|index| self.slot(index))
            .find(|slot| slot.txn() == txn);
        if let Some(slot) = slot {
            slot.cancel(txn);
        }
        slot.is_some()
    }
}

fn hold_of(
    slot: &OwnerSlot,
    now: Duration,
    store: StoreId,
    row: Option<u64>,
    mode: Mode,
) -> LockHold {
    LockHold {
        holder: slot.txn(),
        store,
        row,
        mode,
        age: now.saturating_sub(slot.since()),
    }
}
