//! `.txt`, the format of LIRS's authors: a page number on each line; `*` and empty lines are breakpoints, which
//! separate phases and are no references. The last line may lack its end.

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
        loop {
            if !self.lines.advance(LastEnd::Optional)? {
                return Ok(None);
            }
            let line = self.lines.text();
            if !matches!(line, "" | "*") {
                let page = number(line, "a page number, or *", self.lines.place())?;
                return Ok(Some(Access::read(page)));
            }
        }
    }
}
