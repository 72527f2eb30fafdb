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

#[cfg(all(test, loom))]
mod loom_tests;
mod transitions;

pub(crate) use transitions::FrameWord;

use longshore_base::bits::Field;
use std::fmt;

const PINS: Field = Field::new(0, 16);
const WEIGHT: Field = PINS.then(4);
const STATE: Field = WEIGHT.then(3);
const EXCLUSIVE: Field = STATE.then(1);
const DIRTY: Field = EXCLUSIVE.then(1);
const WAITERS: Field = DIRTY.then(1);
const VERSION: Field = WAITERS.then(38);

// `release_exclusive` lets the version wrap at the top of the word.
const _: () =
    assert!(VERSION.max() * VERSION.one() == VERSION.mask() && VERSION.mask().leading_zeros() == 0);

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

    /// Whether the page may be read without a latch, and is not on its way out.
    #[inline]
    pub(crate) fn is_quiet(self) -> bool {
        self.0 & (STATE.mask() | EXCLUSIVE.mask()) == State::Resident as u64 * STATE.one()
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

    fn cleaned(self) -> Word {
        Word(self.0 & !DIRTY.mask())
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
