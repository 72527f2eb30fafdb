//! A trace in memory: which pages were asked for, in order.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::directory::hash;

/// References to pages, which are numbered densely in the order of their first use.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The page of each number.
    pages: Vec<u64>,
    /// What was asked for: numbers.
    refs: Vec<u32>,
    numbers: HashMap<u64, u32, BuildHasherDefault<PageHasher>>,
}

/// A trace cannot hold more references.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a trace holds at most {} references", Trace::LEN_MAX)]
pub struct TraceTooLong;

impl Trace {
    /// References that a trace can hold.
    pub const LEN_MAX: usize = u32::MAX as usize - 1;

    /// An empty trace.
    pub fn new() -> Trace {
        Trace::default()
    }

    /// Appends a reference.
    ///
    /// # Errors
    /// [`TraceTooLong`] when it is full.
    pub fn push(&mut self, page: u64) -> Result<(), TraceTooLong> {
        if self.refs.len() == Trace::LEN_MAX {
            return Err(TraceTooLong);
        }
        let next = self.pages.len() as u32;
        let number = *self.numbers.entry(page).or_insert(next);
        if number == next {
            self.pages.push(page);
        }
        self.refs.push(number);
        Ok(())
    }

    /// The page of each number.
    pub fn pages(&self) -> &[u64] {
        &self.pages
    }

    /// The references, by number.
    pub fn refs(&self) -> &[u32] {
        &self.refs
    }

    /// The references, by page.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.refs.iter().map(|&number| self.pages[number as usize])
    }
}

/// The trace of these references.
///
/// # Panics
/// if there are more than [`Trace::LEN_MAX`].
impl FromIterator<u64> for Trace {
    fn from_iter<I: IntoIterator<Item = u64>>(pages: I) -> Trace {
        let mut trace = Trace::new();
        for page in pages {
            trace
                .push(page)
                .expect("no more than Trace::LEN_MAX references");
        }
        trace
    }
}

/// Hashes page numbers.
#[derive(Clone, Default)]
struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = hash(self.0 ^ word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_numbered_in_order_of_first_use() {
        let trace: Trace = [7, 5, 7, u64::MAX, 5].into_iter().collect();
        assert_eq!(trace.pages(), [7, 5, u64::MAX]);
        assert_eq!(trace.refs(), [0, 1, 0, 2, 1]);
        assert!(trace.iter().eq([7, 5, 7, u64::MAX, 5]));
    }
}
