//! The transitions of the frame word: each a method, named for what happens. States, invariants and
//! orderings are told in `frame_word.rs`.

use super::{
    BlockedBy, Change, DIRTY, EXCLUSIVE, Hold, PINS, State, VERSION, WAITERS, WEIGHT, Wake, Word,
    Written,
};
use longshore_base::sync::atomic::{AtomicU64, Ordering, fence};

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
        // The version is the topmost field: adding one to it wraps where it should.
        let step = match change {
            Change::Changed => VERSION.one(),
            Change::Unchanged => 0,
        };
        let step = step.wrapping_sub(EXCLUSIVE.one());
        // Release: pairs with Acquire in `load` and `hold`: who sees the new word sees our bytes.
        let before = Word(self.0.fetch_add(step, Ordering::Release));
        assert!(before.is_exclusive(), "W3: the frame is held exclusively");
        if WAITERS.is_set(before.0) {
            self.clear_waiters();
            Wake::Waiters
        } else {
            Wake::Nobody
        }
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
        // Relaxed: the bits asked for are ours; the exchange below orders the rest.
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
        // Relaxed: the state is ours; the exchange below orders the rest.
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
        // Relaxed on failure: nothing is read by what was found.
        self.0
            .compare_exchange(from.0, to.0, order, Ordering::Relaxed)
            .is_ok()
    }

    #[inline]
    fn weak(&self, from: Word, to: Word, order: Ordering) -> Result<u64, Word> {
        // Relaxed on failure: what was found is only what the next attempt starts from.
        self.0
            .compare_exchange_weak(from.0, to.0, order, Ordering::Relaxed)
            .map_err(Word)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const CAP: u8 = 3;

    /// A frame with a page that nobody holds.
    fn resident(weight: u8) -> FrameWord {
        let word = FrameWord::default();
        assert!(word.use_again());
        word.begin_load();
        word.publish(weight);
        assert_eq!(word.release_exclusive(Change::Unchanged), Wake::Nobody);
        word
    }

    fn dirty() -> FrameWord {
        let word = resident(0);
        assert!(matches!(word.try_exclusive(0), Hold::Held(_)));
        word.mark_dirty();
        assert_eq!(word.release_exclusive(Change::Changed), Wake::Nobody);
        word
    }

    #[test]
    fn fresh_memory_is_a_retired_frame() {
        let word = FrameWord::default();
        assert_eq!(word.load().state(), State::Retired);
        assert_eq!(word.try_pin(CAP), Hold::Dead);
        assert!(word.use_again());
        assert!(!word.use_again());
        assert_eq!(word.try_exclusive(CAP), Hold::Dead);
        word.retire();
        assert_eq!(word.load().state(), State::Retired);
    }

    #[test]
    fn frame_refuses_pins_until_its_page_is_there() {
        let word = FrameWord::default();
        assert!(word.use_again());
        word.begin_load();
        assert_eq!(word.try_pin(CAP), Hold::Dead);
        assert_eq!(word.try_exclusive(CAP), Hold::Dead);
        word.publish(1);
        assert_eq!(word.try_pin(CAP), Hold::Blocked);
        assert_eq!(word.downgrade(Change::Unchanged), Wake::Nobody);
        assert!(matches!(word.try_pin(CAP), Hold::Held(_)));
        assert_eq!(word.load().pins(), 2);
    }

    #[test]
    fn evicted_frame_refuses_pin() {
        let word = resident(0);
        let seen = word.load();
        assert!(word.try_evict(seen));
        assert_eq!(word.try_pin(CAP), Hold::Dead);
        assert!(!word.is_unchanged(seen));
        assert_eq!(word.try_exclusive_observed(seen), Hold::Dead);
    }

    #[test]
    fn only_idle_weightless_clean_frames_are_evicted() {
        let weighty = resident(1);
        assert!(!weighty.try_evict(weighty.load()));
        let unclean = dirty();
        assert!(!unclean.try_evict(unclean.load()));
        let pinned = resident(0);
        assert!(matches!(pinned.try_pin(0), Hold::Held(_)));
        assert!(!pinned.try_evict(pinned.load()));
        assert_eq!(pinned.unpin(), Wake::Nobody);
        assert!(pinned.try_evict(pinned.load()));
    }

    #[test]
    fn weight_is_bounded_and_not_written_at_the_cap() {
        let word = resident(0);
        for _ in 0..10 {
            let _ = word.touch(word.load(), CAP);
        }
        assert_eq!(word.load().weight(), CAP);
        assert!(!word.load().wants_touch(CAP));
        (0..CAP).for_each(|_| assert!(word.age(word.load())));
        assert_eq!(word.load().weight(), 0);
        assert!(matches!(word.try_pin(0), Hold::Held(_)));
        assert_eq!(word.load().weight(), 0, "a scan does not count");
    }

    #[test]
    fn version_moves_with_changes_only() {
        let word = resident(0);
        let seen = word.load();
        assert!(matches!(word.try_exclusive(CAP), Hold::Held(_)));
        assert!(!word.is_unchanged(seen));
        assert_eq!(word.release_exclusive(Change::Unchanged), Wake::Nobody);
        assert!(word.is_unchanged(seen));
        assert!(matches!(word.try_exclusive_observed(seen), Hold::Held(_)));
        assert_eq!(word.release_exclusive(Change::Changed), Wake::Nobody);
        assert!(!word.is_unchanged(seen));
        assert_eq!(word.try_pin_observed(seen), Hold::Blocked);
    }

    #[test]
    fn any_use_rescues_a_victim() {
        type Use = fn(&FrameWord);
        let uses: [Use; 3] = [
            |word| assert!(word.touch(word.load(), 0)),
            |word| assert!(matches!(word.try_pin(0), Hold::Held(_))),
            |word| assert!(matches!(word.try_exclusive(0), Hold::Held(_))),
        ];
        for rescue in uses {
            let word = dirty();
            let copied = word.load();
            assert!(word.begin_evict(copied));
            assert_eq!(word.load().state(), State::Evicting);
            rescue(&word);
            assert_eq!(word.load().state(), State::Resident);
            assert_ne!(word.finish_evict(copied), Written::Freed);
        }
    }

    #[test]
    fn written_victim_is_freed_and_rescued_one_is_clean() {
        let word = dirty();
        let copied = word.load();
        assert!(word.begin_evict(copied));
        assert_eq!(word.finish_evict(copied), Written::Freed);
        assert_eq!(word.load().state(), State::Free);
        let word = dirty();
        let copied = word.load();
        assert!(word.begin_evict(copied));
        assert!(matches!(word.try_pin(0), Hold::Held(_)));
        assert_eq!(word.finish_evict(copied), Written::Clean);
        assert!(!word.load().is_dirty());
        assert_eq!(word.load().pins(), 1);
    }

    #[test]
    fn page_changed_after_the_copy_stays_dirty() {
        let word = dirty();
        let copied = word.load();
        assert!(matches!(word.try_exclusive(0), Hold::Held(_)));
        assert_eq!(word.mark_clean(copied), Written::Changed);
        assert_eq!(word.release_exclusive(Change::Changed), Wake::Nobody);
        assert_eq!(word.mark_clean(copied), Written::Changed);
        assert!(word.load().is_dirty());
        assert_eq!(word.mark_clean(word.load()), Written::Clean);
    }

    #[test]
    fn waiters_are_woken_by_whoever_stops_blocking_them() {
        let word = resident(0);
        assert!(!word.mark_waiting(BlockedBy::Anybody));
        assert!(matches!(word.try_pin(0), Hold::Held(_)));
        assert!(matches!(word.try_pin(0), Hold::Held(_)));
        assert!(!word.mark_waiting(BlockedBy::Exclusive));
        assert!(word.mark_waiting(BlockedBy::Anybody));
        assert_eq!(word.unpin(), Wake::Nobody);
        assert_eq!(word.unpin(), Wake::Waiters);
        assert!(matches!(word.try_exclusive(0), Hold::Held(_)));
        assert!(word.mark_waiting(BlockedBy::Exclusive));
        assert_eq!(word.release_exclusive(Change::Unchanged), Wake::Waiters);
    }

    #[test]
    fn version_wraps_within_its_field() {
        let word = FrameWord(AtomicU64::new(VERSION.mask()));
        assert!(word.use_again());
        word.begin_load();
        word.abandon_load();
        let now = word.load();
        assert_eq!((now.version(), now.state()), (0, State::Free));
        assert_eq!((now.pins(), now.weight()), (0, 0));
    }
}
