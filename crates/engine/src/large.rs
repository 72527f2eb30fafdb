//! Values read piece by piece.

use crate::transaction::Shared;
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

/// Reads one row's value from beginning to end, holding one page of it at a time.
///
/// The row cannot change meanwhile, for the transaction has it locked; once the transaction has
/// ended, reading on is an error.
pub struct ValueReader {
    /// Keeps the database open.
    _shared: Arc<Shared>,
    value: longshore_txn::ValueReader,
    len: u64,
}

impl ValueReader {
    pub(crate) fn new(shared: Arc<Shared>, value: longshore_txn::ValueReader) -> ValueReader {
        ValueReader {
            _shared: shared,
            len: value.remaining(),
            value,
        }
    }

    /// Length of the whole value in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the value has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Read for ValueReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.value.read(bytes)
    }
}

impl fmt::Debug for ValueReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValueReader({} bytes)", self.len())
    }
}
