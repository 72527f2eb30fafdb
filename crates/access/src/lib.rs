//! Ways to find bytes: mini-transactions, slotted pages, space, B+tree.
//!
//! [`Access`] ties a pool and a log together. A [`Tree`] holds rows in key order: readers take a
//! [`LeafRead`], writers a [`LeafWrite`]. Values too large for a leaf are in [`overflow`] chains. Nothing
//! here knows of transactions or locks: who may see and change what is for the storey above to say, which
//! is asked, through [`Boundaries`], before a key that may bound a locked gap disappears.
//!
//! The README of this crate has the picture, the invariants and a reading order.

#![forbid(unsafe_code)]

mod access;
pub mod action;
mod bytes;
mod error;
mod mtr;
pub mod node;
pub mod overflow;
pub mod record;
mod redo;
mod space;
mod tree;

pub use access::{Access, Boundaries, LogContext, Unlocked};
pub use bytes::Malformed;
pub use error::{AccessError, Corruption, WriteError};
pub use node::{Kept, Limits, RowFlags};
pub use record::{PageChange, RowOp, RowRecord};
pub use space::SpaceReport;
pub use tree::{
    Boundary, Freeing, LeafHint, LeafRead, LeafWrite, Loaded, PageSet, Patience, Purged, Slot,
    Tree, TreeReport, ValueKind, verify_dropped_chain,
};
