//! What a lock is taken on: a key and the gap below it, named by a hash.

use longshore_base::StoreId;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Names the key of a row together with the gap just below it, or the end of a tree.
///
/// The hash is that of all bytes but the last, plus the last. So keys that count up have names that
/// count up, and the lock table puts those side by side: a transaction that loads or scans in key
/// order walks through memory in order.
///
/// Two keys may share a name (one chance in 2^64 a pair). That is harmless: every rule of the lock
/// manager stays true when two keys conflict that need not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LockName {
    store: StoreId,
    hash: u64,
}

impl LockName {
    /// The name of `key` in `store`.
    #[inline]
    pub fn of_key(store: StoreId, key: &[u8]) -> LockName {
        let (last, rest) = key.split_last().unwrap_or((&0, &[]));
        let hash = xxh3_64_with_seed(rest, seed(store));
        LockName {
            store,
            hash: hash.wrapping_add(u64::from(*last)),
        }
    }

    /// The name of the end of `store`; its gap reaches down to the greatest key.
    #[inline]
    pub fn of_supremum(store: StoreId) -> LockName {
        let hash = xxh3_64_with_seed(b"supremum", !seed(store));
        LockName { store, hash }
    }

    /// The tree that the key belongs to.
    pub fn store(self) -> StoreId {
        self.store
    }

    /// The hash, which already depends on the store.
    pub fn hash(self) -> u64 {
        self.hash
    }
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
            for key in 0..1000u32 {
                assert!(hashes.insert(LockName::of_key(store, &key.to_be_bytes()).hash()));
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
