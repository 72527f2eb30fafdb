//! Lines of a text, with their numbers.

use std::io::{BufRead, Read};

use super::{FormatError, Place};

/// No line of any format is longer; a file without lines must not be read into memory.
const BYTES_MAX: u64 = 4096;

/// Reads line after line into one buffer.
pub(super) struct Lines<R> {
    input: R,
    /// Of the line at hand; 0 before the first.
    number: u64,
    line: Vec<u8>,
}

/// May the last line lack its end?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastEnd {
    Required,
    Optional,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Lines<R> {
        Lines {
            input,
            number: 0,
            line: Vec::new(),
        }
    }

    /// Reads the next line. Is there one?
    pub(super) fn advance(&mut self, last: LastEnd) -> Result<bool, FormatError> {
        self.line.clear();
        self.number += 1;
        let read = (&mut self.input)
            .take(BYTES_MAX)
            .read_until(b'\n', &mut self.line);
        let read = read.map_err(|source| FormatError::Unreadable {
            place: self.place(),
            source,
        })?;
        if read == 0 {
            return Ok(false);
        }
        if self.line.last() != Some(&b'\n') {
            if read as u64 == BYTES_MAX {
                return Err(self.error("too long for a line of a trace; is it another format?"));
            }
            if last == LastEnd::Required {
                return Err(self.error("the last line has no end: the file is cut off"));
            }
        }
        match std::str::from_utf8(&self.line) {
            Ok(_) => Ok(true),
            Err(_) => Err(self.error("not a text; is it compressed, or another format?")),
        }
    }

    /// The line at hand, trimmed; it was found to be a text.
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.line).map_or("", str::trim)
    }

    /// Where the line at hand is.
    pub(super) fn place(&self) -> Place {
        Place::Line(self.number)
    }

    /// What is wrong with the line at hand.
    pub(super) fn error(&self, what: impl Into<String>) -> FormatError {
        FormatError::malformed(self.place(), what)
    }
}

/// Exactly `N` columns, separated as `split` does it.
pub(super) fn columns<'a, const N: usize>(
    mut split: impl Iterator<Item = &'a str>,
) -> Option<[&'a str; N]> {
    let mut columns = [""; N];
    for column in &mut columns {
        *column = split.next()?;
    }
    split.next().is_none().then_some(columns)
}

/// Reads a whole number in decimal digits.
pub(super) fn number(text: &str, what: &str, place: Place) -> Result<u64, FormatError> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_digits { text.parse().ok() } else { None };
    number.ok_or_else(|| {
        FormatError::malformed(place, format!("\"{}\" is not {what}", shortened(text)))
    })
}

/// As much of a text as a message can bear, in one line.
pub(super) fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().nth(40).is_some() {
        shown.push_str("...");
    }
    shown
}
