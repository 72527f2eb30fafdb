//! What the pool's steps cost: hits, misses, sweeps, in each configuration, beside the bare memory.
//!
//! Run by `cargo run --release -p longshore-pool --example measure -- [making|hits|misses|waits|forms]`. All figures
//! are medians of interleaved rounds of one run; the ratios are what they are for.
//!
//! `measure -- only read|shared|exclusive TIMES [REPLACEMENT]` does nothing but hits, for a tool that counts instructions.

use longshore_base::page::{header, seal};
use longshore_base::{
    Durability, DurabilityLost, Lsn, PageId, PageSize, PageType, SystemEnvironment,
};
use longshore_disk::{Disk, DiskError, DiskFile, MemoryDisk, OpenMode};
use longshore_pool::{
    DoubleWrite, HandKind, MissMode, PageBuffer, PageTableKind, Pool, PoolOptions,
};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;
const PAGE: usize = PageSize::DEFAULT.bytes();

struct NoLog;

impl Durability for NoLog {
    fn is_durable(&self, _: Lsn) -> bool {
        true
    }

    fn make_durable(&self, _: Lsn) -> Result<(), DurabilityLost> {
        Ok(())
    }
}

/// A file whose reads take some time more.
struct SlowFile {
    file: Arc<dyn DiskFile>,
    delay: Duration,
}

impl DiskFile for SlowFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        if !self.delay.is_zero() {
            std::thread::sleep(self.delay);
        }
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), DiskError> {
        self.file.write_at(bytes, offset)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.file.sync()
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.file.set_len(len)
    }

    fn allocate(&self, len: u64) -> Result<(), DiskError> {
        self.file.allocate(len)
    }
}

/// A file of `pages` pages, each sealed.
fn file_of(pages: u64) -> Arc<dyn DiskFile> {
    let file = MemoryDisk::new().open("data", OpenMode::Create).unwrap();
    let mut page = vec![7; PAGE];
    page[header::TYPE] = PageType::Node as u8;
    for id in 0..pages {
        seal(PageId::new(id), &mut page);
        file.write_at(&page, id * PAGE as u64).unwrap();
    }
    file
}

fn pool_over(file: &Arc<dyn DiskFile>, options: PoolOptions, delay: Duration) -> Arc<Pool> {
    let file = SlowFile {
        file: file.clone(),
        delay,
    };
    let env = Arc::new(SystemEnvironment::new());
    Pool::new(options, Arc::new(file), None, Arc::new(NoLog), env).unwrap()
}

/// Numbers without pattern, cheap to make.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(limit)) >> 64) as u64
    }
}

fn nanoseconds(times: u64, mut work: impl FnMut(u64)) -> f64 {
    let start = Instant::now();
    (0..times).for_each(&mut work);
    start.elapsed().as_nanos() as f64 / times as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs each of the measurements in turn, round by round, and prints the medians.
fn interleave(title: &str, cases: Vec<(String, Box<dyn FnMut() -> f64 + '_>)>) {
    println!("{title}");
    let mut cases: Vec<_> = cases.into_iter().map(|(n, f)| (n, f, Vec::new())).collect();
    for _ in 0..ROUNDS {
        for (_, measure, values) in &mut cases {
            values.push(measure());
        }
    }
    for (name, _, values) in cases {
        println!("  {name:<44} {:>10.1}", median(values));
    }
}

fn with_table(table: PageTableKind, frames: usize) -> PoolOptions {
    PoolOptions {
        table,
        double_write: DoubleWrite::Off,
        ..PoolOptions::with_bytes(frames * (PAGE + 128) + 130 * PAGE + (1 << 20))
    }
}

const TABLES: [PageTableKind; 2] = [PageTableKind::Translation, PageTableKind::Hash];

fn hits() {
    for (pages, times) in [(1, 4_000_000), (256, 2_000_000), (24_000, 400_000)] {
        let file = file_of(pages);
        let bare: Vec<PageBuffer> = (0..pages)
            .map(|_| PageBuffer::zeroed(PageSize::DEFAULT))
            .collect();
        let pools = TABLES.map(|table| {
            let pool = pool_over(&file, with_table(table, 32_000), Duration::ZERO);
            for _ in 0..4 {
                (0..pages).for_each(|id| drop(pool.fix_shared(PageId::new(id)).unwrap()));
            }
            pool
        });
        let mut cases: Vec<(String, Box<dyn FnMut() -> f64>)> = Vec::new();
        let mut numbers = Numbers(1);
        cases.push((
            "touch a page in bare memory".into(),
            Box::new(move || {
                nanoseconds(times, |_| {
                    let page = &bare[numbers.below(pages) as usize];
                    black_box(page.as_ref().word(5));
                })
            }),
        ));
        for (pool, table) in pools.iter().zip(TABLES) {
            let mut numbers = Numbers(1);
            cases.push((
                format!("read, touch, validate ({table:?})"),
                Box::new(move || {
                    nanoseconds(times, |_| {
                        let guard = pool.read(PageId::new(numbers.below(pages))).unwrap();
                        black_box(guard.page().word(5));
                        guard.validate().unwrap();
                    })
                }),
            ));
            let mut numbers = Numbers(1);
            cases.push((
                format!("fix_shared, touch, unfix ({table:?})"),
                Box::new(move || {
                    nanoseconds(times, |_| {
                        let guard = pool.fix_shared(PageId::new(numbers.below(pages)));
                        black_box(guard.unwrap().page().word(5));
                    })
                }),
            ));
            let mut numbers = Numbers(1);
            cases.push((
                format!("fix_exclusive, touch, unfix ({table:?})"),
                Box::new(move || {
                    nanoseconds(times, |_| {
                        let guard = pool.fix_exclusive(PageId::new(numbers.below(pages)));
                        black_box(guard.unwrap().page().word(5));
                    })
                }),
            ));
        }
        interleave(&format!("hits, {pages} pages, one thread: ns"), cases);
    }
}

/// Hits under each form of replacement, with more threads than processors.
fn forms() {
    let pages = 4096;
    let file = file_of(pages);
    let names = [
        "nb-gclock",
        "lru",
        "lossy/lru",
        "spin/lru",
        "mutex/lru",
        "partitioned/lru",
    ];
    for threads in [1, 2, 32] {
        let pools: Vec<Arc<Pool>> = names
            .iter()
            .map(|name| {
                let options = PoolOptions {
                    replacement: name.parse().unwrap(),
                    ..with_table(PageTableKind::Translation, 2 * pages as usize)
                };
                let pool = pool_over(&file, options, Duration::ZERO);
                for _ in 0..4 {
                    (0..pages).for_each(|id| drop(pool.fix_shared(PageId::new(id)).unwrap()));
                }
                pool
            })
            .collect();
        let mut costs = vec![Vec::new(); names.len()];
        for _ in 0..ROUNDS {
            for (pool, costs) in pools.iter().zip(&mut costs) {
                costs.push(reads(pool, pages, threads));
            }
        }
        println!("reads, {threads} threads: ns; locks taken and waited for per million reads");
        for ((name, pool), costs) in names.iter().zip(&pools).zip(costs) {
            let stats = pool.stats();
            let per_million = |count: u64| count as f64 * 1e6 / stats.fixes as f64;
            let locks = per_million(stats.replacement.lock_acquisitions);
            let blocked = per_million(stats.replacement.lock_blocked);
            println!(
                "  {name:<20} {:>9.1} {locks:>12.1} {blocked:>12.2}",
                median(costs)
            );
        }
    }
}

/// Nanoseconds of the clock for each read of a page at random, by so many threads together.
fn reads(pool: &Arc<Pool>, pages: u64, threads: u64) -> f64 {
    let times = 2_000_000 / threads;
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let mut numbers = Numbers(thread + 1);
                for _ in 0..times {
                    let guard = pool.read(PageId::new(numbers.below(pages))).unwrap();
                    black_box(guard.page().word(5));
                    guard.validate().unwrap();
                }
            });
        }
    });
    start.elapsed().as_nanos() as f64 / (times * threads) as f64
}

/// What a burst of misses cost.
struct Burst {
    /// Misses per second of the clock.
    rate: f64,
    /// Nanoseconds of processor time for each, however many others wanted the processor.
    cpu: f64,
}

/// Has `threads` threads read pages at random from a file four times the pool.
fn burst(pool: &Arc<Pool>, pages: u64, threads: u64, skewed: bool) -> Burst {
    let length = Duration::from_millis(150);
    let before = pool.stats().misses;
    let start = Instant::now();
    let reader = |thread: u64| {
        let begin = processor_time();
        let mut numbers = Numbers(thread + 1);
        while start.elapsed() < length {
            for _ in 0..16 {
                let mut limit = pages;
                if skewed && numbers.below(4) > 0 {
                    limit = pages / 16;
                }
                black_box(pool.read(PageId::new(numbers.below(limit))).unwrap());
            }
        }
        processor_time() - begin
    };
    let cpu: u64 = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || reader(thread)))
            .collect();
        readers.into_iter().map(|r| r.join().unwrap()).sum()
    });
    let misses = (pool.stats().misses - before) as f64;
    Burst {
        rate: misses / start.elapsed().as_secs_f64(),
        cpu: cpu as f64 / misses,
    }
}

/// Nanoseconds that this thread has been on a processor; 0 where the system does not tell.
fn processor_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = stat.split(' ').next().unwrap_or_default();
    first.parse().unwrap_or(0)
}

fn misses() {
    let frames = 4096;
    let pages = 4 * frames as u64;
    let file = file_of(pages);
    let mut page = vec![0; PAGE];
    let mut cases: Vec<(String, Box<dyn FnMut() -> f64>)> = vec![(
        "read a page from the disk (memory), and check it".into(),
        Box::new(|| {
            let mut numbers = Numbers(1);
            nanoseconds(40_000, |_| {
                let id = numbers.below(pages);
                file.read_at(&mut page, id * PAGE as u64).unwrap();
                longshore_base::page::check(PageId::new(id), &page).unwrap();
            })
        }),
    )];
    for table in TABLES {
        let pool = pool_over(&file, with_table(table, frames), Duration::ZERO);
        burst(&pool, pages, 1, false);
        cases.push((
            format!("find a victim and evict it ({table:?})"),
            Box::new(move || sweeps(&pool, pages)),
        ));
    }
    interleave("one thread: ns", cases);
    for threads in [1, 2, 8, 32] {
        compare_hands(&file, frames, threads);
    }
}

/// Nanoseconds for each frame that a round of maintenance frees by sweeping.
fn sweeps(pool: &Arc<Pool>, pages: u64) -> f64 {
    let mut numbers = Numbers(9);
    let mut spent = Duration::ZERO;
    let mut freed = 0;
    for _ in 0..200 {
        while pool.stats().frames_free > 0 {
            black_box(pool.read(PageId::new(numbers.below(pages))).unwrap());
        }
        let start = Instant::now();
        freed += pool.maintain(usize::MAX).unwrap().freed;
        spent += start.elapsed();
    }
    spent.as_nanos() as f64 / freed as f64
}

fn compare_hands(file: &Arc<dyn DiskFile>, frames: usize, threads: u64) {
    let pages = 4 * frames as u64;
    let mut cases = Vec::new();
    for table in TABLES {
        for hand in [HandKind::Batched, HandKind::Striped] {
            let options = PoolOptions {
                hand,
                ..with_table(table, frames)
            };
            let pool = pool_over(file, options, Duration::ZERO);
            burst(&pool, pages, threads, false);
            let before = pool.stats();
            cases.push((format!("{table:?}, {hand:?}"), pool, before, Vec::new()));
        }
    }
    for _ in 0..ROUNDS {
        for (_, pool, _, costs) in &mut cases {
            costs.push(burst(pool, pages, threads, false).cpu);
        }
    }
    println!(
        "misses, {threads} threads: ns of processor, steps per eviction, failed exchanges per million"
    );
    for (name, pool, before, costs) in cases {
        let after = pool.stats();
        let evictions = (after.evictions - before.evictions) as f64;
        let steps = (after.sweep_steps - before.sweep_steps) as f64 / evictions;
        let failed = (after.exchanges_failed - before.exchanges_failed) as f64 * 1e6 / evictions;
        println!(
            "  {name:<30} {:>9.0} {steps:>9.2} {failed:>9.1}",
            median(costs)
        );
    }
}

fn waits() {
    let frames = 512;
    let pages = 4 * frames as u64;
    let file = file_of(pages);
    for delay in [0, 100] {
        for threads in [2, 8, 32] {
            let mut cases: Vec<(String, Box<dyn FnMut() -> f64>)> = Vec::new();
            for miss in [MissMode::OneLoads, MissMode::Optimistic] {
                let options = PoolOptions {
                    miss,
                    ..with_table(PageTableKind::Translation, frames)
                };
                let pool = pool_over(&file, options, Duration::from_micros(delay));
                let again = pool.clone();
                cases.push((
                    format!("{miss:?}: misses/s"),
                    Box::new(move || burst(&pool, pages, threads, true).rate),
                ));
                cases.push((
                    format!("{miss:?}: ns of processor per miss"),
                    Box::new(move || burst(&again, pages, threads, true).cpu),
                ));
            }
            let title = format!("{threads} threads, skewed, reads delayed by {delay} us");
            interleave(&title, cases);
        }
    }
}

fn making() {
    let file = file_of(1);
    let small = PoolOptions {
        page_size: PageSize::MIN,
        ..PoolOptions::with_bytes(64 * PageSize::MIN.bytes())
    };
    let make = |options: &PoolOptions| {
        drop(black_box(pool_over(&file, options.clone(), Duration::ZERO)));
    };
    let large = PoolOptions::with_bytes(16 << 30);
    let cases: Vec<(String, Box<dyn FnMut() -> f64>)> = vec![
        (
            "make and drop a pool of 64 x 4 KiB".into(),
            Box::new(|| nanoseconds(500, |_| make(&small))),
        ),
        (
            "make and drop a pool of 16 GiB".into(),
            Box::new(|| nanoseconds(50, |_| make(&large))),
        ),
    ];
    interleave("making: ns", cases);
}

/// Hits of one kind, so many times.
fn only(way: &str, times: u64, replacement: &str) {
    let pages = 256;
    let options = PoolOptions {
        replacement: replacement.parse().unwrap(),
        ..with_table(PageTableKind::Translation, 1024)
    };
    let pool = pool_over(&file_of(pages), options, Duration::ZERO);
    for id in (0..4 * pages).map(|id| PageId::new(id % pages)) {
        drop(pool.fix_shared(id).unwrap());
    }
    let mut numbers = Numbers(1);
    let ids = (0..times).map(|_| PageId::new(numbers.below(pages)));
    match way {
        "read" => ids.for_each(|id| pool.read(id).unwrap().validate().unwrap()),
        "shared" => ids.for_each(|id| drop(pool.fix_shared(id).unwrap())),
        _ => ids.for_each(|id| drop(pool.fix_exclusive(id).unwrap())),
    }
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("only") => {
            let argument = |at, or: &str| std::env::args().nth(at).unwrap_or(or.to_owned());
            let times = argument(3, "1000000").parse().unwrap();
            only(&argument(2, "read"), times, &argument(4, "nb-gclock"));
        }
        Some("making") => making(),
        Some("hits") => hits(),
        Some("misses") => misses(),
        Some("waits") => waits(),
        Some("forms") => forms(),
        _ => {
            making();
            hits();
            misses();
            waits();
            forms();
        }
    }
}
