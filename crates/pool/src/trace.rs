//! Telling somebody of each use of a page: what a laboratory simulates other policies and sizes with.
//!
//! # Protocol
//! A use is a page that somebody asks for, whether it is there or has to be brought in; also one that a long scan passes,
//! though that does not count for its staying. A page that the pool brings in ahead or writes out is not used. The thread
//! that uses the page tells of it, while it may hold the page.

use crate::pool::Pool;
use longshore_base::{PageId, PageSize};
use std::fmt::Debug;

/// What a page was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageUse {
    /// To be read; a reader who comes to change what it has read is told of once.
    Read,
    /// To be changed.
    Write,
    /// To be filled, whatever was in it.
    Create,
}

/// Somebody who is told of each use of a page.
///
/// The pool holds nobody up meanwhile but the thread that uses the page, which may hold latches on others: what is
/// done here must not use the pool.
pub trait PageTrace: Debug + Send + Sync {
    /// A pool of pages of this size will tell of their uses.
    fn begins(&self, _page_size: PageSize) {}

    /// The calling thread uses `page`.
    fn used(&self, page: PageId, what: PageUse);
}

impl Pool {
    /// Tells of a use, where somebody wants to hear it.
    #[inline]
    pub(crate) fn trace_use(&self, page: PageId, what: PageUse) {
        if let Some(trace) = &self.options.trace {
            trace.used(page, what);
        }
    }
}
