//! Every interleaving of the pool's protocols, with two or three threads and one or two frames.
//!
//! Run by `RUSTFLAGS="--cfg loom" cargo test -p longshore-pool --test loom --release`.
//!
//! The pool's atomics, mutexes and condition variables are the checker's; page words are not, so these
//! tests hold pages by latches. Reading without a latch is explored, with all its memory orders, beside
//! the frame word (`src/frame_word/loom_tests.rs`, run by `--lib`). The disk is a map.

#![cfg(loom)]

use longshore_base::{Durability, DurabilityLost, Lsn, PageId, PageSize, SeededEnvironment};
use longshore_disk::{DiskError, DiskFile};
use longshore_pool::{DoubleWrite, MissMode, PageTableKind, Pool, PoolOptions, Replacement};
use loom::thread;
use std::sync::{Arc, Mutex};

const PAGE: usize = 4096;

/// Pages by number. Between the checker's switches it is used by one thread at a time.
#[derive(Default)]
struct MapFile {
    bytes: Mutex<Vec<u8>>,
}

impl DiskFile for MapFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        thread::yield_now();
        let file = self.bytes.lock().unwrap();
        let start = (offset as usize).min(file.len());
        let end = (start + bytes.len()).min(file.len());
        bytes[..end - start].copy_from_slice(&file[start..end]);
        Ok(end - start)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), DiskError> {
        thread::yield_now();
        let mut file = self.bytes.lock().unwrap();
        let end = offset as usize + bytes.len();
        if file.len() < end {
            file.resize(end, 0);
        }
        file[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn len(&self) -> Result<u64, DiskError> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.bytes.lock().unwrap().resize(len as usize, 0);
        Ok(())
    }

    fn allocate(&self, len: u64) -> Result<(), DiskError> {
        self.set_len(len.max(self.len()?))
    }
}

struct NoLog;

impl Durability for NoLog {
    fn is_durable(&self, _: Lsn) -> bool {
        true
    }

    fn make_durable(&self, _: Lsn) -> Result<(), DurabilityLost> {
        Ok(())
    }
}

struct Setup {
    frames: usize,
    miss: MissMode,
    table: PageTableKind,
    replacement: &'static str,
}

const ONE: Setup = Setup {
    frames: 1,
    miss: MissMode::OneLoads,
    table: PageTableKind::Translation,
    replacement: "nb-gclock",
};

fn pool(setup: &Setup) -> Arc<Pool> {
    let per_frame = PAGE + 64 + 64;
    let replacement: Replacement = setup.replacement.parse().unwrap();
    let for_policy = replacement.bytes_max(setup.frames as u32);
    let options = PoolOptions {
        page_size: PageSize::MIN,
        miss: setup.miss,
        table: setup.table,
        replacement,
        weight_max: 1,
        double_write: DoubleWrite::Off,
        wait: std::time::Duration::MAX,
        ..PoolOptions::with_bytes(setup.frames * per_frame + for_policy + 2 * PAGE + 16)
    };
    let data = Arc::new(MapFile::default());
    let env = Arc::new(SeededEnvironment::new(0));
    let pool = Pool::new(options, data, None, Arc::new(NoLog), env).unwrap();
    assert_eq!(pool.stats().frames as usize, setup.frames);
    pool
}

fn page(id: u64) -> PageId {
    PageId::new(id)
}

/// Stores a value at both ends of the page.
fn set(pool: &Pool, id: u64, value: u64) {
    let mut guard = pool.fix_exclusive(page(id)).unwrap();
    guard.page_mut().set_word(8, value);
    thread::yield_now();
    guard.page_mut().set_word(500, value);
    guard.stamp(Lsn::new(value));
}

fn get(pool: &Pool, id: u64) -> u64 {
    let guard = pool.fix_shared(page(id)).unwrap();
    assert_eq!(guard.page().word(8), guard.page().word(500));
    guard.page().word(8)
}

fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

fn spawn(pool: &Arc<Pool>, run: impl FnOnce(&Pool) + 'static) -> thread::JoinHandle<()> {
    let pool = pool.clone();
    thread::spawn(move || run(&pool))
}

#[test]
fn two_writers_exclude_each_other_and_waiters_wake() {
    check(3, || {
        let pool = pool(&ONE);
        set(&pool, 1, 1);
        let add = |pool: &Pool| {
            let mut guard = pool.fix_exclusive(page(1)).unwrap();
            let value = guard.page().word(8) + 1;
            thread::yield_now();
            guard.page_mut().set_word(8, value);
            guard.page_mut().set_word(500, value);
            guard.stamp(Lsn::new(value));
        };
        let other = spawn(&pool, add);
        add(&pool);
        other.join().unwrap();
        assert_eq!(get(&pool, 1), 3);
    });
}

#[test]
fn converting_a_stale_read_fails() {
    check(3, || {
        let pool = pool(&ONE);
        set(&pool, 1, 1);
        let writer = spawn(&pool, |pool| set(pool, 1, 2));
        let guard = pool.read(page(1)).unwrap();
        let value = guard.page().word(8);
        if let Ok(mut held) = guard.try_exclusive() {
            assert_eq!(held.page().word(8), value, "changed since it was read");
            held.page_mut().set_word(8, value + 10);
            held.page_mut().set_word(500, value + 10);
            held.stamp(Lsn::new(9));
        }
        writer.join().unwrap();
        get(&pool, 1);
    });
}

fn two_loaders(miss: MissMode, table: PageTableKind) {
    two_loaders_under("nb-gclock", miss, table);
}

fn two_loaders_under(replacement: &'static str, miss: MissMode, table: PageTableKind) {
    check(3, move || {
        let pool = pool(&Setup {
            frames: 2,
            miss,
            table,
            replacement,
        });
        let add = |pool: &Pool| {
            let mut guard = pool.fix_exclusive(page(1)).unwrap();
            let value = guard.page().word(8) + 1;
            guard.page_mut().set_word(8, value);
            guard.page_mut().set_word(500, value);
            guard.stamp(Lsn::new(value));
        };
        let other = spawn(&pool, add);
        add(&pool);
        other.join().unwrap();
        assert_eq!(get(&pool, 1), 2, "a change went to a private copy");
        let stats = pool.stats();
        let reads = stats.page_reads;
        assert!(reads == 1 || miss == MissMode::Optimistic);
        assert_eq!(reads, 1 + stats.loads_lost);
        pool.verify_replacement().unwrap();
    });
}

#[test]
fn two_loaders_share_one_page_when_one_loads() {
    two_loaders(MissMode::OneLoads, PageTableKind::Translation);
}

#[test]
fn two_loaders_share_one_page_when_both_load() {
    two_loaders(MissMode::Optimistic, PageTableKind::Translation);
}

#[test]
fn two_loaders_share_one_page_of_the_hash_table() {
    two_loaders(MissMode::OneLoads, PageTableKind::Hash);
}

#[test]
fn racing_misses_of_one_page_evict_nothing() {
    check(3, || {
        // With one frame, whoever took a frame before reserving the page would have to evict it.
        let pool = pool(&ONE);
        let other = spawn(&pool, |pool| assert_eq!(get(pool, 1), 0));
        assert_eq!(get(&pool, 1), 0);
        other.join().unwrap();
        assert_eq!(pool.stats().evictions, 0);
    });
}

fn victim_against_fix(miss: MissMode, table: PageTableKind) {
    victim_under("nb-gclock", miss, table);
}

fn victim_under(replacement: &'static str, miss: MissMode, table: PageTableKind) {
    check(3, move || {
        // One frame: whoever wants the other page must evict, and write, this one.
        let pool = pool(&Setup {
            frames: 1,
            miss,
            table,
            replacement,
        });
        set(&pool, 1, 7);
        let evictor = spawn(&pool, |pool| assert_eq!(get(pool, 2), 0));
        assert_eq!(get(&pool, 1), 7, "read from disk before it was written");
        evictor.join().unwrap();
        assert_eq!(get(&pool, 1), 7);
        pool.verify_replacement().unwrap();
    });
}

#[test]
fn dirty_victim_against_fix_loses_nothing() {
    victim_against_fix(MissMode::OneLoads, PageTableKind::Translation);
}

#[test]
fn dirty_victim_against_fix_loses_nothing_when_all_load() {
    victim_against_fix(MissMode::Optimistic, PageTableKind::Translation);
}

#[test]
fn dirty_victim_against_fix_loses_nothing_in_the_hash_table() {
    victim_against_fix(MissMode::OneLoads, PageTableKind::Hash);
}

#[test]
fn dirty_victim_against_change_loses_nothing() {
    check(3, || {
        let pool = pool(&ONE);
        set(&pool, 1, 1);
        let evictor = spawn(&pool, |pool| assert_eq!(get(pool, 2), 0));
        set(&pool, 1, 2);
        evictor.join().unwrap();
        assert_eq!(get(&pool, 1), 2);
    });
}

#[test]
fn page_changed_while_it_is_cleaned_stays_dirty() {
    check(3, || {
        let pool = pool(&ONE);
        set(&pool, 1, 1);
        let writer = spawn(&pool, |pool| set(pool, 1, 2));
        pool.flush_all().unwrap();
        writer.join().unwrap();
        // Evicts page 1; what is not on disk by then is lost.
        assert_eq!(get(&pool, 2), 0);
        assert_eq!(get(&pool, 1), 2);
    });
}

#[test]
fn checkpoint_never_misses_a_change() {
    check(3, || {
        let pool = pool(&ONE);
        let begin = Lsn::new(100);
        let mut guard = pool.fix_exclusive(page(1)).unwrap();
        let waiting = pool.clone();
        let checkpoint = thread::spawn(move || waiting.oldest_dirty(begin));
        guard.page_mut().set_word(8, 1);
        guard.stamp(Lsn::new(50));
        drop(guard);
        // Another change must not hide the first.
        let mut guard = pool.fix_exclusive(page(1)).unwrap();
        guard.page_mut().set_word(8, 2);
        guard.stamp(Lsn::new(150));
        drop(guard);
        assert_eq!(checkpoint.join().unwrap(), Lsn::new(50));
    });
}

#[test]
fn two_loaders_share_one_page_under_a_policy() {
    two_loaders_under("mutex/fifo", MissMode::OneLoads, PageTableKind::Translation);
}

#[test]
fn two_loaders_share_one_page_under_a_policy_when_both_load() {
    two_loaders_under(
        "mutex/fifo",
        MissMode::Optimistic,
        PageTableKind::Translation,
    );
}

#[test]
fn dirty_victim_against_fix_loses_nothing_under_a_policy() {
    victim_under("mutex/lru", MissMode::OneLoads, PageTableKind::Translation);
}

#[test]
fn dirty_victim_against_fix_loses_nothing_in_bp_wrapper() {
    // The checker's threads are one to the system: they share a queue here, which must do no harm.
    victim_under(
        "bp-wrapper:batch=1/lru",
        MissMode::OneLoads,
        PageTableKind::Translation,
    );
}

#[test]
fn a_page_cut_off_while_another_evicts_is_forgotten_once() {
    check(3, || {
        let pool = pool(&Setup {
            replacement: "mutex/lru",
            ..ONE
        });
        assert_eq!(get(&pool, 1), 0);
        let evictor = spawn(&pool, |pool| assert_eq!(get(pool, 0), 0));
        pool.truncate(1).unwrap();
        evictor.join().unwrap();
        pool.verify_replacement().unwrap();
        assert_eq!(get(&pool, 0), 0);
    });
}
