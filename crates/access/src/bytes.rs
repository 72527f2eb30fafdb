//! Decoding of log record bodies: every read is checked, and nothing malformed is a panic.

use longshore_base::bits::little_word;

/// A log record body that does not say what its kind must say.
///
/// The record's checksum was right, so the body was written by another version of the program or
/// the memory it was built in was damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed log record: {0}")]
pub struct Malformed(pub &'static str);

/// What is left to decode of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { rest: bytes }
    }

    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(Malformed("it ends early"))?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self
            .rest
            .split_first_chunk()
            .ok_or(Malformed("it ends early"))?;
        self.rest = rest;
        Ok(*taken)
    }

    #[inline]
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    #[inline]
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    #[inline]
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    #[inline]
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A number in its lowest `len` bytes, at most eight.
    #[inline]
    pub fn number(&mut self, len: usize) -> Result<u64, Malformed> {
        Ok(little_word(self.bytes(len)?))
    }

    /// Everything left.
    pub fn remainder(self) -> &'a [u8] {
        self.rest
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Checks that nothing is left.
    pub fn finish(self) -> Result<(), Malformed> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Malformed("it goes on after its end"))
        }
    }
}
