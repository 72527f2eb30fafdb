//! What every engine can do that is compared: the same rows, the same transactions.

use crate::settings::Settings;
use std::path::Path;

/// Length of a value; with its key of 8 bytes a row has 100.
pub const VALUE_BYTES: usize = 92;

/// Length of a row: its key and its value.
pub(crate) const ROW_BYTES: u64 = 8 + VALUE_BYTES as u64;

/// Rows that a client of the insert workload commits at a time (Shore-MT, section 3).
pub(crate) const ROWS_PER_COMMIT: u64 = 1000;

/// What an engine said when it failed.
pub type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// What a store returns. A failure ends the benchmark: a broken store has no result.
pub type Outcome<T = ()> = Result<T, StoreError>;

/// An engine that can be measured: makes stores.
pub trait Engine {
    /// What the report calls it.
    fn name(&self) -> &'static str;

    /// Makes a new store in the empty folder `folder`, with a shared table and a private table for
    /// each of `clients`, as safe as `settings.durability` says.
    ///
    /// # Errors
    /// The engine's own.
    fn create(&self, folder: &Path, settings: &Settings, clients: usize)
    -> Outcome<Box<dyn Store>>;
}

/// A store under measurement. Conflicts that are worth another try are tried again inside.
pub trait Store: Sync {
    /// Commits the rows `first..first + count` to the shared table, where they are not yet.
    ///
    /// # Errors
    /// The engine's own.
    fn load(&self, first: u64, count: u64) -> Outcome;

    /// Commits the ascending rows `first..first + count` to the private table of `client`.
    ///
    /// # Errors
    /// The engine's own.
    fn insert(&self, client: usize, first: u64, count: u64) -> Outcome;

    /// Reads one row of the shared table in a transaction of its own, into `value`; tells whether it
    /// was there.
    ///
    /// # Errors
    /// The engine's own.
    fn read(&self, row: u64, value: &mut Vec<u8>) -> Outcome<bool>;

    /// Changes one row of the shared table in a transaction of its own; returns how many attempts
    /// had to be given up.
    ///
    /// # Errors
    /// The engine's own.
    fn update(&self, row: u64, stamp: u64) -> Outcome<u64>;

    /// Writes out what loading left in memory, so that it does not burden the measured run.
    ///
    /// # Errors
    /// The engine's own.
    fn settle(&self) -> Outcome {
        Ok(())
    }

    /// What the engine has counted so far, where it can tell.
    fn counts(&self) -> Option<Counts> {
        None
    }
}

/// What an engine counted.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Bytes of log written.
    pub log_bytes: u64,
    /// Pages fixed or read.
    pub fixes: u64,
    /// Times that a thread found something short of a lock taken and had to wait, by place.
    pub blocked: Vec<(&'static str, u64)>,
    /// Other counts that are worth a figure per run.
    pub others: Vec<(&'static str, u64)>,
}

impl Counts {
    /// The same counts when nothing had happened.
    pub(crate) fn at_zero(&self) -> Counts {
        let zeros = |counts: &[(&'static str, u64)]| counts.iter().map(|&(n, _)| (n, 0)).collect();
        Counts {
            blocked: zeros(&self.blocked),
            others: zeros(&self.others),
            ..Counts::default()
        }
    }
}

/// The key of a row.
pub fn key(row: u64) -> [u8; 8] {
    row.to_be_bytes()
}

/// The value of a row; differs from row to row and from stamp to stamp.
pub fn value(row: u64, stamp: u64) -> [u8; VALUE_BYTES] {
    let mut bytes = [0; VALUE_BYTES];
    for (at, chunk) in bytes.chunks_mut(8).enumerate() {
        let word = row.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stamp ^ at as u64;
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
    bytes
}

/// Fills the shared table with the rows `0..rows`, ascending.
///
/// # Errors
/// The engine's own.
pub(crate) fn fill(store: &dyn Store, rows: u64) -> Outcome {
    const ROWS_PER_STEP: u64 = 10_000;
    let mut first = 0;
    while first < rows {
        let count = ROWS_PER_STEP.min(rows - first);
        store.load(first, count)?;
        first += count;
    }
    store.settle()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_ascend_with_their_rows() {
        assert!(key(255) < key(256) && key(65_535) < key(65_536));
    }

    #[test]
    fn values_differ_by_row_and_by_stamp() {
        assert_ne!(value(1, 0), value(2, 0));
        assert_ne!(value(1, 0), value(1, 1));
        assert_eq!(ROW_BYTES, 100);
    }
}
