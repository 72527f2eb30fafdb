//! What a crash cut costs on the simulated disk itself, without a database on it.
//!
//! `cargo run --release -p longshore-disk --example sim_speed`: a 256 KiB data file and a 64 KiB
//! log, 300 calls in the mix of a small database, a crash, an image, and everything read back.

use longshore_disk::{Disk, DiskError, OpenMode, SimDisk, SimOptions};
use std::hint::black_box;
use std::time::Instant;

const PAGE: usize = 4096;
const PAGES: u64 = 64;
const CUTS: u64 = 5000;

fn main() {
    let start = Instant::now();
    let mut ios = 0;
    for seed in 0..CUTS {
        ios += cut(seed).expect("no crash but the one at the end");
    }
    let micros = start.elapsed().as_secs_f64() * 1e6 / CUTS as f64;
    let nanos = start.elapsed().as_secs_f64() * 1e9 / ios as f64;
    println!(
        "{micros:.1} us per cut of {} I/Os, {nanos:.0} ns per I/O, all told",
        ios / CUTS
    );
}

/// Runs, crashes, and reads everything back; returns the number of I/Os.
fn cut(seed: u64) -> Result<u64, DiskError> {
    let disk = SimDisk::new(seed, SimOptions::default());
    let data = disk.open("data", OpenMode::Create)?;
    let log = disk.open("log", OpenMode::Create)?;
    log.allocate(16 * PAGE as u64)?;
    data.allocate(PAGES * PAGE as u64)?;
    disk.sync_directory()?;
    let page = [seed as u8; PAGE];
    for step in 0..100 {
        log.write_at(&page[..200], step * 200)?;
        log.sync()?;
        data.write_at(&page, step * 7 % PAGES * PAGE as u64)?;
        if step % 20 == 0 {
            data.sync()?;
        }
    }
    disk.crash_now();
    let after = disk.crash_image(seed);
    let data = after.open("data", OpenMode::Write)?;
    let log = after.open("log", OpenMode::Write)?;
    let mut bytes = [0; PAGE];
    for step in 0..PAGES {
        data.read_at(&mut bytes, step * PAGE as u64)?;
        data.write_at(black_box(&bytes), step * PAGE as u64)?;
    }
    for step in 0..16 {
        log.read_at(&mut bytes, step * PAGE as u64)?;
        black_box(&bytes);
    }
    data.sync()?;
    Ok(disk.io_count() + after.io_count())
}
