//! Guards: what a thread holds while it uses a page. Dropping one is the unfix.
//!
//! # Protocol
//! ```text
//!   read ---> OptimisticGuard --try_shared----> SharedGuard <---+
//!                  |                                            | downgrade
//!                  +-----------try_exclusive--> ExclusiveGuard -+
//! ```
//! An optimistic guard holds nothing: what was read through it counts only once `validate` says so. The
//! `try_` conversions succeed only if nothing changed since the guard was made, so they validate too.
//!
//! # Failure
//! A panic while a page is changed and not stamped poisons the pool: nobody may build on half a change.

use crate::error::Changed;
use crate::frame::FrameRef;
use crate::frame_word::{Change, Hold, Wake, Word};
use crate::page_bytes::{PageMut, PageRef};
use crate::pool::Pool;
use longshore_base::sync::hint;
use longshore_base::{Lsn, PageId};
use std::fmt;
use std::mem::ManuallyDrop;

/// A page read without a latch. Holds nothing; everything read is provisional until [`validate`].
///
/// [`validate`]: OptimisticGuard::validate
pub struct OptimisticGuard<'a> {
    pool: &'a Pool,
    frame: FrameRef<'a>,
    page: PageId,
    word: Word,
}

/// A page held shared: nobody changes it.
pub struct SharedGuard<'a> {
    pool: &'a Pool,
    frame: FrameRef<'a>,
}

/// A page held exclusively: nobody else reads or changes it.
///
/// Every change is made through [`page_mut`](ExclusiveGuard::page_mut) and stamped with the LSN of its log
/// record; readers see it when the guard is dropped.
pub struct ExclusiveGuard<'a> {
    pool: &'a Pool,
    frame: FrameRef<'a>,
    change: Change,
    stamped: bool,
}

/// Tries of a conversion while somebody else has the page pinned.
const SPINS: u32 = if cfg!(loom) { 1 } else { 64 };

impl<'a> OptimisticGuard<'a> {
    #[inline(always)]
    pub(crate) fn new(pool: &'a Pool, frame: FrameRef<'a>, page: PageId, word: Word) -> Self {
        OptimisticGuard {
            pool,
            frame,
            page,
            word,
        }
    }

    /// The page, to be read with distrust.
    #[inline(always)]
    pub fn page(&self) -> PageRef<'a> {
        PageRef::new(self.frame.words)
    }

    /// The page that was asked for.
    #[inline]
    pub fn page_id(&self) -> PageId {
        self.page
    }

    /// Tells whether all that was read so far was the page as it was at one moment.
    ///
    /// # Errors
    /// [`Changed`]: it may not have been. Read again.
    #[inline(always)]
    pub fn validate(&self) -> Result<(), Changed> {
        if self.frame.header.word.is_unchanged(self.word) {
            Ok(())
        } else {
            Err(Changed)
        }
    }

    /// Holds the page exclusively if it is still what was read.
    ///
    /// # Errors
    /// [`Changed`] if it is not, or if somebody else held it for longer than a short spin.
    pub fn try_exclusive(self) -> Result<ExclusiveGuard<'a>, Changed> {
        self.convert(|frame, word| frame.header.word.try_exclusive_observed(word))?;
        Ok(ExclusiveGuard::new(self.pool, self.frame))
    }

    /// Holds the page shared if it is still what was read.
    ///
    /// # Errors
    /// [`Changed`] if it is not.
    pub fn try_shared(self) -> Result<SharedGuard<'a>, Changed> {
        self.convert(|frame, word| frame.header.word.try_pin_observed(word))?;
        Ok(SharedGuard::new(self.pool, self.frame))
    }

    fn convert(&self, hold: impl Fn(&FrameRef<'a>, Word) -> Hold) -> Result<(), Changed> {
        for _ in 0..SPINS {
            match hold(&self.frame, self.word) {
                Hold::Held(_) => return Ok(()),
                Hold::Dead => return Err(Changed),
                Hold::Blocked => self.validate()?,
            }
            hint::spin_loop();
        }
        Err(Changed)
    }
}

impl<'a> SharedGuard<'a> {
    #[inline]
    pub(crate) fn new(pool: &'a Pool, frame: FrameRef<'a>) -> Self {
        SharedGuard { pool, frame }
    }

    /// The page.
    #[inline]
    pub fn page(&self) -> PageRef<'_> {
        PageRef::new(self.frame.words)
    }

    /// The page's id.
    #[inline]
    pub fn page_id(&self) -> PageId {
        self.frame.header.page()
    }
}

impl Drop for SharedGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.frame.header.word.unpin() == Wake::Waiters {
            self.pool.wake_latch_waiters(self.frame.id);
        }
    }
}

impl<'a> ExclusiveGuard<'a> {
    #[inline]
    pub(crate) fn new(pool: &'a Pool, frame: FrameRef<'a>) -> Self {
        ExclusiveGuard {
            pool,
            frame,
            change: Change::Unchanged,
            stamped: false,
        }
    }

    /// The page, to read.
    #[inline]
    pub fn page(&self) -> PageRef<'_> {
        PageRef::new(self.frame.words)
    }

    /// The page's id.
    #[inline]
    pub fn page_id(&self) -> PageId {
        self.frame.header.page()
    }

    /// The page, to change. Whoever reads it without a latch will have to start again.
    #[inline]
    pub fn page_mut(&mut self) -> PageMut<'_> {
        self.change = Change::Changed;
        PageMut::new(self.frame.words)
    }

    /// Notes that the page was changed by the log record at `lsn`, and is dirty.
    ///
    /// A changed page that is never stamped is written all the same, but holds back no checkpoint.
    pub fn stamp(&mut self, lsn: Lsn) {
        self.page_mut().set_page_lsn(lsn);
        self.frame.header.note_change(Some(lsn));
        self.stamped = true;
    }

    /// Keeps the page, shared, and lets other readers in.
    pub fn downgrade(self) -> SharedGuard<'a> {
        let mut this = ManuallyDrop::new(self);
        let change = this.finish();
        if this.frame.header.word.downgrade(change) == Wake::Waiters {
            this.pool.wake_latch_waiters(this.frame.id);
        }
        SharedGuard::new(this.pool, this.frame)
    }

    /// Throws the page away instead of giving it back; for pages beyond the end of the file.
    pub(crate) fn discard(self) {
        let this = ManuallyDrop::new(self);
        let page = this.page_id();
        let wake = this.frame.header.word.discard();
        this.pool.forget_evicted(page, this.frame.id);
        if wake == Wake::Waiters {
            this.pool.wake_latch_waiters(this.frame.id);
        }
    }

    /// Makes sure that a change will be written, and poisons the pool if it is only half done.
    fn finish(&mut self) -> Change {
        if self.change == Change::Changed && !self.stamped {
            self.frame.header.note_change(None);
            if std::thread::panicking() {
                let page = self.page_id();
                self.pool
                    .poison(format!("a panic left page {page} half changed"));
            }
        }
        self.change
    }
}

impl Drop for ExclusiveGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        let change = self.finish();
        if self.frame.header.word.release_exclusive(change) == Wake::Waiters {
            self.pool.wake_latch_waiters(self.frame.id);
        }
    }
}

impl fmt::Debug for OptimisticGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OptimisticGuard({:?}, {:?})", self.page, self.word)
    }
}

impl fmt::Debug for SharedGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedGuard({:?})", self.page_id())
    }
}

impl fmt::Debug for ExclusiveGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExclusiveGuard({:?})", self.page_id())
    }
}
