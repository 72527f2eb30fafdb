//! Who is active, and since when the log is needed for undo.
//!
//! # Protocol
//! A transaction takes a slot at its begin and gives it back at its end. Before its first record it
//! publishes there a position at or before that record, and it takes that back after its last
//! (commit, or end of rollback) is appended. A checkpoint reads the log's tail, then the slots.
//!
//! # Invariants
//! A1. A position published is at or below every record of the transaction.
//! A2. A transaction whose slot shows no position has no record below the tail that was read before
//!     the slot was, or has its last record in the log.
//!
//! # Ordering
//! Slot store SeqCst, then the append's reservation (a read-modify-write of the tail); against load
//! of the tail, then slot load SeqCst. If the checkpoint misses the store, the reservation comes
//! after its load of the tail (A2).
//!
//! Slots lie on lines of their own, and a thread returns to the slots it used before, so beginning and
//! ending a transaction moves no line that other threads use. Ids come in small blocks for the same
//! reason: among transactions open at the same time the order of ids is nearly that of age.

use crate::error::{Result, TxnError};
use crossbeam_utils::CachePadded;
use longshore_base::metrics::thread_number;
use longshore_base::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use longshore_base::{Lsn, TxnId};

/// Ids that a slot takes from the common counter at a time.
const ID_BLOCK: u64 = 16;
/// Slots from one thread's first to the next thread's.
const THREAD_STRIDE: usize = 4;

#[derive(Debug, Default)]
struct Slot {
    /// Taken by compare-and-swap, given back by its holder.
    is_taken: AtomicBool,
    /// At or below the holder's first record; zero for none. Written by the holder.
    first: AtomicU64,
    /// The next id of the slot's block. Used by the holder only.
    next_id: AtomicU64,
    /// Where the block ends. Used by the holder only.
    end_id: AtomicU64,
}

/// The slots of all transactions.
#[derive(Debug)]
pub(crate) struct Slots {
    slots: Box<[CachePadded<Slot>]>,
    next_block: CachePadded<AtomicU64>,
    /// All slots ever taken lie below this. Raised before a slot is used.
    high: AtomicUsize,
}

/// A slot taken: its index, and the id of the transaction that has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub index: usize,
    pub txn: TxnId,
}

impl Slots {
    pub fn new(count: usize, first_txn: u64) -> Slots {
        Slots {
            slots: (0..count).map(|_| CachePadded::default()).collect(),
            // Zero belongs to nobody's work.
            next_block: CachePadded::new(AtomicU64::new(first_txn.max(1))),
            high: AtomicUsize::new(0),
        }
    }

    /// Takes a free slot, if possible one that this thread had before.
    pub fn take(&self) -> Result<Taken> {
        let index = self.take_slot()?;
        let txn = self.next_id(index);
        Ok(Taken { index, txn })
    }

    /// Takes a free slot for a transaction that has an id.
    pub fn take_slot(&self) -> Result<usize> {
        let count = self.slots.len();
        let start = thread_number() * THREAD_STRIDE;
        let index = (start..start + count)
            .map(|n| n % count)
            .find(|&n| self.slots[n].try_take())
            .ok_or(TxnError::TooManyTransactions { max: count })?;
        // Relaxed: seen raised by this thread or ordered by the taking of the slot.
        if index >= self.high.load(Ordering::Relaxed) {
            // SeqCst: before the slot's position is published; pairs with `oldest_first`.
            self.high.fetch_max(index + 1, Ordering::SeqCst);
        }
        Ok(index)
    }

    /// The next id of the slot. Called by the slot's holder.
    pub fn next_id(&self, index: usize) -> TxnId {
        let slot = &self.slots[index];
        // Relaxed: used by the holder only, ordered by taking and giving back the slot.
        let mut id = slot.next_id.load(Ordering::Relaxed);
        if id == slot.end_id.load(Ordering::Relaxed) {
            // Relaxed: only distinct values matter.
            id = self.next_block.fetch_add(ID_BLOCK, Ordering::Relaxed);
            slot.end_id.store(id + ID_BLOCK, Ordering::Relaxed);
        }
        slot.next_id.store(id + 1, Ordering::Relaxed);
        TxnId::new(id)
    }

    /// Gives the slot back, and with it the position published there.
    pub fn give_back(&self, index: usize) {
        let slot = &self.slots[index];
        // SeqCst: pairs with `oldest_first`; the transaction's last record is in the log (A2).
        slot.first.store(0, Ordering::SeqCst);
        // Release: pairs with the Acquire in `try_take`.
        slot.is_taken.store(false, Ordering::Release);
    }

    /// Publishes that records at and after `lsn` may be needed to undo this transaction (A1).
    pub fn publish_first(&self, index: usize, lsn: Lsn) {
        // SeqCst: pairs with `oldest_first`; see the header.
        self.slots[index].first.store(lsn.get(), Ordering::SeqCst);
    }

    /// The lowest position published.
    pub fn oldest_first(&self) -> Option<Lsn> {
        // SeqCst: a slot beyond has published nothing yet.
        self.slots[..self.high.load(Ordering::SeqCst)]
            .iter()
            // SeqCst: pairs with `publish_first`; see the header.
            .map(|slot| slot.first.load(Ordering::SeqCst))
            .filter(|&lsn| lsn != 0)
            .min()
            .map(Lsn::new)
    }

    /// How many slots are taken.
    pub fn active(&self) -> usize {
        self.slots
            .iter()
            // SeqCst: against `try_take`, for whoever closes a door and then counts who is inside.
            .filter(|slot| slot.is_taken.load(Ordering::SeqCst))
            .count()
    }

    /// A number above every id given out.
    pub fn next_txn(&self) -> u64 {
        // Relaxed: a bound that is stale by those who begin meanwhile.
        self.next_block.load(Ordering::Relaxed)
    }

    /// Gives out no id below `next` from now on. Called before the first transaction begins.
    pub fn raise_next_txn(&self, next: u64) {
        // Relaxed: only distinct values matter.
        self.next_block.fetch_max(next, Ordering::Relaxed);
    }
}

impl Slot {
    fn try_take(&self) -> bool {
        // Relaxed: a hint that spares the line the exchange below.
        !self.is_taken.load(Ordering::Relaxed)
            && self
                .is_taken
                // Acquire: pairs with `give_back`. SeqCst: against `active`.
                .compare_exchange(false, true, Ordering::SeqCst, Ordering::Relaxed)
                .is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_are_never_given_twice_and_slots_are_reused() {
        let slots = Slots::new(3, 100);
        let mut ids = HashSet::new();
        for _ in 0..50 {
            let (a, b) = (slots.take().unwrap(), slots.take().unwrap());
            assert_ne!(a.index, b.index);
            assert!(ids.insert(a.txn) && ids.insert(b.txn));
            assert!(a.txn.get() >= 100 && a.txn.get() < slots.next_txn());
            slots.give_back(a.index);
            slots.give_back(b.index);
        }
        assert_eq!(slots.active(), 0);
    }

    #[test]
    fn no_slot_left_is_an_error_that_names_the_option() {
        let slots = Slots::new(1, 1);
        let taken = slots.take().unwrap();
        let error = slots.take().unwrap_err();
        assert!(error.to_string().contains("transactions_max"), "{error}");
        slots.give_back(taken.index);
        slots.take().unwrap();
    }

    #[test]
    fn the_oldest_position_is_the_lowest_published() {
        let slots = Slots::new(4, 1);
        let [a, b] = [slots.take().unwrap(), slots.take().unwrap()];
        assert_eq!(slots.oldest_first(), None);
        slots.publish_first(a.index, Lsn::new(640));
        slots.publish_first(b.index, Lsn::new(128));
        assert_eq!(slots.oldest_first(), Some(Lsn::new(128)));
        slots.give_back(b.index);
        assert_eq!(slots.oldest_first(), Some(Lsn::new(640)));
    }
}
