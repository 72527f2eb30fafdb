//! Ranges of keys, written as Rust's own ranges.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// Both ends of a range of keys.
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Whatever names a range of keys: each of Rust's ranges over anything that is bytes.
///
/// ```
/// # use longshore::Database;
/// # fn main() -> longshore::Result<()> {
/// # let db = Database::in_memory()?;
/// # let table = db.create_table("fruit")?;
/// # let tx = db.begin()?;
/// tx.scan(&table, ..)?;
/// tx.scan(&table, "apple".."cherry")?;
/// tx.scan(&table, vec![1, 2, 3]..)?;
/// tx.scan(&table, ..=[0xff, 0xff])?;
/// # Ok(()) }
/// ```
pub trait KeyRange {
    /// The two ends.
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>);
}

impl KeyRange for RangeFull {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyRange for Range<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (
            Bound::Included(self.start.as_ref()),
            Bound::Excluded(self.end.as_ref()),
        )
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeInclusive<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (
            Bound::Included(self.start().as_ref()),
            Bound::Included(self.end().as_ref()),
        )
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeFrom<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start.as_ref()), Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeTo<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Excluded(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeToInclusive<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Included(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyRange for (Bound<K>, Bound<K>) {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (borrow(&self.0), borrow(&self.1))
    }
}

/// A range that owns its ends.
pub(crate) fn owned(range: &impl KeyRange) -> Bounds {
    let (low, high) = range.bounds();
    (own(low), own(high))
}

/// The range of all keys that begin with `prefix`.
pub(crate) fn prefix(prefix: Vec<u8>) -> Bounds {
    let mut end = prefix.clone();
    while end.last() == Some(&u8::MAX) {
        end.pop();
    }
    let high = match end.last_mut() {
        Some(last) => {
            *last += 1;
            Bound::Excluded(end)
        }
        None => Bound::Unbounded,
    };
    (Bound::Included(prefix), high)
}

/// The same bound over borrowed bytes.
pub(crate) fn borrow<K: AsRef<[u8]>>(bound: &Bound<K>) -> Bound<&[u8]> {
    bound.as_ref().map(AsRef::as_ref)
}

fn own(bound: Bound<&[u8]>) -> Bound<Vec<u8>> {
    bound.map(<[u8]>::to_vec)
}

/// Whether no key can lie between the two.
pub(crate) fn is_empty(low: Bound<&[u8]>, high: Bound<&[u8]>) -> bool {
    match (low, high) {
        (Bound::Unbounded, Bound::Excluded(high)) => high.is_empty(),
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low), Bound::Excluded(high))
        | (Bound::Excluded(low), Bound::Included(high)) => low >= high,
        (Bound::Excluded(low), Bound::Excluded(high)) => {
            // Between a key and the next possible one there is none.
            low >= high || (high.strip_prefix(low) == Some(&[0]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn contains((low, high): &Bounds, key: &[u8]) -> bool {
        let above = match low {
            Bound::Included(low) => key >= low.as_slice(),
            Bound::Excluded(low) => key > low.as_slice(),
            Bound::Unbounded => true,
        };
        let below = match high {
            Bound::Included(high) => key <= high.as_slice(),
            Bound::Excluded(high) => key < high.as_slice(),
            Bound::Unbounded => true,
        };
        above && below
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(254), Just(255)], 0..4)
    }

    fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
        prop_oneof![
            key().prop_map(Bound::Included),
            key().prop_map(Bound::Excluded),
            Just(Bound::Unbounded)
        ]
    }

    proptest! {
        #[test]
        fn prefix_range_holds_exactly_the_keys_with_the_prefix(start in key(), key in key()) {
            prop_assert_eq!(contains(&prefix(start.clone()), &key), key.starts_with(&start));
        }

        #[test]
        fn empty_ranges_hold_no_key(low in bound(), high in bound(), key in key()) {
            if is_empty(borrow(&low), borrow(&high)) {
                prop_assert!(!contains(&(low, high), &key));
            }
        }
    }
}
