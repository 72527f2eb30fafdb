//! Filling nodes from sorted rows, for bulk loads.

use longshore_base::{PageSize, StoreId};

use super::image::{ImageBuf, prefix_len};
use super::layout::{HEADER_BYTES, RowFlags, WORD, padded};
use super::room::record_bytes;

/// Turns ascending rows into the contents of nodes, each as full as asked for.
///
/// Where one node ends, the next begins: its first key is the fence between them. How much a row
/// takes depends on that fence, because it settles the prefix; so the newest row is held back
/// until the key after it is known.
#[derive(Debug)]
pub struct NodeBuilder {
    store: StoreId,
    level: u8,
    /// Bytes of a page that may be filled.
    fill_bytes: usize,
    low: Vec<u8>,
    /// The newest row, not yet in the node.
    held: Option<Row>,
    /// Rows of the node. They are within `fill_bytes` if the held row's key is the upper fence.
    rows: Vec<Row>,
    /// Keys and values of `rows` and `held`, one behind the other.
    bytes: Vec<u8>,
    counted: Counted,
}

/// What the first rows of a node take with a prefix of some length: counted once, for as long as
/// the prefix stays the same, which is until the node is nearly full or nearly empty.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    rows: usize,
    prefix: usize,
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    at: usize,
    key_len: usize,
    value_len: usize,
    flags: RowFlags,
}

impl NodeBuilder {
    /// A builder of nodes at `level`, the first of which starts at `low`.
    ///
    /// Nodes are filled up to `fill_bytes` of their page, but hold one row, or two children,
    /// at the least.
    pub fn new(
        store: StoreId,
        level: u8,
        page_size: PageSize,
        fill_bytes: usize,
        low: &[u8],
    ) -> NodeBuilder {
        NodeBuilder {
            store,
            level,
            fill_bytes: fill_bytes.min(page_size.bytes()),
            low: low.to_vec(),
            held: None,
            rows: Vec::new(),
            bytes: Vec::new(),
            counted: Counted::default(),
        }
    }

    /// Adds a row, whose key is above all before; yields the node before it when that is full.
    pub fn push(&mut self, key: &[u8], flags: RowFlags, value: &[u8]) -> Option<ImageBuf> {
        let full = self.settle(Some(key));
        let at = self.bytes.len();
        self.held = Some(Row {
            at,
            key_len: key.len(),
            value_len: value.len(),
            flags,
        });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        full
    }

    /// Ends at `upper`: yields what is left, in one or two nodes; a single empty one if there were
    /// no rows at all.
    pub fn finish(mut self, upper: Option<&[u8]>) -> (ImageBuf, Option<ImageBuf>) {
        let full = self.settle(upper);
        let last = self.image(upper);
        match full {
            Some(full) => (full, Some(last)),
            None => (last, None),
        }
    }

    /// The rows of the node that is being filled, as far as they are known, without an upper fence.
    pub fn gathered(&self) -> ImageBuf {
        let mut image = self.image(None);
        if let Some(held) = self.held {
            self.push_to(&mut image, held);
        }
        image
    }

    /// Takes the held row into the node, now that the key after it is known; or closes the node
    /// before it and starts the next one with it.
    fn settle(&mut self, next: Option<&[u8]>) -> Option<ImageBuf> {
        let held = self.held.take()?;
        self.rows.push(held);
        let rows_min = if self.level == 0 { 1 } else { 2 };
        if self.rows.len() <= rows_min || self.bytes_below(next) <= self.fill_bytes {
            return None;
        }
        self.rows.pop();
        let low = self.key(held).to_vec();
        let full = self.image(Some(&low));
        self.bytes.drain(..held.at);
        self.rows.clear();
        self.counted = Counted::default();
        self.rows.push(Row { at: 0, ..held });
        self.low = low;
        Some(full)
    }

    fn image(&self, upper: Option<&[u8]>) -> ImageBuf {
        let mut image = ImageBuf::new(self.store, self.level, &self.low, upper);
        for row in &self.rows {
            self.push_to(&mut image, *row);
        }
        image
    }

    fn push_to(&self, image: &mut ImageBuf, row: Row) {
        let value_at = row.at + row.key_len;
        let value = &self.bytes[value_at..value_at + row.value_len];
        image.push(self.key(row), row.flags, value);
    }

    /// Bytes of a page that the node takes with `upper` as its upper fence.
    fn bytes_below(&mut self, upper: Option<&[u8]>) -> usize {
        let prefix = prefix_len(&self.low, upper);
        if self.counted.prefix != prefix {
            self.counted = Counted {
                prefix,
                ..Counted::default()
            };
        }
        for row in &self.rows[self.counted.rows..] {
            self.counted.bytes += WORD + record_bytes(row.key_len - prefix, row.value_len);
        }
        self.counted.rows = self.rows.len();
        let fences = padded(self.low.len()) + padded(upper.map_or(0, <[u8]>::len));
        HEADER_BYTES + fences + self.counted.bytes
    }

    fn key(&self, row: Row) -> &[u8] {
        &self.bytes[row.at..row.at + row.key_len]
    }
}
