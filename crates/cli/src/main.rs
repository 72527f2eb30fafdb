//! The `longshore` command.
//!
//! # Protocol
//! `args` understands the command line; one file of `commands` does each command; `store` opens
//! the database and knows the tables' shapes; `view` understands keys and shows rows; `input` reads
//! records, `row` makes rows of them and back, `output` prints. A command returns an `Outcome`;
//! `exit` alone turns it into a message and an exit code.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod exit;
mod input;
mod output;
mod progress;
mod row;
mod store;
mod units;
mod view;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match commands::run(args::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
