//! Fixing: what each guard promises, and what a miss does when things go wrong.

use crate::support::{Bed, Call, fill, small};
use longshore_base::page::PageDamage;
use longshore_base::{Lsn, PageId, PageType};
use longshore_disk::DiskErrorKind;
use longshore_pool::{MissMode, PageTableKind, PoolError, PoolOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

const P: PageId = PageId::new(5);

#[test]
fn pages_never_written_read_as_blank() {
    let bed = Bed::new(small(32));
    let guard = bed.pool.read(PageId::new(1 << 30)).unwrap();
    assert_eq!(guard.page().page_lsn(), Lsn::ZERO);
    assert_eq!(guard.page().page_type(), Some(PageType::Blank));
    assert_eq!(guard.validate(), Ok(()));
}

#[test]
fn what_is_written_is_read_again_after_reopening() {
    let bed = Bed::new(small(32));
    (0..200).for_each(|id| bed.create(id, id + 7));
    bed.pool.flush_all().unwrap();
    let bed = bed.reopen(small(32));
    (0..200).for_each(|id| assert_eq!(bed.get(id), id + 7));
}

#[test]
fn optimistic_guard_notices_changes_and_only_changes() {
    let bed = Bed::new(small(32));
    bed.create(5, 1);
    let guard = bed.pool.read(P).unwrap();
    drop(bed.pool.fix_exclusive(P).unwrap());
    drop(bed.pool.fix_shared(P).unwrap());
    bed.pool.flush_all().unwrap();
    assert!(guard.validate().is_ok(), "nobody changed the page");
    bed.set(5, 2);
    assert!(guard.validate().is_err());
    assert!(guard.try_exclusive().is_err());
}

#[test]
fn optimistic_guard_is_invalid_while_somebody_writes() {
    let bed = Bed::new(small(32));
    bed.create(5, 1);
    let guard = bed.pool.read(P).unwrap();
    let mut writer = bed.pool.fix_exclusive(P).unwrap();
    assert!(guard.validate().is_err());
    writer.page_mut().set_u8(100, 1);
    drop(writer);
    assert!(guard.validate().is_err());
}

#[test]
fn optimistic_guard_turns_into_a_latch_when_nothing_changed() {
    let bed = Bed::new(small(32));
    bed.create(5, 1);
    let mut guard = bed.pool.read(P).unwrap().try_exclusive().unwrap();
    assert!(bed.pool.try_fix_exclusive(P).unwrap().is_none());
    fill(&mut guard.page_mut(), 5, 2);
    guard.stamp(bed.lsn());
    let shared = guard.downgrade();
    assert_eq!(bed.get(5), 2);
    assert!(bed.pool.try_fix_exclusive(P).unwrap().is_none());
    drop(shared);
    let shared = bed.pool.read(P).unwrap().try_shared().unwrap();
    assert!(bed.pool.read(P).unwrap().try_exclusive().is_err());
    drop(shared);
    assert!(bed.pool.try_fix_exclusive(P).unwrap().is_some());
}

#[test]
fn stale_guard_of_an_evicted_page_is_invalid() {
    // Race: frames are reused. The page comes back, perhaps to the same frame, unchanged.
    let bed = Bed::new(small(16));
    bed.create(5, 1);
    let guard = bed.pool.read(P).unwrap();
    bed.push_out(100);
    assert!(guard.validate().is_err());
    for _ in 0..200 {
        bed.touch(5);
        bed.push_out(100);
        assert!(guard.validate().is_err());
    }
}

#[test]
fn new_page_is_zero_whatever_was_there() {
    let bed = Bed::new(small(16));
    for resident in [true, false] {
        bed.create(5, 1);
        if !resident {
            bed.push_out(100);
        }
        let reads = bed.pool.stats().page_reads;
        let guard = bed.pool.fix_new(P).unwrap();
        assert!((0..512).all(|word| guard.page().word(word) == 0));
        assert_eq!(bed.pool.stats().page_reads, reads);
    }
}

#[test]
fn damaged_page_is_an_error_that_names_it_and_leaves_no_trace() {
    let bed = Bed::new(small(16));
    bed.create(5, 1);
    bed.push_out(100);
    let file = bed
        .disk
        .open("data", longshore_disk::OpenMode::Write)
        .unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, 5 * 4096 + 777).unwrap();
    file.write_at(&[byte[0] ^ 4], 5 * 4096 + 777).unwrap();
    for _ in 0..3 {
        let error = bed.pool.read(P).unwrap_err();
        let is_checksum = matches!(
            &error,
            PoolError::Damaged { page, reason: PageDamage::Checksum { .. } } if *page == P
        );
        assert!(is_checksum, "{error}");
        assert!(
            error
                .to_string()
                .starts_with("page 5 of the data file is damaged")
        );
    }
    file.write_at(&byte, 5 * 4096 + 777).unwrap();
    assert_eq!(bed.get(5), 1);
}

#[test]
fn failed_read_leaves_no_trace() {
    for miss in [MissMode::OneLoads, MissMode::Optimistic] {
        let bed = Bed::new(PoolOptions { miss, ..small(16) });
        bed.create(5, 1);
        bed.push_out(100);
        let failures = Arc::new(AtomicUsize::new(3));
        let left = failures.clone();
        bed.data.watch(move |call| match call {
            Call::Read { page: 5 } if left.load(SeqCst) > 0 => {
                left.fetch_sub(1, SeqCst);
                Err(DiskErrorKind::Io)
            }
            _ => Ok(()),
        });
        let free = bed.pool.stats().frames_free;
        for _ in 0..3 {
            assert!(matches!(bed.pool.read(P), Err(PoolError::Disk(_))));
        }
        assert_eq!(bed.pool.stats().frames_free, free);
        assert_eq!(bed.get(5), 1);
    }
}

#[test]
fn impossible_page_numbers_are_errors() {
    for table in [PageTableKind::Translation, PageTableKind::Hash] {
        let bed = Bed::new(PoolOptions { table, ..small(16) });
        for id in [1 << 36, 1 << 40, u64::MAX] {
            let error = bed.pool.read(PageId::new(id)).unwrap_err();
            assert!(matches!(error, PoolError::NoSuchPage { .. }), "{error}");
        }
        assert!(bed.pool.grow(u64::MAX).is_err());
    }
}

#[test]
fn full_pool_waits_then_says_what_is_full() {
    let options = PoolOptions {
        wait: Duration::from_millis(20),
        ..small(16)
    };
    let bed = Bed::new(options);
    let frames = bed.pool.stats().frames;
    let reserve = 2;
    let held: Vec<_> = (0..frames - reserve)
        .map(|id| bed.pool.fix_shared(PageId::new(id)).unwrap())
        .collect();
    let error = bed.pool.fix_shared(PageId::new(100)).unwrap_err();
    assert!(error.is_retryable());
    let text = error.to_string();
    assert!(
        text.contains(&format!(
            "of {frames} frames {} are in use",
            frames - reserve
        )),
        "{text}"
    );
    assert!(text.contains("give the pool more memory"), "{text}");
    // Rolling back goes on.
    let using = bed.pool.use_reserve();
    let undo: Vec<_> = (0..reserve)
        .map(|id| bed.pool.fix_exclusive(PageId::new(200 + id)).unwrap())
        .collect();
    drop(using);
    assert_eq!(bed.pool.stats().reserve_taken, reserve);
    drop(undo);
    drop(held);
    drop(bed.pool.fix_shared(PageId::new(100)).unwrap());
}

#[test]
fn a_frame_that_comes_free_ends_the_wait() {
    let bed = Bed::new(PoolOptions {
        wait: Duration::from_secs(20),
        ..small(16)
    });
    let frames = bed.pool.stats().frames;
    let mut held: Vec<_> = (0..frames - 2)
        .map(|id| bed.pool.fix_shared(PageId::new(id)).unwrap())
        .collect();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| bed.pool.fix_shared(PageId::new(100)).map(drop));
        while bed.pool.stats().frame_waits == 0 {
            std::thread::yield_now();
        }
        held.pop();
        waiter.join().unwrap().unwrap();
    });
}

#[test]
fn latch_waits_end_in_an_error_that_names_the_page() {
    let bed = Bed::new(PoolOptions {
        wait: Duration::from_millis(20),
        ..small(16)
    });
    let held = bed.pool.fix_exclusive(P).unwrap();
    let error = bed.pool.fix_shared(P).unwrap_err();
    assert!(matches!(error, PoolError::Busy { page, .. } if page == P));
    assert!(
        error
            .to_string()
            .starts_with("page 5 was held by another thread")
    );
    assert!(bed.pool.read(P).is_err());
    drop(held);
    assert!(bed.pool.read(P).is_ok());
}

#[test]
fn scans_do_not_push_out_what_is_used_often() {
    let bed = Bed::new(small(64));
    let hot: Vec<u64> = (0..20).collect();
    let touch = |id: &u64| bed.touch(*id);
    (0..4).for_each(|_| hot.iter().for_each(touch));
    for id in 1000..1200 {
        bed.scan(id);
        if id % 10 == 0 {
            hot.iter().for_each(touch);
        }
    }
    assert_eq!(hot.iter().filter(|id| bed.is_resident(**id)).count(), 20);
}

#[test]
fn weight_is_bounded() {
    // Race: weights without bounds. A page used a million times goes after four laps of the hand.
    let bed = Bed::new(small(16));
    for _ in 0..1_000_000 {
        bed.touch(5);
    }
    let frames = bed.pool.stats().frames;
    for id in 0..5 * frames {
        bed.scan(1000 + id);
    }
    assert!(!bed.is_resident(5));
}

#[test]
fn prefetched_page_is_there() {
    let bed = Bed::new(small(32));
    bed.create(5, 3);
    bed.pool.flush_all().unwrap();
    let bed = bed.reopen(small(32));
    bed.pool.prefetch(P);
    bed.pool.prefetch(P);
    assert_eq!(bed.pool.stats().page_reads, 1);
    assert!(bed.is_resident(5));
    assert_eq!(bed.get(5), 3);
}

#[test]
fn prefetch_evicts_nothing_and_keeps_errors_to_itself() {
    let bed = Bed::new(small(16));
    let frames = bed.pool.stats().frames;
    (0..frames).for_each(|id| bed.touch(id));
    while bed.pool.stats().frames_free > 0 {
        let next = 1000 + bed.pool.stats().misses;
        bed.scan(next);
    }
    let evictions = bed.pool.stats().evictions;
    bed.pool.prefetch(PageId::new(50_000));
    bed.pool.prefetch(PageId::new(u64::MAX));
    assert_eq!(bed.pool.stats().evictions, evictions);
    assert!(!bed.is_resident(50_000));
}

#[test]
fn panic_with_half_a_change_poisons_the_pool() {
    let bed = Bed::new(small(16));
    bed.create(5, 1);
    let pool = bed.pool.clone();
    let panicked = std::thread::spawn(move || {
        let mut guard = pool.fix_exclusive(P).unwrap();
        guard.page_mut().set_u8(100, 1);
        panic!("as planned");
    });
    assert!(panicked.join().is_err());
    assert!(bed.pool.is_poisoned());
    let error = bed.pool.read(P).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("a panic left page 5 half changed"),
        "{error}"
    );
    assert!(bed.pool.maintain(8).is_err());
}

#[test]
fn too_small_a_pool_names_the_minimum() {
    let options = PoolOptions::with_bytes(1000);
    let file = longshore_disk::MemoryDisk::new();
    let open = |name| longshore_disk::Disk::open(&file, name, longshore_disk::OpenMode::Create);
    let error = longshore_pool::Pool::new(
        options,
        open("data").unwrap(),
        None,
        Arc::new(crate::support::TestLog::default()),
        Arc::new(longshore_base::SystemEnvironment::new()),
    )
    .unwrap_err();
    let PoolError::TooSmall { minimum, .. } = error else {
        panic!("{error}");
    };
    assert!(error.to_string().contains(&format!("needs {minimum}")));
}
