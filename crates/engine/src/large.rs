//! Values read and written piece by piece.

use crate::engine::Engine;
use crate::shared::Shared;
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

/// A source of a value that looks after the log while it is read: a value may be longer than the log.
///
/// Nobody reads a source with a page latched.
pub(crate) struct Watched<'a, R> {
    pub(crate) engine: &'a Engine,
    pub(crate) source: R,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.engine.is_checkpoint_due() {
            self.engine.checkpoint().map_err(io::Error::other)?;
        }
        self.source.read(bytes)
    }
}
