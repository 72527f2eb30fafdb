//! What is wrong with a trace, and where.

use std::fmt;
use std::io;

/// Where in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line, from 1.
    Line(u64),
    /// A byte, from 0, after decompression.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// A trace that cannot be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// It is not written as its format says.
    #[error("{place}: {what}")]
    Malformed {
        /// Where.
        place: Place,
        /// What is wrong.
        what: String,
    },
    /// Bytes could not be had: the system refused, or compressed data are damaged or cut off.
    #[error("{place}: cannot read on: {source}")]
    Unreadable {
        /// How far it was read.
        place: Place,
        /// What the system, or the decompression, says.
        source: io::Error,
    },
}

impl FormatError {
    pub(super) fn malformed(place: Place, what: impl Into<String>) -> FormatError {
        FormatError::Malformed {
            place,
            what: what.into(),
        }
    }

    /// Is the file to blame, not the system?
    pub fn is_bad_input(&self) -> bool {
        match self {
            FormatError::Malformed { .. } => true,
            FormatError::Unreadable { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::InvalidData
                    | io::ErrorKind::InvalidInput
            ),
        }
    }
}
