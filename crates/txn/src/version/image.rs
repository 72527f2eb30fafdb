//! What a row was at some moment, and whose row it is.

use crate::lock::LockName;
use longshore_access::{RowFlags, ValueKind};
use longshore_base::StoreId;

/// Bits of a row that was not there.
const ABSENT: u16 = u16::MAX;

/// A row: its name's hash, and what tells it from others with the same name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowRef<'a> {
    pub hash: u64,
    pub store: StoreId,
    pub key: &'a [u8],
}

impl<'a> RowRef<'a> {
    #[inline]
    pub fn new(name: LockName, key: &'a [u8]) -> RowRef<'a> {
        RowRef {
            hash: name.hash(),
            store: name.store(),
            key,
        }
    }
}

/// What a row was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Image<'a> {
    Absent,
    Present { flags: RowFlags, value: &'a [u8] },
}

impl<'a> Image<'a> {
    /// The image of which these are the [bits](Self::bits) and the [value](Self::value).
    pub fn of_bits(bits: u16, value: &'a [u8]) -> Image<'a> {
        if bits == ABSENT {
            return Image::Absent;
        }
        let flags = RowFlags::from_bits(bits).expect("they were a row's");
        Image::Present { flags, value }
    }

    /// Its flags, or what says that there was no row.
    #[inline]
    pub fn bits(self) -> u16 {
        match self {
            Image::Absent => ABSENT,
            Image::Present { flags, .. } => flags.bits(),
        }
    }

    /// Its value, empty when there was no row.
    #[inline]
    pub fn value(self) -> &'a [u8] {
        match self {
            Image::Absent => &[],
            Image::Present { value, .. } => value,
        }
    }

    /// The image of a row in a leaf.
    #[inline]
    pub fn of_kind(kind: ValueKind, value: &'a [u8]) -> Image<'a> {
        let flags = match kind {
            ValueKind::Inline => RowFlags::NONE,
            ValueKind::Overflow => RowFlags::OVERFLOW,
        };
        Image::Present { flags, value }
    }
}

/// An image copied out, in memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct ImageBuffer {
    /// `None` when there was no row.
    kind: Option<ValueKind>,
    value: Vec<u8>,
}

impl ImageBuffer {
    pub fn set(&mut self, image: Image<'_>) {
        self.value.clear();
        self.kind = match image {
            Image::Absent => None,
            Image::Present { flags, value } => {
                self.value.extend_from_slice(value);
                Some(match flags.is_overflow() {
                    true => ValueKind::Overflow,
                    false => ValueKind::Inline,
                })
            }
        };
    }

    /// The row's value and what it is; `None` when there was no row.
    pub fn row(&self) -> Option<(ValueKind, &[u8])> {
        self.kind.map(|kind| (kind, self.value.as_slice()))
    }

    /// Replaces the content of `out` by the row's value, and says what it is; `None` when there was no row.
    pub fn copy_to(&self, out: &mut Vec<u8>) -> Option<ValueKind> {
        out.clear();
        out.extend_from_slice(&self.value);
        self.kind
    }
}
