//! Keys: what rows are found and ordered by; the layout is told at [`Key`].

use super::decode::DecodeError;

/// Bytes that an encoding is given from the start: enough for most keys.
pub(super) const ROOM: usize = 48;

/// A type whose values are keys, in an order that their encodings keep.
///
/// Implemented for numbers, `bool`, `char`, `String`, `Vec<u8>`, tuples up to eight, arrays, `Option` and
/// [`Reverse`](std::cmp::Reverse); derived for structs and enums with `#[derive(Key)]`, in the order that
/// `#[derive(PartialOrd, Ord)]` gives them. The encodings are the file format: changing the fields of a
/// type makes keys stored before unreadable.
///
/// ```
/// use longshore::Key;
///
/// #[derive(Key, Debug, PartialEq)]
/// struct Berth {
///     quay: String,
///     number: i32,
/// }
///
/// let bytes = |quay: &str, number| Berth { quay: quay.into(), number }.to_bytes();
/// assert!(bytes("east", -3) < bytes("east", 2));
/// assert!(bytes("east", 2) < bytes("eastern", -9));
/// assert_eq!(Berth::from_bytes(&bytes("east", 2))?.number, 2);
/// # Ok::<(), longshore::DecodeError>(())
/// ```
///
/// # Layout
/// | type | bytes |
/// |---|---|
/// | `bool` | 0 or 1 |
/// | `u8` … `u128` | big-endian |
/// | `i8` … `i128` | big-endian, sign bit flipped |
/// | `f32`, `f64` | IEEE bits, big-endian; a negative one has all bits flipped, any other its sign bit |
/// | `char` | its number, 3 bytes, big-endian |
/// | `String`, `Vec<u8>` | the bytes, with 0 written as `00 ff`, then `00 00` |
/// | `()`, tuples, `[K; N]` | one part after the other |
/// | `Option<K>` | 0; or 1 and the key |
/// | `Reverse<K>` | the key's bytes, all bits flipped |
/// | derived struct | its fields as a tuple |
/// | derived enum | the variant's tag (its number from 0 on, or the `tag` given), then its fields |
///
/// Floats are in the total order of IEEE 754: negative NaNs, −∞, …, −0.0, 0.0, …, ∞, NaNs. So −0.0 and
/// 0.0 are two keys, and every NaN can be found again, by its own bits.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key",
    label = "has no encoding as a key",
    note = "keys are numbers, `bool`, `char`, `String`, `Vec<u8>`, tuples and arrays of keys, `Option` and `Reverse`",
    note = "write `#[derive(longshore::Key)]` above a struct or an enum; use `u64` for `usize`, `String` for `str`"
)]
pub trait Key: Sized {
    /// Appends the encoding.
    fn encode(&self, out: &mut Vec<u8>);

    /// Takes one key off the front of `bytes`.
    ///
    /// # Errors
    /// [`DecodeError`] when they do not begin with an encoding; what is left of `bytes` means nothing then.
    fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError>;

    /// The encoding alone.
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(ROOM);
        self.encode(&mut out);
        out
    }

    /// The key that encodes to exactly these bytes.
    ///
    /// # Errors
    /// [`DecodeError`] when none does.
    fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        super::decode::whole(bytes, Self::decode)
    }
}

/// What can stand for a whole key of type `K` in a call: the key, a reference to it, `&str` for a
/// `String`, `&[u8]` for a `Vec<u8>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand for a key of type `{K}`",
    label = "expected `{K}`, or a reference to one",
    note = "a part of a key is for `prefix`; `get` and `scan` take whole keys"
)]
pub trait AsKey<K> {
    /// Appends the encoding of the key.
    fn encode_key(&self, out: &mut Vec<u8>);
}

impl<K: Key> AsKey<K> for K {
    fn encode_key(&self, out: &mut Vec<u8>) {
        self.encode(out);
    }
}

impl<K: Key> AsKey<K> for &K {
    fn encode_key(&self, out: &mut Vec<u8>) {
        self.encode(out);
    }
}

/// What the keys of type `K` may begin with: the leading parts of a tuple or of a derived struct, the
/// beginning of a text.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what keys of type `{K}` begin with",
    label = "not the leading part of a key",
    note = "the leading part of `(A, B, C)` is `(A,)` or `(A, B)`, with the comma; that of a `String` is `&str`"
)]
pub trait AsPrefix<K> {
    /// Appends what the encodings of such keys begin with.
    fn encode_prefix(&self, out: &mut Vec<u8>);
}

/// The encoding of what stands for a key.
pub(crate) fn key_bytes<K>(key: &impl AsKey<K>) -> Vec<u8> {
    let mut out = Vec::with_capacity(ROOM);
    key.encode_key(&mut out);
    out
}
