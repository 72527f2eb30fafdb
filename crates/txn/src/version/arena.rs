//! What one writer's rows were before it changed them.
//!
//! # Protocol
//! The writer appends the committed image of each row that it is about to change, under the latch of the
//! row's leaf and before the page changes. Whoever needs an image looks it up by the row's name; the index
//! for that is made by the first who looks, and brought up to date by each later one. The oldest image of a
//! row is the one that counts, so changing a row twice does no harm; the few rows captured last are
//! remembered, so that a row changed again and again is captured once.
//!
//! An entry: hash u64, store u32, key length u16, flags u16, value length u32; key; value.

use super::image::{Image, RowRef};
use crate::lock::Dependency;
use longshore_base::StoreId;
use std::collections::HashMap;

/// Bytes before the key.
pub(super) const HEADER: usize = 8 + 4 + 2 + 2 + 4;
/// Rows remembered as captured; a power of two.
const RECENT: usize = 16;
/// Memory that a slot keeps for its next transaction.
pub(super) const RETAINED: usize = 8 << 10;

/// The images of one transaction's rows. Guarded by the mutex of its writer's slot.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    /// Whose they are; zero when nobody's.
    pub txn: u64,
    bytes: Vec<u8>,
    /// First entry of each hash, of the entries below `indexed`.
    index: HashMap<u64, u32>,
    indexed: usize,
    /// Where rows were captured lately, plus one; by their hash.
    recent: [u32; RECENT],
    /// Not everything is here any more: the budget was used up.
    pub is_incomplete: bool,
    /// The newest commit that the writer had seen when it captured last: it covers all images.
    pub seen: Dependency,
}

/// One image in an arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    pub hash: u64,
    pub store: StoreId,
    pub key: &'a [u8],
    pub image: Image<'a>,
}

impl Arena {
    /// Appends the image of a row unless it was captured lately. There is room.
    #[inline]
    pub fn capture(&mut self, row: RowRef<'_>, image: Image<'_>) {
        let recent = row.hash as usize & (RECENT - 1);
        if self.recent[recent] != 0 && self.is_of(self.recent[recent] as usize - 1, row) {
            return;
        }
        let at = self.bytes.len();
        let value = image.value();
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&row.hash.to_ne_bytes());
        header[8..12].copy_from_slice(&row.store.get().to_ne_bytes());
        header[12..14].copy_from_slice(&(row.key.len() as u16).to_ne_bytes());
        header[14..16].copy_from_slice(&image.bits().to_ne_bytes());
        header[16..].copy_from_slice(&(value.len() as u32).to_ne_bytes());
        self.bytes.extend_from_slice(&header);
        self.bytes.extend_from_slice(row.key);
        if !value.is_empty() {
            self.bytes.extend_from_slice(value);
        }
        self.recent[recent] = at as u32 + 1;
    }

    /// Bytes that the entry of a row takes.
    pub fn entry_bytes(key: usize, value: usize) -> usize {
        HEADER + key + value
    }

    /// Whether the entry at `at` is of this row. The hash nearly always tells.
    #[inline]
    fn is_of(&self, at: usize, row: RowRef<'_>) -> bool {
        self.bytes[at..at + 8] == row.hash.to_ne_bytes() && self.has_key(at, row)
    }

    fn has_key(&self, at: usize, row: RowRef<'_>) -> bool {
        let (entry, _) = self.entry(at);
        entry.store == row.store && entry.key == row.key
    }

    /// The entry at `at`, and where the next one begins.
    fn entry(&self, at: usize) -> (Entry<'_>, usize) {
        let bytes = &self.bytes[at..];
        let word = |from: usize, to: usize| &bytes[from..to];
        let key_len = u16::from_ne_bytes(word(12, 14).try_into().expect("two bytes")) as usize;
        let flags = u16::from_ne_bytes(word(14, 16).try_into().expect("two bytes"));
        let value_len = u32::from_ne_bytes(word(16, 20).try_into().expect("four bytes")) as usize;
        let (key, value) = bytes[HEADER..HEADER + key_len + value_len].split_at(key_len);
        let entry = Entry {
            hash: u64::from_ne_bytes(word(0, 8).try_into().expect("eight bytes")),
            store: StoreId::new(u32::from_ne_bytes(
                word(8, 12).try_into().expect("four bytes"),
            )),
            key,
            image: Image::of_bits(flags, value),
        };
        (entry, at + HEADER + key_len + value_len)
    }

    /// The oldest image of a row.
    pub fn find(&mut self, row: RowRef<'_>) -> Option<Image<'_>> {
        self.bring_index_up_to_date();
        let first = *self.index.get(&row.hash)? as usize;
        if self.is_of(first, row) {
            return Some(self.entry(first).0.image);
        }
        // Another row has the same name: look at all.
        let at = self.position(first, row)?;
        Some(self.entry(at).0.image)
    }

    #[cold]
    fn position(&self, from: usize, row: RowRef<'_>) -> Option<usize> {
        let mut at = from;
        while at < self.bytes.len() {
            if self.is_of(at, row) {
                return Some(at);
            }
            at = self.entry(at).1;
        }
        None
    }

    fn bring_index_up_to_date(&mut self) {
        while self.indexed < self.bytes.len() {
            let (entry, next) = self.entry(self.indexed);
            let (hash, at) = (entry.hash, self.indexed as u32);
            self.index.entry(hash).or_insert(at);
            self.indexed = next;
        }
    }

    /// All entries, oldest first; a row may have several.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            (at < self.bytes.len()).then(|| {
                let (entry, next) = self.entry(at);
                at = next;
                entry
            })
        })
    }

    /// Bytes that can be appended without growing.
    pub fn room(&self) -> usize {
        self.bytes.capacity() - self.bytes.len()
    }

    /// Bytes of memory held.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Bytes in use.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Makes the capacity `bytes`.
    pub fn grow_to(&mut self, bytes: usize) {
        self.bytes.reserve_exact(bytes - self.bytes.len());
    }

    /// Forgets everything; returns how many bytes of memory were given back.
    pub fn clear(&mut self) -> usize {
        let before = self.bytes.capacity();
        self.txn = 0;
        if before > RETAINED {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        if self.indexed > 0 {
            self.index = HashMap::new();
            self.indexed = 0;
        }
        self.recent = [0; RECENT];
        self.is_incomplete = false;
        self.seen = Dependency::NONE;
        before - self.bytes.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_access::RowFlags;

    fn row(hash: u64, key: &[u8]) -> RowRef<'_> {
        RowRef {
            hash,
            store: StoreId::new(16),
            key,
        }
    }

    fn present(value: &[u8]) -> Image<'_> {
        let flags = RowFlags::NONE;
        Image::Present { flags, value }
    }

    #[test]
    fn the_oldest_image_of_a_row_counts() {
        let mut arena = Arena::default();
        arena.capture(row(1, b"a"), present(b"old"));
        for n in 0..100u64 {
            arena.capture(row(100 + n, &n.to_be_bytes()), Image::Absent);
        }
        arena.capture(row(1, b"a"), present(b"newer"));
        assert_eq!(arena.find(row(1, b"a")), Some(present(b"old")));
        assert_eq!(
            arena.find(row(150, &50u64.to_be_bytes())),
            Some(Image::Absent)
        );
        assert_eq!(arena.find(row(2, b"b")), None);
        assert_eq!(arena.entries().count(), 102);
        arena.clear();
        assert_eq!(arena.find(row(1, b"a")), None);
    }

    #[test]
    fn rows_whose_names_collide_are_told_apart() {
        let mut arena = Arena::default();
        arena.capture(row(7, b"a"), present(b"1"));
        arena.capture(row(7, b"b"), present(b"2"));
        assert_eq!(arena.find(row(7, b"a")), Some(present(b"1")));
        assert_eq!(arena.find(row(7, b"b")), Some(present(b"2")));
        assert_eq!(arena.find(row(7, b"c")), None);
    }

    #[test]
    fn a_row_changed_again_and_again_is_captured_once() {
        let mut arena = Arena::default();
        for n in 0..1000u32 {
            arena.capture(row(7, b"counter"), present(&n.to_be_bytes()));
        }
        assert_eq!(arena.entries().count(), 1);
    }
}
