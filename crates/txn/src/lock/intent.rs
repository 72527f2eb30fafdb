//! Intents on tables and on the database, taken without a store to memory that threads share.
//!
//! # Protocol
//! A transaction reads or changes rows only under an intent (IS, IX) on their table, and has an intent
//! on a table only under one on the database. Intents never exclude each other, so as long as nobody
//! wants more of the table it is enough that each can be found. Every owner's slot has a few words,
//! [`IntentWords`], on a line of its own, and every table a count, `strong`, of those who hold or want
//! more than an intent (`table_word`).
//!
//! | who | does |
//! |---|---|
//! | takes an intent | stores a word; fence; looks at `strong`: if it is zero, the intent is held |
//! | | otherwise takes the word back and asks the queue like anybody |
//! | wants more | raises `strong`; fence; *transfers* the words in its way; asks the queue like anybody |
//! | transfers | under the bucket's latch, enters a granted request into the queue, then clears the word; if the word has changed meanwhile, takes the request out again |
//! | lets go | clears the word; if it was clear already, leaves the queue |
//!
//! So all that anybody can wait for is in the queues, and fairness, time-outs, the search for deadlocks
//! and the views are the same for rows, tables and the database.
//!
//! A word that is stored and not yet confirmed may be met by a transfer. Then it counts for as much as
//! can be granted beside what others hold: all of it, or IS, which may have been held before it became
//! IX, or nothing, since whoever stored it will find `strong` raised. The owner who finds its word
//! clear looks in the queue for what it has there.
//!
//! # Invariants
//! H1. Modes held on one table or database by different owners, in words or in the queue, are
//!     compatible.
//! H2. Of one who takes an intent and one who wants more, at least one sees the other.
//! H3. An owner has on one table a word or a request, never both, but under the latch.
//! H4. Nobody waits for a word.
//!
//! # Ordering
//! | store | load | so that |
//! |---|---|---|
//! | word, then fence SeqCst, then `strong` | `strong`, then fence SeqCst, then word | H2 |
//! | request under the latch, then word cleared, Release | word found clear, Acquire, then latch | the owner finds its request |
//! | word cleared by its owner, Release | word found clear, Acquire | who gets the table sees what was done under the intent |

use super::budget::Use;
use super::error::LockError;
use super::manager::LockManager;
use super::mode::Mode;
use super::name::LockName;
use super::owner::Owner;
use super::queue::{Acquired, OwnerIndex};
use super::table::{Place, TableHold};
use longshore_base::StoreId;
use longshore_base::bits::Field;
use longshore_base::sync::atomic::{AtomicU64, Ordering, fence};

/// Words of a slot; whoever uses more tables takes the others through the queue.
pub(super) const WORDS: usize = if cfg!(loom) { 2 } else { 8 };

/// The intents of one owner. Stored to by the owner; cleared by it or by a transfer.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct IntentWords([AtomicU64; WORDS]);

/// One intent, or nothing.
///
/// | bits   | field | meaning                          |
/// |--------|-------|----------------------------------|
/// | 0..32  | store | the table, or the database       |
/// | 32..40 | mode  | packed; zero in a clear word     |
#[derive(Clone, Copy, PartialEq, Eq)]
struct IntentWord(u64);

const STORE: Field = Field::new(0, 32);
const MODE: Field = STORE.then(8);
const CLEAR: u64 = 0;

impl IntentWord {
    fn new(store: StoreId, mode: Mode) -> IntentWord {
        let word = STORE.with(0, u64::from(store.get()));
        IntentWord(MODE.with(word, u64::from(mode.bits())))
    }

    fn store(self) -> StoreId {
        StoreId::new(STORE.get(self.0) as u32)
    }

    fn mode(self) -> Mode {
        Mode::from_bits(MODE.get(self.0) as u8)
    }
}

impl IntentWords {
    /// Intents in words, for views.
    pub fn iter(&self) -> impl Iterator<Item = (StoreId, Mode)> {
        self.0
            .iter()
            // Relaxed: shown in views only.
            .map(|word| IntentWord(word.load(Ordering::Relaxed)))
            .filter(|word| word.0 != CLEAR)
            .map(|word| (word.store(), word.mode()))
    }
}

impl LockManager {
    /// Takes the intent `mode`, beside what `owner` holds on `store`, by a word; false if it must ask
    /// the queue.
    #[inline]
    pub(super) fn intend(&self, owner: &mut Owner, store: StoreId, mode: Mode) -> bool {
        match owner.position(store) {
            None => self.intend_anew(owner, store, mode),
            Some(at) => self.intend_more(owner, at, mode),
        }
    }

    fn intend_anew(&self, owner: &mut Owner, store: StoreId, mode: Mode) -> bool {
        if owner.tables.len() == owner.tables.capacity() {
            return false;
        }
        let Some(index) = owner.take_word() else {
            return false;
        };
        let word = &self.slot(owner.index).intents.0[index];
        // Relaxed: the fence orders it against `strong` (H2), and the slot's other users by clearing it.
        word.store(IntentWord::new(store, mode).0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let (is_wanted, last_commit) = self.tables.of(store).glance();
        // AcqRel: who transfers it sees nothing of ours yet; we see the request that it made (H3).
        if is_wanted {
            let transferred = word.swap(CLEAR, Ordering::AcqRel) == CLEAR;
            owner.give_back_word(index);
            if transferred {
                self.note_transferred(owner, store);
            }
            return owner.mode_on(store).covers(mode);
        }
        owner.depend_on(last_commit);
        owner.tables.push(TableHold {
            store,
            mode,
            place: Place::Word(index as u8),
            rows: 0,
            escalate_at: self.escalate_at(store),
        });
        true
    }

    /// Makes IS into IX.
    fn intend_more(&self, owner: &mut Owner, at: usize, mode: Mode) -> bool {
        let TableHold {
            store,
            mode: held,
            place,
            ..
        } = owner.tables[at];
        let Place::Word(index) = place else {
            return false;
        };
        let word = &self.slot(owner.index).intents.0[usize::from(index)];
        let [weak, strong] = [held, mode].map(|mode| IntentWord::new(store, mode).0);
        // AcqRel: pairs with the load and the exchange in `transfer`. Acquire on failure: we see the request that the
        // transfer made (H3).
        let change = |from, to| {
            word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
        };
        if change(weak, strong) {
            // SeqCst: the word, then `strong` (H2).
            fence(Ordering::SeqCst);
            let (is_wanted, _) = self.tables.of(store).glance();
            if !is_wanted {
                owner.tables[at].mode = mode;
                return true;
            }
            if change(strong, weak) {
                return false;
            }
        }
        owner.give_back_word(usize::from(index));
        self.note_transferred(owner, store);
        owner.mode_on(store).covers(mode)
    }

    /// Takes note of what a transfer has left in the queue for `owner`.
    #[cold]
    fn note_transferred(&self, owner: &mut Owner, store: StoreId) {
        let name = LockName::of_table(store);
        let held = {
            let latched = self.latch(name.hash());
            let mine = latched.of(name).find(|r| r.owner() == owner.index);
            mine.expect("H3: a word that somebody cleared is a request")
                .held
        };
        owner.depend_on(self.tables.of(store).glance().1);
        match owner.position(store) {
            Some(at) => {
                owner.tables[at].place = Place::Queue;
                owner.tables[at].mode = held;
            }
            None => owner.tables.push(TableHold {
                store,
                mode: held,
                place: Place::Queue,
                rows: 0,
                escalate_at: self.escalate_at(store),
            }),
        }
    }

    /// Makes a request of the word at `at`, so that the queue can strengthen it.
    pub(super) fn leave_word(&self, owner: &mut Owner, at: usize) -> Result<(), LockError> {
        let TableHold { store, place, .. } = owner.tables[at];
        let Place::Word(index) = place else {
            return Ok(());
        };
        self.transfer(owner.index, usize::from(index), store)?;
        owner.give_back_word(usize::from(index));
        self.note_transferred(owner, store);
        Ok(())
    }

    /// Gives up an intent held in a word; false if it has become a request.
    #[inline]
    pub(super) fn clear_word(&self, owner: OwnerIndex, index: u8) -> bool {
        let word = &self.slot(owner).intents.0[usize::from(index)];
        // AcqRel: Release for whoever gets the table next; Acquire for the request, if there is one.
        word.swap(CLEAR, Ordering::AcqRel) != CLEAR
    }

    /// Enters into the queue all intents on `store` that are in the way of `wanted`. The caller has
    /// raised `strong`.
    pub(super) fn transfer_all(
        &self,
        me: OwnerIndex,
        store: StoreId,
        wanted: Mode,
    ) -> Result<(), LockError> {
        // SeqCst: raise, fence, look at the words; against word, fence, look at `strong` (H2).
        fence(Ordering::SeqCst);
        for index in (0..self.owners_seen()).filter(|&index| index != me) {
            for (at, word) in self.slot(index).intents.0.iter().enumerate() {
                // Acquire: pairs with the Release in `clear_word`.
                let word = IntentWord(word.load(Ordering::Acquire));
                if word.0 != CLEAR && word.store() == store && !word.mode().is_compatible(wanted) {
                    self.transfer(index, at, store)?;
                }
            }
        }
        Ok(())
    }

    /// Makes a granted request of the word `at` of `owner`, if it is an intent on `store`.
    fn transfer(&self, owner: OwnerIndex, at: usize, store: StoreId) -> Result<(), LockError> {
        let word = &self.slot(owner).intents.0[at];
        let name = LockName::of_table(store);
        let mut latched = self.latch(name.hash());
        loop {
            // Acquire: as in `transfer_all`.
            let seen = IntentWord(word.load(Ordering::Acquire));
            if seen.0 == CLEAR || seen.store() != store {
                return Ok(());
            }
            let fits = |mode: &Mode| {
                let mut others = latched.of(name).filter(|r| r.owner() != owner);
                others.all(|r| r.held.is_compatible(*mode))
            };
            let modes = [seen.mode(), Mode::INTENT_SHARED];
            let Some(mode) = modes.into_iter().find(fits) else {
                // Not confirmed: its owner will find `strong` raised.
                return Ok(());
            };
            if latched.enter(name, owner, mode) == Acquired::Full {
                self.make_room(&mut latched, Use::of(name))?;
                continue;
            }
            // Release: the owner who finds the word clear finds the request (H3).
            // Acquire on failure: as in `transfer_all`.
            if word
                .compare_exchange(seen.0, CLEAR, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
            {
                return Ok(());
            }
            let _ = latched.release(name, owner);
        }
    }
}
