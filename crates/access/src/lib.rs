//! Ways to find bytes: mini-transactions, slotted pages, space, B+tree

pub mod action;
mod bytes;
pub mod node;
pub mod overflow;
pub mod record;

pub use bytes::Malformed;
