//! What may go wrong in a pool, and what to do about it.

use longshore_base::page::PageDamage;
use longshore_base::{DurabilityLost, PageId};
use longshore_disk::DiskError;
use std::sync::Arc;
use std::time::Duration;

/// Why a page could not be had, or not be written.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// Every frame was in use for as long as the caller was ready to wait.
    #[error(
        "no free frame in the page pool after {waited:?}: of {frames} frames {pinned} are in use and {dirty} \
         are waiting to be written; give the pool more memory, or run fewer operations at once"
    )]
    Exhausted {
        /// Frames of the pool.
        frames: usize,
        /// Frames held by somebody when the wait ended.
        pinned: usize,
        /// Frames with unwritten changes when the wait ended.
        dirty: usize,
        /// How long the call waited.
        waited: Duration,
    },
    /// A latch, or a page that somebody else is reading, was not to be had in time.
    #[error(
        "page {page} was held by another thread for more than {waited:?}; if the disk is not merely slow, \
         a latch is held too long: please report this"
    )]
    Busy {
        /// The page that was wanted.
        page: PageId,
        /// How long the call waited.
        waited: Duration,
    },
    /// The page on disk is not what was written there.
    #[error("page {page} of the data file is damaged: {reason}; restore it from a backup")]
    Damaged {
        /// The page.
        page: PageId,
        /// What is wrong with it.
        reason: PageDamage,
    },
    /// A page number that no database can have; it was read from somewhere damaged.
    #[error(
        "there can be no page {page}: page numbers are below {}",
        crate::table::PAGES_MAX
    )]
    NoSuchPage {
        /// The page that was asked for.
        page: PageId,
    },
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The log failed, so changed pages cannot be written any more.
    #[error(transparent)]
    LogLost(#[from] DurabilityLost),
    /// An earlier failure left it unknown what is on disk, or a page half changed.
    #[error("the page pool refuses all work until the database is reopened: {cause}")]
    Poisoned {
        /// The failure that came first.
        cause: Arc<str>,
    },
    /// The memory allowed is too little to work at all.
    #[error(
        "a page pool of {given} bytes is too small: with pages of {page_bytes} bytes it needs {minimum}"
    )]
    TooSmall {
        /// The memory allowed.
        given: usize,
        /// The size of a page.
        page_bytes: usize,
        /// The least that works.
        minimum: usize,
    },
    /// The hash table, fixed when the pool was made, cannot serve so many frames.
    #[error(
        "the page pool cannot grow to {frames} frames: its hash table was made for up to {maximum}; \
         reopen the database with the larger pool"
    )]
    TooLarge {
        /// The frames that were wanted.
        frames: usize,
        /// The most that the table serves.
        maximum: usize,
    },
    /// The system gave no memory.
    #[error("the system gave no memory for the page pool: {0}; make the pool smaller")]
    Memory(Arc<std::io::Error>),
}

impl PoolError {
    /// Whether the same call may succeed a little later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, PoolError::Exhausted { .. } | PoolError::Busy { .. })
    }

    pub(crate) fn memory(error: std::io::Error) -> PoolError {
        PoolError::Memory(Arc::new(error))
    }
}

/// What was read without a latch has changed meanwhile, or may have: start again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the page changed while it was read")]
pub struct Changed;
