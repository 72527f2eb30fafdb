//! Where each byte of a node stands; shifts and offsets appear in this file only.
//!
//! ```text
//!   0..32  page header (base::page)
//!  32..40  word 4   | level u8 | flags u8 | count u16 | heap_start u16 | garbage u16 |
//!  40..48  word 5   foster child's page id, all ones when there is none
//!  48..56  word 6   | prefix_len u16 | low_len u16 | upper_len u16 | upper_at u16 |
//!  56..64  word 7   | shared u16 | skip u8 | 0 u8 | common u32 |
//!  64..    slots    one word each, in key order
//!          ...      unused
//!  heap    records and the upper fence, in no order, each padded to 8 bytes
//!  end     low fence, padded to 8 bytes
//! ```
//! `heap_start`, `garbage`, `upper_at` and a slot's record position count words, so that they also fit
//! the largest page. The low fence stands at a fixed place because only a rebuild changes it; the upper
//! one may be written into the heap anew, as when the last row goes to a foster child.

use longshore_base::page::header;
use std::cmp::Ordering;

/// Bytes in a word: the unit of alignment of records and fences.
pub(super) const WORD: usize = 8;
/// Word that holds level, flags, count, heap start and garbage.
pub(super) const SHAPE_WORD: usize = 4;
/// Word that holds the foster child.
pub(super) const FOSTER_WORD: usize = 5;
/// Word that holds the lengths of prefix and fences.
pub(super) const FENCE_WORD: usize = 6;
/// Word that says which bytes of the keys the heads are.
pub(super) const HEADS_WORD: usize = 7;
/// Word of the first slot.
pub(super) const SLOT_WORD: usize = 8;
/// Bytes before the first slot.
pub(super) const HEADER_BYTES: usize = SLOT_WORD * WORD;
/// Bytes of a record before its key.
pub(super) const RECORD_HEADER: usize = 8;

const _: () = assert!(header::SIZE == SHAPE_WORD * WORD);

/// Node flag: the node reaches up to positive infinity and stores no upper fence.
const UNBOUNDED: u8 = 1;

/// Rounds `bytes` up to whole words.
pub(super) const fn words(bytes: usize) -> usize {
    bytes.div_ceil(WORD)
}

/// Rounds `bytes` up to a multiple of the word.
pub(super) const fn padded(bytes: usize) -> usize {
    words(bytes) * WORD
}

/// Word 4 of a node, by value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    pub level: u8,
    pub unbounded: bool,
    pub count: u16,
    /// First word of the heap; the page's number of words when the heap is empty.
    pub heap_start: u16,
    /// Dead words between `heap_start` and the fences.
    pub garbage: u16,
}

impl Shape {
    #[inline]
    pub const fn from_word(word: u64) -> Shape {
        Shape {
            level: word as u8,
            unbounded: (word >> 8) as u8 & UNBOUNDED != 0,
            count: (word >> 16) as u16,
            heap_start: (word >> 32) as u16,
            garbage: (word >> 48) as u16,
        }
    }

    #[inline]
    pub const fn to_word(self) -> u64 {
        let flags = if self.unbounded { UNBOUNDED } else { 0 };
        self.level as u64
            | (flags as u64) << 8
            | (self.count as u64) << 16
            | (self.heap_start as u64) << 32
            | (self.garbage as u64) << 48
    }
}

/// Word 6 of a node, by value: lengths in bytes, and where the upper fence starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FenceLens {
    /// Leading bytes that every key of the node shares and no record stores.
    pub prefix: u16,
    pub low: u16,
    pub upper: u16,
    /// First word of the upper fence; of the low one when there is no upper.
    pub upper_at: u16,
}

impl FenceLens {
    #[inline]
    pub const fn from_word(word: u64) -> FenceLens {
        FenceLens {
            prefix: word as u16,
            low: (word >> 16) as u16,
            upper: (word >> 32) as u16,
            upper_at: (word >> 48) as u16,
        }
    }

    #[inline]
    pub const fn to_word(self) -> u64 {
        self.prefix as u64
            | (self.low as u64) << 16
            | (self.upper as u64) << 32
            | (self.upper_at as u64) << 48
    }

    /// Bytes that both fences take.
    #[inline]
    pub const fn bytes(self) -> usize {
        padded(self.low as usize) + padded(self.upper as usize)
    }
}

/// Word 7 of a node, by value: which four bytes of a key its slot's head shows.
///
/// Heads shall tell keys apart, so they start behind the bytes that keys share:
/// 1. `shared` bytes that the fences settle, which every key that is looked for has;
/// 2. `skip` more bytes that merely the stored keys have in common. Those bytes are `common`, so that a
///    search sorts other keys before or behind all of them without touching a record.
///
/// Keys count as followed by zeros here. The low fence's own record takes no part: its head is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Heads {
    pub shared: u16,
    skip: u8,
    common: u32,
}

impl Heads {
    /// Heads behind `shared` bytes, for keys the least and greatest of which go on there with the bytes of
    /// `least` and `greatest`.
    pub const fn spanning(shared: u16, least: u64, greatest: u64) -> Heads {
        let agreed = (least ^ greatest).leading_zeros() / 8;
        let skip = if agreed < Heads::SKIP_MAX {
            agreed
        } else {
            Heads::SKIP_MAX
        };
        let heads = Heads {
            shared,
            skip: skip as u8,
            common: 0,
        };
        Heads {
            common: heads.lead(least),
            ..heads
        }
    }

    /// So many bytes that a head still ends within the word that starts at `shared`.
    const SKIP_MAX: u32 = 4;

    #[inline]
    pub const fn from_word(word: u64) -> Heads {
        let skip = (word >> 16) as u8;
        Heads {
            shared: word as u16,
            // The page may be changing: no skip may shift too far.
            skip: if skip as u32 > Heads::SKIP_MAX {
                Heads::SKIP_MAX as u8
            } else {
                skip
            },
            common: (word >> 32) as u32,
        }
    }

    #[inline]
    pub const fn to_word(self) -> u64 {
        self.shared as u64 | (self.skip as u64) << 16 | (self.common as u64) << 32
    }

    /// First byte of the keys that heads show.
    pub const fn start(self) -> usize {
        self.shared as usize + self.skip as usize
    }

    /// The head of a key whose bytes behind `shared` are `word`.
    #[inline]
    pub const fn head(self, word: u64) -> u32 {
        ((word << (8 * self.skip)) >> 32) as u32
    }

    /// How a key whose bytes behind `shared` are `word` compares to all stored keys by what they have in
    /// common; `Equal` leaves it to the heads.
    #[inline]
    pub fn compare(self, word: u64) -> Ordering {
        self.lead(word).cmp(&self.common)
    }

    #[inline]
    const fn lead(self, word: u64) -> u32 {
        let mask = !((u32::MAX as u64) >> (8 * self.skip)) as u32;
        (word >> 32) as u32 & mask
    }
}

/// One slot: where the record is, how long its key's suffix is, and the key's head.
///
/// | bits   | field   | meaning                                                        |
/// |--------|---------|----------------------------------------------------------------|
/// | 0..16  | record  | word of the page at which the record starts                    |
/// | 16..32 | len     | bytes of key suffix in the record, or `IS_LOW`                 |
/// | 32..64 | head    | four bytes of the key, big-endian: see [`Heads`]               |
///
/// A record whose key equals the low fence stores no key: its slot says `IS_LOW`, and the
/// suffix is read from the fence. The first entry of every branch node is such a record; and it
/// is what lets two rows with keys of the greatest length share a page with two fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(pub u64);

impl Slot {
    /// Mark in place of the suffix length: the key is the low fence.
    pub const IS_LOW: u16 = u16::MAX;

    #[inline]
    pub const fn new(record: usize, len: u16, head: u32) -> Slot {
        Slot(record as u64 | (len as u64) << 16 | (head as u64) << 32)
    }

    /// Byte of the page at which the record starts.
    #[inline]
    pub const fn record_at(self) -> usize {
        (self.0 as u16 as usize) * WORD
    }

    /// Bytes of key that stand in the record.
    #[inline]
    pub const fn stored_len(self) -> usize {
        if self.is_low() {
            0
        } else {
            (self.0 >> 16) as u16 as usize
        }
    }

    #[inline]
    pub const fn is_low(self) -> bool {
        (self.0 >> 16) as u16 == Slot::IS_LOW
    }

    #[inline]
    pub const fn head(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The same slot with another head.
    #[inline]
    pub const fn with_head(self, head: u32) -> Slot {
        Slot(self.0 as u32 as u64 | (head as u64) << 32)
    }
}

/// First word of a record: flags and the value's length. The key suffix follows, then the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHeader {
    pub flags: RowFlags,
    pub value_len: u16,
}

impl RecordHeader {
    #[inline]
    pub const fn from_word(word: u64) -> RecordHeader {
        RecordHeader {
            flags: RowFlags(word as u16),
            value_len: (word >> 16) as u16,
        }
    }

    #[inline]
    pub const fn to_word(self) -> u64 {
        self.flags.0 as u64 | (self.value_len as u64) << 16
    }
}

/// What a row is besides its key and its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RowFlags(u16);

impl RowFlags {
    /// A plain row.
    pub const NONE: RowFlags = RowFlags(0);
    /// Deleted: it holds its space and its place as a gap boundary until purged.
    pub const GHOST: RowFlags = RowFlags(1);
    /// The value is the stub of an overflow chain.
    pub const OVERFLOW: RowFlags = RowFlags(2);
    const ALL: u16 = 3;

    /// The flags that `bits` stand for; `None` when a bit has no meaning.
    pub const fn from_bits(bits: u16) -> Option<RowFlags> {
        if bits & !RowFlags::ALL == 0 {
            Some(RowFlags(bits))
        } else {
            None
        }
    }

    /// These flags without bits that have no meaning.
    pub(super) const fn known(self) -> RowFlags {
        RowFlags(self.0 & RowFlags::ALL)
    }

    /// The bits as they stand in pages and log records.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether the row is deleted.
    pub const fn is_ghost(self) -> bool {
        self.0 & RowFlags::GHOST.0 != 0
    }

    /// Whether the value is the stub of an overflow chain.
    pub const fn is_overflow(self) -> bool {
        self.0 & RowFlags::OVERFLOW.0 != 0
    }

    /// These flags, with the ghost flag set.
    pub const fn with_ghost(self) -> RowFlags {
        RowFlags(self.0 | RowFlags::GHOST.0)
    }

    /// These flags, without the ghost flag.
    pub const fn without_ghost(self) -> RowFlags {
        RowFlags(self.0 & !RowFlags::GHOST.0)
    }
}

impl std::fmt::Display for RowFlags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let overflow = if self.is_overflow() {
            " (overflow)"
        } else {
            ""
        };
        let ghost = if self.is_ghost() { " (ghost)" } else { "" };
        write!(f, "{overflow}{ghost}")
    }
}

/// The eight bytes of `key` from `prefix` on as a number that sorts like them; zeros stand in for
/// missing bytes.
#[inline]
pub(super) fn first_word(key: &[u8], prefix: usize) -> u64 {
    let suffix = key.get(prefix..).unwrap_or_default();
    if let Some(first) = suffix.first_chunk::<WORD>() {
        return u64::from_be_bytes(*first);
    }
    if let Some(last) = key.last_chunk::<WORD>() {
        // The key's last eight bytes end with the suffix: shift what stands before it out.
        let before = 8 * (WORD - suffix.len()) as u32;
        return u64::from_be_bytes(*last).checked_shl(before).unwrap_or(0);
    }
    let whole = suffix
        .iter()
        .fold(0, |word, byte| word << 8 | u64::from(*byte));
    whole
        .checked_shl(8 * (WORD - suffix.len()) as u32)
        .unwrap_or(0)
}

/// Number of leading bytes that `a` and `b` share.
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip() {
        let shape = Shape {
            level: 3,
            unbounded: true,
            count: 700,
            heap_start: 8192,
            garbage: 12,
        };
        assert_eq!(Shape::from_word(shape.to_word()), shape);
        let fences = FenceLens {
            prefix: 1,
            low: 2,
            upper: 16384,
            upper_at: 8000,
        };
        assert_eq!(FenceLens::from_word(fences.to_word()), fences);
        let slot = Slot::new(8191, 9, 0xDEAD_BEEF);
        assert_eq!(
            (slot.record_at(), slot.stored_len(), slot.head()),
            (65528, 9, 0xDEAD_BEEF)
        );
        assert!(Slot::new(1, Slot::IS_LOW, 0).is_low());
        assert_eq!(slot.with_head(7), Slot::new(8191, 9, 7));
        let heads = Heads::spanning(300, 0x0102_0304_0500_0000, 0x0102_0399_0000_0000);
        assert_eq!(Heads::from_word(heads.to_word()), heads);
    }

    #[test]
    fn first_word_pads_with_zeros() {
        let key = b"abcdefghijkl";
        for prefix in 0..=key.len() + 2 {
            for len in 0..=key.len() {
                let mut padded = [0; 8];
                let suffix = key[..len].get(prefix..).unwrap_or_default();
                let taken = suffix.len().min(8);
                padded[..taken].copy_from_slice(&suffix[..taken]);
                assert_eq!(first_word(&key[..len], prefix), u64::from_be_bytes(padded));
            }
        }
    }

    #[test]
    fn heads_sort_like_keys() {
        let keys: [&[u8]; 8] = [
            b"", b"a", b"ab", b"abcd", b"abcd\0x", b"abcdef", b"abcdeg", b"abcdegh",
        ];
        let words = keys.map(|key| first_word(key, 0));
        for (first, last) in (0..8).flat_map(|first| (first..8).map(move |last| (first, last))) {
            let heads = Heads::spanning(0, words[first], words[last]);
            let place = |word| (heads.compare(word), heads.head(word));
            assert!(
                words[first..=last]
                    .iter()
                    .all(|word| heads.compare(*word).is_eq())
            );
            assert!(
                words[..=last]
                    .windows(2)
                    .all(|pair| place(pair[0]).0 <= place(pair[1]).0)
            );
            for pair in words[first..=last].windows(2) {
                assert!(place(pair[0]) <= place(pair[1]));
            }
        }
    }
}
