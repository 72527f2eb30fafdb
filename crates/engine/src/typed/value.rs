//! Values: what rows hold; the layout is told at [`Value`].

use super::decode::{DecodeError, take_array};
use super::list;

/// A type whose values rows can hold.
///
/// Implemented for what [`Key`](crate::Key) is implemented for, and for `Vec` of values; derived for structs
/// and enums with `#[derive(Value)]`. The encodings are the file format: a type read back must have the
/// fields, in the order, that it was written with. Variants may be added behind the others.
///
/// ```
/// use longshore::Value;
///
/// #[derive(Value, Debug, PartialEq)]
/// enum Cargo {
///     Empty,
///     Bulk { goods: String, tons: u32 },
///     Containers(Vec<u64>),
/// }
///
/// let cargo = Cargo::Bulk { goods: "ore".into(), tons: 40_000 };
/// assert_eq!(Cargo::from_bytes(&cargo.to_bytes())?, cargo);
/// # Ok::<(), longshore::DecodeError>(())
/// ```
///
/// # Layout
/// | type | bytes |
/// |---|---|
/// | numbers, `bool`, `char`, `()`, tuples, `[V; N]`, `Option<V>`, `Reverse<V>` | as in [keys](crate::Key) |
/// | `String`, `Vec<V>` | how many bytes or elements, in base 128, low digits first; then these |
/// | derived struct | its fields as a tuple |
/// | derived enum | the variant's tag (its number from 0 on, or the `tag` given), then its fields |
///
/// `Reverse` in a value is just what it holds: nothing is ordered by values.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the value of a row",
    label = "has no encoding as a value",
    note = "values are numbers, `bool`, `char`, `String`, `Vec`, tuples, arrays and `Option`s of values",
    note = "write `#[derive(longshore::Value)]` above a struct or an enum; use `u64` for `usize`"
)]
pub trait Value: Sized {
    /// Appends the encoding.
    fn encode(&self, out: &mut Vec<u8>);

    /// Takes one value off the front of `bytes`.
    ///
    /// # Errors
    /// [`DecodeError`] when they do not begin with an encoding; what is left of `bytes` means nothing then.
    fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError>;

    /// The encoding alone.
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }

    /// The value that encodes to exactly these bytes.
    ///
    /// # Errors
    /// [`DecodeError`] when none does.
    fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        super::decode::whole(bytes, Self::decode)
    }

    /// Appends the encodings of all; so that bytes are copied at once.
    #[doc(hidden)]
    fn encode_all(values: &[Self], out: &mut Vec<u8>) {
        values.iter().for_each(|value| value.encode(out));
    }

    /// Takes a list off the front.
    #[doc(hidden)]
    fn decode_list(bytes: &mut &[u8]) -> Result<Vec<Self>, DecodeError> {
        list::decode_list(bytes)
    }
}

impl Value for u8 {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        let [byte] = take_array(bytes, "u8")?;
        Ok(byte)
    }

    fn encode_all(values: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(values);
    }

    fn decode_list(bytes: &mut &[u8]) -> Result<Vec<u8>, DecodeError> {
        Ok(list::take_bytes(bytes, "byte string")?.to_vec())
    }
}
