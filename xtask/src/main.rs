//! The command `cargo run -p xtask -- tidy`.

use std::process::ExitCode;

const USAGE: &str = "usage: cargo run -p xtask -- tidy

  tidy   check the house: may-import table, unsafe, READMEs, file sizes, links, left-overs
         exit code 0: tidy; 1: something breaks a rule; 2: the check could not run";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [command] if command == "tidy" => run_tidy(),
        [command] if command == "help" || command == "--help" => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run_tidy() -> ExitCode {
    match xtask::tidy(&xtask::repository_root()) {
        Ok(violations) if violations.is_empty() => {
            println!("tidy");
            ExitCode::SUCCESS
        }
        Ok(violations) => {
            for violation in &violations {
                eprintln!("{violation}");
            }
            eprintln!("{} place(s) to tidy", violations.len());
            ExitCode::FAILURE
        }
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::from(2)
        }
    }
}
