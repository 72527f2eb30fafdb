//! Who holds and who waits: the owner's private list of locks, and the slot in which it sleeps.
//!
//! # Protocol
//! Each open transaction has an [`Owner`], used by one thread at a time, and an [`OwnerSlot`] that other
//! threads may look into. Before a request lines up, its owner describes the wait in the slot
//! (`begin_wait`). Whoever grants the request, under the bucket's latch, leaves the verdict `Granted`
//! there; a deadlock search leaves `Victim`, and another thread may leave `Cancelled`. The owner
//! sleeps until there is a verdict or its time is up, and ends the wait (`end_wait`). It is no end of the
//! wait to be called for the lock, under the same latch: the owner looks, and may have to sleep on.
//!
//! A cancellation is for a transaction, not for a wait: it is kept in the slot, and each wait begun later
//! looks for it. It is stored before the cell is looked at, and the wait is in the cell before it is
//! looked for, so one of the two sees the other.
//!
//! # Invariants
//! W1. A verdict is left only for a wait in progress: `Granted` under the latch of the bucket in which
//! the request waits, `Victim` only when the wait's number is still the one that was searched,
//! `Cancelled` only for a wait of the transaction meant. A call is for a wait in progress too.
//! W2. `Granted` beats all else: an owner told to give up asks the bucket before it does.
//!
//! # Order
//! bucket latch, then slot mutex. Nothing is taken under a slot mutex.

use super::dependency::Dependency;
use super::intent::{IntentWords, WORDS};
use super::mode::{Above, Mode};
use super::name::LockName;
use super::queue::{OwnerIndex, Turn};
use super::table::{Place, TableHold};
use longshore_base::sync::atomic::{AtomicU64, Ordering};
use longshore_base::sync::{Condvar, Mutex};
use longshore_base::{StoreId, TxnId};
use smallvec::SmallVec;
use std::time::Duration;

/// Locks of one transaction: what it must release at its end.
#[derive(Debug)]
pub struct Owner {
    pub(super) index: OwnerIndex,
    pub(super) txn: TxnId,
    /// Hashes of the names on which this owner has a granted request, each once.
    pub(super) held: SmallVec<[u64; 8]>,
    /// What it holds on tables and the database.
    pub(super) tables: SmallVec<[TableHold; WORDS]>,
    /// The table of the row that was locked last.
    pub(super) current: usize,
    /// Bit `n` is set while word `n` of the slot is free.
    pub(super) free_words: u8,
    /// The newest commit whose locks this owner has taken over.
    pub(super) dependency: Dependency,
    /// Requests granted, added to the shared counter at the end.
    pub(super) acquired: u64,
}

/// No word of the slot is in use.
const ALL_WORDS: u8 = ((1_u16 << WORDS) - 1) as u8;

impl Owner {
    pub(super) fn new(index: OwnerIndex, txn: TxnId) -> Owner {
        Owner {
            index,
            txn,
            held: SmallVec::new(),
            tables: SmallVec::new(),
            current: 0,
            free_words: ALL_WORDS,
            dependency: Dependency::NONE,
            acquired: 0,
        }
    }

    /// The transaction that this owner stands for.
    pub fn txn(&self) -> TxnId {
        self.txn
    }

    /// How many rows it holds locks on.
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

    /// What a lock on a row of `store` in `mode` needs; makes the table the current one.
    #[inline]
    pub(super) fn above(&mut self, store: StoreId, mode: Mode) -> Above {
        let hold = match self.tables.get(self.current) {
            Some(hold) if hold.store == store => hold,
            _ => match self.position(store) {
                None => return Above::Lacks,
                Some(at) => {
                    self.current = at;
                    &self.tables[at]
                }
            },
        };
        hold.mode.above(mode)
    }

    /// Where in `tables` is what it holds on `store`.
    #[inline]
    pub(super) fn position(&self, store: StoreId) -> Option<usize> {
        self.tables.iter().position(|hold| hold.store == store)
    }

    /// What it holds on `store`.
    #[inline]
    pub(super) fn mode_on(&self, store: StoreId) -> Mode {
        self.position(store)
            .map_or(Mode::NONE, |at| self.tables[at].mode)
    }

    /// Takes note of what it holds on `store` by a request in the queue.
    pub(super) fn note_table(&mut self, store: StoreId, mode: Mode, escalate_at: u32) {
        match self.position(store) {
            Some(at) => {
                self.tables[at].mode = mode;
                self.tables[at].place = Place::Queue;
            }
            None => self.tables.push(TableHold {
                store,
                mode,
                place: Place::Queue,
                rows: 0,
                escalate_at,
            }),
        }
    }

    /// Nothing is held on any table any more.
    #[inline]
    pub(super) fn forget_tables(&mut self) {
        match self.tables.spilled() {
            true => self.tables = SmallVec::new(),
            false => self.tables.clear(),
        }
        self.current = 0;
        self.free_words = ALL_WORDS;
    }

    /// Chooses a free word of the slot.
    #[inline]
    pub(super) fn take_word(&mut self) -> Option<usize> {
        let index = self.free_words.trailing_zeros();
        self.free_words &= self.free_words.wrapping_sub(1);
        (index < u8::BITS).then_some(index as usize)
    }

    pub(super) fn give_back_word(&mut self, index: usize) {
        self.free_words |= 1 << index;
    }
}

/// How a wait ended, as told by others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Granted,
    Victim,
    Cancelled,
}

/// Why an owner has stopped sleeping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Roused {
    /// The wait is over.
    By(Verdict),
    /// The lock was free.
    Called,
    TimedOut,
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
    /// The owner has been called for the lock and has not heard it yet.
    is_called: bool,
    number: u64,
}

/// No transaction has this number.
const NOBODY: u64 = u64::MAX;

/// What other threads may see of an owner.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct OwnerSlot {
    cell: Mutex<WaitCell>,
    wake: Condvar,
    /// The transaction that has the slot; a hint, for views. Written by the owner.
    txn: AtomicU64,
    /// When it began, in nanoseconds, for views. Written by the owner.
    since: AtomicU64,
    /// One above the number of the transaction that is to end, if it has the slot. Written by anybody.
    cancelled: AtomicU64,
    pub(super) intents: IntentWords,
}

impl OwnerSlot {
    pub fn register(&self, txn: TxnId, since: Duration) {
        // Relaxed: shown in views only.
        self.txn.store(txn.get(), Ordering::Relaxed);
        self.since.store(since.as_nanos() as u64, Ordering::Relaxed);
    }

    /// The transaction has let go of all it had.
    pub fn leave(&self) {
        // Relaxed: shown in views only; a cancellation that comes too late is for nobody.
        self.txn.store(NOBODY, Ordering::Relaxed);
    }

    /// When the transaction began that has, or last had, this slot.
    pub fn since(&self) -> Duration {
        // Relaxed: shown in views only.
        Duration::from_nanos(self.since.load(Ordering::Relaxed))
    }

    /// Has `txn` give up its wait, if it is in one, and each that it begins.
    pub fn cancel(&self, txn: TxnId) {
        // Relaxed: the cell's mutex orders it against a wait that begins; see the header.
        self.cancelled.store(txn.get() + 1, Ordering::Relaxed);
        let mut cell = self.cell.lock();
        if cell.waiting.is_some_and(|w| w.txn == txn) && cell.verdict.is_none() {
            cell.verdict = Some(Verdict::Cancelled);
            self.wake.notify_one();
        }
    }

    /// Whether `txn`, which has the slot, has been cancelled.
    #[inline]
    pub fn is_cancelled(&self, txn: TxnId) -> bool {
        // Relaxed: as in `cancel`.
        self.cancelled.load(Ordering::Relaxed) == txn.get() + 1
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
        cell.is_called = false;
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

    /// The wait in progress, unless there is a verdict.
    pub fn waiting(&self) -> Option<Waiting> {
        let cell = self.cell.lock();
        cell.waiting.filter(|_| cell.verdict.is_none())
    }

    /// Leaves word that it is the owner's turn. The caller holds the bucket's latch (W1), and wakes the
    /// owner later.
    pub fn tell(&self, turn: Turn) {
        let mut cell = self.cell.lock();
        match turn {
            Turn::Called => cell.is_called = true,
            Turn::Granted => cell.verdict = Some(Verdict::Granted),
        }
    }

    /// Wakes whoever sleeps here, to see what there is.
    pub fn wake(&self) {
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

    /// Sleeps until there is a verdict or a call, for at most `limit`.
    pub fn sleep(&self, limit: Duration) -> Roused {
        let mut cell = self.cell.lock();
        let mut timed_out = false;
        loop {
            if let Some(verdict) = cell.verdict {
                return Roused::By(verdict);
            }
            if std::mem::take(&mut cell.is_called) {
                return Roused::Called;
            }
            if timed_out {
                return Roused::TimedOut;
            }
            (cell, timed_out) = self.wake.wait_timeout(cell, limit);
        }
    }
}
