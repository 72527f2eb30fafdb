//! Threads that use pages.
//!
//! # Protocol
//! Nothing is counted before all threads stand ready. Then each thread takes the next stretch of the trace, and comes
//! back for another. With [`Length::Once`] until there is none left, and the time is that from the first start to the last end. With
//! [`Length::For`] the pool is filled first, with a part of the trace, or with all pages if they fit; stretches come round
//! again until the threads are told to stop, and what they do between two looks of the main thread counts: before the
//! first they have run for a tenth of the time.
//!
//! Stretches and not shares, since the system lets a thread run for some milliseconds where there are fewer cores than
//! threads. With a share of its own it would go round in that alone, or go on while others stand far behind: pages that
//! the trace uses together would be used apart, and hits be lost, or won, by the order and not by the pool. So a thread
//! that loses its core holds back a part of one stretch, and nothing else.
//!
//! # Ordering
//! Counts and the flag are Relaxed: they tell how far a thread has come, and carry nothing.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use longshore_base::{PageId, PageSize};
use longshore_pool::{Pool, PoolError, PoolStats};

use super::{Ground, processor};
use crate::error::LabError;

/// A pool is filled with so many references for each of its frames.
const FILL: usize = 8;

/// How long threads run.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    /// Through the trace, with a pool that is empty at first.
    Once,
    /// So long, with a pool that is full.
    For(Duration),
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Accesses to pages.
    pub accesses: u64,
    /// In this time.
    pub elapsed: Duration,
    /// Processor time of all threads, where the system tells it.
    pub processor: Option<Duration>,
    /// What the pool counted meanwhile.
    pub stats: PoolStats,
}

impl Measured {
    /// Accesses in a second.
    pub fn per_second(&self) -> f64 {
        self.accesses as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Accesses in a hundred that found their page. A page that two threads miss at once counts twice if both read it.
    pub fn hit_percent(&self) -> f64 {
        100.0 - self.percent(self.stats.misses)
    }

    /// So many in a hundred accesses.
    pub fn percent(&self, count: u64) -> f64 {
        100.0 * count as f64 / self.accesses.max(1) as f64
    }

    /// So many in a million accesses.
    pub fn per_million(&self, count: u64) -> f64 {
        1e6 * count as f64 / self.accesses.max(1) as f64
    }

    /// Processor time of an access, in nanoseconds.
    pub fn processor_ns(&self) -> Option<f64> {
        let time = self.processor?;
        Some(time.as_secs_f64() * 1e9 / self.accesses.max(1) as f64)
    }

    /// The part of all cores that was used, in a hundred.
    pub fn processor_percent(&self) -> Option<f64> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let time = self.processor?.as_secs_f64();
        Some(100.0 * time / (self.elapsed.as_secs_f64().max(1e-9) * cores))
    }
}

/// A thread's count of its accesses, on a line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Lane(AtomicU64);

/// What is shared by the threads of a run.
struct Course<'a> {
    pool: &'a Pool,
    ground: &'a Ground,
    /// The stretch of the trace that is next.
    next: AtomicUsize,
    lanes: Vec<Lane>,
    stop: AtomicBool,
    ready: Barrier,
}

/// Lets `threads` threads use the pages of `ground`.
///
/// # Errors
/// The pool refuses a page.
pub fn run(
    pool: &Pool,
    ground: &Ground,
    threads: usize,
    length: Length,
) -> Result<Measured, LabError> {
    if matches!(length, Length::For(_)) {
        fill(pool, ground)?;
    }
    let course = Course {
        pool,
        ground,
        next: AtomicUsize::new(0),
        lanes: (0..threads).map(|_| Lane::default()).collect(),
        stop: AtomicBool::new(false),
        ready: Barrier::new(threads + 1),
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = course
            .lanes
            .iter()
            .map(|lane| {
                let course = &course;
                scope.spawn(move || course.go(lane, length))
            })
            .collect();
        course.ready.wait();
        let measured = match length {
            Length::Once => None,
            Length::For(time) => Some(course.watch(time)),
        };
        let mut tours = Vec::new();
        for worker in workers {
            tours.push(worker.join().expect("no thread panics")?);
        }
        Ok(measured.unwrap_or_else(|| course.sum_up(&tours)))
    })
}

/// One thread's way.
struct Tour {
    start: Instant,
    end: Instant,
    processor: Option<Duration>,
}

/// Brings in what will be used.
fn fill(pool: &Pool, ground: &Ground) -> Result<(), PoolError> {
    let frames = pool.stats().frames_free as usize;
    if ground.distinct() <= frames {
        // So often that each is as heavy as a page can be.
        return (0..16).try_for_each(|_| ground.each().try_for_each(|page| touch(pool, page)));
    }
    ground
        .first(frames * FILL)
        .try_for_each(|page| touch(pool, page))
}

/// What is known at a moment.
struct Look {
    at: Instant,
    accesses: u64,
    processor: Option<Duration>,
    stats: PoolStats,
}

impl Look {
    fn since(self, start: &Look) -> Measured {
        let processor = self.processor.zip(start.processor);
        Measured {
            accesses: self.accesses - start.accesses,
            elapsed: self.at - start.at,
            processor: processor.map(|(end, start)| end.saturating_sub(start)),
            stats: difference(&self.stats, &start.stats),
        }
    }
}

/// What was counted between two moments; of what is not counted, the state at the second.
fn difference(end: &PoolStats, start: &PoolStats) -> PoolStats {
    let mut stats = end.clone();
    stats.misses -= start.misses;
    stats.page_reads -= start.page_reads;
    stats.loads_lost -= start.loads_lost;
    stats.load_waits -= start.load_waits;
    stats.latch_waits -= start.latch_waits;
    stats.frame_waits -= start.frame_waits;
    stats.exchanges_failed -= start.exchanges_failed;
    stats.sweep_steps -= start.sweep_steps;
    stats.evictions -= start.evictions;
    let (own, former) = (&mut stats.replacement, &start.replacement);
    own.lock_acquisitions -= former.lock_acquisitions;
    own.lock_blocked -= former.lock_blocked;
    own.try_locks_failed -= former.try_locks_failed;
    own.hits_drained -= former.hits_drained;
    own.hits_stale -= former.hits_stale;
    own.hits_dropped -= former.hits_dropped;
    own.lock_wait_nanos -= former.lock_wait_nanos;
    own.lock_held_nanos -= former.lock_held_nanos;
    stats
}

impl Course<'_> {
    fn accesses(&self) -> u64 {
        self.lanes
            .iter()
            .map(|lane| lane.0.load(Ordering::Relaxed))
            .sum()
    }

    fn look(&self) -> Look {
        Look {
            processor: processor::time(),
            stats: self.pool.stats(),
            accesses: self.accesses(),
            at: Instant::now(),
        }
    }

    /// Measures threads that go round, and stops them.
    fn watch(&self, time: Duration) -> Measured {
        std::thread::sleep(time / 10);
        let start = self.look();
        std::thread::sleep(time);
        let end = self.look();
        self.stop.store(true, Ordering::Relaxed);
        end.since(&start)
    }

    /// Takes stretch after stretch, until there is none left or it is told to stop.
    fn go(&self, lane: &Lane, length: Length) -> Result<Tour, PoolError> {
        let stretches = match length {
            Length::Once => self.ground.stretches(),
            Length::For(_) => usize::MAX,
        };
        self.ready.wait();
        let start = Instant::now();
        let mut done = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= stretches {
                break;
            }
            for page in self.ground.stretch(number) {
                touch(self.pool, page)?;
                done += 1;
            }
            lane.0.store(done, Ordering::Relaxed);
        }
        Ok(Tour {
            start,
            end: Instant::now(),
            processor: processor::time_of_thread(),
        })
    }

    /// What all have done that went once through the trace.
    fn sum_up(&self, tours: &[Tour]) -> Measured {
        let start = tours.iter().map(|tour| tour.start).min();
        let end = tours.iter().map(|tour| tour.end).max();
        let elapsed = end
            .zip(start)
            .map_or(Duration::ZERO, |(end, start)| end - start);
        Measured {
            accesses: self.accesses(),
            elapsed,
            processor: tours.iter().map(|tour| tour.processor).sum(),
            stats: self.pool.stats(),
        }
    }
}

/// Reads the first and the last word of a page.
#[inline]
fn touch(pool: &Pool, page: PageId) -> Result<(), PoolError> {
    const LAST: usize = PageSize::DEFAULT.words() - 1;
    loop {
        let guard = pool.read(page)?;
        let bytes = guard.page();
        black_box(bytes.word(0) ^ bytes.word(LAST));
        if guard.validate().is_ok() {
            return Ok(());
        }
    }
}
