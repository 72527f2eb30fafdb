//! What a lock is taken on: a key and the gap below it, named by a hash.

use longshore_base::StoreId;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Names the key of a row together with the gap just below it, or the end of a tree.
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
        let hash = xxh3_64_with_seed(key, u64::from(store.get()));
        LockName { store, hash }
    }

    /// The name of the end of `store`; its gap reaches down to the greatest key.
    #[inline]
    pub fn of_supremum(store: StoreId) -> LockName {
        // Seeds of keys have the upper half zero, so no key is hashed with this one.
        let hash = xxh3_64_with_seed(b"supremum", !u64::from(store.get()));
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
}
