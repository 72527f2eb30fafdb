//! The simulation's command line.

use clap::{Parser, Subcommand};
use sim::campaign;
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
