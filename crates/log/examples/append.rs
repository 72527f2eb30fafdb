//! Measures appends: `cargo run --release -p longshore-log --example append [-- seconds]`.
//!
//! Per line: nanoseconds of processor time per append (of the appending threads, from
//! `/proc/thread-self/schedstat`, so that other load on the machine does not count), and appends per
//! second of all threads by the clock. `buffer` never flushes; `memory` writes to a disk in memory, so that
//! the log is measured and not the machine's disk; `commit` waits for a sync after each append, on a
//! real directory.

use longshore_base::{Lsn, SystemEnvironment, TxnId};
use longshore_disk::{Disk, FileDisk, FileIo, FileOptions, MemoryDisk};
use longshore_log::{Claim, Level, Log, LogOptions};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Header of 32 bytes and this make 152.
const BODY: [u8; 118] = [0x5a; 118];

fn main() {
    let seconds = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(1.0);
    let time = Duration::from_secs_f64(seconds);
    println!("checksum of 158 bytes alone: {:.1} ns", checksum_alone());
    println!("buffer, 1 thread: {:.1} ns/append", buffer_alone());
    for threads in [1, 2, 8] {
        report("memory", threads, append_for(time, threads, false));
        report("memory + flusher", threads, append_for(time, threads, true));
    }
    for threads in [1, 2, 8, 32] {
        commit_for(time, threads);
    }
}

fn checksum_alone() -> f64 {
    let bytes = [7_u8; 158];
    let start = processor_time();
    let sum = (0..1_000_000).fold(0, |sum, _| crc32c::crc32c_append(sum, black_box(&bytes)));
    black_box(sum);
    (processor_time() - start) as f64 / 1e6
}

/// Appends into a buffer that never fills, the second time round: its memory is there then.
fn buffer_alone() -> f64 {
    let options = LogOptions {
        buffer_bytes: 32 << 20,
        ..LogOptions::default()
    };
    let disk = Arc::new(MemoryDisk::new());
    let log = Log::create(disk, options, 1, Arc::new(SystemEnvironment::new())).expect("a log");
    let mut claim = log.claim(100 << 20).expect("space");
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = processor_time();
        append_some(&log, &mut claim, 200_000);
        best = best.min((processor_time() - start) as f64 / 2e5);
        log.flush_all(Level::Os).expect("a flush");
    }
    best
}

/// Nanoseconds that this thread has been on a processor; by the clock where Linux does not tell.
fn processor_time() -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    told.and_then(|text| text.split(' ').next()?.parse().ok())
        .unwrap_or_else(|| {
            std::time::SystemTime::UNIX_EPOCH
                .elapsed()
                .map_or(0, |time| time.as_nanos() as u64)
        })
}

fn append_some(log: &Log, claim: &mut Claim, count: u64) {
    let parts: [&[u8]; 3] = [&BODY[..16], &BODY[16..51], &BODY[51..]];
    for _ in 0..count {
        log.append(claim, 1, TxnId::new(1), Lsn::ZERO, black_box(&parts))
            .expect("room");
    }
}

struct Measured {
    count: AtomicU64,
    processor_ns: AtomicU64,
    elapsed: Duration,
    log: Arc<Log>,
}

fn report(what: &str, threads: u32, measured: Measured) {
    let Measured {
        count,
        processor_ns,
        elapsed,
        log,
    } = measured;
    let count = count.into_inner() as f64;
    let each = processor_ns.into_inner() as f64 / count;
    let rate = count / elapsed.as_secs_f64() / 1e6;
    let stats = log.stats();
    println!(
        "{what:>16}, {threads} threads: {each:6.1} ns/append, {rate:6.2} M/s; \
         {} waits for room, {:.0} records a write",
        stats.waits_for_room,
        stats.records_per_group()
    );
}

fn append_for(time: Duration, threads: u32, flusher: bool) -> Measured {
    let log = create(Arc::new(MemoryDisk::new()), 256 << 20);
    let (stop, stop_flusher) = (AtomicBool::new(false), AtomicBool::new(false));
    let (count, processor_ns) = (AtomicU64::new(0), AtomicU64::new(0));
    let start = Instant::now();
    let mut elapsed = Duration::ZERO;
    std::thread::scope(|scope| {
        if flusher {
            scope.spawn(|| log.run_flusher(&stop_flusher));
        }
        let appenders: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let start = processor_time();
                    append_until(&log, &stop, &count);
                    processor_ns.fetch_add(processor_time() - start, Ordering::Relaxed);
                })
            })
            .collect();
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        appenders
            .into_iter()
            .for_each(|thread| thread.join().expect("an appender"));
        elapsed = start.elapsed();
        stop_flusher.store(true, Ordering::Relaxed);
        log.nudge();
    });
    Measured {
        count,
        processor_ns,
        elapsed,
        log,
    }
}

fn append_until(log: &Log, stop: &AtomicBool, count: &AtomicU64) {
    let mut claim = log.claim(0).expect("space");
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) {
        append_some(log, &mut claim, 1000);
        done += 1000;
        // Keep the log within its limit: everything written may go.
        if done % 100_000 == 0 {
            let tail = log.written_lsn();
            log.flush(Lsn::new(tail.get() - 1), Level::Sync)
                .expect("a flush");
            log.truncate(tail).expect("a truncation");
        }
    }
    count.fetch_add(done, Ordering::Relaxed);
}

fn commit_for(time: Duration, threads: u32) {
    let directory = std::env::temp_dir().join(format!("longshore-append-{}", std::process::id()));
    let options = FileOptions {
        io: FileIo::Buffered,
        create: true,
    };
    let disk = FileDisk::open(&directory, options).expect("a temporary directory");
    let log = create(Arc::new(disk), 256 << 20);
    let stop = AtomicBool::new(false);
    let count = AtomicU64::new(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut claim = log.claim(0).expect("space");
                while !stop.load(Ordering::Relaxed) {
                    let lsn = log.append(&mut claim, 1, TxnId::new(1), Lsn::ZERO, &[&BODY]);
                    log.flush(lsn.expect("room"), Level::Sync).expect("a sync");
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
    });
    let stats = log.stats();
    println!(
        "  commit to {}, {threads} threads: {:.0}/s, {:.0} syncs/s, {:.1} commits a sync",
        directory.display(),
        count.into_inner() as f64 / start.elapsed().as_secs_f64(),
        stats.syncs as f64 / start.elapsed().as_secs_f64(),
        stats.waits_per_sync()
    );
    drop(log);
    std::fs::remove_dir_all(&directory).expect("our own directory");
}

fn create(disk: Arc<dyn Disk>, bytes_max: u64) -> Arc<Log> {
    let options = LogOptions {
        bytes_max,
        ..LogOptions::default()
    };
    Log::create(disk, options, 1, Arc::new(SystemEnvironment::new())).expect("a new log")
}
