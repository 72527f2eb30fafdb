//! The laboratory: which replacement policy, and how much memory, for which workload.
//!
//! [`run`] is what `longshore lab` calls.
//!
//! # Protocol
//! A command asks [`input`] for a trace, which [`mod@format`] reads from a file or [`workload`] draws; [`simulate`] runs
//! policies over it, on all cores; `report` prints what came of it. [`live`] runs
//! the same on the real pool. Policies and the simulator itself are
//! `longshore-policy`'s.

#![forbid(unsafe_code)]

pub mod advice;
mod bytes;
mod commands;
pub mod contenders;
pub mod curve;
mod error;
pub mod experiments;
pub mod format;
pub mod input;
pub mod live;
mod progress;
pub mod published;
pub mod record;
mod report;
pub mod simulate;
pub mod sizes;
pub mod workload;

use std::io::Write;

use clap::Subcommand;

pub use commands::advise::Settings as AdviseSettings;
pub use commands::check::{Settings as CheckSettings, print as print_comparisons};
pub use commands::experiment::Settings as ExperimentSettings;
pub use commands::mrc::Settings as MrcSettings;
pub use commands::replay::Settings as ReplaySettings;
pub use commands::trace::Settings as TraceSettings;
pub use error::{Blame, LabError};
pub use progress::Progress;
pub use report::Output;

/// What can be asked.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Simulate policies at several sizes over a trace: hit ratios
    Trace(TraceSettings),
    /// Miss ratios at all sizes from samples, with their error; LRU's exactly, too
    Mrc(MrcSettings),
    /// Say which policy and which size a workload wants, and why
    Advise(AdviseSettings),
    /// Compare our miss ratios with those that others published
    Check(CheckSettings),
    /// Run a trace on the real pool, from many threads: throughput, hit ratio, contention
    Replay(ReplaySettings),
    /// Repeat an experiment of the papers on replacement, with their values beside ours
    Experiment(ExperimentSettings),
    /// List policies with their parameters, workloads, and formats of traces
    List,
}

/// Answers, on `out`. Progress goes to standard error when that is a terminal.
///
/// # Errors
/// What stopped it; [`LabError::blame`] tells whose fault it is.
pub fn run(command: &Command, out: &mut impl Write) -> Result<(), LabError> {
    match command {
        Command::Trace(settings) => commands::trace::run(settings, out),
        Command::Mrc(settings) => commands::mrc::run(settings, out),
        Command::Advise(settings) => commands::advise::run(settings, out),
        Command::Check(settings) => commands::check::run(settings, out),
        Command::Replay(settings) => commands::replay::run(settings, out),
        Command::Experiment(settings) => commands::experiment::run(settings, out),
        Command::List => commands::list::run(out),
    }
}
