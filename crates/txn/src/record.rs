//! Kinds of the log records that transactions write beside those of the trees. Those of COMMIT and END have no
//! body.

/// The transaction has committed; where the record lies is its place in the serial order.
pub const COMMIT: u8 = 32;
/// The transaction has been undone entirely.
pub const END: u8 = 33;
/// The transaction is prepared, under the name in the body and with the locks that follow it there: see
/// [`gid_of`].
pub const PREPARE: u8 = 34;
/// More locks of a transaction whose PREPARE is to follow.
pub const LOCKS: u8 = 35;

pub use crate::transaction::gid_of;
