//! Who holds and who waits: the owner's private list of locks, and the slot in which it sleeps.
//!
//! # Protocol
//! Each open transaction has an [`Owner`], used by one thread at a time, and an [`OwnerSlot`] that other
//! threads may look into. Before a request lines up, its owner describes the wait in the slot
//! (`begin_wait`). Whoever grants the request, under the bucket's latch, leaves the verdict `Granted`
//! there; a deadlock search leaves `Victim`. The owner sleeps until there is a verdict or its time
//! is up, and ends the wait (`end_wait`).
//!
//! # Invariants
//! W1. A verdict is left only for a wait in progress: `Granted` under the latch of the bucket in which
//! the request waits, `Victim` only when the wait's number is still the one that was searched.
//! W2. `Granted` beats `Victim`: an owner told `Victim` asks the bucket before it gives up.
//!
//! # Order
//! bucket latch, then slot mutex. Nothing is taken under a slot mutex.

use super::dependency::Dependency;
use super::mode::Mode;
use super::name::LockName;
use super::queue::OwnerIndex;
use longshore_base::TxnId;
use longshore_base::sync::atomic::{AtomicU64, Ordering};
use longshore_base::sync::{Condvar, Mutex};
use smallvec::SmallVec;
use std::time::Duration;

/// Locks of one transaction: what it must release at its end.
#[derive(Debug)]
pub struct Owner {
    pub(super) index: OwnerIndex,
    pub(super) txn: TxnId,
    /// Hashes of the names on which this owner has a granted request, each once.
    pub(super) held: SmallVec<[u64; 8]>,
    /// The newest commit whose locks this owner has taken over.
    pub(super) dependency: Dependency,
    /// Requests granted, added to the shared counter at the end.
    pub(super) acquired: u64,
}

impl Owner {
    /// The transaction that this owner stands for.
    pub fn txn(&self) -> TxnId {
        self.txn
    }

    /// How many names it holds locks on.
    pub fn locks_held(&self) -> usize {
        self.held.len()
    }

    /// The newest commit that it may have seen the effects of.
    pub fn dependency(&self) -> Dependency {
        self.dependency
    }

    /// Adds a commit that it has seen the effects of. One that nobody waits for makes the others no later.
    pub fn depend_on(&mut self, dependency: Dependency) {
        if !dependency.is_none() {
            self.dependency = self.dependency.and(dependency);
        }
    }
}

/// How a wait ended, as told by others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Granted,
    Victim,
}

/// A wait in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub name: LockName,
    pub wanted: Mode,
    pub since: Duration,
    pub txn: TxnId,
    /// Tells this wait from the owner's others.
    pub number: u64,
}

#[derive(Debug, Default)]
struct WaitCell {
    waiting: Option<Waiting>,
    verdict: Option<Verdict>,
    number: u64,
}

/// What other threads may see of an owner.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct OwnerSlot {
    cell: Mutex<WaitCell>,
    wake: Condvar,
    /// The transaction that has the slot; a hint, for views.
    txn: AtomicU64,
}

impl OwnerSlot {
    pub fn register(&self, txn: TxnId) {
        // Relaxed: shown in views only.
        self.txn.store(txn.get(), Ordering::Relaxed);
    }

    /// The transaction that has, or last had, this slot.
    pub fn txn(&self) -> TxnId {
        // Relaxed: shown in views only.
        TxnId::new(self.txn.load(Ordering::Relaxed))
    }

    /// Describes the wait that the owner is about to begin.
    pub fn begin_wait(&self, name: LockName, wanted: Mode, since: Duration, txn: TxnId) {
        let mut cell = self.cell.lock();
        cell.number += 1;
        cell.verdict = None;
        cell.waiting = Some(Waiting {
            name,
            wanted,
            since,
            txn,
            number: cell.number,
        });
    }

    pub fn end_wait(&self) {
        self.cell.lock().waiting = None;
    }

    /// The wait in progress, unless its victim has been chosen already.
    pub fn waiting(&self) -> Option<Waiting> {
        let cell = self.cell.lock();
        match cell.verdict {
            Some(Verdict::Victim) => None,
            _ => cell.waiting,
        }
    }

    /// Tells the owner that its request is granted. The caller holds the bucket's latch (W1).
    pub fn grant(&self) {
        self.cell.lock().verdict = Some(Verdict::Granted);
        self.wake.notify_one();
    }

    /// Tells the owner to give up the wait `number`; false when that wait is over.
    pub fn condemn(&self, number: u64) -> bool {
        let mut cell = self.cell.lock();
        let is_current = cell.waiting.is_some_and(|w| w.number == number);
        if is_current && cell.verdict.is_none() {
            cell.verdict = Some(Verdict::Victim);
            self.wake.notify_one();
        }
        is_current
    }

    /// Sleeps until there is a verdict, for at most `limit`.
    pub fn sleep(&self, limit: Duration) -> Option<Verdict> {
        let mut cell = self.cell.lock();
        while cell.verdict.is_none() {
            let (guard, timed_out) = self.wake.wait_timeout(cell, limit);
            cell = guard;
            if timed_out {
                break;
            }
        }
        cell.verdict
    }
}
