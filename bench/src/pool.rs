//! The buffer manager alone, on a disk in memory.
//!
//! # Hits
//! Pages form a ring in random order; each holds the number of the next. A thread follows the ring,
//! so no step can begin before the former has ended, as in a descent through a tree. *Touch* follows
//! the ring through references to the pages taken ahead: what reading the page costs by itself. The
//! ways to fix are told over it. All are measured in short turns, and the median turn counts.
//!
//! Two rings: *hot*, which the first-level cache holds, and *wide*, which fills the pool.
//!
//! # Misses and sweeps
//! A small pool reads pages of a large file at random: nearly each read is a miss, which finds a
//! frame, sweeping if none is free, and copies the page from memory and checks it. A sweep alone is a
//! round of maintenance over clean pages, which frees frames and writes nothing.

use crate::error::BenchError;
use crate::harness::{Done, Measured, Plan, Tally, run as run_clients};
use crate::progress::Progress;
use crate::report::{Line, Report, rounded};
use crate::settings::{Level, Settings};
use crate::store::Outcome;
use crate::summary::middle;
use longshore_base::page::header;
use longshore_base::{Durability, DurabilityLost, Environment, Lsn, PageId, PageSize};
use longshore_base::{PageType, SystemEnvironment};
use longshore_disk::{Disk, MemoryDisk, OpenMode};
use longshore_pool::{PageRef, Pool, PoolOptions, PoolStats, Replacement, SharedGuard};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the report calls the pool.
const NAME: &str = "longshore";

/// Pages of the hot ring.
const HOT_PAGES: u64 = 32;

/// Steps between two looks at the clock.
const STEPS_PER_CALL: u64 = 1024;

/// Turns that each way to fix gets; the median counts.
const TURNS: usize = 5;

/// Word of a page that holds the next page of the ring: the first behind header and node header.
const NEXT: usize = 8;

/// Runs the benchmark for each number of threads.
pub(crate) fn run(
    settings: &Settings,
    report: &mut Report<impl Write>,
    progress: &Progress,
) -> Result<(), BenchError> {
    let failed = BenchError::engine(NAME, settings.name.as_str());
    let bytes = settings.pool_mib() << 20;
    let wide_pages = (bytes as u64 / PageSize::DEFAULT.bytes() as u64 * 9 / 10).max(HOT_PAGES);
    for (ring, pages) in [("hot", HOT_PAGES), ("wide", wide_pages)] {
        let pool = pool_with_ring(bytes + (4 << 20), pages, settings)?;
        for &threads in &settings.threads {
            progress.say(format_args!("pool: {ring} hits, {threads} threads"));
            let lines = hits(&pool, pages, ring, threads, settings).map_err(&failed)?;
            progress.clear();
            lines.iter().try_for_each(|line| report.write(line))?;
        }
    }
    let small = bytes / 4;
    for &threads in &settings.threads {
        progress.say(format_args!("pool: misses, {threads} threads"));
        let line = misses(small, wide_pages, threads, settings).map_err(&failed)?;
        progress.clear();
        report.write(&line)?;
    }
    // No other than Nb-GCLOCK evicts ahead of need.
    if settings.replacement == Replacement::Native {
        progress.say(format_args!("pool: sweeps"));
        let line = sweeps(small, wide_pages, settings).map_err(&failed)?;
        progress.clear();
        report.write(&line)?;
    }
    Ok(())
}

/// A log that is always durable: there is none.
struct NoLog;

impl Durability for NoLog {
    fn is_durable(&self, _: Lsn) -> bool {
        true
    }

    fn make_durable(&self, _: Lsn) -> Result<(), DurabilityLost> {
        Ok(())
    }
}

/// A pool of `bytes` over a file of `pages` pages that form a ring.
fn pool_with_ring(bytes: usize, pages: u64, settings: &Settings) -> Result<Arc<Pool>, BenchError> {
    let data = MemoryDisk::new().open("data", OpenMode::Create)?;
    let env: Arc<dyn Environment> = Arc::new(SystemEnvironment::new());
    let options = PoolOptions {
        replacement: settings.replacement.clone(),
        ..PoolOptions::with_bytes(bytes)
    };
    let pool = Pool::new(options, data, None, Arc::new(NoLog), env)?;
    pool.grow(pages)?;
    for (page, next) in ring(pages) {
        let mut guard = pool.fix_new(PageId::new(page))?;
        let mut content = guard.page_mut();
        content.set_u8(header::TYPE, PageType::Node as u8);
        content.set_word(NEXT, next);
        guard.stamp(Lsn::new(64));
    }
    pool.flush_all()?;
    Ok(pool)
}

/// Each page and its successor, in a ring of random order.
fn ring(pages: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut order: Vec<u64> = (0..pages).collect();
    order.shuffle(&mut SmallRng::seed_from_u64(1));
    (0..order.len()).map(move |at| (order[at], order[(at + 1) % order.len()]))
}

/// The ways to get at a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Touch,
    Read,
    FixShared,
    FixExclusive,
}

impl Way {
    const ALL: [Way; 4] = [Way::Touch, Way::Read, Way::FixShared, Way::FixExclusive];

    fn name(self) -> &'static str {
        match self {
            Way::Touch => "pool-touch",
            Way::Read => "pool-read",
            Way::FixShared => "pool-fix-shared",
            Way::FixExclusive => "pool-fix-exclusive",
        }
    }
}

/// The lines of all ways to hit.
fn hits(
    pool: &Pool,
    pages: u64,
    ring: &'static str,
    threads: usize,
    settings: &Settings,
) -> Outcome<Vec<Line>> {
    let mut runs: Vec<Vec<Measured>> = Way::ALL.iter().map(|_| Vec::new()).collect();
    let mut latch_waits = [0; Way::ALL.len()];
    let share = settings.duration().div_f64((TURNS * Way::ALL.len()) as f64);
    for _ in 0..TURNS {
        for (at, way) in Way::ALL.into_iter().enumerate() {
            let before = pool.stats().latch_waits;
            runs[at].push(follow_ring(pool, pages, way, threads, share)?);
            latch_waits[at] += pool.stats().latch_waits - before;
        }
    }
    let touch = nanoseconds(&runs[0], threads);
    let mut touch_processor = None;
    let mut lines = Vec::new();
    for ((way, runs), waits) in Way::ALL.into_iter().zip(runs).zip(latch_waits) {
        let ns = nanoseconds(&runs, threads);
        let run = merged(runs);
        let processor = run.processor_ns_per_operation();
        touch_processor = touch_processor.or(processor);
        let processor_over = processor
            .zip(touch_processor)
            .map(|(own, touch)| own - touch);
        let mut line = line(way.name(), threads, settings.durability, &run);
        line.blocked_per_million_fixes = Some(per_million(waits, run.total.operations));
        lines.push(
            line.with("ring", ring)
                .with("pages", pages)
                .with("ns_per_op", rounded(ns))
                .with("ns_over_touch", rounded(ns - touch))
                .with_some("cpu_ns_over_touch", processor_over.map(rounded)),
        );
    }
    Ok(lines)
}

fn follow_ring(
    pool: &Pool,
    pages: u64,
    way: Way,
    threads: usize,
    duration: Duration,
) -> Outcome<Measured> {
    let held: Vec<SharedGuard<'_>> = match way {
        Way::Touch => (0..pages)
            .map(|page| pool.fix_shared(PageId::new(page)))
            .collect::<Result<_, _>>()?,
        _ => Vec::new(),
    };
    let touched: Vec<PageRef<'_>> = held.iter().map(SharedGuard::page).collect();
    let client = |client: usize| {
        let touched = &touched[..];
        // Threads begin at different places of the ring.
        let mut page = client as u64 * 7919 % pages;
        move || {
            for _ in 0..STEPS_PER_CALL {
                page = match way {
                    Way::Touch => touched[page as usize].word(NEXT),
                    Way::Read => read_next(pool, PageId::new(page))?,
                    Way::FixShared => pool.fix_shared(PageId::new(page))?.page().word(NEXT),
                    Way::FixExclusive => pool.fix_exclusive(PageId::new(page))?.page().word(NEXT),
                };
            }
            black_box(page);
            Ok(Some(Done::operations(STEPS_PER_CALL)))
        }
    };
    run_clients(&plan(threads, duration), client, || ())
}

#[inline]
fn read_next(pool: &Pool, page: PageId) -> Outcome<u64> {
    loop {
        let guard = pool.read(page)?;
        let next = guard.page().word(NEXT);
        if guard.validate().is_ok() {
            return Ok(next);
        }
    }
}

/// The line of a small pool that misses.
fn misses(bytes: usize, pages: u64, threads: usize, settings: &Settings) -> Outcome<Line> {
    let pool = pool_with_ring(bytes, pages, settings)?;
    let client = |client: usize| {
        let mut random = SmallRng::seed_from_u64(client as u64);
        let pool = &*pool;
        move || {
            const READS_PER_CALL: u64 = 16;
            for _ in 0..READS_PER_CALL {
                black_box(read_next(pool, PageId::new(random.random_range(0..pages)))?);
            }
            Ok(Some(Done::operations(READS_PER_CALL)))
        }
    };
    let mut before = pool.stats();
    let at_start = || before = pool.stats();
    let plan = Plan {
        warm_up: settings.warm_up(),
        ..plan(threads, settings.duration())
    };
    let measured = run_clients(&plan, client, at_start)?;
    let after = pool.stats();
    let misses = after.misses - before.misses;
    let waits = waits(&after) - waits(&before);
    let evictions = (after.evictions - before.evictions).max(1) as f64;
    let mut line = Line::of(NAME, "pool-miss", threads, settings.durability, &measured);
    line.blocked_per_million_fixes = Some(per_million(waits, measured.total.operations));
    let ns = nanoseconds(&[measured], threads);
    let steps = (after.sweep_steps - before.sweep_steps) as f64 / evictions;
    let misses_per_op = misses as f64 / (line.ops_per_second * settings.seconds);
    Ok(line
        .with("pages", pages)
        .with("frames", after.frames)
        .with("ns_per_op", rounded(ns))
        .with("misses_per_op", rounded(misses_per_op))
        .with("sweep_steps_per_eviction", rounded(steps)))
}

/// The line of sweeps alone: the pool is filled by misses, a round of maintenance is timed.
fn sweeps(bytes: usize, pages: u64, settings: &Settings) -> Outcome<Line> {
    let pool = pool_with_ring(bytes, pages, settings)?;
    let mut random = SmallRng::seed_from_u64(1);
    let mut per_step = Vec::new();
    let mut per_frame = Vec::new();
    let start = Instant::now();
    let (mut freed, mut swept, mut fixes) = (0, Duration::ZERO, 0);
    while start.elapsed() < settings.duration() || freed == 0 {
        // Takes the free frames, so that the next round has some to find.
        for _ in 0..pool.stats().frames_free {
            read_next(&pool, PageId::new(random.random_range(0..pages)))?;
            fixes += 1;
        }
        let before = pool.stats();
        let round = Instant::now();
        let done = pool.maintain(usize::MAX)?;
        let took = round.elapsed();
        let steps = pool.stats().sweep_steps - before.sweep_steps;
        if done.freed > 0 {
            per_step.push(took.as_nanos() as f64 / steps.max(1) as f64);
            per_frame.push(took.as_nanos() as f64 / done.freed as f64);
            freed += done.freed as u64;
            swept += took;
        }
    }
    let mut total = Tally::new();
    total.operations = freed;
    per_frame
        .iter()
        .for_each(|&ns| total.latency.saturating_record(ns as u64));
    let measured = Measured::of(total, swept, None);
    let mut line = Line::of(NAME, "pool-sweep", 1, settings.durability, &measured);
    line.blocked_per_million_fixes = Some(per_million(waits(&pool.stats()), fixes));
    Ok(line
        .with("ns_per_op", rounded(middle(per_frame)))
        .with("ns_per_step", rounded(middle(per_step))))
}

fn plan(clients: usize, duration: Duration) -> Plan {
    Plan {
        clients,
        warm_up: duration.div_f64(10.0),
        duration,
        sample: 1,
    }
}

/// A line whose latency is that of a step, not of a call.
fn line(workload: &'static str, threads: usize, durability: Level, run: &Measured) -> Line {
    let mut line = Line::of(NAME, workload, threads, durability, run);
    line.p50_us /= STEPS_PER_CALL as f64;
    line.p99_us /= STEPS_PER_CALL as f64;
    line
}

/// How often a thread had to wait for something.
fn waits(stats: &PoolStats) -> u64 {
    stats.latch_waits + stats.load_waits + stats.frame_waits
}

fn per_million(waits: u64, fixes: u64) -> f64 {
    rounded(waits as f64 * 1e6 / fixes.max(1) as f64)
}

fn merged(runs: Vec<Measured>) -> Measured {
    let mut runs = runs.into_iter();
    let mut all = runs.next().expect("at least one turn");
    runs.for_each(|run| {
        all.elapsed += run.elapsed;
        all.processor = all.processor.zip(run.processor).map(|(all, one)| all + one);
        all.total.add(&run.total);
    });
    all
}

/// Time of an operation on one core, in the median run, if the threads had the cores to themselves.
fn nanoseconds(runs: &[Measured], threads: usize) -> f64 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let busy = threads.min(cores) as f64;
    middle(
        runs.iter()
            .map(|run| busy * 1e9 / run.operations_per_second())
            .collect(),
    )
}
