//! Rows that a scan has brought from one leaf.

use std::ops::Bound;

/// Which way a scan goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Direction {
    /// Keys ascend.
    #[default]
    Forward,
    /// Keys descend.
    Reverse,
}

/// Rows in scan order, and where to go on. Reusing a batch reuses its memory.
#[derive(Debug)]
pub struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) rows: Vec<Row>,
    /// The value of the row that ends the batch, when it is large.
    pub(super) large: Option<Vec<u8>>,
    pub(super) next: Option<Bound<Vec<u8>>>,
    /// Rows that a batch holds at most.
    pub rows_max: usize,
}

/// Where a row's bytes are: the key, then the value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub key: usize,
    pub value: usize,
    pub end: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Batch {
            bytes: Vec::new(),
            rows: Vec::new(),
            large: None,
            next: None,
            rows_max: usize::MAX,
        }
    }
}

impl Batch {
    /// A batch without rows.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The key and the value of row `i`, in scan order.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, i: usize) -> (&[u8], &[u8]) {
        let row = self.rows[i];
        let key = &self.bytes[row.key..row.value];
        match &self.large {
            Some(value) if i + 1 == self.rows.len() => (key, value),
            _ => (key, &self.bytes[row.value..row.end]),
        }
    }

    /// All rows, in scan order.
    pub fn rows(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> + ExactSizeIterator {
        (0..self.len()).map(|i| self.row(i))
    }

    /// Where the scan goes on: its new low bound, or its new high bound when it goes in reverse; `None`
    /// when nothing is left of the range.
    pub fn next(&self) -> Option<Bound<&[u8]>> {
        self.next
            .as_ref()
            .map(|bound| bound.as_ref().map(Vec::as_slice))
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
        self.large = None;
        self.next = None;
    }
}
