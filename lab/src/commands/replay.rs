//! `longshore lab replay`: a trace on the real pool, from many threads.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use longshore_pool::{MissMode, Replacement};
use serde_json::json;

use crate::contenders;
use crate::error::LabError;
use crate::input::Input;
use crate::live::{self, Ground, Length, Measured, Place, Setup};
use crate::progress::Progress;
use crate::report::{count, rounded, table};
use crate::sizes::{self, Size};

/// The most threads that a command may start.
pub(crate) const THREADS_MAX: usize = 1024;

/// What `replay` is told.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Each thread takes the next 64 references of the trace, and comes back for another 64: a thread that waits holds no more back.
Without --seconds they go once through the trace, and the pool is empty at first: the hit ratio is then that which
`longshore lab trace` simulates, but for what threads change in the order. With --seconds they go round and round, in a
pool that was filled before. The data file is in memory, or in the folder of --dir, read through the system's cache.

Examples:
  longshore lab replay OLTP.lis.gz --replacement nb-gclock,lirs,spin/lru --capacity 1000,5000 --threads 1,8
  longshore lab replay nbg --capacity 16384 --threads 64 --seconds 10 --json")]
pub struct Settings {
    /// Which trace
    #[command(flatten)]
    pub input: Input,
    /// Replacements, separated by commas: nb-gclock, a policy, or a form and a policy such as spin/lru
    #[arg(long, value_name = "REPLACEMENT,...", default_value = "nb-gclock")]
    pub replacement: String,
    /// Sizes of the pool in pages, or in parts of the trace's distinct pages (5%)
    #[arg(
        long,
        value_name = "SIZE,...",
        value_delimiter = ',',
        default_value = "20%"
    )]
    pub capacity: Vec<Size>,
    /// Numbers of threads
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1", value_parser = threads)]
    pub threads: Vec<usize>,
    /// Run so long each, round and round, rather than once through the trace
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub seconds: Option<f64>,
    /// Let all threads that miss a page read it; the first wins (Nb-GCLOCK's non-blocking I/O)
    #[arg(long)]
    pub optimistic: bool,
    /// Folder for the data file; it needs room for the trace's pages of 8 KiB [default: memory]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Print JSON, an object for each run
    #[arg(long)]
    pub json: bool,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

/// A number of threads.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok();
    let threads = threads.filter(|threads| (1..=THREADS_MAX).contains(threads));
    threads.ok_or_else(|| format!("a whole number from 1 to {THREADS_MAX}"))
}

/// A time.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok();
    let seconds = seconds.filter(|seconds| (0.001..=86_400.0).contains(seconds));
    seconds.ok_or_else(|| "a number from 0.001 to 86400".to_string())
}

/// Runs and prints.
///
/// # Errors
/// The settings make no sense, the trace cannot be read, or the pool not serve it.
pub fn run(settings: &Settings, out: &mut impl Write) -> Result<(), LabError> {
    let replacements = contenders::split(&settings.replacement);
    let replacements: Vec<Replacement> = replacements
        .iter()
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    if replacements.is_empty() {
        return Err(LabError::Usage("--replacement: none is named".to_string()));
    }
    let progress = Progress::new(!settings.quiet);
    let trace = settings.input.load(&progress)?;
    let capacities = sizes::resolve(&settings.capacity, trace.pages().len());
    let place = settings
        .dir
        .as_deref()
        .map_or(Place::Memory, Place::Directory);
    let ground = Ground::new(&trace, place)?;
    drop(trace);
    let mut rows = vec![HEAD.map(str::to_string).to_vec()];
    for &frames in &capacities {
        for replacement in &replacements {
            for &threads in &settings.threads {
                let mut setup = Setup::new(replacement.clone(), frames);
                if settings.optimistic {
                    setup.miss = MissMode::Optimistic;
                }
                let length = settings.seconds.map_or(Length::Once, |seconds| {
                    Length::For(Duration::from_secs_f64(seconds))
                });
                progress.say(&format!(
                    "{replacement} with {frames} pages, {threads} threads"
                ));
                let measured = live::run(&*ground.pool(&setup)?, &ground, threads, length)?;
                match settings.json {
                    true => writeln!(out, "{}", object(settings, &setup, threads, &measured))?,
                    false => rows.push(row(&setup, threads, &measured)),
                }
            }
        }
    }
    progress.finish();
    if settings.json {
        return Ok(());
    }
    let (name, requests) = (settings.input.name(), count(ground.references() as u64));
    let distinct = count(ground.distinct() as u64);
    writeln!(
        out,
        "{name}: {requests} requests of {distinct} pages, on the pool\n"
    )?;
    table(out, &rows)?;
    writeln!(
        out,
        "\nLocks taken, blocked (not to be had at once), pages read in vain, and waits for a page that another thread \
         reads: in a\nmillion accesses."
    )?;
    if ground.is_blank() {
        writeln!(
            out,
            "The pages are too many to be written: all that was read is blank."
        )?;
    }
    Ok(())
}

const HEAD: [&str; 10] = [
    "replacement",
    "pages",
    "threads",
    "accesses/s",
    "hits, %",
    "locks",
    "blocked",
    "in vain",
    "waits",
    "processor, %",
];

fn row(setup: &Setup, threads: usize, measured: &Measured) -> Vec<String> {
    let stats = &measured.stats;
    let counts = [
        stats.replacement.lock_acquisitions,
        stats.replacement.lock_blocked,
        stats.loads_lost,
        stats.load_waits,
    ];
    let mut row = vec![
        setup.replacement.to_string(),
        count(setup.frames.into()),
        threads.to_string(),
        count(measured.per_second() as u64),
        format!("{:.2}", measured.hit_percent()),
    ];
    row.extend(counts.map(|number| format!("{:.1}", measured.per_million(number))));
    let processor = measured.processor_percent();
    row.push(processor.map_or("-".to_string(), |percent| format!("{percent:.0}")));
    row
}

fn object(
    settings: &Settings,
    setup: &Setup,
    threads: usize,
    measured: &Measured,
) -> serde_json::Value {
    let stats = &measured.stats;
    let locks = &stats.replacement;
    json!({
        "trace": settings.input.name(),
        "replacement": setup.replacement.to_string(),
        "size": setup.frames,
        "threads": threads,
        "optimistic": settings.optimistic,
        "accesses": measured.accesses,
        "misses": stats.misses,
        "seconds": rounded(measured.elapsed.as_secs_f64(), 6),
        "accesses_per_second": rounded(measured.per_second(), 1),
        "hit_percent": rounded(measured.hit_percent(), 4),
        "locks": locks.lock_acquisitions,
        "locks_blocked": locks.lock_blocked,
        "try_locks_failed": locks.try_locks_failed,
        "hits_told": locks.hits_drained,
        "hits_stale": locks.hits_stale,
        "hits_dropped": locks.hits_dropped,
        "reads_in_vain": stats.loads_lost,
        "read_waits": stats.load_waits,
        "latch_waits": stats.latch_waits,
        "sweep_steps": stats.sweep_steps,
        "processor_percent": measured.processor_percent().map(|percent| rounded(percent, 1)),
    })
}
