//! Texts and byte strings as keys: escaped, so that they end and keep their order.
//!
//! # Protocol
//! A zero byte becomes `00 ff`; `00 00` is the end. The end is below whatever else may follow, so a
//! string comes before all those that go on from it, also with other parts of a key behind it.

use super::decode::DecodeError;
use super::key::{AsKey, AsPrefix, Key};

const ZERO: u8 = 0;
const ZERO_ESCAPED: u8 = 0xff;
const END: [u8; 2] = [0, 0];

fn escape(text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len() + END.len());
    for (at, part) in text.split(|byte| *byte == ZERO).enumerate() {
        if at > 0 {
            out.extend_from_slice(&[ZERO, ZERO_ESCAPED]);
        }
        out.extend_from_slice(part);
    }
}

fn encode(text: &[u8], out: &mut Vec<u8>) {
    escape(text, out);
    out.extend_from_slice(&END);
}

fn decode(bytes: &mut &[u8], what: &'static str) -> Result<Vec<u8>, DecodeError> {
    let mut text = Vec::new();
    loop {
        let zero = bytes.iter().position(|byte| *byte == ZERO);
        let (part, rest) = match zero.and_then(|at| bytes.split_at_checked(at)) {
            Some(split) => split,
            None => return Err(unended(what, "no end")),
        };
        text.extend_from_slice(part);
        match rest {
            [ZERO, ZERO, rest @ ..] => {
                *bytes = rest;
                return Ok(text);
            }
            [ZERO, ZERO_ESCAPED, rest @ ..] => {
                text.push(ZERO);
                *bytes = rest;
            }
            [_, other, ..] => return Err(unended(what, &format!("00 {other:02x} within it"))),
            _ => return Err(unended(what, "half an end")),
        }
    }
}

#[cold]
fn unended(what: &str, found: &str) -> DecodeError {
    DecodeError::new(
        format!("a {what} with zeros escaped, ended by 00 00"),
        found,
    )
}

impl Key for Vec<u8> {
    fn encode(&self, out: &mut Vec<u8>) {
        encode(self, out);
    }

    fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        decode(bytes, "byte string")
    }
}

impl Key for String {
    fn encode(&self, out: &mut Vec<u8>) {
        encode(self.as_bytes(), out);
    }

    fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        text(decode(bytes, "text")?)
    }
}

/// The bytes as text.
pub(super) fn text(bytes: Vec<u8>) -> Result<String, DecodeError> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        DecodeError::new("UTF-8", format!("something else at byte {at}"))
    })
}

impl AsKey<String> for &str {
    fn encode_key(&self, out: &mut Vec<u8>) {
        encode(self.as_bytes(), out);
    }
}

impl AsKey<Vec<u8>> for &[u8] {
    fn encode_key(&self, out: &mut Vec<u8>) {
        encode(self, out);
    }
}

impl<const N: usize> AsKey<Vec<u8>> for &[u8; N] {
    fn encode_key(&self, out: &mut Vec<u8>) {
        encode(*self, out);
    }
}

impl AsPrefix<String> for &str {
    fn encode_prefix(&self, out: &mut Vec<u8>) {
        escape(self.as_bytes(), out);
    }
}

impl AsPrefix<Vec<u8>> for &[u8] {
    fn encode_prefix(&self, out: &mut Vec<u8>) {
        escape(self, out);
    }
}
