//! Growing and shrinking, of the pool and of the file, while it is in use.

use crate::support::{Bed, StopOnDrop, check, fill, small};
use longshore_base::PageId;
use longshore_disk::{DiskErrorKind, SimDisk, SimOptions};
use longshore_pool::{PageTableKind, PoolError, PoolOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

#[test]
fn pool_grows_and_shrinks_and_keeps_every_page() {
    for table in [PageTableKind::Translation, PageTableKind::Hash] {
        let bed = Bed::new(PoolOptions { table, ..small(32) });
        (0..300).for_each(|id| bed.create(id, id + 1));
        for frames in [64, 20, 40, 17, 60] {
            bed.pool.resize(small(frames).bytes_max).unwrap();
            let now = bed.pool.stats();
            assert!(now.bytes as usize <= small(frames).bytes_max, "{now:?}");
            (0..300).for_each(|id| bed.set(id, bed.get(id) + 1));
        }
        (0..300).for_each(|id| assert_eq!(bed.get(id), id + 6));
    }
}

#[test]
fn grown_pool_holds_more_and_shrunk_pool_less() {
    let bed = Bed::new(small(32));
    let resident = || {
        (0..500).for_each(|id| bed.touch(id));
        let before = bed.pool.stats();
        (before.frames - before.frames_free) as usize
    };
    let few = resident();
    bed.pool.resize(small(200).bytes_max).unwrap();
    let many = resident();
    assert!(many > 150, "{few} then {many}");
    bed.pool.resize(small(32).bytes_max).unwrap();
    assert!(resident() < 60);
    assert!(bed.pool.stats().frames < 60);
}

#[test]
fn shrinking_waits_for_pages_in_use_and_says_so() {
    let bed = Bed::new(PoolOptions {
        wait: Duration::from_millis(20),
        ..small(64)
    });
    let held: Vec<_> = (0..50)
        .map(|id| bed.pool.fix_shared(PageId::new(id)).unwrap())
        .collect();
    let error = bed.pool.resize(small(20).bytes_max).unwrap_err();
    assert!(matches!(error, PoolError::Exhausted { .. }), "{error}");
    drop(held);
    bed.pool.maintain(100).unwrap();
    bed.pool.resize(small(20).bytes_max).unwrap();
    let resident: usize = (0..50).filter(|id| bed.is_resident(*id)).count();
    assert!(resident <= 24, "{resident}");
}

#[test]
fn impossible_sizes_change_nothing() {
    let bed = Bed::new(PoolOptions {
        table: PageTableKind::Hash,
        ..small(32)
    });
    let before = bed.pool.stats().frames;
    assert!(matches!(
        bed.pool.resize(1000),
        Err(PoolError::TooSmall { .. })
    ));
    let error = bed.pool.resize(1 << 30).unwrap_err();
    assert!(matches!(error, PoolError::TooLarge { .. }), "{error}");
    assert_eq!(bed.pool.stats().frames, before);
}

#[test]
fn resizing_under_load_loses_no_change() {
    let bed = Bed::new(PoolOptions {
        wait: Duration::from_secs(20),
        ..small(48)
    });
    (0..100).for_each(|id| bed.create(id, 1));
    let stop = AtomicBool::new(false);
    let added: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3u64)
            .map(|worker| {
                let (bed, stop) = (&bed, &stop);
                scope.spawn(move || {
                    let mut added = 0;
                    let mut id = worker;
                    while !stop.load(SeqCst) {
                        id = (id * 31 + 7) % 100;
                        let mut guard = bed.pool.fix_exclusive(PageId::new(id)).unwrap();
                        let value = check(guard.page(), id);
                        fill(&mut guard.page_mut(), id, value + 1);
                        guard.stamp(bed.lsn());
                        added += 1;
                    }
                    added
                })
            })
            .collect();
        let stopping = StopOnDrop(&stop);
        for frames in [24, 90, 20, 64, 32, 128, 24] {
            std::thread::sleep(Duration::from_millis(40));
            bed.pool.resize(small(frames).bytes_max).unwrap();
        }
        drop(stopping);
        workers.into_iter().map(|w| w.join().unwrap()).sum()
    });
    let sum: u64 = (0..100).map(|id| bed.get(id)).sum();
    assert_eq!(sum, 100 + added);
}

#[test]
fn table_of_a_growing_file_is_paid_for_in_frames() {
    let bed = Bed::new(small(600));
    let before = bed.pool.stats();
    let sparse = bed
        .disk
        .open("data", longshore_disk::OpenMode::Write)
        .unwrap();
    sparse.set_len(4096).unwrap();
    bed.pool.grow(200_000).unwrap();
    bed.pool.maintain(10).unwrap();
    let after = bed.pool.stats();
    assert!(after.table_bytes > before.table_bytes);
    assert!(after.frames < before.frames);
    assert!(after.bytes as usize <= small(600).bytes_max);
}

#[test]
fn full_disk_is_an_error_when_the_file_grows() {
    let disk = SimDisk::new(7, SimOptions::default());
    let bed = Bed::on(Arc::new(disk.clone()), small(16));
    disk.set_capacity(Some(1 << 20));
    let error = bed.pool.grow(10_000).unwrap_err();
    let PoolError::Disk(error) = error else {
        panic!("{error}");
    };
    assert_eq!(error.kind, DiskErrorKind::Full);
    assert!(bed.pool.file_pages() < 10_000);
    bed.pool.grow(20).unwrap();
    assert_eq!(bed.pool.file_pages(), 20);
}

#[test]
fn truncated_pages_are_forgotten_dirty_or_not() {
    let bed = Bed::new(small(64));
    (0..40).for_each(|id| bed.create(id, 1));
    bed.pool.flush_all().unwrap();
    (10..40).for_each(|id| bed.set(id, 2));
    bed.pool.truncate(20).unwrap();
    assert_eq!(bed.pool.file_pages(), 20);
    (0..10).for_each(|id| assert_eq!(bed.get(id), 1));
    (10..20).for_each(|id| assert_eq!(bed.get(id), 2));
    (20..40).for_each(|id| assert_eq!(bed.get(id), 0, "page {id}"));
    bed.pool.flush_all().unwrap();
    let bed = bed.reopen(small(64));
    assert_eq!(bed.pool.file_pages(), 20);
}
