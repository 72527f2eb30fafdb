//! `longshore lab`: which replacement policy, and how much memory? The answers are the package `lab`'s.

use lab::{Blame, Command, LabError};

use crate::exit::{Code, Failure, Outcome};
use crate::output;

/// Answers one question.
///
/// # Errors
/// A command line that makes no sense; a trace that cannot be read to its end; what the system refused.
pub fn run(command: &Command) -> Outcome {
    let mut out = output::stdout();
    let outcome = lab::run(command, &mut out);
    std::io::Write::flush(&mut out)?;
    outcome.map_err(failure)
}

/// What stopped the laboratory, with its exit code.
pub fn failure(error: LabError) -> Failure {
    match error {
        LabError::Output(error) => error.into(),
        error => Failure::new(code(&error), error.to_string()),
    }
}

fn code(error: &LabError) -> Code {
    match error.blame() {
        Blame::CommandLine => Code::Usage,
        Blame::Input => Code::Input,
        Blame::System => Code::Store,
        Blame::Result => Code::NotFound,
    }
}
