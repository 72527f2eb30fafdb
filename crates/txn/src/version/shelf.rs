//! Kept versions, one behind the other in memory that grows by chunks and is dropped as a whole.
//!
//! A record: commit u64, dependency u64, place of the row's next older version u32 (zero for none), store u32,
//! value length u32, key length u16, flags u16; key; value; zeros up to a multiple of eight. No record lies in
//! two chunks.

use super::image::{Image, RowRef};
use crate::lock::{Dependency, LockName};
use longshore_base::{Lsn, StoreId};
use std::num::NonZeroU32;

/// Bytes that one chunk takes, unless its only record is larger. Places count in units of eight.
const CHUNK: usize = 16 << 10;
const UNIT: usize = 8;
const UNITS: usize = CHUNK / UNIT;
/// Bytes before the key.
const HEADER: usize = 8 + 8 + 4 + 4 + 4 + 2 + 2;

/// Where a record lies: one more than its distance from the first, in units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place(NonZeroU32);

impl Place {
    pub fn of_bits(bits: u32) -> Option<Place> {
        NonZeroU32::new(bits).map(Place)
    }

    pub fn bits(self) -> u32 {
        self.0.get()
    }
}

/// Versions in the order in which they came: of a row, the older before the newer.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    chunks: Vec<Vec<u8>>,
}

/// What a row was before the transaction that committed at `commit` changed it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version<'a> {
    pub commit: Lsn,
    /// The newest commit that the image may come from.
    pub seen: Dependency,
    pub store: StoreId,
    pub key: &'a [u8],
    pub image: Image<'a>,
}

impl<'a> Version<'a> {
    pub fn row(&self) -> RowRef<'a> {
        RowRef::new(LockName::of_key(self.store, self.key), self.key)
    }

    /// Bytes that its record takes.
    pub fn memory(&self) -> usize {
        (HEADER + self.key.len() + self.image.value().len()).next_multiple_of(UNIT)
    }
}

impl Shelf {
    /// Puts a version behind all others; `older` is the one before it of the same row.
    pub fn push(&mut self, version: &Version<'_>, older: Option<Place>) -> Place {
        let value = version.image.value();
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&version.commit.get().to_ne_bytes());
        header[8..16].copy_from_slice(&version.seen.word().to_ne_bytes());
        header[16..20].copy_from_slice(&older.map_or(0, Place::bits).to_ne_bytes());
        header[20..24].copy_from_slice(&version.store.get().to_ne_bytes());
        header[24..28].copy_from_slice(&(value.len() as u32).to_ne_bytes());
        header[28..30].copy_from_slice(&(version.key.len() as u16).to_ne_bytes());
        header[30..].copy_from_slice(&version.image.bits().to_ne_bytes());
        let memory = version.memory();
        self.make_room(memory);
        let number = self.chunks.len() - 1;
        let chunk = &mut self.chunks[number];
        let place = number * UNITS + chunk.len() / UNIT + 1;
        let end = chunk.len() + memory;
        chunk.extend_from_slice(&header);
        chunk.extend_from_slice(version.key);
        chunk.extend_from_slice(value);
        chunk.resize(end, 0);
        let place = u32::try_from(place).ok().and_then(Place::of_bits);
        place.expect("a shard has less than 32 GiB")
    }

    /// Makes the last chunk one with room for `bytes`. The first one grows by and by.
    fn make_room(&mut self, bytes: usize) {
        match self.chunks.last() {
            None => self.chunks.push(Vec::with_capacity(bytes)),
            Some(last) if last.len() + bytes > CHUNK => {
                self.chunks.push(Vec::with_capacity(CHUNK.max(bytes)));
            }
            Some(_) => {}
        }
    }

    fn record(&self, place: Place) -> Record<'_> {
        let units = place.bits() as usize - 1;
        Record(&self.chunks[units / UNITS][units % UNITS * UNIT..])
    }

    /// The place of the next older version of the same row.
    pub fn older(&self, place: Place) -> Option<Place> {
        self.record(place).older()
    }

    pub fn commit(&self, place: Place) -> Lsn {
        self.record(place).commit()
    }

    pub fn version(&self, place: Place) -> Version<'_> {
        self.record(place).version()
    }

    pub fn is_of(&self, place: Place, row: RowRef<'_>) -> bool {
        let record = self.record(place);
        record.store() == row.store && record.key() == row.key
    }

    /// All versions in the order in which they came, each with the commit before which the next older one of its
    /// row was so, zero if there is none.
    pub fn iter(&self) -> impl Iterator<Item = (Lsn, Version<'_>)> {
        self.chunks.iter().flat_map(move |chunk| {
            let mut rest = chunk.as_slice();
            std::iter::from_fn(move || {
                (!rest.is_empty()).then(|| {
                    let record = Record(rest);
                    let version = record.version();
                    rest = &rest[version.memory()..];
                    let before = record.older().map_or(Lsn::ZERO, |older| self.commit(older));
                    (before, version)
                })
            })
        })
    }
}

/// The bytes from the beginning of a record on.
#[derive(Clone, Copy)]
struct Record<'a>(&'a [u8]);

impl<'a> Record<'a> {
    fn u64_at(self, at: usize) -> u64 {
        u64::from_ne_bytes(*self.0[at..].first_chunk().expect("a whole header"))
    }

    fn u32_at(self, at: usize) -> u32 {
        u32::from_ne_bytes(*self.0[at..].first_chunk().expect("a whole header"))
    }

    fn u16_at(self, at: usize) -> u16 {
        u16::from_ne_bytes(*self.0[at..].first_chunk().expect("a whole header"))
    }

    fn commit(self) -> Lsn {
        Lsn::new(self.u64_at(0))
    }

    fn older(self) -> Option<Place> {
        Place::of_bits(self.u32_at(16))
    }

    fn store(self) -> StoreId {
        StoreId::new(self.u32_at(20))
    }

    fn key(self) -> &'a [u8] {
        &self.0[HEADER..HEADER + usize::from(self.u16_at(28))]
    }

    fn version(self) -> Version<'a> {
        let key = self.key();
        let value = &self.0[HEADER + key.len()..][..self.u32_at(24) as usize];
        Version {
            commit: self.commit(),
            seen: Dependency::from_word(self.u64_at(8)),
            store: self.store(),
            key,
            image: Image::of_bits(self.u16_at(30), value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_access::RowFlags;

    fn version_of<'a>(n: u64, key: &'a [u8], value: &'a [u8]) -> Version<'a> {
        let flags = RowFlags::NONE;
        Version {
            commit: Lsn::new(8 * n),
            seen: Dependency::from_word(n),
            store: StoreId::new(16 + n as u32),
            key,
            image: match n % 3 {
                0 => Image::Absent,
                _ => Image::Present { flags, value },
            },
        }
    }

    #[test]
    fn a_chunk_that_is_full_to_the_byte_takes_no_more() {
        let mut shelf = Shelf::default();
        let value = [7; 64 - HEADER - 8];
        let keys: Vec<[u8; 8]> = (0..1000).map(u64::to_be_bytes).collect();
        let version = |n: u64| version_of(3 * n + 1, &keys[n as usize], &value);
        assert_eq!(CHUNK % version(0).memory(), 0, "chunks become full");
        let places: Vec<Place> = (0..1000).map(|n| shelf.push(&version(n), None)).collect();
        for (n, &place) in (0..).zip(&places) {
            assert!(shelf.is_of(place, version(n).row()), "{n}");
        }
        assert_eq!(shelf.chunks.len(), 4);
    }

    #[test]
    fn versions_come_back_as_they_went_in_whatever_their_size() {
        let mut shelf = Shelf::default();
        let mut places = Vec::new();
        let keys: Vec<[u8; 8]> = (0..400).map(u64::to_be_bytes).collect();
        let values: Vec<Vec<u8>> = (0..400)
            .map(|n| vec![n as u8; n * n % 1999 + n / 398 * CHUNK])
            .collect();
        let version = |n: u64| version_of(n, &keys[n as usize], &values[n as usize]);
        for n in 0..400 {
            let older = places.last().copied();
            places.push(shelf.push(&version(n), older));
        }
        for (n, &place) in (0..).zip(&places) {
            let (found, expected) = (shelf.version(place), version(n));
            assert_eq!(found.commit, expected.commit);
            assert_eq!(found.seen, expected.seen);
            assert_eq!(found.image, expected.image);
            assert!(shelf.is_of(place, expected.row()));
            let older = n.checked_sub(1).map(|n| places[n as usize]);
            assert_eq!(shelf.older(place), older);
        }
        let walked: Vec<(Lsn, Lsn)> = shelf.iter().map(|(from, v)| (from, v.commit)).collect();
        let expected = (0..400u64).map(|n| (Lsn::new(8 * n.saturating_sub(1)), Lsn::new(8 * n)));
        assert_eq!(walked, expected.collect::<Vec<_>>());
    }
}
