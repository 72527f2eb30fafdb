//! `.csv`, block requests of virtual machines: a header `version,time,op,size,lbn`, then a request on each line. `op` is
//! in hexadecimal (28 read, 2a write), `size` in bytes, `lbn` the first block of 512 bytes.

use std::io::BufRead;
use std::ops::Range;

use super::lines::{LastEnd, Lines, columns, number, shortened};
use super::{Access, FormatError, Kind, ReadAccess};

const HEADER: &str = "version,time,op,size,lbn";
const BLOCKS_PER_PAGE: u64 = 8;
const BLOCK_BYTES: u64 = 512;
/// Bytes of one request: 8 GiB; more is a damaged line.
const SIZE_MAX: u64 = 1 << 33;

/// What a reference is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A line, of page `lbn`, whatever its size.
    Line,
    /// A page of 4 KiB that the request touches.
    Page,
}

pub(super) struct Reader<R> {
    lines: Lines<R>,
    unit: Unit,
    has_header: bool,
    /// What is left of the line at hand.
    pages: Range<u64>,
    kind: Kind,
}

impl<R: BufRead> Reader<R> {
    pub(super) fn new(input: R, unit: Unit) -> Self {
        Reader {
            lines: Lines::new(input),
            unit,
            has_header: false,
            pages: 0..0,
            kind: Kind::Read,
        }
    }

    /// Reads the header. Is there one?
    fn header(&mut self) -> Result<bool, FormatError> {
        if !self.lines.advance(LastEnd::Required)? {
            return Ok(false);
        }
        match self.lines.text() {
            HEADER => Ok(true),
            other => {
                let what = format!("\"{}\" is not the header {HEADER}", shortened(other));
                Err(self.lines.error(what))
            }
        }
    }

    /// Reads a line. Is there one?
    fn next_line(&mut self) -> Result<bool, FormatError> {
        if !self.lines.advance(LastEnd::Required)? {
            return Ok(false);
        }
        let columns: Option<[&str; 5]> = columns(self.lines.text().split(','));
        let not_five = || self.lines.error(format!("not five columns: {HEADER}"));
        let [version, time, op, size, lbn] = columns.ok_or_else(not_five)?;
        let kind = match op {
            "28" => Kind::Read,
            "2a" => Kind::Write,
            other => {
                let what = format!(
                    "op \"{}\" is neither 28 (read) nor 2a (write)",
                    shortened(other)
                );
                return Err(self.lines.error(what));
            }
        };
        let [version, time, size, lbn] =
            [version, time, size, lbn].map(|column| number(column, "a number", self.lines.place()));
        let (size, lbn) = (size?, lbn?);
        version?;
        time?;
        if size > SIZE_MAX {
            return Err(self.lines.error(format!("a request of {size} bytes")));
        }
        self.pages = match self.unit {
            Unit::Line => lbn..lbn.saturating_add(1),
            Unit::Page => {
                let blocks = size.div_ceil(BLOCK_BYTES).max(1);
                lbn / BLOCKS_PER_PAGE..lbn.saturating_add(blocks).div_ceil(BLOCKS_PER_PAGE)
            }
        };
        self.kind = kind;
        Ok(true)
    }
}

impl<R: BufRead> ReadAccess for Reader<R> {
    fn next_access(&mut self) -> Result<Option<Access>, FormatError> {
        if !self.has_header {
            if !self.header()? {
                return Ok(None);
            }
            self.has_header = true;
        }
        while self.pages.is_empty() {
            if !self.next_line()? {
                return Ok(None);
            }
        }
        let kind = self.kind;
        Ok(self.pages.next().map(|page| Access {
            kind,
            ..Access::read(page)
        }))
    }
}
