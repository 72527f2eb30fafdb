//! Why the laboratory has no answer.

use std::io;

use longshore_policy::SpecError;
use plot::PlotError;

use crate::format::{Format, FormatError};

/// What stopped a command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The command line asks for something that there is not.
    #[error("{0}")]
    Usage(String),
    /// A policy cannot be understood.
    #[error("{0}; `longshore lab list` tells what there is")]
    Policy(#[from] SpecError),
    /// Neither told nor known from the name.
    #[error(
        "{trace}: the name does not tell the format of the trace; say --format, one of: {}",
        Format::LIST
    )]
    UnknownFormat {
        /// The file.
        trace: String,
    },
    /// The trace cannot be read to its end.
    #[error("{trace}: {source}")]
    Trace {
        /// The file.
        trace: String,
        /// Where, and what is wrong.
        source: FormatError,
    },
    /// A row of `reference.csv` cannot be understood.
    #[error("{path}: line {line}: not a row of references")]
    Reference {
        /// The file.
        path: String,
        /// Which line.
        line: usize,
    },
    /// There is nothing to simulate.
    #[error("{trace}: the trace is empty")]
    Empty {
        /// The file.
        trace: String,
    },
    /// More references than can be held.
    #[error("{trace}: {source}")]
    TooLong {
        /// The file.
        trace: String,
        /// How many can.
        source: longshore_policy::TraceTooLong,
    },
    /// A file of the user's cannot be used.
    #[error("cannot {what} {path}: {source}")]
    File {
        /// What was tried.
        what: &'static str,
        /// Which.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// The picture cannot be drawn.
    #[error("cannot draw the picture: {0}")]
    Figure(#[from] PlotError),
    /// A replacement for the pool cannot be understood.
    #[error("{0}")]
    Replacement(#[from] longshore_pool::ReplacementError),
    /// The pool cannot serve.
    #[error(transparent)]
    Pool(#[from] longshore_pool::PoolError),
    /// The data file cannot be made.
    #[error(transparent)]
    Disk(#[from] longshore_disk::DiskError),
    /// The answer cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// `check` found what should not be; it has told so.
    #[error("{deviations} of {rows} rows differ by more than they may")]
    Deviates {
        /// Rows that differ.
        deviations: usize,
        /// Rows compared.
        rows: usize,
    },
}

impl LabError {
    /// The failure to do `what` with the file `path`.
    pub(crate) fn file(
        what: &'static str,
        path: &str,
    ) -> impl FnOnce(io::Error) -> LabError + use<> {
        let path = path.to_string();
        move |source| LabError::File { what, path, source }
    }

    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            LabError::Usage(_)
            | LabError::Policy(_)
            | LabError::Replacement(_)
            | LabError::UnknownFormat { .. } => Blame::CommandLine,
            LabError::Trace { source, .. } if !source.is_bad_input() => Blame::System,
            LabError::Trace { .. }
            | LabError::Reference { .. }
            | LabError::Empty { .. }
            | LabError::TooLong { .. } => Blame::Input,
            LabError::File { .. }
            | LabError::Figure(_)
            | LabError::Pool(_)
            | LabError::Disk(_)
            | LabError::Output(_) => Blame::System,
            LabError::Deviates { .. } => Blame::Result,
        }
    }
}

impl From<csv::Error> for LabError {
    fn from(error: csv::Error) -> LabError {
        LabError::Output(match error.into_kind() {
            csv::ErrorKind::Io(error) => error,
            other => io::Error::other(format!("{other:?}")),
        })
    }
}

/// Whose fault an error is: what exit codes are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The user's, on the command line.
    CommandLine,
    /// That of the trace.
    Input,
    /// That of files and devices.
    System,
    /// Nobody's: the answer is no.
    Result,
}
