//! `.lis`, the format of ARC's authors: four columns, `start count ignored request`; a line is `count` references,
//! to the blocks from `start` on.

use std::io::BufRead;
use std::ops::Range;

use super::lines::{LastEnd, Lines, columns, number};
use super::{Access, FormatError, ReadAccess};

/// Blocks of one request: 8 GiB; more is a damaged line.
const COUNT_MAX: u64 = 1 << 24;

pub(super) struct Reader<R> {
    lines: Lines<R>,
    /// What is left of the line at hand.
    blocks: Range<u64>,
}

impl<R: BufRead> Reader<R> {
    pub(super) fn new(input: R) -> Self {
        Reader {
            lines: Lines::new(input),
            blocks: 0..0,
        }
    }

    fn next_line(&mut self) -> Result<Option<Range<u64>>, FormatError> {
        if !self.lines.advance(LastEnd::Required)? {
            return Ok(None);
        }
        let columns: Option<[&str; 4]> = columns(self.lines.text().split_ascii_whitespace());
        let columns = columns.ok_or_else(|| {
            let what = "not four columns: start, number of blocks, ignored, request number";
            self.lines.error(what)
        })?;
        let [start, count, ignored, request] =
            columns.map(|column| number(column, "a number", self.lines.place()));
        let (start, count) = (start?, count?);
        ignored?;
        request?;
        if !(1..=COUNT_MAX).contains(&count) {
            return Err(self.lines.error(format!(
                "{count} blocks; a request has from 1 to {COUNT_MAX}"
            )));
        }
        match start.checked_add(count) {
            Some(end) => Ok(Some(start..end)),
            None => Err(self.lines.error("the last block has no number")),
        }
    }
}

impl<R: BufRead> ReadAccess for Reader<R> {
    fn next_access(&mut self) -> Result<Option<Access>, FormatError> {
        if self.blocks.is_empty() {
            match self.next_line()? {
                Some(blocks) => self.blocks = blocks,
                None => return Ok(None),
            }
        }
        Ok(self.blocks.next().map(Access::read))
    }
}
