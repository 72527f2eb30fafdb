//! Why a history cannot be judged.

use std::fmt;
use std::io;

/// A history that cannot be judged.
#[derive(Debug)]
pub enum HistoryError {
    /// The file cannot be read.
    Unreadable(io::Error),
    /// A line breaks the rules of the format.
    Malformed {
        /// The line, from 1.
        line: u32,
        /// The rule, and what to look at.
        reason: String,
    },
    /// No transaction has committed: nothing was shown.
    Empty,
}

impl HistoryError {
    pub(super) fn at(line: u32, reason: impl Into<String>) -> HistoryError {
        HistoryError::Malformed {
            line,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HistoryError::Unreadable(error) => write!(f, "cannot read the history: {error}"),
            HistoryError::Malformed { line, reason } => write!(f, "line {line}: {reason}"),
            HistoryError::Empty => write!(
                f,
                "the history is empty: no transaction has committed, so nothing is shown"
            ),
        }
    }
}

impl std::error::Error for HistoryError {}
