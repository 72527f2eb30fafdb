//! Rows of a fixed layout: fields one after the other, read and written where they are.
//!
//! A row that is read to have one field changed is neither taken apart nor put together again.

use longshore::{DecodeError, Key, Value};
use std::marker::PhantomData;

/// What a field can hold.
pub(super) trait Field {
    const WIDTH: usize;

    /// Reads the field off `bytes`, which are as many as it has.
    fn read(bytes: &[u8]) -> Self;

    /// Writes the field over `bytes`, which are as many as it has.
    fn write(&self, bytes: &mut [u8]);
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Field for $number {
            const WIDTH: usize = size_of::<$number>();

            fn read(bytes: &[u8]) -> $number {
                <$number>::from_le_bytes(bytes.try_into().expect("as many bytes as it has"))
            }

            fn write(&self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

numbers!(u8, u16, i16, u32, u64, i64);

impl<const N: usize> Field for [u8; N] {
    const WIDTH: usize = N;

    fn read(bytes: &[u8]) -> [u8; N] {
        bytes.try_into().expect("as many bytes as it has")
    }

    fn write(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(self);
    }
}

/// A text of at most `N` bytes; those behind its end are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Text<const N: usize> {
    length: u16,
    bytes: [u8; N],
}

impl<const N: usize> Text<N> {
    /// The beginning of `text`, as much as there is room for.
    pub(super) fn of(text: &[u8]) -> Text<N> {
        let length = text.len().min(N);
        let mut bytes = [0; N];
        bytes[..length].copy_from_slice(&text[..length]);
        Text {
            length: length as u16,
            bytes,
        }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length).min(N)]
    }
}

impl<const N: usize> Field for Text<N> {
    const WIDTH: usize = 2 + N;

    fn read(bytes: &[u8]) -> Text<N> {
        Text {
            length: Field::read(&bytes[..2]),
            bytes: Field::read(&bytes[2..]),
        }
    }

    fn write(&self, bytes: &mut [u8]) {
        self.length.write(&mut bytes[..2]);
        self.bytes.write(&mut bytes[2..]);
    }
}

/// A kind of row; made by [`layout`].
pub(super) trait Layout {
    /// The table.
    const TABLE: &'static str;
    /// Bytes of a row.
    const WIDTH: usize;
}

/// A field of type `T` of the rows `R`.
pub(super) struct Column<R, T> {
    at: usize,
    types: PhantomData<fn(R) -> T>,
}

impl<R, T: Field> Column<R, T> {
    pub(super) const fn at(at: usize) -> Column<R, T> {
        Column {
            at,
            types: PhantomData,
        }
    }
}

/// A row of kind `R` in some bytes.
pub(super) struct Row<R, B> {
    bytes: B,
    kind: PhantomData<R>,
}

impl<R: Layout, B: AsRef<[u8]>> Row<R, B> {
    /// The row in these bytes; `None` when they are not as many as such a row has.
    pub(super) fn over(bytes: B) -> Option<Row<R, B>> {
        (bytes.as_ref().len() == R::WIDTH).then_some(Row {
            bytes,
            kind: PhantomData,
        })
    }

    pub(super) fn get<T: Field>(&self, column: Column<R, T>) -> T {
        T::read(&self.bytes.as_ref()[column.at..column.at + T::WIDTH])
    }
}

impl<R, B: AsRef<[u8]>> AsRef<[u8]> for Row<R, B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl<R: Layout, B: AsMut<[u8]>> Row<R, B> {
    pub(super) fn set<T: Field>(&mut self, column: Column<R, T>, value: T) {
        value.write(&mut self.bytes.as_mut()[column.at..column.at + T::WIDTH]);
    }
}

impl<R: Layout, const N: usize> Row<R, [u8; N]> {
    /// A row in which everything is zero.
    pub(super) fn blank() -> Row<R, [u8; N]> {
        const { assert!(N == R::WIDTH) };
        Row {
            bytes: [0; N],
            kind: PhantomData,
        }
    }
}

impl<R: Layout> Row<R, [u8; 0]> {
    /// A row of a kind that is all in its key.
    pub(super) fn empty() -> Row<R, [u8; 0]> {
        Row::blank()
    }
}

/// What indexes are told of a row.
impl<R: Layout, const N: usize> Value for Row<R, [u8; N]> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes);
    }

    #[inline]
    fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        const { assert!(N == R::WIDTH) };
        let kind = PhantomData;
        match bytes.split_first_chunk() {
            Some((row, rest)) => {
                *bytes = rest;
                Ok(Row { bytes: *row, kind })
            }
            None => Err(truncated(N, bytes.len())),
        }
    }
}

/// With the zeros behind it, which keep the order of texts; no text ends with one.
impl<const N: usize> Key for Text<N> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes);
    }

    fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        let Some((padded, rest)) = bytes.split_first_chunk::<N>() else {
            return Err(truncated(N, bytes.len()));
        };
        *bytes = rest;
        let zeros = padded.iter().rev().take_while(|byte| **byte == 0);
        Ok(Text {
            length: (N - zeros.count()) as u16,
            bytes: *padded,
        })
    }
}

#[cold]
fn truncated(expected: usize, found: usize) -> DecodeError {
    DecodeError::new(format!("{expected} bytes"), found.to_string())
}

/// Declares a kind of row, with its table and its fields in order.
macro_rules! layout {
    ($(#[$doc:meta])* $row:ident in $table:literal { $($field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        pub(in crate::tpcc) struct $row;

        impl $crate::tpcc::layout::Layout for $row {
            const TABLE: &'static str = $table;
            const WIDTH: usize = 0 $(+ <$type as $crate::tpcc::layout::Field>::WIDTH)*;
        }

        impl $row {
            $crate::tpcc::layout::columns!(0; $($field: $type,)*);
        }
    };
}

/// The columns of a row, the first one `at` a place.
macro_rules! columns {
    ($at:expr;) => {};
    ($at:expr; $field:ident: $type:ty, $($rest:tt)*) => {
        pub(in crate::tpcc) const $field: $crate::tpcc::layout::Column<Self, $type> =
            $crate::tpcc::layout::Column::at($at);
        $crate::tpcc::layout::columns!(
            $at + <$type as $crate::tpcc::layout::Field>::WIDTH; $($rest)*
        );
    };
}

pub(super) use {columns, layout};

#[cfg(test)]
mod tests {
    use super::*;

    layout! {
        /// A row with one of each.
        Mixed in "mixed" {
            NUMBER: i64,
            TEXT: Text<5>,
            CODE: [u8; 2],
            LAST: u16,
        }
    }

    #[test]
    fn fields_do_not_touch_each_other() {
        let mut row = Row::<Mixed, _>::blank();
        assert_eq!(Mixed::WIDTH, 8 + 7 + 2 + 2);
        row.set(Mixed::TEXT, Text::of(b"longer than five"));
        row.set(Mixed::NUMBER, -3);
        row.set(Mixed::LAST, u16::MAX);
        row.set(Mixed::CODE, *b"GC");
        let bytes: [u8; Mixed::WIDTH] = row.bytes;
        let row = Row::<Mixed, _>::over(bytes).unwrap();
        assert_eq!(row.get(Mixed::NUMBER), -3);
        assert_eq!(row.get(Mixed::TEXT).as_bytes(), b"longe");
        assert_eq!(row.get(Mixed::CODE), *b"GC");
        assert_eq!(row.get(Mixed::LAST), u16::MAX);
    }

    #[test]
    fn bytes_of_another_length_are_no_row() {
        assert!(Row::<Mixed, _>::over([0; Mixed::WIDTH - 1]).is_none());
        assert!(Row::<Mixed, _>::over([0; Mixed::WIDTH]).is_some());
    }

    #[test]
    fn texts_are_keys_in_the_order_of_texts() {
        let key = |last: &[u8], first: &[u8]| (Text::<16>::of(last), Text::<16>::of(first));
        let bytes = |last: &[u8], first: &[u8]| key(last, first).to_bytes();
        assert!(bytes(b"BAR", b"z") < bytes(b"BARBAR", b"a"));
        assert!(bytes(b"BAR", b"a") < bytes(b"BAR", b"aa"));
        assert_eq!(Key::from_bytes(&bytes(b"BAR", b"a")), Ok(key(b"BAR", b"a")));
        assert!(Text::<16>::from_bytes(b"BAR").is_err());
    }
}
