//! What is said when bytes are not what a type encodes to.

use std::borrow::Cow;
use std::fmt;

/// Bytes that no value of the wanted type encodes to.
///
/// ```
/// use longshore::Key;
/// let error = <(u32, String)>::decode(&mut &[0, 0, 1][..]).unwrap_err();
/// assert_eq!(error.to_string(), "expected the 4 bytes of a u32, found 3");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Where in the type, from the outside in: `Customer.name`.
    path: String,
    expected: Cow<'static, str>,
    found: String,
}

impl DecodeError {
    /// Says what was expected and what was found instead, in words.
    pub fn new(expected: impl Into<Cow<'static, str>>, found: impl Into<String>) -> DecodeError {
        DecodeError {
            path: String::new(),
            expected: expected.into(),
            found: found.into(),
        }
    }

    /// Names the place: `Type.field`, or `Type` alone.
    #[must_use]
    pub fn within(mut self, place: &str) -> DecodeError {
        self.path = match self.path.is_empty() {
            true => place.to_owned(),
            false => format!("{place}: {}", self.path),
        };
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "expected {}, found {}", self.expected, self.found)
    }
}

impl std::error::Error for DecodeError {}

/// Takes `count` bytes off the front.
pub(super) fn take<'a>(
    bytes: &mut &'a [u8],
    count: usize,
    what: &'static str,
) -> Result<&'a [u8], DecodeError> {
    match bytes.split_at_checked(count) {
        Some((taken, rest)) => {
            *bytes = rest;
            Ok(taken)
        }
        None => Err(truncated(count, what, bytes.len())),
    }
}

#[cold]
fn truncated(count: usize, what: &str, left: usize) -> DecodeError {
    let s = if count == 1 { "byte" } else { "bytes" };
    DecodeError::new(format!("the {count} {s} of a {what}"), left.to_string())
}

/// Takes as many bytes as the array has.
pub(super) fn take_array<const N: usize>(
    bytes: &mut &[u8],
    what: &'static str,
) -> Result<[u8; N], DecodeError> {
    let taken = take(bytes, N, what)?;
    Ok(taken.try_into().expect("as many as asked for"))
}

/// Takes the tag of an enum's variant.
pub fn take_tag(bytes: &mut &[u8], name: &'static str) -> Result<u8, DecodeError> {
    let [tag] = take_array(bytes, "variant's tag").map_err(|error| error.within(name))?;
    Ok(tag)
}

/// The error for a tag that no variant has.
pub fn no_variant(name: &'static str, tag: u8) -> DecodeError {
    DecodeError::new("the tag of a variant", tag.to_string()).within(name)
}

/// Decodes all of `bytes`. Inlined: who looks at a part of a value then copies that part alone.
#[inline]
pub(crate) fn whole<T>(
    mut bytes: &[u8],
    decode: impl FnOnce(&mut &[u8]) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    let decoded = decode(&mut bytes)?;
    match bytes.len() {
        0 => Ok(decoded),
        left => Err(left_over(std::any::type_name::<T>(), left)),
    }
}

#[cold]
fn left_over(name: &str, left: usize) -> DecodeError {
    DecodeError::new(
        format!("nothing behind {name}"),
        format!("{left} more bytes"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_place_from_the_outside_in() {
        let error = DecodeError::new("0 or 1 for a bool", "7")
            .within("Address.known")
            .within("Customer.address");
        assert_eq!(
            error.to_string(),
            "Customer.address: Address.known: expected 0 or 1 for a bool, found 7"
        );
    }

    #[test]
    fn bytes_left_over_are_an_error() {
        let error = whole(&[1, 2, 3], |bytes| take_array::<1>(bytes, "u8")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected nothing behind [u8; 1], found 2 more bytes"
        );
    }
}
