//! Ranges of typed keys, written as Rust's own ranges.

use super::key::{AsKey, AsPrefix, ROOM, key_bytes};
use crate::range;
use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A range of encoded keys.
pub(crate) type Bytes = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Whatever names a range of keys of type `K`: each of Rust's ranges over what can stand for a key.
///
/// ```
/// # use longshore::{Database, TypedTable};
/// # fn main() -> longshore::Result<()> {
/// # let db = Database::in_memory()?;
/// let depths: TypedTable<(String, u32), f64> = TypedTable::create(&db, "depths")?;
/// # let tx = db.begin()?;
/// depths.scan(&tx, ..)?;
/// depths.scan(&tx, ("quay".to_string(), 3)..)?;
/// depths.scan(&tx, ("quay".to_string(), 3)..=("quay".to_string(), 7))?;
/// # Ok(()) }
/// ```
pub trait TypedRange<K> {
    /// The encodings of the two ends.
    fn encoded(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>);
}

impl<K> TypedRange<K> for RangeFull {
    fn encoded(&self) -> Bytes {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<K, Q: AsKey<K>> TypedRange<K> for Range<Q> {
    fn encoded(&self) -> Bytes {
        (
            Bound::Included(key_bytes(&self.start)),
            Bound::Excluded(key_bytes(&self.end)),
        )
    }
}

impl<K, Q: AsKey<K>> TypedRange<K> for RangeInclusive<Q> {
    fn encoded(&self) -> Bytes {
        (
            Bound::Included(key_bytes(self.start())),
            Bound::Included(key_bytes(self.end())),
        )
    }
}

impl<K, Q: AsKey<K>> TypedRange<K> for RangeFrom<Q> {
    fn encoded(&self) -> Bytes {
        (Bound::Included(key_bytes(&self.start)), Bound::Unbounded)
    }
}

impl<K, Q: AsKey<K>> TypedRange<K> for RangeTo<Q> {
    fn encoded(&self) -> Bytes {
        (Bound::Unbounded, Bound::Excluded(key_bytes(&self.end)))
    }
}

impl<K, Q: AsKey<K>> TypedRange<K> for RangeToInclusive<Q> {
    fn encoded(&self) -> Bytes {
        (Bound::Unbounded, Bound::Included(key_bytes(&self.end)))
    }
}

impl<K, Q: AsKey<K>> TypedRange<K> for (Bound<Q>, Bound<Q>) {
    fn encoded(&self) -> Bytes {
        (
            self.0.as_ref().map(key_bytes),
            self.1.as_ref().map(key_bytes),
        )
    }
}

/// The range of all encodings that begin with `prefix`.
pub(crate) fn of_prefix<K>(prefix: &impl AsPrefix<K>) -> Bytes {
    let mut bytes = Vec::with_capacity(ROOM);
    prefix.encode_prefix(&mut bytes);
    range::prefix(bytes)
}
