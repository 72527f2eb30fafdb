//! The bytes of a page, read and written as relaxed atomic words.
//!
//! # Protocol
//! A page is a slice of [`AtomicU64`]. Everybody goes through [`PageRef`] to read and [`PageMut`] to
//! write, word by word with relaxed accesses, so a reader without a latch may race with a writer and
//! the program stays defined: it merely reads garbage. Whoever reads so must
//! 1. treat every number as untrusted until [`OptimisticGuard::validate`](crate::OptimisticGuard)
//!    says that nothing changed, and
//! 2. expect reads beyond the page to yield zero; they never panic.
//!
//! # Invariants
//! P1. Byte `i` of the page is byte `i % 8`, counted from the least significant, of word `i / 8`: the
//!     words as little-endian bytes *are* the page on disk.
//! P2. A [`PageMut`] exists only under an exclusive latch (or over a [`PageBuffer`] of one's own), so a
//!     byte may be changed by reading, changing and storing its word.
//!
//! # Ordering
//! All accesses are relaxed. What orders them is the frame word: an exclusive holder's stores come
//! after the word says "exclusive" and before its version moves (see `frame_word.rs`).

use crate::memory::prefetch;
use longshore_base::bits::little_word;
use longshore_base::page::header;
use longshore_base::{Lsn, PageId, PageSize, PageType, StoreId};
use std::cmp::Ordering as Order;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes in a word.
const WORD: usize = 8;
/// Words in a cache line.
const LINE_WORDS: usize = 8;

/// A page to read from. Reads out of range yield zero, and never panic.
///
/// Cheap to copy: a pointer and a length.
#[derive(Clone, Copy)]
pub struct PageRef<'a> {
    words: &'a [AtomicU64],
}

/// A page to change, under an exclusive latch. Writes out of range panic: they are bugs of ours.
pub struct PageMut<'a> {
    words: &'a [AtomicU64],
}

impl<'a> PageRef<'a> {
    pub(crate) fn new(words: &'a [AtomicU64]) -> PageRef<'a> {
        PageRef { words }
    }

    /// The length of the page in bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // a page is never empty
    pub fn len(self) -> usize {
        self.words.len() * WORD
    }

    /// The aligned word number `index`, in the machine's order; zero beyond the page.
    #[inline]
    pub fn word(self, index: usize) -> u64 {
        match self.words.get(index) {
            // Relaxed: see the header, "Ordering".
            Some(word) => word.load(Relaxed),
            None => 0,
        }
    }

    /// Has the processor fetch so many cache lines from word `index` on, if the page has them all, while
    /// the caller goes on.
    #[inline]
    pub fn prefetch<const LINES: usize>(self, index: usize) {
        let (lines, _) = self
            .words
            .get(index..)
            .unwrap_or_default()
            .as_chunks::<LINE_WORDS>();
        if let Some(lines) = lines.first_chunk::<LINES>() {
            lines.iter().for_each(|line| prefetch(&line[0]));
        }
    }

    /// The byte at `at`.
    #[inline]
    pub fn u8(self, at: usize) -> u8 {
        (self.word(at / WORD) >> (at % WORD * 8)) as u8
    }

    /// The little-endian number of two bytes at `at`, which need not be aligned.
    #[inline]
    pub fn u16(self, at: usize) -> u16 {
        self.bits(at, 2) as u16
    }

    /// The little-endian number of four bytes at `at`, which need not be aligned.
    #[inline]
    pub fn u32(self, at: usize) -> u32 {
        self.bits(at, 4) as u32
    }

    /// The little-endian number of eight bytes at `at`, which need not be aligned.
    #[inline]
    pub fn u64(self, at: usize) -> u64 {
        self.bits(at, 8)
    }

    /// The word that starts at byte `at`; only its low `bytes` bytes are certain to be filled.
    #[inline]
    fn bits(self, at: usize, bytes: usize) -> u64 {
        let (index, inside) = (at / WORD, at % WORD);
        let low = self.word(index) >> (inside * 8);
        if inside + bytes <= WORD {
            low
        } else {
            low | (self.word(index + 1) << ((WORD - inside) * 8))
        }
    }

    /// Copies the bytes from `at` on into `out`; what lies beyond the page reads as zero.
    #[inline]
    pub fn copy_out(self, at: usize, out: &mut [u8]) {
        let words = self.words.get(at / WORD..).unwrap_or_default();
        let (pieces, tail) = out.as_chunks_mut::<WORD>();
        let done = pieces.len() * WORD;
        let shift = (at % WORD * 8) as u32;
        // Relaxed, throughout: see the header, "Ordering".
        if shift == 0 && words.len() >= pieces.len() {
            for (piece, word) in pieces.iter_mut().zip(words) {
                *piece = word.load(Relaxed).to_le_bytes();
            }
        } else if words.len() <= pieces.len() {
            self.copy_end(at, pieces);
        } else {
            let mut low = words[0].load(Relaxed) >> shift;
            for (piece, word) in pieces.iter_mut().zip(&words[1..]) {
                let word = word.load(Relaxed);
                *piece = (low | word << (u64::BITS - shift)).to_le_bytes();
                low = word >> shift;
            }
        }
        if !tail.is_empty() {
            let last = self.u64(at.saturating_add(done)).to_le_bytes();
            tail.copy_from_slice(&last[..tail.len()]);
        }
    }

    /// [`copy_out`](Self::copy_out) where the page ends.
    #[cold]
    fn copy_end(self, at: usize, pieces: &mut [[u8; WORD]]) {
        for (index, piece) in pieces.iter_mut().enumerate() {
            *piece = self.u64(at.saturating_add(index * WORD)).to_le_bytes();
        }
    }

    /// Appends `len` bytes from `at` on to `out`; only those inside the page, so a length that is
    /// garbage costs at most a page.
    pub fn append_to(self, at: usize, len: usize, out: &mut Vec<u8>) {
        let len = len.min(self.len().saturating_sub(at));
        let start = out.len();
        out.resize(start + len, 0);
        self.copy_out(at, &mut out[start..]);
    }

    /// Compares `len` bytes from `at` on with `other`, as byte strings are ordered.
    ///
    /// The part of the range that lies beyond the page is left out of the comparison.
    pub fn compare(self, at: usize, len: usize, other: &[u8]) -> Order {
        let len = len.min(self.len().saturating_sub(at));
        let common = len.min(other.len());
        let mut done = 0;
        while done + WORD <= common {
            let mine = self.u64(at + done).swap_bytes();
            let piece = &other[done..done + WORD];
            let theirs = u64::from_be_bytes(piece.try_into().expect("eight bytes"));
            if mine != theirs {
                return mine.cmp(&theirs);
            }
            done += WORD;
        }
        if done < common {
            // At most seven bytes are left: compare them as the head of a big-endian number.
            let left = common - done;
            let mine = self.u64(at + done).swap_bytes() >> ((WORD - left) * 8);
            let theirs = other[done..common]
                .iter()
                .fold(0, |sum, byte| (sum << 8) | u64::from(*byte));
            if mine != theirs {
                return mine.cmp(&theirs);
            }
        }
        len.cmp(&other.len())
    }

    /// The type in the header; `None` for a number that no type has.
    #[inline]
    pub fn page_type(self) -> Option<PageType> {
        PageType::from_raw(self.u8(header::TYPE))
    }

    /// The LSN of the last change.
    #[inline]
    pub fn page_lsn(self) -> Lsn {
        Lsn::new(self.word(header::LSN / WORD))
    }

    /// The page id in the header, which a blank page has not got (it reads as 0).
    #[inline]
    pub fn page_id(self) -> PageId {
        PageId::new(self.word(header::ID / WORD))
    }

    /// The store in the header.
    #[inline]
    pub fn store(self) -> StoreId {
        StoreId::new(self.u32(header::STORE))
    }
}

impl<'a> PageMut<'a> {
    pub(crate) fn new(words: &'a [AtomicU64]) -> PageMut<'a> {
        PageMut { words }
    }

    /// The page, to read from.
    #[inline]
    #[allow(clippy::should_implement_trait)] // a view by value, not a reference
    pub fn as_ref(&self) -> PageRef<'_> {
        PageRef { words: self.words }
    }

    /// The length of the page in bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // a page is never empty
    pub fn len(&self) -> usize {
        self.words.len() * WORD
    }

    /// Stores the aligned word number `index`.
    #[inline]
    #[track_caller]
    pub fn set_word(&mut self, index: usize, value: u64) {
        // Relaxed: see the header, "Ordering".
        self.words[index].store(value, Relaxed);
    }

    /// Stores aligned words, from number `index` on.
    #[inline]
    #[track_caller]
    pub fn set_words(&mut self, index: usize, values: &[[u8; WORD]]) {
        let words = &self.words[index..index + values.len()];
        for (word, value) in words.iter().zip(values) {
            // Relaxed: see the header, "Ordering".
            word.store(u64::from_le_bytes(*value), Relaxed);
        }
    }

    /// Stores a byte.
    #[inline]
    #[track_caller]
    pub fn set_u8(&mut self, at: usize, value: u8) {
        self.set_bits(at, 1, u64::from(value));
    }

    /// Stores two bytes, little-endian, at any alignment.
    #[inline]
    #[track_caller]
    pub fn set_u16(&mut self, at: usize, value: u16) {
        self.set_bits(at, 2, u64::from(value));
    }

    /// Stores four bytes, little-endian, at any alignment.
    #[inline]
    #[track_caller]
    pub fn set_u32(&mut self, at: usize, value: u32) {
        self.set_bits(at, 4, u64::from(value));
    }

    /// Stores eight bytes, little-endian, at any alignment.
    #[inline]
    #[track_caller]
    pub fn set_u64(&mut self, at: usize, value: u64) {
        self.set_bits(at, 8, value);
    }

    /// Stores the low `bytes` bytes of `value` from byte `at` on.
    #[inline]
    #[track_caller]
    fn set_bits(&mut self, at: usize, bytes: usize, value: u64) {
        let (index, inside) = (at / WORD, at % WORD);
        let mask = u64::MAX >> ((WORD - bytes) * 8);
        self.merge(index, mask << (inside * 8), value << (inside * 8));
        if inside + bytes > WORD {
            let shift = (WORD - inside) * 8;
            self.merge(index + 1, mask >> shift, value >> shift);
        }
    }

    /// Replaces the bits under `mask` of one word.
    #[inline]
    #[track_caller]
    fn merge(&mut self, index: usize, mask: u64, bits: u64) {
        let word = &self.words[index];
        // Relaxed, and no read-modify-write: P2 says that nobody else stores.
        word.store((word.load(Relaxed) & !mask) | (bits & mask), Relaxed);
    }

    /// Copies `bytes` to the place that starts at `at`.
    #[inline]
    #[track_caller]
    pub fn copy_in(&mut self, at: usize, bytes: &[u8]) {
        self.check_range(at, bytes.len());
        let head = (at.next_multiple_of(WORD) - at).min(bytes.len());
        if head > 0 {
            self.set_few(at, &bytes[..head]);
        }
        let first = (at + head) / WORD;
        let (pieces, tail) = bytes[head..].as_chunks::<WORD>();
        self.set_words(first, pieces);
        if !tail.is_empty() {
            self.set_few((first + pieces.len()) * WORD, tail);
        }
    }

    /// Copies fewer than eight bytes that lie in one word.
    #[track_caller]
    fn set_few(&mut self, at: usize, bytes: &[u8]) {
        self.set_bits(at, bytes.len(), little_word(bytes));
    }

    /// Copies `len` bytes from `from` to `to`; the ranges may overlap.
    #[inline]
    #[track_caller]
    pub fn copy_within(&mut self, from: usize, len: usize, to: usize) {
        if len == 0 {
            return;
        }
        self.check_range(from, len);
        self.check_range(to, len);
        if (from | to | len).is_multiple_of(WORD) {
            self.move_words(from / WORD, len / WORD, to / WORD);
        } else if to <= from {
            let mut done = 0;
            while done < len {
                let step = (len - done).min(WORD);
                let value = self.as_ref().u64(from + done);
                self.set_bits(to + done, step, value);
                done += step;
            }
        } else {
            let mut left = len;
            while left > 0 {
                let step = left.min(WORD);
                left -= step;
                let value = self.as_ref().u64(from + left);
                self.set_bits(to + left, step, value);
            }
        }
    }

    /// Copies whole words, when slots make way or close up.
    fn move_words(&mut self, from: usize, len: usize, to: usize) {
        let (targets, sources) = (&self.words[to..to + len], &self.words[from..from + len]);
        // Relaxed, throughout: see the header, "Ordering".
        if to <= from {
            for (target, source) in targets.iter().zip(sources) {
                target.store(source.load(Relaxed), Relaxed);
            }
        } else {
            for (target, source) in targets.iter().zip(sources).rev() {
                target.store(source.load(Relaxed), Relaxed);
            }
        }
    }

    /// Fills `len` bytes from `at` on with `byte`.
    #[track_caller]
    pub fn fill(&mut self, at: usize, len: usize, byte: u8) {
        self.check_range(at, len);
        let pattern = u64::from_ne_bytes([byte; WORD]);
        let head = ((WORD - at % WORD) % WORD).min(len);
        let (first, count, tail) = ((at + head) / WORD, (len - head) / WORD, (len - head) % WORD);
        if head > 0 {
            self.set_bits(at, head, pattern);
        }
        for word in &self.words[first..first + count] {
            word.store(pattern, Relaxed);
        }
        if tail > 0 {
            self.set_bits((first + count) * WORD, tail, pattern);
        }
    }

    /// Stores the LSN of the last change into the header.
    #[inline]
    pub(crate) fn set_page_lsn(&mut self, lsn: Lsn) {
        self.set_word(header::LSN / WORD, lsn.get());
    }

    #[track_caller]
    fn check_range(&self, at: usize, len: usize) {
        let end = at.checked_add(len);
        assert!(
            end.is_some_and(|end| end <= self.len()),
            "{len} bytes at {at} do not lie in a page of {} bytes",
            self.len()
        );
    }
}

/// A page of one's own, outside the pool: for building pages in bulk, for checking, for tests.
pub struct PageBuffer {
    words: Box<[AtomicU64]>,
}

impl PageBuffer {
    /// A page of zeros.
    pub fn zeroed(size: PageSize) -> PageBuffer {
        let words = (0..size.words()).map(|_| AtomicU64::new(0)).collect();
        PageBuffer { words }
    }

    /// A copy of the bytes of a page.
    ///
    /// # Panics
    /// If the length is not a multiple of eight.
    pub fn from_bytes(bytes: &[u8]) -> PageBuffer {
        assert!(
            bytes.len().is_multiple_of(WORD),
            "{} bytes are no page",
            bytes.len()
        );
        let words = (0..bytes.len() / WORD).map(|_| AtomicU64::new(0)).collect();
        let mut buffer = PageBuffer { words };
        buffer.as_mut().copy_in(0, bytes);
        buffer
    }

    /// The page, to read from.
    #[allow(clippy::should_implement_trait)] // a view by value, not a reference
    pub fn as_ref(&self) -> PageRef<'_> {
        PageRef::new(&self.words)
    }

    /// The page, to change.
    #[allow(clippy::should_implement_trait)] // a view by value, not a reference
    pub fn as_mut(&mut self) -> PageMut<'_> {
        PageMut::new(&self.words)
    }

    /// The bytes of the page.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.words.len() * WORD];
        self.as_ref().copy_out(0, &mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted() -> (PageBuffer, Vec<u8>) {
        let bytes: Vec<u8> = (0..4096u32).map(|i| (i * 7 % 251) as u8).collect();
        (PageBuffer::from_bytes(&bytes), bytes)
    }

    #[test]
    fn reads_beyond_the_page_yield_zero() {
        let (page, bytes) = counted();
        let page = page.as_ref();
        assert_eq!(page.u8(4096), 0);
        assert_eq!(page.u64(usize::MAX), 0);
        assert_eq!(page.u16(4095), u16::from(bytes[4095]));
        assert_eq!(page.word(512), 0);
        let mut out = [9; 4];
        page.copy_out(usize::MAX - 1, &mut out);
        assert_eq!(out, [0; 4]);
        let mut out = Vec::new();
        page.append_to(4090, 1 << 40, &mut out);
        assert_eq!(out, &bytes[4090..]);
        assert_eq!(page.compare(5000, 8, b"x"), Order::Less);
    }

    #[test]
    #[should_panic(expected = "do not lie in a page")]
    fn writes_beyond_the_page_panic() {
        PageBuffer::zeroed(PageSize::MIN)
            .as_mut()
            .copy_in(4090, &[1; 7]);
    }

    #[test]
    fn header_fields_are_read_where_the_page_has_them() {
        let mut bytes = vec![0; 4096];
        bytes[header::TYPE] = PageType::Node as u8;
        bytes[header::LSN] = 77;
        bytes[header::STORE + 1] = 1;
        longshore_base::page::seal(PageId::new(9), &mut bytes);
        let page = PageBuffer::from_bytes(&bytes);
        let page = page.as_ref();
        assert_eq!(page.page_type(), Some(PageType::Node));
        assert_eq!(page.page_id(), PageId::new(9));
        assert_eq!(page.page_lsn(), Lsn::new(77));
        assert_eq!(page.store(), StoreId::new(256));
    }

    proptest! {
        #[test]
        fn numbers_read_as_their_bytes(at in 0usize..4080) {
            let (page, bytes) = counted();
            let page = page.as_ref();
            prop_assert_eq!(page.u8(at), bytes[at]);
            prop_assert_eq!(&page.u16(at).to_le_bytes()[..], &bytes[at..at + 2]);
            prop_assert_eq!(&page.u32(at).to_le_bytes()[..], &bytes[at..at + 4]);
            prop_assert_eq!(&page.u64(at).to_le_bytes()[..], &bytes[at..at + 8]);
        }

        #[test]
        fn changes_equal_those_of_a_byte_array(
            steps in prop::collection::vec((0u8..8, 0usize..4000, 0usize..90, 0usize..4000, any::<u64>()), 1..40)
        ) {
            let (mut page, mut bytes) = counted();
            for (kind, at, len, to, value) in steps {
                let mut page = page.as_mut();
                let le = value.to_le_bytes();
                match kind {
                    0 => { page.set_u8(at, le[0]); bytes[at] = le[0]; }
                    1 => { page.set_u16(at, value as u16); bytes[at..at + 2].copy_from_slice(&le[..2]); }
                    2 => { page.set_u32(at, value as u32); bytes[at..at + 4].copy_from_slice(&le[..4]); }
                    3 => { page.set_u64(at, value); bytes[at..at + 8].copy_from_slice(&le); }
                    4 => { page.set_word(at / 8, value); bytes[at / 8 * 8..][..8].copy_from_slice(&le); }
                    5 => {
                        let piece: Vec<u8> = (0..len).map(|i| le[i % 8] ^ i as u8).collect();
                        page.copy_in(at, &piece);
                        bytes[at..at + len].copy_from_slice(&piece);
                    }
                    6 => { page.copy_within(at, len, to); bytes.copy_within(at..at + len, to); }
                    _ => { page.fill(at, len, le[0]); bytes[at..at + len].fill(le[0]); }
                }
            }
            prop_assert_eq!(page.to_bytes(), bytes);
        }

        #[test]
        fn comparison_equals_that_of_slices(at in 0usize..4000, len in 0usize..40, other in prop::collection::vec(any::<u8>(), 0..40), common in 0usize..40) {
            let (page, bytes) = counted();
            let mut other = other;
            let common = common.min(len).min(other.len());
            other[..common].copy_from_slice(&bytes[at..at + common]);
            prop_assert_eq!(page.as_ref().compare(at, len, &other), bytes[at..at + len].cmp(&other[..]));
        }

        #[test]
        fn copies_equal_the_bytes(at in 0usize..4096, len in 0usize..200) {
            let (page, bytes) = counted();
            let mut out = Vec::new();
            page.as_ref().append_to(at, len, &mut out);
            prop_assert_eq!(&out[..], &bytes[at..(at + len).min(4096)]);
        }
    }
}
