//! How the command ends: one exit code per class of failure, one sentence, one way out.
//!
//! A script decides by the code, a person reads the message; [`CODES`] is what `--help` says.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// The table of exit codes, as `longshore --help` prints it.
pub const CODES: &str = "\
Exit codes:
  0  done
  1  not found: no such row, no such table, nobody prepared so; or `verify` found damage,
     `bench` inconsistent data, `lab check` a miss ratio that differs
  2  the command line is wrong
  3  the input data is wrong (the line is named, or the byte)
  4  the store failed: disk full, permission denied, damage, not a database, ...
  5  the database is open in another process";

/// What went wrong, as the exit code tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// No such row or table, damage found by `verify`, data that `bench` found inconsistent.
    NotFound = 1,
    /// The command line contradicts itself or the table.
    Usage = 2,
    /// A line of the input cannot be used.
    Input = 3,
    /// The store or the system refused.
    Store = 4,
    /// Another process has the database open.
    Locked = 5,
}

/// The end of a command that did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// Something is wrong, and the user should know.
    Failed {
        /// The class.
        code: Code,
        /// What, where and what to do.
        message: String,
    },
    /// The command has said everything already; only the code is missing.
    Quiet(Code),
    /// Whoever read our output has closed it (`longshore scan … | head`): not an error.
    OutputClosed,
}

/// What every command returns.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure of class `code`.
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure::Failed {
            code,
            message: message.into(),
        }
    }

    /// The command line is wrong.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Code::Usage, message)
    }

    /// The input data is wrong.
    pub fn input(message: impl Into<String>) -> Failure {
        Failure::new(Code::Input, message)
    }

    /// What was asked for is not there.
    pub fn not_found(message: impl Into<String>) -> Failure {
        Failure::new(Code::NotFound, message)
    }

    /// A file of the user's, not of the database, could not be used.
    pub fn file(what: &str, path: &str, error: &io::Error) -> Failure {
        let advice = match error.kind() {
            io::ErrorKind::NotFound => ": check the path",
            io::ErrorKind::PermissionDenied => ": check the permissions of the file",
            _ => "",
        };
        Failure::new(
            Code::Store,
            format!("cannot {what} {path}: {error}{advice}"),
        )
    }

    /// Says which line of a file it happened at.
    pub fn at(self, file: &str, line: u64) -> Failure {
        match self {
            Failure::Failed { code, message } => {
                Failure::new(code, format!("{file}:{line}: {message}"))
            }
            other => other,
        }
    }

    /// Says what there is to say on standard error, and returns the code to end with.
    pub fn report(self) -> ExitCode {
        match self {
            Failure::Failed { code, message } => {
                eprintln!("longshore: {message}");
                ExitCode::from(code as u8)
            }
            Failure::Quiet(code) => ExitCode::from(code as u8),
            Failure::OutputClosed => ExitCode::SUCCESS,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Failed { message, .. } => f.write_str(message),
            Failure::Quiet(_) => f.write_str("see above"),
            Failure::OutputClosed => f.write_str("the output was closed"),
        }
    }
}

/// Writing to standard output failed.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::new(Code::Store, format!("cannot write the output: {error}")),
        }
    }
}

impl From<csv::Error> for Failure {
    fn from(error: csv::Error) -> Failure {
        match error.into_kind() {
            csv::ErrorKind::Io(error) => error.into(),
            other => Failure::new(Code::Store, format!("cannot write CSV: {other:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_the_help() {
        for code in [
            Code::NotFound,
            Code::Usage,
            Code::Input,
            Code::Store,
            Code::Locked,
        ] {
            let number = code as u8;
            assert!(
                CODES.contains(&format!("\n  {number}  ")),
                "{code:?} is not explained"
            );
        }
    }

    #[test]
    fn a_closed_pipe_is_not_an_error() {
        let closed = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(matches!(Failure::from(closed), Failure::OutputClosed));
    }
}
