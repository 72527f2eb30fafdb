//! A number on each line, and nothing else.

use std::io::BufRead;

use super::lines::{LastEnd, Lines, number};
use super::{Access, FormatError, ReadAccess};

pub(super) struct Reader<R> {
    lines: Lines<R>,
}

impl<R: BufRead> Reader<R> {
    pub(super) fn new(input: R) -> Self {
        Reader {
            lines: Lines::new(input),
        }
    }
}

impl<R: BufRead> ReadAccess for Reader<R> {
    fn next_access(&mut self) -> Result<Option<Access>, FormatError> {
        if !self.lines.advance(LastEnd::Required)? {
            return Ok(None);
        }
        let page = number(self.lines.text(), "a number", self.lines.place())?;
        Ok(Some(Access::read(page)))
    }
}
