//! The simulation's command line.

use clap::{Parser, Subcommand};
use sim::campaign;
use sim::history::{self, HistoryError, Level, Order};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the whole engine on a simulated disk, and looks for a way to lose or invent a commit.
#[derive(Parser)]
#[command(
    version,
    after_help = "Exit status: 0 nothing found, 1 a promise was broken, 2 bad usage."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Random transactions, crashes at random I/Os and crash points, up to three deep in recovery
    Crash {
        /// Crashes to survive at least
        #[arg(long, default_value_t = 20_000)]
        seeds: u64,
        /// The first seed; a failure names the seed that reproduces it
        #[arg(long, default_value_t = 1)]
        first: u64,
        /// Threads, each with databases of its own
        #[arg(long, default_value_t = 1)]
        jobs: u64,
        /// Run this one seed only
        #[arg(long)]
        only: Option<u64>,
        /// Print every step; best with --only
        #[arg(long)]
        trace: bool,
    },
    /// Fixed workloads, cut at every single write and sync, and at every crash point
    Sweep,
    /// Fixed workloads in which the n-th I/O fails, for every n, once and for ever
    Faults,
    /// Every bit of one page of each kind, and of a log segment, flipped
    Flip,
    /// Looks in a recorded history for what an isolation level forbids
    Check {
        /// The history, in JSON lines (see the README)
        file: PathBuf,
        /// The level that was promised
        #[arg(long, value_enum)]
        level: Level,
        /// What was over before another began must come before it
        #[arg(long)]
        strict: bool,
        /// The report as JSON
        #[arg(long)]
        json: bool,
    },
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Crash {
            seeds,
            first,
            jobs,
            only,
            trace,
        } => {
            if trace {
                sim::trace::enable();
            }
            match only {
                Some(seed) => campaign::one(seed),
                None => campaign::crash(seeds, first, jobs),
            }
        }
        Command::Sweep => sim::sweep::run(),
        Command::Faults => sim::faults::run(),
        Command::Flip => sim::flip::run(),
        Command::Check {
            file,
            level,
            strict,
            json,
        } => return check(&file, level, strict, json),
    };
    match outcome {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            eprintln!("FAILED: {wrong}");
            ExitCode::FAILURE
        }
    }
}

/// Checks a history; the report goes to standard output in any case.
fn check(file: &Path, level: Level, strict: bool, json: bool) -> ExitCode {
    let order = if strict { Order::Strict } else { Order::Any };
    let checked = File::open(file)
        .map_err(HistoryError::Unreadable)
        .and_then(|source| history::check(BufReader::with_capacity(1 << 20, source), level, order));
    match checked {
        Ok(report) => {
            match json {
                true => println!("{}", serde_json::to_string(&report).expect("plain data")),
                false => println!("{report}"),
            }
            ExitCode::from(u8::from(!report.valid))
        }
        Err(error) => {
            eprintln!("FAILED: {}: {error}", file.display());
            match error {
                HistoryError::Empty => ExitCode::FAILURE,
                _ => ExitCode::from(2),
            }
        }
    }
}
