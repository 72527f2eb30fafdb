//! Values too large for a leaf: chains of pages.

mod link;

pub use link::{ChainId, link_capacity};
pub(crate) use link::{check_len, put, put_next};
