//! Values too large for a leaf: chains of pages, of any length.
//!
//! # Protocol
//! A [`ChainWriter`] is given the value piece by piece and writes link after link, each in a
//! mini-transaction of its own. A link names the page that was set aside for the link after it, so no
//! page is touched twice; the last one names none. The row holds a [`Stub`]: which chain, how long.
//! A [`ChainReader`] hands out a link at a time and holds no latch between calls. [`free_step`]
//! gives the pages back, a few at a time; the first link goes last, so that the chain can be found
//! as long as there is one.
//!
//! Nobody changes the bytes of a chain. A row gets another value by way of another chain.
//!
//! # Crashes
//! A crash while a chain grows leaves a chain whose last link names a page that is not a link of it.
//! Its pages are lost unless somebody knows its [`ChainId`]: write that down, under the protection of
//! the log, before the first [`ChainWriter::write`]. Freeing such a chain, freeing one twice, and
//! freeing one of which not even the first link was written, are all well defined.
//!
//! # Invariants
//! O1. No two chains have the same id, and each link says which chain it belongs to.
//! O2. A page that is no link of the chain ends it, for whoever frees or walks it.
//! O3. The links of a finished chain hold exactly [`Stub::len`] bytes.

mod free;
mod link;
mod reader;
mod stub;
mod writer;

pub use free::free_step;
pub(crate) use free::is_left;
pub use link::{ChainId, link_capacity};
pub use reader::{ChainReader, Link, walk};
pub use stub::Stub;
pub use writer::ChainWriter;

pub(crate) use link::{check_len, put, put_next};
