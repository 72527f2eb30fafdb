//! Views: who holds what, who waits for whom, and for how long. Each line is true of some moment
//! during the call.

use super::manager::LockManager;
use super::mode::Mode;
use super::name::{LockName, is_row_of, table_of};
use super::owner::OwnerSlot;
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
        let name = wait.name.hash();
        self.bucket(name)
            .latch()
            .0
            .waits_for(name, index, &mut owners);
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
        let words = holds.len();
        for bucket in self.buckets() {
            if bucket.glance().0.is_empty() || holds.len() >= max.saturating_mul(2) {
                continue;
            }
            for request in bucket.latch().0.iter().filter(|r| r.held != Mode::NONE) {
                let slot = self.slot(request.owner);
                let (store, row) = match table_of(request.name) {
                    Some(store) => (store, None),
                    // The store is told by the tables that its holder has; see below.
                    None => (StoreId::NONE, Some(request.name)),
                };
                holds.push(hold_of(slot, now, store, row, request.held));
            }
        }
        let tables: Vec<(TxnId, StoreId)> = holds
            .iter()
            .filter(|hold| hold.row.is_none())
            .map(|hold| (hold.holder, hold.store))
            .collect();
        for hold in &mut holds[words..] {
            if let Some(row) = hold.row {
                let is_table = |(txn, store): &&(TxnId, StoreId)| {
                    *txn == hold.holder && is_row_of(row, *store)
                };
                hold.store = tables.iter().find(is_table).map_or(StoreId::NONE, |t| t.1);
            }
        }
        // A row without its table was let go meanwhile.
        holds.retain(|hold| hold.row.is_none() || hold.store != StoreId::NONE);
        holds.sort_by_key(|hold| (hold.row.is_some(), hold.holder, hold.store));
        holds.truncate(max);
        holds
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
