//! Values too large for a leaf: chains of pages.

mod link;

pub use link::link_capacity;
pub(crate) use link::{check_len, put, put_next};
