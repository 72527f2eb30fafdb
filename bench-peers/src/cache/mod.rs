//! Caches in memory, compared: hits per second with all keys resident, and hit ratios on traces.
//!
//! # Protocol
//! For each round and number of threads, the caches run one after the other on the same keys; each line is printed as
//! it comes, and at the end a table of medians. `hits`: every thread asks for a share of the keys. `TRACE@CAPACITY`: the
//! threads take the trace by batches of 64 keys, in order; what is missing is put in.

mod subjects;

use clap::Args;
use comfy_table::Table;
use lab::Progress;
use lab::input::Input;
use serde::Serialize;
use std::error::Error;
use std::io::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Instant;
use subjects::{Kind, Subject};

/// Keys that a thread takes at a time.
const BATCH: usize = 64;

/// What is measured.
#[derive(Clone, Debug, Args)]
pub struct Settings {
    /// Traces or workloads of the lab, each with a number of entries: OLTP.lis.gz@1000
    #[arg(value_name = "TRACE@CAPACITY")]
    traces: Vec<String>,
    /// The caches; the others are compared with the first
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "longshore,moka,quick-cache,foyer-lfu,foyer-s3-fifo"
    )]
    caches: Vec<Kind>,
    /// Numbers of threads
    #[arg(long, value_delimiter = ',', default_value = "1,2,8,32")]
    threads: Vec<usize>,
    /// Times that each is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Keys that are resident where hits are measured
    #[arg(long, default_value_t = 100_000)]
    keys: u64,
    /// Questions that are asked of each cache where hits are measured; 0 leaves that out
    #[arg(long, default_value_t = 8_000_000)]
    asks: usize,
    /// A line of JSON for each run, and no table
    #[arg(long)]
    json: bool,
}

/// A run. Fields are part of the command's interface; the README lists them.
#[derive(Clone, Debug, Serialize)]
struct Line {
    cache: String,
    workload: String,
    capacity: u64,
    threads: usize,
    round: usize,
    requests: u64,
    hits: u64,
    requests_per_second: u64,
}

/// Keys to ask for, of a cache of a capacity.
struct Workload {
    name: String,
    keys: Vec<u64>,
    capacity: u64,
    /// What is put in before the clock starts.
    resident: u64,
}

/// Measures, and prints.
pub fn run(settings: &Settings, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    if settings.caches.is_empty() || settings.threads.contains(&0) || settings.rounds == 0 {
        return Err("caches, threads and rounds must not be none".into());
    }
    let mut lines = Vec::new();
    for workload in workloads(settings)? {
        for round in 0..settings.rounds {
            for threads in &settings.threads {
                for kind in &settings.caches {
                    let line = measure(&workload, *kind, *threads, round);
                    if settings.json {
                        writeln!(out, "{}", serde_json::to_string(&line)?)?;
                    }
                    lines.push(line);
                }
            }
        }
    }
    if !settings.json {
        writeln!(out, "{}", table(settings, &lines))?;
    }
    Ok(())
}

fn workloads(settings: &Settings) -> Result<Vec<Workload>, Box<dyn Error>> {
    let mut workloads = Vec::new();
    if settings.asks > 0 {
        let zipf = format!("zipf:pages={},requests={}", settings.keys, settings.asks);
        workloads.push(Workload {
            name: "hits".to_string(),
            keys: load(&zipf)?,
            // Caches in shards, and those that admit after a look, keep all of them only if there is room.
            capacity: 2 * settings.keys,
            resident: settings.keys,
        });
    }
    for text in &settings.traces {
        let parts = text.rsplit_once('@');
        let parsed = parts.and_then(|(name, capacity)| Some((name, capacity.parse().ok()?)));
        let Some((name, capacity)) = parsed.filter(|(_, capacity)| *capacity > 0) else {
            return Err(format!("{text}: not TRACE@CAPACITY, such as OLTP.lis.gz@1000").into());
        };
        workloads.push(Workload {
            name: name.rsplit('/').next().unwrap_or(name).to_string(),
            keys: load(name)?,
            capacity,
            resident: 0,
        });
    }
    Ok(workloads)
}

fn load(trace: &str) -> Result<Vec<u64>, lab::LabError> {
    let trace = Input::of(trace).load(&Progress::hidden())?;
    Ok(trace.iter().collect())
}

fn measure(workload: &Workload, kind: Kind, threads: usize, round: usize) -> Line {
    let cache = kind.create(workload.capacity);
    (0..workload.resident).for_each(|key| cache.put(key));
    cache.settle();
    let (next, hits) = (AtomicUsize::new(0), AtomicU64::new(0));
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| hits.fetch_add(ask(&*cache, &workload.keys, &next), Relaxed));
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    Line {
        cache: kind.name(),
        workload: workload.name.clone(),
        capacity: workload.capacity,
        threads,
        round,
        requests: workload.keys.len() as u64,
        hits: hits.into_inner(),
        requests_per_second: (workload.keys.len() as f64 / seconds) as u64,
    }
}

/// Asks for keys until there are none left to take; returns how many were there.
fn ask(cache: &dyn Subject, keys: &[u64], next: &AtomicUsize) -> u64 {
    let mut hits = 0;
    loop {
        let start = next.fetch_add(BATCH, Relaxed).min(keys.len());
        let batch = &keys[start..(start + BATCH).min(keys.len())];
        if batch.is_empty() {
            return hits;
        }
        for key in batch {
            match cache.get(*key) {
                true => hits += 1,
                false => cache.put(*key),
            }
        }
    }
}

/// Medians: millions of requests a second, as a multiple of each other cache, and hit ratios.
fn table(settings: &Settings, lines: &[Line]) -> Table {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::ASCII_MARKDOWN);
    table.set_header([
        "workload", "capacity", "threads", "cache", "M/s", "first is", "hit %",
    ]);
    for group in lines.chunk_by(|a, b| (&a.workload, a.capacity) == (&b.workload, b.capacity)) {
        for threads in &settings.threads {
            let of = |kind: &Kind, figure: fn(&Line) -> f64| {
                let name = kind.name();
                let mine = |line: &&Line| line.threads == *threads && line.cache == name;
                median(group.iter().filter(mine).map(figure).collect())
            };
            let rate = |line: &Line| line.requests_per_second as f64 / 1e6;
            let hits = |line: &Line| 100.0 * line.hits as f64 / line.requests as f64;
            let first = of(&settings.caches[0], rate);
            for kind in &settings.caches {
                table.add_row([
                    group[0].workload.clone(),
                    group[0].capacity.to_string(),
                    threads.to_string(),
                    kind.name(),
                    format!("{:.2}", of(kind, rate)),
                    format!("{:.2} x", first / of(kind, rate)),
                    format!("{:.2}", of(kind, hits)),
                ]);
            }
        }
    }
    table
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_cache_keeps_what_there_is_room_for() {
        let workload = Workload {
            name: "hits".to_string(),
            keys: (0..1000).chain(0..1000).collect(),
            capacity: 2000,
            resident: 1000,
        };
        for kind in Kind::value_variants() {
            let line = measure(&workload, *kind, 2, 0);
            assert_eq!((line.requests, line.hits), (2000, 2000), "{kind:?}");
        }
    }

    #[test]
    fn every_cache_forgets_what_there_is_no_room_for() {
        let workload = Workload {
            name: "scan".to_string(),
            keys: (0..50_000).chain(0..50_000).collect(),
            capacity: 1000,
            resident: 0,
        };
        for kind in Kind::value_variants() {
            assert!(measure(&workload, *kind, 1, 0).hits < 5000, "{kind:?}");
        }
    }

    #[test]
    fn a_trace_without_capacity_is_refused() {
        for text in ["zipf", "zipf@", "zipf@0", "zipf@many"] {
            let settings = Settings {
                traces: vec![text.to_string()],
                caches: vec![Kind::Longshore],
                threads: vec![1],
                rounds: 1,
                keys: 10,
                asks: 0,
                json: false,
            };
            let message = run(&settings, &mut Vec::new()).unwrap_err().to_string();
            assert!(message.starts_with(text), "{message}");
        }
    }
}
