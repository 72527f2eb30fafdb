//! `.u32be`: unsigned 32-bit big-endian numbers, one after the other.

use std::io::BufRead;

use super::{Access, FormatError, Place, ReadAccess};

pub(super) struct Reader<R> {
    input: R,
    /// Bytes read.
    offset: u64,
}

impl<R: BufRead> Reader<R> {
    pub(super) fn new(input: R) -> Self {
        Reader { input, offset: 0 }
    }
}

impl<R: BufRead> ReadAccess for Reader<R> {
    fn next_access(&mut self) -> Result<Option<Access>, FormatError> {
        let mut word = [0; 4];
        let place = Place::Byte(self.offset);
        match super::fill(&mut self.input, &mut word, place)? {
            0 => Ok(None),
            4 => {
                self.offset += 4;
                Ok(Some(Access::read(u32::from_be_bytes(word).into())))
            }
            rest => Err(FormatError::malformed(
                place,
                format!("{rest} bytes are left, and a number has 4: the file is cut off"),
            )),
        }
    }
}
