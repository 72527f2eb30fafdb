//! Trace files: a reader for each format, all of them streams of [`Access`]es.
//!
//! # Protocol
//! [`Format`] is told, or known from the file's name; [`Format::read`] makes a stream of anything that can be read.
//! The stream ends with the file, or with the first error.
//!
//! # Invariants
//! F1. Nothing is skipped silently: what a format does not allow ends the stream with an error that names the line,
//!     or the byte where there are no lines. Bytes are those after decompression.
//! F2. Memory does not grow with the file.

mod arc;
mod cloudphysics;
mod error;
mod keys;
mod lines;
mod lirs;
mod pages;
mod u32be;

use std::io::{self, BufRead};

pub use error::{FormatError, Place};
pub use pages::Writer;

/// One use of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Which page.
    pub page: u64,
    /// What for.
    pub kind: Kind,
    /// By whom; 0 where the format does not tell.
    pub thread: u32,
}

impl Access {
    /// A read by the only thread there is.
    pub fn read(page: u64) -> Access {
        Access {
            page,
            kind: Kind::Read,
            thread: 0,
        }
    }
}

/// What a page is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To be looked at.
    Read,
    /// To be changed.
    Write,
    /// To be made: whatever was there before is not needed.
    Create,
}

/// A stream of accesses.
pub type Accesses<'a> = Box<dyn Iterator<Item = Result<Access, FormatError>> + 'a>;

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// `.pages`: what `longshore lab record` writes
    Pages,
    /// `.lis`: start, number of blocks, ignored, request number
    Arc,
    /// `.txt`: a page number on each line; `*` and empty lines are breakpoints
    Lirs,
    /// a number on each line, and nothing else
    Keys,
    /// `.u32be`: 32-bit big-endian numbers
    U32be,
    /// `.csv`: version,time,op,size,lbn; one reference a line
    Cloudphysics,
    /// the same, one reference for each page of 4 KiB
    CloudphysicsPages,
}

impl Format {
    /// All of them, for messages.
    pub const LIST: &str = "pages (.pages), arc (.lis), lirs (.txt), keys, u32be (.u32be), cloudphysics (.csv), cloudphysics-pages";

    /// The format that a file's name tells; `.gz` at its end says nothing about that.
    pub fn of_name(name: &str) -> Option<Format> {
        let name = name.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        match name.rsplit_once('.')?.1 {
            "pages" => Some(Format::Pages),
            "lis" => Some(Format::Arc),
            "txt" => Some(Format::Lirs),
            "u32be" => Some(Format::U32be),
            "csv" => Some(Format::Cloudphysics),
            _ => None,
        }
    }

    /// The accesses that `input` holds.
    pub fn read<'a>(self, input: impl BufRead + 'a) -> Accesses<'a> {
        match self {
            Format::Pages => until_error(pages::Reader::new(input)),
            Format::Arc => until_error(arc::Reader::new(input)),
            Format::Lirs => until_error(lirs::Reader::new(input)),
            Format::Keys => until_error(keys::Reader::new(input)),
            Format::U32be => until_error(u32be::Reader::new(input)),
            Format::Cloudphysics => {
                until_error(cloudphysics::Reader::new(input, cloudphysics::Unit::Line))
            }
            Format::CloudphysicsPages => {
                until_error(cloudphysics::Reader::new(input, cloudphysics::Unit::Page))
            }
        }
    }
}

/// What each format implements.
trait ReadAccess {
    /// The next access; `None` at the end of the file. Not called again after an error.
    fn next_access(&mut self) -> Result<Option<Access>, FormatError>;
}

fn until_error<'a>(mut reader: impl ReadAccess + 'a) -> Accesses<'a> {
    let mut is_over = false;
    Box::new(std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let next = reader.next_access().transpose();
        is_over = !matches!(next, Some(Ok(_)));
        next
    }))
}

/// Fills `bytes` as far as `input` reaches; returns how far.
fn fill(input: &mut impl BufRead, bytes: &mut [u8], place: Place) -> Result<usize, FormatError> {
    let mut filled = 0;
    while filled < bytes.len() {
        match input.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(FormatError::Unreadable { place, source }),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn names_tell_formats() {
        assert_eq!(Format::of_name("a/OLTP.lis.gz"), Some(Format::Arc));
        assert_eq!(Format::of_name("w106.U32BE"), Some(Format::U32be));
        assert_eq!(Format::of_name("multi1.txt"), Some(Format::Lirs));
        assert_eq!(Format::of_name("trace.csv.gz"), Some(Format::Cloudphysics));
        assert_eq!(Format::of_name("db.pages"), Some(Format::Pages));
        assert_eq!(Format::of_name("trace.gz"), None);
        assert_eq!(Format::of_name("-"), None);
    }

    #[test]
    fn the_list_names_all() {
        for format in Format::value_variants() {
            let name = format.to_possible_value().unwrap();
            assert!(Format::LIST.contains(name.get_name()), "{format:?}");
        }
    }

    #[test]
    fn nothing_comes_after_an_error() {
        let mut accesses = Format::Keys.read(&b"1\nx\n2\n"[..]);
        assert_eq!(accesses.next().unwrap().unwrap().page, 1);
        assert!(accesses.next().unwrap().is_err());
        assert!(accesses.next().is_none());
    }
}
