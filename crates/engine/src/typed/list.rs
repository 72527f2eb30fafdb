//! Lists and texts as values: a count, then the elements.
//!
//! The count is in base 128, low digits first, each but the last with its high bit set. It is held
//! against the bytes that follow before anything is allocated; elements that take no bytes are bounded by
//! [`WITHOUT_BYTES_MAX`]. Lists in lists are bounded by [`DEPTH_MAX`], so no bytes exhaust the stack.

use super::bytes::text;
use super::decode::{DecodeError, take, take_array};
use super::value::Value;
use std::cell::Cell;

/// Most elements of a list whose elements take no bytes.
const WITHOUT_BYTES_MAX: u64 = 1 << 20;
/// Deepest nesting of lists.
const DEPTH_MAX: u32 = 100;

pub(super) fn encode_count(count: usize, out: &mut Vec<u8>) {
    let mut left = count as u64;
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

fn decode_count(bytes: &mut &[u8]) -> Result<u64, DecodeError> {
    let mut count = 0u64;
    for shift in (0..u64::BITS).step_by(7) {
        let [digit] = take_array(bytes, "count")?;
        let part = u64::from(digit & 0x7f);
        if part << shift >> shift != part {
            break;
        }
        count |= part << shift;
        if digit < 0x80 {
            return Ok(count);
        }
    }
    Err(DecodeError::new("a count of 64 bits", "a longer one"))
}

/// The count of elements of one byte each, which must be there.
pub(super) fn take_bytes<'a>(
    bytes: &mut &'a [u8],
    what: &'static str,
) -> Result<&'a [u8], DecodeError> {
    let count = decode_count(bytes)?;
    take(bytes, usize::try_from(count).unwrap_or(usize::MAX), what)
}

pub(super) fn decode_list<V: Value>(bytes: &mut &[u8]) -> Result<Vec<V>, DecodeError> {
    let count = decode_count(bytes)?;
    let _depth = Depth::enter()?;
    let mut list = Vec::with_capacity(count.min(bytes.len() as u64).min(1024) as usize);
    for done in 0..count {
        let before = bytes.len();
        list.push(V::decode(bytes)?);
        if before == bytes.len() && done >= WITHOUT_BYTES_MAX {
            let expected = format!("at most {WITHOUT_BYTES_MAX} elements without bytes");
            return Err(DecodeError::new(expected, count.to_string()));
        }
    }
    Ok(list)
}

/// How deep the list that is being decoded lies in others.
struct Depth;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

impl Depth {
    fn enter() -> Result<Depth, DecodeError> {
        let depth = DEPTH.get();
        if depth >= DEPTH_MAX {
            let expected = format!("at most {DEPTH_MAX} lists within each other");
            return Err(DecodeError::new(expected, "more"));
        }
        DEPTH.set(depth + 1);
        Ok(Depth)
    }
}

impl Drop for Depth {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

impl<V: Value> Value for Vec<V> {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_count(self.len(), out);
        V::encode_all(self, out);
    }

    fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        V::decode_list(bytes)
    }
}

impl Value for String {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_count(self.len(), out);
        out.extend_from_slice(self.as_bytes());
    }

    fn decode(bytes: &mut &[u8]) -> Result<Self, DecodeError> {
        text(take_bytes(bytes, "text")?.to_vec())
    }
}
