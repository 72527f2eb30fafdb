//! Short runs of everything that the command line can run at length.

mod history;

use sim::{campaign, faults, flip, sweep};

#[test]
fn commits_survive_random_crashes() {
    println!(
        "{}",
        campaign::crash(900, 1, 2).expect("no promise is broken")
    );
}

#[test]
fn commits_survive_a_crash_at_every_write_and_sync() {
    println!("{}", sweep::run().expect("no promise is broken"));
}

#[test]
fn commits_survive_failing_ios() {
    println!("{}", faults::run_every(5).expect("no promise is broken"));
}

#[test]
fn flipped_bits_are_found_or_harmless() {
    println!("{}", flip::run_every(997).expect("no promise is broken"));
}
