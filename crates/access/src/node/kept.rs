//! Updates by what they change: the log need not hold what is the same before and after.
//!
//! An update replaces a stretch of the value and keeps what is before and behind it. Redo finds the value as
//! it was in the page, and undo as it became in the row, so that either needs only the stretch that
//! it puts in.

/// How many bytes of a value an update keeps at either end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Kept {
    /// Bytes kept at the front.
    pub front: u16,
    /// Bytes kept at the back.
    pub back: u16,
}

impl Kept {
    /// The whole value is replaced.
    pub const NOTHING: Kept = Kept { front: 0, back: 0 };

    /// What two values, neither longer than a page, have in common.
    #[inline]
    pub fn between(old: &[u8], new: &[u8]) -> Kept {
        let front = common_front(old, new);
        let back = common_back(&old[front..], &new[front..]);
        Kept {
            front: front as u16,
            back: back as u16,
        }
    }

    /// Bytes kept.
    #[inline]
    pub fn bytes(self) -> usize {
        self.front as usize + self.back as usize
    }

    /// The stretch of `value` that is not kept; `None` when the value is shorter than what is.
    #[inline]
    pub fn middle(self, value: &[u8]) -> Option<&[u8]> {
        let end = value.len().checked_sub(self.back as usize)?;
        value.get(self.front as usize..end)
    }

    /// Puts `middle` in the place of the stretch of `value` that is not kept.
    /// False, and nothing done, when the value is shorter than what is kept.
    #[must_use]
    pub fn replace(self, value: &mut Vec<u8>, middle: &[u8]) -> bool {
        let Some(old) = self.middle(value) else {
            return false;
        };
        let front = self.front as usize;
        let range = front..front + old.len();
        value.splice(range, middle.iter().copied());
        true
    }
}

/// Leading bytes that are the same.
#[inline]
fn common_front(a: &[u8], b: &[u8]) -> usize {
    let (words_a, words_b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    let mut same = 0;
    for (a, b) in words_a.iter().zip(words_b) {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing != 0 {
            return same + differing.trailing_zeros() as usize / 8;
        }
        same += 8;
    }
    let rest = a[same..].iter().zip(&b[same..]);
    same + rest.take_while(|(a, b)| a == b).count()
}

/// Trailing bytes that are the same.
#[inline]
fn common_back(a: &[u8], b: &[u8]) -> usize {
    let (words_a, words_b) = (a.as_rchunks::<8>().1, b.as_rchunks::<8>().1);
    let mut same = 0;
    for (a, b) in words_a.iter().rev().zip(words_b.iter().rev()) {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing != 0 {
            return same + differing.leading_zeros() as usize / 8;
        }
        same += 8;
    }
    let (rest_a, rest_b) = (&a[..a.len() - same], &b[..b.len() - same]);
    let rest = rest_a.iter().rev().zip(rest_b.iter().rev());
    same + rest.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_kept_does_not_overlap() {
        let kept = Kept::between(b"aaaa", b"aaaaaa");
        assert_eq!((kept.front, kept.back), (4, 0));
        assert_eq!(kept.middle(b"aaaaaa"), Some(&b"aa"[..]));
        assert_eq!(
            Kept::between(b"same", b"same").middle(b"same"),
            Some(&b""[..])
        );
        assert_eq!(Kept { front: 2, back: 2 }.middle(b"abc"), None);
    }

    /// Values that share much, at either end.
    fn pairs() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
        let part = || prop::collection::vec(0..2_u8, 0..40);
        (part(), part(), part(), part()).prop_map(|(front, old, new, back)| {
            let whole = |middle: Vec<u8>| [front.clone(), middle, back.clone()].concat();
            (whole(old), whole(new))
        })
    }

    proptest! {
        #[test]
        fn either_value_is_rebuilt_from_the_other((old, new) in pairs()) {
            let kept = Kept::between(&old, &new);
            let (before, after) = (kept.middle(&old).unwrap(), kept.middle(&new).unwrap());
            prop_assert!(before.first() != after.first() || before.is_empty() || after.is_empty());
            prop_assert!(before.last() != after.last() || before.is_empty() || after.is_empty());
            let mut value = old.clone();
            prop_assert!(kept.replace(&mut value, after));
            prop_assert_eq!(&value, &new);
            prop_assert!(kept.replace(&mut value, before));
            prop_assert_eq!(&value, &old);
        }
    }
}
