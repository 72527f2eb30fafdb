//! The frame word: everything that threads must agree on about a frame, in 64 bits.
//!
//! | bits   | field     | meaning                                                             |
//! |--------|-----------|---------------------------------------------------------------------|
//! | 0..16  | pins      | shared holders; each keeps the page in the frame, and unchanged     |
//! | 16..20 | weight    | sweeps that the frame survives without a touch                      |
//! | 20..23 | state     | a [`State`]                                                         |
//! | 23     | exclusive | one holder may change the page, or is bringing it in                |
//! | 24     | dirty     | the page is newer than the disk                                     |
//! | 25     | waiters   | somebody is parked until `exclusive` or `pins` goes                 |
//! | 26..64 | version   | counts changes of the page and reuses of the frame                  |
//!
//! # States
//! ```text
//!            use_again              begin_load              publish
//!  Retired ------------> Free ------------------> Loading -----------> Resident
//!     ^                   ^ ^ ^                      |                  |  ^ |
//!     |      retire       | | +----------------------+     begin_evict  |  | | touch, pin, latch,
//!     +-------------------+ |       abandon_load           (dirty)      v  | v cancel_evict
//!                           |                                          Evicting
//!                           +--- evict (clean), finish_evict, discard ---+
//! ```
//! *Free* and *Loading* frames belong to one thread (or to the list of free frames) and no pin succeeds
//! on them: they are the paper's "dead" frames. *Evicting* is a dirty victim on its way to disk: its
//! bytes are whole, it is still in the page table, and any fix rescues it.
//!
//! # Invariants
//! W1. A frame with pins or an exclusive holder keeps its page.
//! W2. Free, Loading and Retired frames are never pinned or latched by a fix.
//! W3. pins > 0 excludes exclusive, and the reverse.
//! W4. Leaving Resident or Evicting for Free moves the version; so does the release of an exclusive
//!     holder who changed the page. Between two equal versions, neither exclusive, no byte changed.
//! W5. Dirty goes only by `mark_clean` or `finish_evict` at the version that was written, by nobody
//!     exclusive; so a page that changed while it was written stays dirty.
//! W6. Weight is at most the cap and never written when at the cap.
//!
//! # Ordering
//! | store | load | carries |
//! |---|---|---|
//! | `unpin`, `release_exclusive` (Release) | `try_pin`, `try_exclusive`, `evict` (Acquire) | the page's bytes, and that reads are over |
//! | `publish` (Release) | `load` (Acquire) | page id and bytes of a page brought in |
//! | fence (Release) after taking `exclusive` or a free frame | fence (Acquire) in `is_unchanged` | a reader that saw a new byte sees the new word |
//!
//! # Source
//! Nb-GCLOCK (Yui et al., ICDE 2010), Fig. 2 and 3. We differ: pins, weight and state share a word, so
//! that "unpinned, weight zero, clean" is tested and left in one step; frames are reused, so the word
//! has a version; a dirty victim has a state of its own.

use longshore_base::bits::Field;
use longshore_base::sync::atomic::{AtomicU64, Ordering, fence};
use std::fmt;

const PINS: Field = Field::new(0, 16);
const WEIGHT: Field = PINS.then(4);
const STATE: Field = WEIGHT.then(3);
const EXCLUSIVE: Field = STATE.then(1);
const DIRTY: Field = EXCLUSIVE.then(1);
const WAITERS: Field = DIRTY.then(1);
const VERSION: Field = WAITERS.then(38);

/// The greatest cap of the weight.
pub(crate) const WEIGHT_MAX: u8 = WEIGHT.max() as u8;

/// What a frame is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// Not in use: beyond the pool's size. Fresh memory is this.
    Retired = 0,
    /// Holds no page.
    Free = 1,
    /// A page is being brought in.
    Loading = 2,
    /// Holds a page.
    Resident = 3,
    /// Holds a dirty page that is being written so that the frame can be reused.
    Evicting = 4,
}

/// One value of a frame word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    pub(crate) fn pins(self) -> u64 {
        PINS.get(self.0)
    }

    pub(crate) fn weight(self) -> u8 {
        WEIGHT.get(self.0) as u8
    }

    pub(crate) fn state(self) -> State {
        match STATE.get(self.0) {
            0 => State::Retired,
            1 => State::Free,
            2 => State::Loading,
            3 => State::Resident,
            4 => State::Evicting,
            other => unreachable!("frame state {other}"),
        }
    }

    pub(crate) fn is_exclusive(self) -> bool {
        EXCLUSIVE.is_set(self.0)
    }

    pub(crate) fn is_dirty(self) -> bool {
        DIRTY.is_set(self.0)
    }

    pub(crate) fn version(self) -> u64 {
        VERSION.get(self.0)
    }

    /// Whether the frame holds a page, whoever else is using it.
    #[inline]
    pub(crate) fn holds_page(self) -> bool {
        // Resident and Evicting are the greatest states.
        STATE.get(self.0) >= State::Resident as u64
    }

    /// Whether the page may be read without a latch.
    #[inline]
    pub(crate) fn is_readable(self) -> bool {
        self.holds_page() && !self.is_exclusive()
    }

    /// Whether a touch would change the word: the weight is below its cap, or the frame is to be
    /// rescued.
    #[inline]
    pub(crate) fn wants_touch(self, cap: u8) -> bool {
        self.weight() < cap || STATE.get(self.0) == State::Evicting as u64
    }

    /// Whether a sweep may do anything with the frame.
    pub(crate) fn is_sweepable(self) -> bool {
        self.state() == State::Resident && self.is_idle()
    }

    /// Whether nobody holds the frame.
    fn is_idle(self) -> bool {
        self.0 & (PINS.mask() | EXCLUSIVE.mask()) == 0
    }

    fn is_victim(self) -> bool {
        self.is_sweepable() && self.weight() == 0
    }

    /// Whether page and bytes are those of `earlier`.
    fn is_same_content(self, earlier: Word) -> bool {
        (self.0 ^ earlier.0) & (VERSION.mask() | EXCLUSIVE.mask()) == 0
    }

    fn with_state(self, state: State) -> Word {
        Word(STATE.with(self.0, state as u64))
    }

    /// With the weight raised by one if it is below `cap`.
    fn touched(self, cap: u8) -> Word {
        let raised = if self.weight() < cap {
            Word(self.0 + WEIGHT.one())
        } else {
            self
        };
        if raised.state() == State::Evicting {
            raised.with_state(State::Resident)
        } else {
            raised
        }
    }

    /// A frame without page, holders, dirt and waiters, under the next version.
    fn emptied(self) -> Word {
        Word(VERSION.wrapping_next(self.0) & VERSION.mask()).with_state(State::Free)
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Word")
            .field("state", &self.state())
            .field("pins", &self.pins())
            .field("weight", &self.weight())
            .field("exclusive", &self.is_exclusive())
            .field("dirty", &self.is_dirty())
            .field("waiters", &WAITERS.is_set(self.0))
            .field("version", &self.version())
            .finish()
    }
}

/// How an attempt to hold a frame ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Hold {
    /// Held; the word as it is now.
    Held(Word),
    /// Somebody holds it in a way that excludes us.
    Blocked,
    /// The frame holds no page (W2).
    Dead,
}

/// Whether whoever let go must wake the parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Wake {
    /// Nobody waits.
    Nobody,
    /// The waiters bit was set, and is cleared now: unpark them all.
    Waiters,
}

/// What an exclusive holder did to the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    Unchanged,
    /// Something.
    Changed,
}

/// What blocks the one who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockedBy {
    /// An exclusive holder.
    Exclusive,
    /// Any holder.
    Anybody,
}

impl BlockedBy {
    fn blocks(self, word: Word) -> bool {
        word.holds_page()
            && match self {
                BlockedBy::Exclusive => word.is_exclusive(),
                BlockedBy::Anybody => !word.is_idle(),
            }
    }
}

/// What became of a frame whose page was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Written {
    /// Clean, and free: it belongs to the caller, who must take it out of the page table.
    Freed,
    /// Clean, and somebody's.
    Clean,
    /// Changed since it was copied, or gone: nothing was done.
    Changed,
}

/// The atomic word. Zero, as in fresh memory, is a retired frame.
#[derive(Default)]
pub(crate) struct FrameWord(AtomicU64);

impl FrameWord {
    /// The word now.
    #[inline]
    pub(crate) fn load(&self) -> Word {
        // Acquire: pairs with Release in `publish` and `release_exclusive`; what is read from the page
        // after this is at least as new as the word.
        Word(self.0.load(Ordering::Acquire))
    }

    /// Whether the page is still as it was when the word was `earlier` (W4).
    #[inline]
    pub(crate) fn is_unchanged(&self, earlier: Word) -> bool {
        // Acquire fence: pairs with the Release fence of whoever takes the frame to write it. If any
        // byte read before came from that writer, the load below sees the word it set first.
        fence(Ordering::Acquire);
        Word(self.0.load(Ordering::Relaxed)).is_same_content(earlier)
    }

    /// Counts a use by a reader without latch, and rescues an evicting frame. True if rescued.
    pub(crate) fn touch(&self, observed: Word, cap: u8) -> bool {
        // Relaxed: the weight is a hint. A rescue needs no more: it hands over no bytes, and the writer
        // of the victim loses because its own exchange expects the state to be Evicting.
        self.exchange(observed, observed.touched(cap), Ordering::Relaxed)
            && observed.state() == State::Evicting
    }

    /// Pins the frame: it keeps its page, and the page its bytes, until `unpin`.
    #[inline]
    pub(crate) fn try_pin(&self, cap: u8) -> Hold {
        self.hold(|word| {
            if word.is_exclusive() {
                return None;
            }
            assert!(word.pins() < PINS.max(), "W1: too many pins on a frame");
            Some(Word(word.touched(cap).0 + PINS.one()))
        })
    }

    /// Takes the frame exclusively, if nobody else holds it.
    #[inline]
    pub(crate) fn try_exclusive(&self, cap: u8) -> Hold {
        let hold = self.hold(|word| {
            word.is_idle()
                .then(|| Word(word.touched(cap).0 | EXCLUSIVE.mask()))
        });
        self.before_writing();
        hold
    }

    /// Pins the frame if the page is still as it was when the word was `observed`.
    pub(crate) fn try_pin_observed(&self, observed: Word) -> Hold {
        self.hold(|word| {
            word.is_same_content(observed)
                .then(|| Word(word.touched(0).0 + PINS.one()))
        })
    }

    /// Takes the frame exclusively if the page is still as it was when the word was `observed`.
    pub(crate) fn try_exclusive_observed(&self, observed: Word) -> Hold {
        let hold = self.hold(|word| {
            let free = word.is_same_content(observed) && word.is_idle();
            free.then(|| Word(word.touched(0).0 | EXCLUSIVE.mask()))
        });
        self.before_writing();
        hold
    }

    /// Gives a pin back.
    #[inline]
    pub(crate) fn unpin(&self) -> Wake {
        // Release: pairs with Acquire in `try_exclusive` and `evict`; our reads of the page are over
        // before anybody writes to it.
        let before = Word(self.0.fetch_sub(PINS.one(), Ordering::Release));
        assert!(before.pins() > 0, "W1: unpin of a frame without pins");
        if before.pins() == 1 && WAITERS.is_set(before.0) {
            self.clear_waiters();
            Wake::Waiters
        } else {
            Wake::Nobody
        }
    }

    /// Ends an exclusive hold; a change moves the version (W4).
    #[inline]
    pub(crate) fn release_exclusive(&self, change: Change) -> Wake {
        self.end_exclusive(change, |word| word).0
    }

    /// Ends the hold of a loader who only wants to read: with the word by which to validate.
    pub(crate) fn release_loaded(&self) -> (Wake, Word) {
        self.end_exclusive(Change::Unchanged, |word| word)
    }

    /// Turns an exclusive hold into a pin.
    pub(crate) fn downgrade(&self, change: Change) -> Wake {
        self.end_exclusive(change, |word| Word(word.0 + PINS.one()))
            .0
    }

    /// Says that the page is newer than the disk. By the exclusive holder, who stored `rec_lsn` before.
    pub(crate) fn mark_dirty(&self) {
        // Release: pairs with Acquire in `load`; whoever sees the bit sees the frame's `rec_lsn`.
        let before = Word(self.0.fetch_or(DIRTY.mask(), Ordering::Release));
        assert!(
            before.is_exclusive(),
            "W5: only an exclusive holder dirties"
        );
    }

    /// Prepares to park: sets the waiters bit if still blocked. False: try again instead of sleeping.
    pub(crate) fn mark_waiting(&self, blocked_by: BlockedBy) -> bool {
        let mut word = self.load();
        loop {
            if !blocked_by.blocks(word) {
                return false;
            }
            if WAITERS.is_set(word.0) {
                return true;
            }
            // Relaxed: the parking lot's mutex orders the sleep; the releaser sees the bit because it
            // changes the same word.
            match self.weak(word, Word(word.0 | WAITERS.mask()), Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    /// Whether whoever waits for `blocked_by` would have to wait now.
    pub(crate) fn is_blocked(&self, blocked_by: BlockedBy) -> bool {
        blocked_by.blocks(self.load())
    }

    /// Lowers the weight by one, as the sweep passes. False: somebody changed the word meanwhile.
    pub(crate) fn age(&self, observed: Word) -> bool {
        assert!(observed.weight() > 0, "W6: the weight has a floor");
        // Relaxed: the weight is a hint.
        let aged = Word(observed.0 - WEIGHT.one());
        self.exchange(observed, aged, Ordering::Relaxed)
    }

    /// Takes a clean victim out of service: the caller owns the frame, and must take it out of the page
    /// table before giving it to anybody. False: it is no victim any more.
    pub(crate) fn try_evict(&self, observed: Word) -> bool {
        let is_victim = observed.is_victim() && !observed.is_dirty();
        // Acquire: pairs with Release in `unpin`: reads by earlier holders are over.
        let evicted = is_victim && self.exchange(observed, observed.emptied(), Ordering::Acquire);
        self.before_writing();
        evicted
    }

    /// Sets a dirty victim on its way: Evicting until it is written, or rescued.
    pub(crate) fn begin_evict(&self, observed: Word) -> bool {
        let is_victim = observed.is_victim() && observed.is_dirty();
        // Relaxed: nothing is handed over; the copy is validated by version.
        is_victim
            && self.exchange(
                observed,
                observed.with_state(State::Evicting),
                Ordering::Relaxed,
            )
    }

    /// Ends the journey of a victim whose page, as of `copied`, is on disk: frees the frame, or marks
    /// the page clean if it was rescued.
    pub(crate) fn finish_evict(&self, copied: Word) -> Written {
        self.after_write(copied, |word| {
            let frees = word.state() == State::Evicting && word.is_idle();
            if frees {
                word.emptied()
            } else {
                word.cleaned()
            }
        })
    }

    /// Notes that the page, as of `copied`, is on disk (W5).
    pub(crate) fn mark_clean(&self, copied: Word) -> Written {
        self.after_write(copied, Word::cleaned)
    }

    /// Gives up writing a victim: it stays, dirty.
    pub(crate) fn cancel_evict(&self) {
        let mut word = self.load();
        while word.state() == State::Evicting {
            // Relaxed: nothing is handed over.
            match self.weak(word, word.with_state(State::Resident), Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    /// Begins to bring a page into a free frame that the caller owns.
    pub(crate) fn begin_load(&self) {
        self.own(State::Free, |word| {
            Word(word.with_state(State::Loading).0 | EXCLUSIVE.mask())
        });
        self.before_writing();
    }

    /// Ends bringing a page in: it is there, held exclusively by its loader.
    pub(crate) fn publish(&self, weight: u8) {
        self.own(State::Loading, |word| {
            Word(WEIGHT.with(word.0, u64::from(weight))).with_state(State::Resident)
        });
    }

    /// Gives up bringing a page in: the frame is free again.
    pub(crate) fn abandon_load(&self) {
        self.own(State::Loading, Word::emptied);
    }

    /// Throws an exclusively held page away, dirty or not; the caller owns the free frame.
    pub(crate) fn discard(&self) -> Wake {
        self.end_exclusive(Change::Changed, |word| {
            Word(word.0 & VERSION.mask()).with_state(State::Free)
        })
        .0
    }

    /// Takes a free frame that the caller owns out of use.
    pub(crate) fn retire(&self) {
        self.own(State::Free, |word| word.with_state(State::Retired));
    }

    /// Brings a retired frame into use; false if it is not retired.
    pub(crate) fn use_again(&self) -> bool {
        let word = self.load();
        // Acquire: pairs with Release in `own`, by which it was retired.
        word.state() == State::Retired
            && self.exchange(word, word.with_state(State::Free), Ordering::Acquire)
    }

    /// Tries to change the word of a frame that holds a page; `next` says `None` when blocked.
    #[inline]
    fn hold(&self, next: impl Fn(Word) -> Option<Word>) -> Hold {
        // Relaxed: the exchange below is what counts.
        let mut word = Word(self.0.load(Ordering::Relaxed));
        loop {
            if !word.holds_page() {
                return Hold::Dead;
            }
            let Some(held) = next(word) else {
                return Hold::Blocked;
            };
            // Acquire: pairs with Release in `publish`, `unpin` and `release_exclusive`: we see the bytes
            // they left, and write after they have read.
            match self.weak(word, held, Ordering::Acquire) {
                Ok(_) => return Hold::Held(held),
                Err(now) => word = now,
            }
        }
    }

    /// Ends an exclusive hold; other bits may change meanwhile.
    fn end_exclusive(&self, change: Change, then: impl Fn(Word) -> Word) -> (Wake, Word) {
        let mut word = Word(self.0.load(Ordering::Relaxed));
        loop {
            assert!(word.is_exclusive(), "W3: the frame is held exclusively");
            let moved = match change {
                Change::Changed => VERSION.wrapping_next(word.0),
                Change::Unchanged => word.0,
            };
            let next = then(Word(moved & !(EXCLUSIVE.mask() | WAITERS.mask())));
            // Release: pairs with Acquire in `load` and `hold`: who sees the new word sees our bytes.
            match self.weak(word, next, Ordering::Release) {
                Ok(_) if WAITERS.is_set(word.0) => return (Wake::Waiters, next),
                Ok(_) => return (Wake::Nobody, next),
                Err(now) => word = now,
            }
        }
    }

    /// Changes the word of a frame whose page was written as of `copied`, if it has not changed since.
    fn after_write(&self, copied: Word, next: impl Fn(Word) -> Word) -> Written {
        let mut word = self.load();
        loop {
            if !word.holds_page() || !word.is_same_content(copied) {
                return Written::Changed;
            }
            let after = next(word);
            // Acquire: pairs with Release in `unpin`, as in `try_evict`.
            match self.weak(word, after, Ordering::Acquire) {
                Ok(_) if after.state() == State::Free => {
                    self.before_writing();
                    return Written::Freed;
                }
                Ok(_) => return Written::Clean,
                Err(now) => word = now,
            }
        }
    }

    /// Changes the word of a frame that the caller owns.
    fn own(&self, from: State, next: impl Fn(Word) -> Word) {
        let mut word = Word(self.0.load(Ordering::Relaxed));
        loop {
            assert_eq!(word.state(), from, "W2: the frame is ours");
            let after = next(word);
            // Release: pairs with Acquire in `load`: who sees the state sees page id and bytes.
            match self.weak(word, after, Ordering::Release) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    fn clear_waiters(&self) {
        // Relaxed: the parking lot's mutex orders the wake-up.
        self.0.fetch_and(!WAITERS.mask(), Ordering::Relaxed);
    }

    /// Stands between taking a frame and storing into its page.
    #[inline]
    fn before_writing(&self) {
        // Release fence: pairs with the Acquire fence in `is_unchanged`; a reader that sees a byte stored
        // after this sees the word stored before it.
        fence(Ordering::Release);
    }

    fn exchange(&self, from: Word, to: Word, order: Ordering) -> bool {
        self.0
            .compare_exchange(from.0, to.0, order, Ordering::Relaxed)
            .is_ok()
    }

    #[inline]
    fn weak(&self, from: Word, to: Word, order: Ordering) -> Result<u64, Word> {
        self.0
            .compare_exchange_weak(from.0, to.0, order, Ordering::Relaxed)
            .map_err(Word)
    }
}

impl Word {
    fn cleaned(self) -> Word {
        Word(self.0 & !DIRTY.mask())
    }
}
