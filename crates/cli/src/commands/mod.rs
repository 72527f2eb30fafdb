//! The commands, one file each.

mod bench;
mod delete;
mod drop;
mod dump;
mod get;
mod lab;
mod load;
mod log;
mod prepared;
mod put;
mod record;
mod rename;
mod scan;
mod stat;
mod tables;
mod verify;

use crate::args::{Cli, Command, Lab};
use crate::exit::Outcome;

/// Does what the command line says.
///
/// # Errors
/// What the command could not do, with its exit code.
pub fn run(cli: Cli) -> Outcome {
    run_command(cli.command)
}

fn run_command(command: Command) -> Outcome {
    match command {
        Command::Load(args) => load::run(&args.global, &args),
        Command::Get(args) => get::run(&args.global, &args),
        Command::Put(args) => put::run(&args.global, &args),
        Command::Delete(args) => delete::run(&args.global, &args),
        Command::Scan(args) => scan::run(&args.global, &args),
        Command::Rename(args) => rename::run(&args.global, &args),
        Command::Drop(args) => drop::run(&args.global, &args),
        Command::Tables(args) => tables::run(&args.global, &args),
        Command::Stat(args) => stat::run(&args.global, &args),
        Command::Prepared(args) => prepared::run(&args.global, &args),
        Command::Verify(args) => verify::run(&args.global, &args),
        Command::Dump(args) => dump::run(&args.global, &args),
        Command::Log(args) => log::run(&args.global, &args),
        Command::Bench(settings) => bench::run(&settings),
        Command::Lab(Lab::Answer(command)) => lab::run(&command),
        Command::Lab(Lab::Record(args)) => record::run(&args),
    }
}
