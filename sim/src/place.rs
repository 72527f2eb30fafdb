//! Where a bit was flipped, and whether what was found names that place.
//!
//! "Something is wrong" is no answer for one who has to mend it: an error must name the file, and within it
//! the page, or the position of the log record. An error that names another place is as wrong as none.

use longshore::{Database, Error, VerifyReport};
use longshore_base::PageId;
use std::ops::Range;

/// Bytes before the records of a segment.
const SEGMENT_HEADER_BYTES: u64 = 4096;
/// Bytes before the body of a record.
const RECORD_HEADER_BYTES: u64 = 32;
/// Records begin at multiples of this.
const RECORD_ALIGNMENT: u64 = 8;

/// A place that an error can name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A page of the data file.
    Page(PageId),
    /// A file as a whole, or its header.
    File(String),
    /// The bytes of one record, in LSNs. The file is the segment that the record begins in.
    Record(String, Range<u64>),
}

impl Place {
    /// Whether `error` is about this place, and says so to the reader.
    pub fn is_named_by(&self, error: &Error) -> bool {
        let Error::Corrupt { file, page, .. } = error else {
            return false;
        };
        let text = error.to_string();
        match self {
            Place::Page(number) => {
                file == "data"
                    && *page == Some(*number)
                    && text.contains(&format!("`data` page {number} "))
            }
            Place::File(name) => file == name && text.contains(name.as_str()),
            Place::Record(name, lsns) => {
                file == name
                    && text.contains(name.as_str())
                    && lsn_in(&text).is_some_and(|lsn| lsn == lsns.start)
            }
        }
    }

    /// Whether the report has a fault at this place.
    pub fn is_named_in(&self, report: &VerifyReport) -> bool {
        let Place::Page(number) = self else {
            return false;
        };
        report
            .faults
            .iter()
            .any(|fault| fault.page == Some(*number))
    }
}

/// The position that a message names.
fn lsn_in(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("(LSN ")?;
    rest.split_once(')')?.0.parse().ok()
}

/// The records of a log, to tell which one a byte of a segment belongs to.
pub struct Records {
    /// Where each begins, in order; last the end of the log.
    starts: Vec<u64>,
}

impl Records {
    /// Those that `db` has now, the log's own included.
    ///
    /// # Errors
    /// The database's own.
    pub fn of(db: &Database) -> Result<Records, Error> {
        let mut starts = Vec::new();
        for entry in db.log_entries(None)? {
            let entry = entry?;
            let end = entry.lsn.get() + RECORD_HEADER_BYTES + entry.bytes as u64;
            // What is left out of the entries, a mark of the log's own, lies between two of them.
            starts.extend([entry.lsn.get(), end.next_multiple_of(RECORD_ALIGNMENT)]);
        }
        starts.dedup();
        Ok(Records { starts })
    }

    /// What an error must name when the byte at `offset` of segment `name` is damaged.
    pub fn place(&self, name: &str, offset: u64) -> Place {
        let start_of = |name: &str| u64::from_str_radix(name.trim_start_matches("log-"), 16).ok();
        let in_stream = offset
            .checked_sub(SEGMENT_HEADER_BYTES)
            .zip(start_of(name))
            .map(|(offset, start)| start + offset);
        let Some(lsn) = in_stream else {
            return Place::File(name.to_owned());
        };
        let next = self.starts.partition_point(|start| *start <= lsn);
        let begins = next.checked_sub(1).map_or(lsn, |index| self.starts[index]);
        let ends = self.starts.get(next).copied().unwrap_or(u64::MAX);
        Place::Record(name.to_owned(), begins..ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(file: &str, page: Option<u64>, reason: &str) -> Error {
        Error::Corrupt {
            file: file.to_owned(),
            page: page.map(PageId::new),
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn only_an_error_that_names_the_place_counts() {
        let page = Place::Page(PageId::new(7));
        assert!(page.is_named_by(&error("data", Some(7), "checksum mismatch")));
        assert!(!page.is_named_by(&error("data", Some(8), "checksum mismatch")));
        assert!(!page.is_named_by(&error("data", None, "checksum mismatch")));
        assert!(!page.is_named_by(&error("log", Some(7), "checksum mismatch")));
        assert!(!page.is_named_by(&Error::Closed));

        let control = Place::File("control".to_owned());
        assert!(control.is_named_by(&error("control", None, "checksum mismatch")));
        assert!(!control.is_named_by(&error("data", None, "checksum mismatch")));

        let record = Place::Record("log-0".to_owned(), 96..160);
        assert!(record.is_named_by(&error("log-0", None, "offset 4192 (LSN 96): checksum")));
        assert!(!record.is_named_by(&error("log-0", None, "offset 4256 (LSN 160): checksum")));
        assert!(!record.is_named_by(&error("log-0", None, "checksum")));
        assert!(!record.is_named_by(&error("log-1", None, "offset 4192 (LSN 96): checksum")));
    }

    #[test]
    fn a_byte_of_the_log_belongs_to_the_record_around_it() {
        let records = Records {
            starts: vec![64, 96, 160],
        };
        let name = "log-0000000000000000";
        let place = |lsn: u64| records.place(name, SEGMENT_HEADER_BYTES + lsn);
        assert_eq!(place(95), Place::Record(name.to_owned(), 64..96));
        assert_eq!(place(96), Place::Record(name.to_owned(), 96..160));
        assert_eq!(records.place(name, 12), Place::File(name.to_owned()));
    }
}
