//! The circular buffer: where records are from their reservation until they are taken to be written.
//!
//! # Protocol
//! Position `p` of the stream lives in word `(p / 8) % words`.
//! 1. An appender *reserves* `[lsn, lsn + bytes)` by one `fetch_add` on `tail`. That is the record's
//!    place in the order of history; nothing is exclusive but this one instruction.
//! 2. It waits until `lsn + bytes <= released + capacity`: its words have been taken and zeroed.
//! 3. It *fills* words 1.. with relaxed stores, in parallel with everybody else.
//! 4. It *publishes* by storing word 0, which is never zero (R1), with Release.
//! 5. The one [`Taker`] walks over published records in order, up to the first word 0 that is still
//!    zero; copies them out, zeroes their words, *seals* each copy with its checksum, and *releases*
//!    the space.
//!
//! Until it is taken a published record may be *copied* by whoever keeps the taker from moving: he holds
//! a reference to it. Fillers go on beside him; they touch other words only (B1).
//!
//! ```text
//!        released     taker.position            tail           released + capacity
//!           |  zeroed      |  published, or not    |   zero           |
//!   --------+--------------+-----------------------+------------------+--------
//! ```
//!
//! # Invariants
//! B1. In `[taker.position, released + capacity)` every word is zero, or its filler's value: whoever
//! fills finds room first, and room is given back only after zeroing.
//! B2. Hence a nonzero word 0 at the taker's position is the published record of this very position,
//! never a former lap's; the taker never looks at or beyond `released + capacity`.
//! B3. A record reserved always finds room once everything before it has been taken, because none is
//! longer than the ring. Nobody but the appenders before it can hold it up.
//!
//! # Ordering
//! | store | load | carries |
//! |---|---|---|
//! | word 0, Release, in `fill` | word 0, Acquire, in `take`, `copy` | the record's other words |
//! | `released`, Release, in `release` | `released`, Acquire, in `has_room` | the zeroed words |
//!
//! `tail` orders nothing inside the ring. It is SeqCst for the layers above: a checkpoint reads the
//! tail and then looks who has begun to log, a transaction announces itself and then appends
//! (store-then-load on both sides).
//!
//! # Source
//! Shore-MT §6.2.2 and §6.2.4: a circular buffer, insert, flush and waiting apart, the insert's critical
//! section only finds the place. We differ: one atomic addition stands where Shore-MT has a queueing
//! lock, and the record's own first word where it has the queue's nodes.

use crate::record::{Draft, HEADER_BYTES, Header, Record, bytes_of, seal};
use crossbeam_utils::CachePadded;
use longshore_base::bits::little_word;
use longshore_base::sync::atomic::{AtomicU64, Ordering};

/// The circular buffer.
pub struct Ring {
    words: Box<[AtomicU64]>,
    /// Written by every append: alone on its line.
    tail: CachePadded<AtomicU64>,
    /// Written by the taker once per group, read by every append.
    released: CachePadded<AtomicU64>,
}

/// The right to take records out; there is one per ring.
#[cfg_attr(loom, derive(Clone))]
pub struct Taker {
    position: u64,
    released: u64,
}

/// What one walk of the taker has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Records copied out.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Ring {
    /// A ring of `bytes` (a power of two) whose first record will start at `start`.
    pub fn new(bytes: usize, start: u64) -> (Ring, Taker) {
        assert!(
            bytes.is_power_of_two() && bytes >= 64,
            "size of the log buffer"
        );
        assert!(start.is_multiple_of(8), "records start at multiples of 8");
        let ring = Ring {
            words: (0..bytes / 8).map(|_| AtomicU64::new(0)).collect(),
            tail: CachePadded::new(AtomicU64::new(start)),
            released: CachePadded::new(AtomicU64::new(start)),
        };
        (
            ring,
            Taker {
                position: start,
                released: start,
            },
        )
    }

    /// Bytes it holds, and so the longest record possible.
    #[inline]
    pub fn capacity(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// The position that the next reservation gets.
    #[inline]
    pub fn tail(&self) -> u64 {
        // SeqCst: see the header; pairs with `reserve`.
        self.tail.load(Ordering::SeqCst)
    }

    /// Reserves `bytes`; the position must then be filled, whatever happens.
    #[inline]
    pub fn reserve(&self, bytes: u64) -> u64 {
        // SeqCst: see the header; pairs with `tail`.
        self.tail.fetch_add(bytes, Ordering::SeqCst)
    }

    /// Reserves `bytes` only if there is room at once. For the taker itself, which must not wait.
    pub fn try_reserve(&self, bytes: u64) -> Option<u64> {
        let mut tail = self.tail();
        while self.has_room(tail + bytes) {
            // SeqCst: see `reserve`. Relaxed where it fails: the value is only tried again.
            match self.tail.compare_exchange_weak(
                tail,
                tail + bytes,
                Ordering::SeqCst,
                Ordering::Relaxed,
            ) {
                Ok(lsn) => return Some(lsn),
                Err(now) => tail = now,
            }
        }
        None
    }

    /// Whether a record that ends at `end` may be filled.
    #[inline]
    pub fn has_room(&self, end: u64) -> bool {
        // Acquire: pairs with `release`; the words below are zeroed for whoever sees the room.
        end <= self.released.load(Ordering::Acquire) + self.capacity()
    }

    /// Fills the record reserved at `lsn`, and publishes it. The caller has seen room for it.
    #[inline]
    pub(crate) fn fill(&self, lsn: u64, draft: &Draft<'_>) {
        let [word0, word1, word2, word3] = draft.header(lsn);
        let (words, wrapped) = self.run(lsn / 8, (draft.bytes() / 8) as usize);
        let mut words = Filler {
            words: &words[1..],
            wrapped,
            pending: 0,
            bits: 0,
        };
        words.put_word(word1);
        words.put_word(word2);
        words.put_word(word3);
        let parts = draft.body.iter().filter(|part| !part.is_empty());
        parts.for_each(|part| words.put(part));
        words.finish();
        // Release: pairs with Acquire in `take`; who sees the record published sees it filled.
        self.word(lsn / 8).store(word0, Ordering::Release);
    }

    /// Moves published records to the start of `out`, in order, until there are `enough` bytes or the next
    /// record is not published yet. Always takes one if it can, however long. `out` grows as it must;
    /// what it holds behind the records is not touched.
    pub fn take(&self, taker: &mut Taker, out: &mut Vec<u8>, enough: usize) -> Taken {
        let mut taken = Taken::default();
        let limit = taker.released + self.capacity();
        let from = taker.position;
        while taker.position < limit && (taken.bytes as usize) < enough {
            // Acquire: pairs with the publication in `fill`.
            let word0 = self.word(taker.position / 8).load(Ordering::Acquire);
            if word0 == 0 {
                break;
            }
            let bytes = bytes_of(word0);
            taker.position += bytes;
            taken.records += 1;
            taken.bytes += bytes;
        }
        self.move_out(from, taken.bytes, out);
        let mut sealed = 0;
        while sealed < taken.bytes {
            sealed += seal(&mut out[sealed as usize..], from + sealed);
        }
        taken
    }

    /// A copy of the record published at `lsn`, unless it has been taken. It is not sealed.
    ///
    /// In a position where no record starts none is found, but for bytes that imitate one.
    pub fn copy(&self, taker: &Taker, lsn: u64) -> Option<Record> {
        let end = self.tail().min(taker.released + self.capacity());
        // Acquire: pairs with the publication in `fill`. What is not zero is of this lap (B2).
        if !lsn.is_multiple_of(8)
            || lsn < taker.position
            || end <= lsn
            || self.word(lsn / 8).load(Ordering::Acquire) == 0
        {
            return None;
        }
        // Relaxed: ordered by that Acquire.
        let load = |place: &mut [u8; 8], word: &AtomicU64| {
            *place = word.load(Ordering::Relaxed).to_le_bytes();
        };
        let mut header = [0; HEADER_BYTES];
        self.visit(lsn, &mut header, load);
        let header = Header::parse(&header);
        let bytes = header.body_bytes(lsn, end).ok()?;
        let mut body = vec![0; bytes.next_multiple_of(8)];
        self.visit(lsn + HEADER_BYTES as u64, &mut body, load);
        body.truncate(bytes);
        Some(header.record(lsn, body))
    }

    /// Gives the space of everything taken back to the appenders.
    pub fn release(&self, taker: &mut Taker) {
        taker.released = taker.position;
        // Release: pairs with Acquire in `has_room`; the zeroing comes before any new fill.
        self.released.store(taker.position, Ordering::Release);
    }

    /// Copies and zeroes. Relaxed: the Acquire of word 0 in `take` came before, and the Release in
    /// `release` comes after.
    fn move_out(&self, position: u64, bytes: u64, out: &mut Vec<u8>) {
        if out.len() < bytes as usize {
            out.resize(bytes as usize, 0);
        }
        self.visit(position, &mut out[..bytes as usize], |place, word| {
            *place = word.load(Ordering::Relaxed).to_le_bytes();
            word.store(0, Ordering::Relaxed);
        });
    }

    /// Brings each word from `position` on together with its place in `out`, up to the end of `out`.
    fn visit(&self, position: u64, out: &mut [u8], mut each: impl FnMut(&mut [u8; 8], &AtomicU64)) {
        let (words, wrapped) = self.run(position / 8, out.len() / 8);
        let (places, others) = out.as_chunks_mut::<8>().0.split_at_mut(words.len());
        for (places, words) in [(places, words), (others, wrapped)] {
            for (place, word) in places.iter_mut().zip(words) {
                each(place, word);
            }
        }
    }

    /// `count` words from the one with this number on: up to the end of the buffer, and from its start.
    #[inline]
    fn run(&self, number: u64, count: usize) -> (&[AtomicU64], &[AtomicU64]) {
        let words = &self.words[self.index(number)..];
        match words.get(..count) {
            Some(words) => (words, &[]),
            None => (words, &self.words[..count - words.len()]),
        }
    }

    #[inline]
    fn word(&self, number: u64) -> &AtomicU64 {
        &self.words[self.index(number)]
    }

    #[inline]
    fn index(&self, number: u64) -> usize {
        number as usize & (self.words.len() - 1)
    }
}

impl Taker {
    /// Everything before this has been taken.
    pub fn position(&self) -> u64 {
        self.position
    }
}

/// Packs bytes into words and stores them one after the other.
struct Filler<'a> {
    /// Where the next words go, and after them those at the start of the buffer.
    words: &'a [AtomicU64],
    wrapped: &'a [AtomicU64],
    /// Bytes that do not fill a word yet, in the low `bits` bits.
    pending: u64,
    bits: u32,
}

impl Filler<'_> {
    #[inline]
    fn put_word(&mut self, word: u64) {
        if self.words.is_empty() {
            self.words = std::mem::take(&mut self.wrapped);
        }
        let (place, after) = self.words.split_first().expect("as long as its record");
        // Relaxed: published by the Release of word 0.
        place.store(word, Ordering::Relaxed);
        self.words = after;
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        let (pieces, rest) = bytes.as_chunks::<8>();
        match self.words.split_at_checked(pieces.len()) {
            Some((places, after)) if self.bits == 0 => {
                for (place, piece) in places.iter().zip(pieces) {
                    // Relaxed: as in `put_word`.
                    place.store(u64::from_le_bytes(*piece), Ordering::Relaxed);
                }
                self.words = after;
            }
            _ => pieces.iter().for_each(|piece| self.put_piece(*piece)),
        }
        if !rest.is_empty() {
            self.put_few(rest);
        }
    }

    #[inline]
    fn put_piece(&mut self, piece: [u8; 8]) {
        let word = u64::from_le_bytes(piece);
        self.put_word(self.pending | word << self.bits);
        // In two steps: a shift by 64 would be none.
        self.pending = word >> 1 >> (63 - self.bits);
    }

    /// Fewer than eight bytes.
    #[inline]
    fn put_few(&mut self, bytes: &[u8]) {
        let word = little_word(bytes);
        let bits = bytes.len() as u32 * 8;
        self.pending |= word << self.bits;
        self.bits += bits;
        if self.bits >= 64 {
            self.put_word(self.pending);
            self.bits -= 64;
            self.pending = word >> (bits - self.bits);
        }
    }

    #[inline]
    fn finish(mut self) {
        if self.bits > 0 {
            self.put_word(self.pending);
        }
    }
}

/// What the model checker's tests need: a whole append, and the same with the bug put back.
#[cfg(loom)]
impl Ring {
    /// Appends as the log does; the caller has made sure of room.
    pub fn append(&self, body: &[u8]) -> u64 {
        use longshore_base::{Lsn, TxnId};
        let parts = [body];
        let draft = Draft::new(1, TxnId::SYSTEM, Lsn::ZERO, &parts);
        let lsn = self.reserve(draft.bytes());
        while !self.has_room(lsn + draft.bytes()) {
            longshore_base::sync::thread::yield_now();
        }
        self.fill(lsn, &draft);
        lsn
    }

    /// Publishes before filling: the bug that the model checker must find.
    pub fn append_published_too_early(&self, body: &[u8]) -> u64 {
        use longshore_base::{Lsn, TxnId};
        let parts = [body];
        let draft = Draft::new(1, TxnId::SYSTEM, Lsn::ZERO, &parts);
        let lsn = self.reserve(draft.bytes());
        let word0 = draft.header(lsn)[0];
        // Release: as in `fill`, but it orders nothing yet.
        self.word(lsn / 8).store(word0, Ordering::Release);
        self.fill(lsn, &draft);
        lsn
    }

    /// Gives the space back before it is zeroed: the other bug that must be found.
    pub fn take_released_too_early(&self, taker: &mut Taker, out: &mut Vec<u8>) -> Taken {
        // Acquire: pairs with `fill`, as in `take`.
        let word0 = self.word(taker.position / 8).load(Ordering::Acquire);
        if word0 == 0 {
            return Taken::default();
        }
        let bytes = bytes_of(word0);
        let from = taker.position;
        taker.position += bytes;
        self.release(taker);
        self.move_out(from, bytes, out);
        Taken { records: 1, bytes }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use longshore_base::{Lsn, TxnId};

    fn append(ring: &Ring, body: &[&[u8]]) -> u64 {
        let draft = Draft::new(3, TxnId::new(1), Lsn::ZERO, body);
        let lsn = ring.reserve(draft.bytes());
        assert!(ring.has_room(lsn + draft.bytes()));
        ring.fill(lsn, &draft);
        lsn
    }

    fn first_body(bytes: &[u8], lsn: u64) -> Vec<u8> {
        let header = Header::parse(bytes[..HEADER_BYTES].try_into().unwrap());
        let length = header.body_bytes(lsn, u64::MAX).unwrap();
        let body = &bytes[HEADER_BYTES..HEADER_BYTES + length];
        header.check(lsn, body).unwrap();
        body.to_vec()
    }

    #[test]
    fn bodies_of_any_split_come_out_whole() {
        let text: Vec<u8> = (1..=61).collect();
        for cut in 0..=text.len() {
            for second in cut..=text.len() {
                let (ring, mut taker) = Ring::new(128, 64);
                let parts = [&text[..cut], &text[cut..second], &text[second..]];
                let lsn = append(&ring, &parts);
                let mut out = Vec::new();
                assert_eq!(ring.take(&mut taker, &mut out, 1).records, 1);
                assert_eq!(first_body(&out, lsn), text, "cut at {cut} and {second}");
            }
        }
    }

    #[test]
    fn laps_reuse_zeroed_words_only_after_release() {
        let (ring, mut taker) = Ring::new(128, 64);
        let mut out = Vec::new();
        for lap in 0..50_u8 {
            let lsn = append(&ring, &[&[lap; 40]]);
            assert!(
                !ring.has_room(ring.tail() + 72),
                "lap {lap}: the ring is full"
            );
            assert_eq!(
                ring.take(&mut taker, &mut out, usize::MAX),
                Taken {
                    records: 1,
                    bytes: 72
                }
            );
            assert_eq!(first_body(&out, lsn), [lap; 40]);
            assert_eq!(
                ring.take(&mut taker, &mut out, usize::MAX),
                Taken::default()
            );
            ring.release(&mut taker);
            assert!(ring.has_room(ring.tail() + 72));
            assert!(ring.words.iter().all(|w| w.load(Ordering::Relaxed) == 0));
        }
    }

    #[test]
    fn a_record_can_be_copied_from_its_publication_until_it_is_taken() {
        let (ring, mut taker) = Ring::new(128, 64);
        let mut out = Vec::new();
        for lap in 0..50_u8 {
            let body = [lap; 41];
            let parts = [&body[..]];
            let draft = Draft::new(3, TxnId::new(9), Lsn::new(64), &parts);
            let lsn = ring.reserve(draft.bytes());
            assert_eq!(ring.copy(&taker, lsn), None, "lap {lap}: not published");
            ring.fill(lsn, &draft);
            let record = ring.copy(&taker, lsn).expect("published");
            assert_eq!((record.lsn, record.body), (Lsn::new(lsn), body.to_vec()));
            assert_eq!(
                (record.kind, record.txn.get(), record.prev.get()),
                (3, 9, 64)
            );
            for other in [
                lsn - 8,
                lsn + 1,
                lsn + 8,
                ring.tail(),
                lsn + 128,
                lsn.wrapping_sub(128),
            ] {
                assert_eq!(ring.copy(&taker, other), None, "lap {lap}: no record");
            }
            ring.take(&mut taker, &mut out, usize::MAX);
            assert_eq!(ring.copy(&taker, lsn), None, "lap {lap}: taken");
            ring.release(&mut taker);
            assert_eq!(ring.copy(&taker, lsn), None, "lap {lap}: released");
        }
    }

    #[test]
    fn taker_stops_at_an_unpublished_record() {
        let (ring, mut taker) = Ring::new(256, 64);
        let mut out = Vec::new();
        append(&ring, &[b"first"]);
        let hole = Draft::new(3, TxnId::new(1), Lsn::ZERO, &[]);
        let lsn = ring.reserve(hole.bytes());
        append(&ring, &[b"third"]);
        assert_eq!(ring.take(&mut taker, &mut out, usize::MAX).records, 1);
        ring.fill(lsn, &hole);
        assert_eq!(ring.take(&mut taker, &mut out, usize::MAX).records, 2);
        assert_eq!(taker.position(), ring.tail());
    }

    #[test]
    fn try_reserve_never_takes_what_does_not_fit() {
        let (ring, _taker) = Ring::new(64, 0);
        assert_eq!(ring.try_reserve(40), Some(0));
        assert_eq!(ring.try_reserve(40), None);
        assert_eq!(ring.tail(), 40);
    }
}
