//! `longshore lab record`: another command, and the pages that it uses. The file is the laboratory's.

use clap::{CommandFactory, FromArgMatches};
use lab::record::{Recorded, Recorder};

use crate::args::{Cli, Record};
use crate::commands::{lab::failure, run_command};
use crate::exit::{Failure, Outcome};

/// Runs the command, and ends the trace whatever came of it.
///
/// # Errors
/// The command's own; one that cannot be understood, or uses no database; a file that cannot be written.
pub fn run(args: &Record) -> Outcome {
    let mut command = parse(args)?.command;
    let page_trace = command
        .page_trace()
        .map_err(|reason| Failure::usage(format!("there is nothing to record: {reason}")))?;
    let recorder = Recorder::create(&args.file).map_err(failure)?;
    *page_trace = Some(recorder.trace());
    let outcome = run_command(command);
    let recorded = recorder.finish().map_err(failure);
    outcome?;
    report(args, recorded?);
    Ok(())
}

fn parse(args: &Record) -> Outcome<Cli> {
    let words = args.command.iter().cloned();
    let matches =
        Cli::command().try_get_matches_from(std::iter::once("longshore".into()).chain(words));
    matches
        .and_then(|matches| Cli::from_arg_matches(&matches))
        .map_err(|error| error.exit())
}

/// On standard error: the output is the command's.
fn report(args: &Record, recorded: Recorded) {
    eprintln!(
        "recorded {} uses of pages (threads: {}): {}",
        recorded.accesses,
        recorded.threads,
        args.file.display()
    );
}
