//! The races of page-in, forced into the open by holding reads up.

use crate::support::{Bed, Call, small};
use longshore_base::PageId;
use longshore_disk::{DiskErrorKind, OpenMode};
use longshore_pool::{MissMode, PoolOptions};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::time::Duration;

const P: PageId = PageId::new(5);
const LONG: Duration = Duration::from_secs(20);

fn patient(miss: MissMode) -> PoolOptions {
    PoolOptions {
        miss,
        wait: LONG,
        ..small(32)
    }
}

/// A gate that opens up to a number.
#[derive(Default)]
struct Gate {
    open: Mutex<usize>,
    moved: Condvar,
}

impl Gate {
    fn open_to(&self, number: usize) {
        *self.open.lock().unwrap() = number;
        self.moved.notify_all();
    }

    fn pass(&self, number: usize) {
        let open = self.open.lock().unwrap();
        drop(self.moved.wait_while(open, |open| *open < number).unwrap());
    }
}

/// Opens a gate wide when a test is done, or fails, so that nobody is left before it.
struct OpenOnDrop<'a>(&'a Gate);

impl Drop for OpenOnDrop<'_> {
    fn drop(&mut self) {
        self.0.open_to(usize::MAX);
    }
}

fn wait_until(what: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !what() {
        assert!(start.elapsed() < LONG, "it never came to pass");
        std::thread::yield_now();
    }
}

#[test]
fn one_reads_and_the_others_wait() {
    let bed = Bed::new(patient(MissMode::OneLoads));
    bed.create(5, 1);
    bed.push_out(100);
    let before = bed.pool.stats();
    let gate = Arc::new(Gate::default());
    let passed = gate.clone();
    bed.data.watch(move |call| {
        if let Call::Read { page: 5 } = call {
            passed.pass(1);
        }
        Ok(())
    });
    std::thread::scope(|scope| {
        let _wide = OpenOnDrop(&gate);
        let readers: Vec<_> = (0..6).map(|_| scope.spawn(|| bed.get(5))).collect();
        wait_until(|| bed.pool.stats().load_waits >= before.load_waits + 5);
        gate.open_to(1);
        readers
            .into_iter()
            .for_each(|r| assert_eq!(r.join().unwrap(), 1));
    });
    let after = bed.pool.stats();
    assert_eq!(after.page_reads, before.page_reads + 1);
    // Race: frames taken before the page is reserved make racing misses evict needlessly.
    assert!(after.evictions <= before.evictions + 1);
}

#[test]
fn all_read_and_one_wins() {
    // Race: the loser of the page-in goes on with a private copy.
    let bed = Bed::new(patient(MissMode::Optimistic));
    bed.create(5, 1);
    bed.push_out(100);
    let before = bed.pool.stats();
    let meeting = Arc::new(Barrier::new(4));
    let readers = Arc::new(AtomicUsize::new(0));
    let (met, counted) = (meeting.clone(), readers.clone());
    bed.data.watch(move |call| {
        if matches!(call, Call::ReadDone { page: 5 }) && counted.fetch_add(1, SeqCst) < 4 {
            met.wait();
        }
        Ok(())
    });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut guard = bed.pool.fix_exclusive(P).unwrap();
                let value = crate::support::check(guard.page(), 5);
                crate::support::fill(&mut guard.page_mut(), 5, value + 1);
                guard.stamp(bed.lsn());
            });
        }
    });
    assert_eq!(bed.get(5), 5, "a change went to a private copy");
    let after = bed.pool.stats();
    assert_eq!(after.page_reads - before.page_reads, 4);
    assert_eq!(after.loads_lost - before.loads_lost, 3);
}

#[test]
fn slow_reader_cannot_publish_what_has_changed_since() {
    // A reads the page and is held up. B brings it in, changes it; it is written and evicted. C
    // reserves it and is held up. A must not take C's reservation for its own.
    let bed = Bed::new(patient(MissMode::Optimistic));
    bed.create(5, 1);
    bed.push_out(100);
    let gate = Arc::new(Gate::default());
    let reads = Arc::new(AtomicUsize::new(0));
    let (passed, counted) = (gate.clone(), reads.clone());
    bed.data.watch(move |call| {
        if let Call::ReadDone { page: 5 } = call {
            match counted.fetch_add(1, SeqCst) + 1 {
                1 => passed.pass(1),
                3 => passed.pass(2),
                _ => {}
            }
        }
        Ok(())
    });
    std::thread::scope(|scope| {
        let _wide = OpenOnDrop(&gate);
        let a = scope.spawn(|| bed.get(5));
        wait_until(|| reads.load(SeqCst) == 1);
        bed.set(5, 2);
        bed.push_out(100);
        assert_eq!(reads.load(SeqCst), 2);
        let c = scope.spawn(|| bed.get(5));
        wait_until(|| reads.load(SeqCst) == 3);
        gate.open_to(1);
        assert_eq!(a.join().unwrap(), 2, "an old image came back");
        gate.open_to(2);
        assert_eq!(c.join().unwrap(), 2);
    });
}

#[test]
fn slow_reader_that_saw_a_torn_page_reports_no_damage() {
    // Optimistic misses read without any hold: once the ticket is over, the page may be written
    // meanwhile, and what was read is nobody's business.
    let bed = Bed::new(patient(MissMode::Optimistic));
    bed.create(5, 1);
    bed.push_out(100);
    let gate = Arc::new(Gate::default());
    let reads = Arc::new(AtomicUsize::new(0));
    let (passed, counted) = (gate.clone(), reads.clone());
    bed.data.watch(move |call| {
        if matches!(call, Call::ReadDone { page: 5 }) && counted.fetch_add(1, SeqCst) == 0 {
            passed.pass(1);
            return Err(DiskErrorKind::Io);
        }
        Ok(())
    });
    std::thread::scope(|scope| {
        let _wide = OpenOnDrop(&gate);
        let slow = scope.spawn(|| bed.get(5));
        wait_until(|| reads.load(SeqCst) == 1);
        bed.set(5, 2);
        gate.open_to(1);
        assert_eq!(slow.join().unwrap(), 2);
    });
}

#[test]
fn waiters_try_for_themselves_when_the_reader_fails() {
    let bed = Bed::new(patient(MissMode::OneLoads));
    bed.create(5, 1);
    bed.push_out(100);
    let waits = bed.pool.stats().load_waits;
    let gate = Arc::new(Gate::default());
    let reads = Arc::new(AtomicUsize::new(0));
    let (passed, counted) = (gate.clone(), reads.clone());
    bed.data.watch(move |call| {
        if matches!(call, Call::Read { page: 5 }) && counted.fetch_add(1, SeqCst) == 0 {
            passed.pass(1);
            return Err(DiskErrorKind::Io);
        }
        Ok(())
    });
    std::thread::scope(|scope| {
        let _wide = OpenOnDrop(&gate);
        let first = scope.spawn(|| bed.pool.read(P).map(drop));
        wait_until(|| reads.load(SeqCst) == 1);
        let second = scope.spawn(|| bed.get(5));
        wait_until(|| bed.pool.stats().load_waits > waits);
        gate.open_to(1);
        assert!(first.join().unwrap().is_err());
        assert_eq!(second.join().unwrap(), 1);
    });
}

#[test]
fn miss_reads_what_the_cleaner_wrote_last() {
    // Race: a page that leaves the table before its write is done is read again as it was before.
    for miss in [MissMode::OneLoads, MissMode::Optimistic] {
        let bed = Bed::new(PoolOptions { miss, ..small(16) });
        let file = bed.disk.open("data", OpenMode::OpenOrCreate).unwrap();
        assert!(file.len().is_ok());
        (0..60).for_each(|id| bed.create(id, 1));
        std::thread::scope(|scope| {
            for thread in 0..3u64 {
                let bed = &bed;
                scope.spawn(move || {
                    for turn in 2..60 {
                        for id in (0..60).filter(|id| id % 3 == thread) {
                            assert_eq!(bed.get(id), turn - 1);
                            bed.set(id, turn);
                        }
                    }
                });
            }
        });
    }
}
