//! Pages in memory: the non-blocking buffer manager.
//!
//! A [`Pool`] keeps pages of one data file in frames. *Fixing* a page finds its frame and holds it; dropping
//! the guard gives it back. There are three ways to hold a page:
//!
//! | call | guard | what it costs, what it excludes |
//! |---|---|---|
//! | [`Pool::read`] | [`OptimisticGuard`] | no store to shared memory; excludes nobody, must be validated |
//! | [`Pool::fix_shared`] | [`SharedGuard`] | one exchange on the frame's word; excludes writers |
//! | [`Pool::fix_exclusive`], [`Pool::fix_new`] | [`ExclusiveGuard`] | the same; excludes everybody |
//!
//! No lock is taken on a hit or on a miss; replacement is Nb-GCLOCK, unless [`PoolOptions::replacement`] names a
//! policy of `longshore-policy`, most of which serve hits without a lock as well. Dirty pages are written by
//! [`Pool::maintain`], in sorted batches through a double-write area, never before the log is durable
//! up to their last change. The pool has no threads of its own.
//!
//! The README of the crate has the picture, the states, the invariants with the tests that guard them, and
//! a reading order.

#![deny(unsafe_code)]

mod ahead;
mod bell;
mod checkpoint;
mod cleaner;
mod data_file;
mod double_write;
mod error;
mod evict;
mod fix;
mod frame;
mod frame_word;
mod free_list;
mod guard;
#[allow(unsafe_code)] // the one file: see its header
mod memory;
mod options;
mod page_bytes;
mod page_in;
mod pool;
mod replacement;
mod reserve;
mod resize;
mod stats;
mod table;
mod trace;

pub use cleaner::Maintained;
pub use error::{Changed, PoolError};
pub use guard::{ExclusiveGuard, OptimisticGuard, SharedGuard};
pub use options::{DoubleWrite, HandKind, MissMode, PageTableKind, PoolOptions};
pub use page_bytes::{PageBuffer, PageMut, PageRef};
pub use pool::Pool;
pub use replacement::{AboutForm, Form, FormParameter, Replacement, ReplacementError};
pub use reserve::UsingReserve;
pub use stats::{PoolStats, ReplacementStats};
pub use trace::{PageTrace, PageUse};
