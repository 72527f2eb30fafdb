//! Many lives in a row, on several threads, until enough crashes have been survived.

use crate::life::{Life, Report};
use crate::points::{Hits, Points};
use crate::required::missing;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Rounds of work and crash in one life.
const ROUNDS: u64 = 6;

#[derive(Default)]
struct Tally {
    lives: u64,
    report: Report,
    hits: Hits,
    wrong: Option<String>,
}

/// Lives from seed `first` on until `cuts` crashes have been survived, on `jobs` threads.
///
/// # Errors
/// The first broken promise, with the seed that reproduces it; or the crash points never reached.
pub fn crash(cuts: u64, first: u64, jobs: u64) -> Result<String, String> {
    println!("crash simulation: {cuts} cuts from seed {first} on, {jobs} thread(s)");
    let start = Instant::now();
    let (next, survived) = (AtomicU64::new(first), AtomicU64::new(0));
    let (stop, tally) = (AtomicBool::new(false), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                let points = Points::install();
                // Relaxed: counters only; the results meet under the mutex.
                while survived.load(Ordering::Relaxed) < cuts && !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let outcome = live(seed, &points);
                    let mut tally = tally.lock().expect("no thread panics here");
                    match outcome {
                        Ok(report) => {
                            survived.fetch_add(report.cuts, Ordering::Relaxed);
                            tally.lives += 1;
                            tally.report.cuts += report.cuts;
                            tally.report.cuts_in_recovery += report.cuts_in_recovery;
                        }
                        Err(wrong) => {
                            stop.store(true, Ordering::Relaxed);
                            tally.wrong.get_or_insert(wrong);
                        }
                    }
                }
                let mut tally = tally.lock().expect("no thread panics here");
                for (name, count) in points.hits() {
                    *tally.hits.entry(name).or_default() += count;
                }
            });
        }
    });
    let tally = tally.into_inner().expect("all threads have ended");
    summary(tally, start.elapsed().as_secs_f64(), cuts)
}

/// Lives one seed's life.
///
/// # Errors
/// The broken promise.
pub fn one(seed: u64) -> Result<String, String> {
    let points = Points::install();
    let report = live(seed, &points)?;
    Ok(format!(
        "seed {seed}: survived {} cuts, {} in recovery",
        report.cuts, report.cuts_in_recovery
    ))
}

fn live(seed: u64, points: &Points) -> Result<Report, String> {
    let life = AssertUnwindSafe(|| Life::new(seed, points).run(ROUNDS));
    catch_unwind(life).unwrap_or_else(|_| {
        points.disarm();
        Err(format!("seed {seed}: panicked (the message stands above)"))
    })
}

fn summary(tally: Tally, seconds: f64, cuts: u64) -> Result<String, String> {
    if let Some(wrong) = tally.wrong {
        return Err(format!(
            "{wrong}\nreproduce: cargo run --release -p sim -- crash --only SEED"
        ));
    }
    println!("crash points reached:");
    for (name, count) in &tally.hits {
        println!("  {count:>9}  {name}");
    }
    let missing = missing(&tally.hits);
    if cuts >= 1000 && !missing.is_empty() {
        return Err(format!(
            "crash points never reached: {}",
            missing.join(", ")
        ));
    }
    Ok(format!(
        "survived {} cuts ({} of them in recovery) in {} lives, {seconds:.1} s, {:.0} cuts/s",
        tally.report.cuts,
        tally.report.cuts_in_recovery,
        tally.lives,
        tally.report.cuts as f64 / seconds
    ))
}
