//! Kinds of the log records that transactions write beside those of the trees. Their bodies are empty but for
//! that of PREPARE.

/// The transaction has committed; where the record lies is its place in the serial order.
pub const COMMIT: u8 = 32;
/// The transaction has been undone entirely.
pub const END: u8 = 33;
/// The transaction is prepared, under the name in the body.
pub const PREPARE: u8 = 34;
