//! What a lock is taken on: a key and the gap below it, a table, or the database; named by a word.

use longshore_base::StoreId;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Names the key of a row together with the gap just below it, the end of a tree, a table, or the
/// database, which is the table of [`StoreId::NONE`].
///
/// | bits   | of a row                    | of a table |
/// |--------|-----------------------------|------------|
/// | 0..47  | hash of the key             | the store, from bit 1 on |
/// | 47..63 | the lower half of the store | zero       |
/// | 63     | clear                       | set        |
///
/// A name is this word and the store; the word and the rest of the store say it all.
///
/// The hash is that of all bytes but the last, plus the last. So keys that count up have names that
/// count up, and the lock table puts those side by side: a transaction that loads or scans in key
/// order walks through memory in order.
///
/// A store and the hash of a key are also how the log names the locks of a prepared transaction, so the hash is
/// a part of the format of files: it depends on nothing but the two, and another one, or more of its bits, needs
/// another version of the log.
///
/// Two keys of a store may share a name (one chance in 2^47 a pair). That is harmless: every rule of the
/// lock manager stays true when two keys conflict that need not. Keys of two stores never share one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LockName {
    store: StoreId,
    hash: u64,
}

const OF_TABLE: u64 = 1 << 63;
/// How many bits of a row's word are the hash of its key.
const KEY_BITS: u32 = 47;
/// How many bits of the store a row's word has.
const STORE_BITS: u32 = 16;

impl LockName {
    /// The name of `key` in `store`.
    #[inline]
    pub fn of_key(store: StoreId, key: &[u8]) -> LockName {
        let (last, rest) = key.split_last().unwrap_or((&0, &[]));
        let hash = xxh3_64_with_seed(rest, seed(store));
        LockName::of_row(store, hash.wrapping_add(u64::from(*last)))
    }

    /// The name of the row of `store` whose key has this [hash](LockName::key_hash).
    pub(crate) fn of_key_hash(store: StoreId, hash: u64) -> LockName {
        LockName::of_row(store, hash)
    }

    /// The hash of the key, or of the supremum; the same in every run.
    pub(crate) fn key_hash(self) -> u64 {
        self.hash & ((1 << KEY_BITS) - 1)
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
        let hash = hash & ((1 << KEY_BITS) - 1) | lower_half(store) << KEY_BITS;
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

    /// What the word does not say of the store.
    #[inline]
    pub(super) fn rest(self) -> u16 {
        (self.store.get() >> STORE_BITS) as u16
    }

    /// The name of which these are the word and the rest.
    pub(super) fn of_parts(hash: u64, rest: u16) -> LockName {
        let shift = match hash & OF_TABLE {
            0 => KEY_BITS,
            _ => 1,
        };
        let lower = (hash >> shift) as u32 & ((1 << STORE_BITS) - 1);
        let store = StoreId::new(lower | u32::from(rest) << STORE_BITS);
        LockName { store, hash }
    }

    /// The name with the word `hash` of a row of `store`, if there can be one.
    pub(super) fn of_row_in(store: StoreId, hash: u64) -> Option<LockName> {
        (hash >> KEY_BITS == lower_half(store)).then_some(LockName { store, hash })
    }

    /// Whether it names a table, or the database.
    pub fn is_table(self) -> bool {
        self.hash & OF_TABLE != 0
    }
}

#[inline]
fn lower_half(store: StoreId) -> u64 {
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
        // Two of them agree in their lower halves.
        for store in [16, 17, 18, 17 + (1 << 16), u32::MAX] {
            let store = StoreId::new(store);
            let table = LockName::of_table(store);
            assert!(hashes.insert(LockName::of_supremum(store).hash()));
            assert!(hashes.insert(table.hash()));
            assert_eq!(LockName::of_parts(table.hash(), table.rest()), table);
            assert_eq!(LockName::of_row_in(store, table.hash()), None);
            for key in 0..1000u32 {
                let name = LockName::of_key(store, &key.to_be_bytes());
                assert!(hashes.insert(name.hash()) && !name.is_table());
                assert_eq!(LockName::of_parts(name.hash(), name.rest()), name);
                assert_eq!(LockName::of_row_in(store, name.hash()), Some(name));
                let neighbour = StoreId::new(store.get() ^ 1);
                assert_eq!(LockName::of_row_in(neighbour, name.hash()), None);
            }
        }
    }

    #[test]
    fn hashes_are_what_they_are_in_the_log() {
        // As many bits as any version has.
        let hash = |name: LockName| name.key_hash() & ((1 << 47) - 1);
        let of_key = |store, key: &[u8]| hash(LockName::of_key(StoreId::new(store), key));
        let found = [
            of_key(16, b""),
            of_key(16, b"key"),
            of_key(1 << 20, b"key"),
            of_key(16, &[0xff; 300]),
            hash(LockName::of_supremum(StoreId::new(16))),
        ];
        let expected = [
            64_181_644_918_437,
            136_604_992_337_146,
            108_127_098_966_227,
            47_257_525_425_834,
            15_553_844_927_213,
        ];
        assert_eq!(found, expected);
        let name = LockName::of_key(StoreId::new(70_000), b"key");
        assert_eq!(LockName::of_key_hash(name.store(), name.key_hash()), name);
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
