//! Files of records, read one record at a time.
//!
//! # Protocol
//! [`Input::open`] looks at the name and the header and knows the key columns; [`Input::next`]
//! then returns one [`Record`] after another, each with the line it began on. A bad record is an
//! `Err` of its own and reading goes on behind it: the caller decides how many it bears. Only the
//! record at hand is in memory.

mod delimited;
mod format;
mod json_lines;
mod source;

use std::io::BufRead;

pub use format::Format;
pub use source::{Position, Source};

use crate::exit::{Failure, Outcome};
use crate::row::KeyField;
use delimited::Delimited;
use json_lines::JsonLines;

pub use json_lines::key_field;

/// One record, ready to become a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The line of the file it begins on, from 1.
    pub line: u64,
    /// What it holds in the key columns, in the key's order.
    pub key: Vec<KeyField>,
    /// The whole record as one JSON object.
    pub json: Vec<u8>,
}

/// A record that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// The line of the file it begins on, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub message: String,
}

/// What reading one record came to: the end, a record, or a bad line.
pub type Next = Option<Result<Record, BadLine>>;

/// A file of records in one of the formats.
pub enum Input {
    /// CSV or TSV.
    Delimited(Delimited<Box<dyn BufRead>>),
    /// A JSON object per line.
    JsonLines(JsonLines<Box<dyn BufRead>>),
}

impl Input {
    /// Starts reading `source`, whose records are keyed by the columns `key`.
    ///
    /// # Errors
    /// The header is missing, names a column twice, or lacks a key column.
    pub fn open(source: Source, format: Format, key: &[String]) -> Outcome<Input> {
        let name = source.name.clone();
        let in_file = |message: String| Failure::input(format!("{name}: {message}"));
        let reader = source.reader;
        match format.delimiter() {
            Some(delimiter) => {
                let input = Delimited::open(reader, delimiter, key).map_err(in_file)?;
                Ok(Input::Delimited(input))
            }
            None => Ok(Input::JsonLines(JsonLines::new(reader, key))),
        }
    }

    /// The next record, or bad line, or `None` at the end.
    ///
    /// # Errors
    /// The file can no longer be read.
    pub fn next(&mut self) -> Outcome<Next> {
        match self {
            Input::Delimited(input) => input.next(),
            Input::JsonLines(input) => input.next(),
        }
    }

    /// The columns seen so far: all of them from the start for CSV and TSV.
    pub fn columns(&self) -> &[String] {
        match self {
            Input::Delimited(input) => input.columns(),
            Input::JsonLines(input) => input.columns(),
        }
    }
}
