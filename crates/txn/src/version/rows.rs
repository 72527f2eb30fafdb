//! Finds the newest kept version of a row: open addressing, a word for each row.
//!
//! A word holds the lower half of the name's hash and the [`Place`]; zero is free. Names that follow each other
//! (see [`LockName`](crate::lock::LockName)) share a line of eight words, and lines are spread by a multiplication.
//! Whoever finds no room in a line goes on to the next. A look thus touches one line of memory, mostly, and who
//! changes rows in the order of their keys touches one for several rows.

use super::shelf::Place;
use longshore_base::bits::Field;

/// | bits   | field | meaning                            |
/// |--------|-------|------------------------------------|
/// | 0..32  | tag   | the lower half of the name's hash  |
/// | 32..64 | place | of the row's newest version; never zero in a word that is taken |
const TAG: Field = Field::new(0, 32);
const PLACE: Field = Field::new(32, 32);
const FREE: u64 = 0;

/// Words of a line.
const LINE: usize = 8;
/// Words that a table has at least; a power of two, and more than one line.
const LEAST: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Rows {
    /// None, or a power of two; a third of them is free at least.
    words: Vec<u64>,
    taken: usize,
}

/// A word of the table: a row's, or the one that is to be a row's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    at: usize,
    tag: u64,
}

impl Rows {
    /// The place of the row with this hash for which `is_it`.
    #[inline]
    pub fn find(&self, hash: u64, is_it: impl Fn(Place) -> bool) -> Option<Place> {
        if self.words.is_empty() {
            return None;
        }
        self.place(self.seek(hash, is_it))
    }

    /// The row's spot, taken or not, where [`set`](Self::set) may put a place.
    #[inline]
    pub fn spot(&mut self, hash: u64, is_it: impl Fn(Place) -> bool) -> Spot {
        if 3 * (self.taken + 1) > 2 * self.words.len() {
            self.grow();
        }
        self.seek(hash, is_it)
    }

    #[inline]
    pub fn place(&self, spot: Spot) -> Option<Place> {
        Place::of_bits(PLACE.get(self.words[spot.at]) as u32)
    }

    /// Gives a spot another place. Nothing was put elsewhere since it was looked for.
    #[inline]
    pub fn set(&mut self, spot: Spot, place: Place) {
        let word = &mut self.words[spot.at];
        self.taken += usize::from(*word == FREE);
        *word = PLACE.with(spot.tag, u64::from(place.bits()));
    }

    #[inline]
    fn seek(&self, hash: u64, is_it: impl Fn(Place) -> bool) -> Spot {
        let tag = TAG.get(hash);
        let mut at = self.home(tag);
        loop {
            let word = self.words[at];
            let spot = Spot { at, tag };
            let is_found = || self.place(spot).is_some_and(&is_it);
            if word == FREE || TAG.get(word) == tag && is_found() {
                return spot;
            }
            at = (at + 1) & (self.words.len() - 1);
        }
    }

    /// Where the search for a tag begins.
    #[inline]
    fn home(&self, tag: u64) -> usize {
        let lines = self.words.len() / LINE;
        let spread = (tag / LINE as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let line = (spread >> (u64::BITS - lines.trailing_zeros())) as usize;
        line * LINE + tag as usize % LINE
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![FREE; (2 * self.words.len()).max(LEAST)];
        let words = std::mem::replace(&mut self.words, larger);
        for word in words.into_iter().filter(|&word| word != FREE) {
            let spot = self.seek(TAG.get(word), |_| false);
            self.words[spot.at] = word;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(n: u32) -> Place {
        Place::of_bits(n).unwrap()
    }

    #[test]
    fn every_row_is_found_however_names_lie() {
        let mut rows = Rows::default();
        assert_eq!(rows.find(7, |_| true), None);
        let hashes: Vec<u64> = (0..3000)
            .map(|n: u64| (n / 200).wrapping_mul(0x1234_5678_9abc_def1) + n % 200)
            .collect();
        for (n, &hash) in (1..).zip(&hashes) {
            let spot = rows.spot(hash, |found| found == place(n));
            assert_eq!(rows.place(spot), None);
            rows.set(spot, place(n));
        }
        for (n, &hash) in (1..).zip(&hashes) {
            let spot = rows.spot(hash, |found| found == place(n));
            assert_eq!(rows.place(spot), Some(place(n)));
            rows.set(spot, place(n + 10_000));
        }
        for (n, &hash) in (1..).zip(&hashes) {
            let found = rows.find(hash, |found| found == place(n + 10_000));
            assert_eq!(found, Some(place(n + 10_000)));
        }
    }

    #[test]
    fn a_row_set_again_and_again_takes_one_word() {
        let mut rows = Rows::default();
        for n in 1..=1000 {
            let spot = rows.spot(42, |_| true);
            rows.set(spot, place(n));
        }
        assert_eq!((rows.taken, rows.words.len()), (1, LEAST));
    }

    #[test]
    fn rows_of_one_name_are_told_apart() {
        let mut rows = Rows::default();
        for n in 1..=100 {
            let spot = rows.spot(42, |found| found == place(n));
            rows.set(spot, place(n));
        }
        for n in 1..=100 {
            assert_eq!(rows.find(42, |found| found == place(n)), Some(place(n)));
        }
        assert_eq!(rows.find(42, |_| false), None);
    }
}
