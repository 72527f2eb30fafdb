//! What a lock is taken on: a key and the gap below it, a table, or the database; named by a word.

use longshore_base::StoreId;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Names the key of a row together with the gap just below it, the end of a tree, a table, or the
/// database, which is the table of [`StoreId::NONE`].
///
/// | bits   | of a row                    | of a table |
/// |--------|-----------------------------|------------|
/// | 0..51  | hash of the key             | the store  |
/// | 51..63 | the lowest bits of the store | zero      |
/// | 63     | clear                       | set        |
///
/// The hash is that of all bytes but the last, plus the last. So keys that count up have names that
/// count up, and the lock table puts those side by side: a transaction that loads or scans in key
/// order walks through memory in order.
///
/// Two keys may share a name (one chance in 2^51 a pair). That is harmless: every rule of the lock
/// manager stays true when two keys conflict that need not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LockName {
    store: StoreId,
    hash: u64,
}

const OF_TABLE: u64 = 1 << 63;
const KEY_BITS: u64 = (1 << 51) - 1;
/// How many of the store's bits a row's name has.
const STORE_BITS: u32 = 12;

impl LockName {
    /// The name of `key` in `store`.
    #[inline]
    pub fn of_key(store: StoreId, key: &[u8]) -> LockName {
        let (last, rest) = key.split_last().unwrap_or((&0, &[]));
        let hash = xxh3_64_with_seed(rest, seed(store));
        LockName::of_row(store, hash.wrapping_add(u64::from(*last)))
    }

    /// The name of the end of `store`; its gap reaches down to the greatest key.
    #[inline]
    pub fn of_supremum(store: StoreId) -> LockName {
        LockName::of_row(store, xxh3_64_with_seed(b"supremum", !seed(store)))
    }

    /// The name of the table `store`.
    pub fn of_table(store: StoreId) -> LockName {
        // Doubled, as two neighbouring names share a bucket.
        let hash = OF_TABLE | u64::from(store.get()) << 1;
        LockName { store, hash }
    }

    /// The name of the whole database.
    pub fn of_database() -> LockName {
        LockName::of_table(StoreId::NONE)
    }

    #[inline]
    fn of_row(store: StoreId, hash: u64) -> LockName {
        let hash = hash & KEY_BITS | tag(store) << KEY_BITS.count_ones();
        LockName { store, hash }
    }

    /// The tree that the key belongs to, or the table.
    #[inline]
    pub fn store(self) -> StoreId {
        self.store
    }

    /// The word itself, which already depends on the store.
    #[inline]
    pub fn hash(self) -> u64 {
        self.hash
    }

    /// Whether it names a table, or the database.
    pub fn is_table(self) -> bool {
        self.hash & OF_TABLE != 0
    }
}

/// Whether `hash` is the name of a row in a table that cannot be told from `store`.
pub(super) fn is_row_of(hash: u64, store: StoreId) -> bool {
    hash >> KEY_BITS.count_ones() == tag(store)
}

/// Whether `hash` names a table or the database: then which.
pub(super) fn table_of(hash: u64) -> Option<StoreId> {
    let store = u32::try_from((hash & !OF_TABLE) >> 1).ok()?;
    (hash & OF_TABLE != 0).then_some(StoreId::new(store))
}

/// What a row's name says of its store.
#[inline]
pub(super) fn tag(store: StoreId) -> u64 {
    u64::from(store.get()) & ((1 << STORE_BITS) - 1)
}

/// Spreads the store over all bits: the hash of a short key takes in only half of the seed's.
fn seed(store: StoreId) -> u64 {
    u64::from(store.get()).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_differ_by_key_by_store_and_from_the_supremum() {
        let mut hashes = HashSet::new();
        for store in 16..20 {
            let store = StoreId::new(store);
            assert!(hashes.insert(LockName::of_supremum(store).hash()));
            assert!(hashes.insert(LockName::of_table(store).hash()));
            assert_eq!(table_of(LockName::of_table(store).hash()), Some(store));
            for key in 0..1000u32 {
                let name = LockName::of_key(store, &key.to_be_bytes());
                assert!(hashes.insert(name.hash()));
                assert!(is_row_of(name.hash(), store) && !name.is_table());
                assert!(!is_row_of(name.hash(), StoreId::new(store.get() + 1)));
                assert_eq!(table_of(name.hash()), None);
            }
        }
    }

    #[test]
    fn keys_that_count_up_have_names_that_count_up() {
        let name = |key: u64| LockName::of_key(StoreId::new(16), &key.to_be_bytes()).hash();
        assert_eq!(name(513).wrapping_sub(name(512)), 1);
        assert!(
            name(512).wrapping_sub(name(511)) > 256,
            "another stretch lies elsewhere"
        );
    }
}
