//! Writing: the order of log, area and home; and what failures leave behind.

use crate::support::{Bed, Call, PAGE, check, small};
use longshore_base::page::header;
use longshore_base::{Lsn, PageId, crash_point};
use longshore_disk::{DiskErrorKind, OpenMode};
use longshore_pool::{DoubleWrite, PoolError, PoolOptions};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

const P: PageId = PageId::new(5);

#[test]
fn nothing_is_written_before_the_log_is_durable() {
    let bed = Bed::new(small(16));
    let log = bed.log.clone();
    let writes = Arc::new(AtomicU64::new(0));
    let counted = writes.clone();
    let assert_durable = move |call: Call<'_>| {
        if let Call::Write { bytes, .. } = call {
            for page in bytes.chunks(PAGE).filter(|page| page[header::TYPE] == 3) {
                let lsn = &page[header::LSN..header::LSN + 8];
                let lsn = u64::from_le_bytes(lsn.try_into().unwrap());
                assert!(lsn < log.durable(), "page written before its log record");
                counted.fetch_add(1, SeqCst);
            }
        }
        Ok(())
    };
    bed.data.watch(assert_durable.clone());
    bed.area.watch(assert_durable);
    (0..100).for_each(|id| bed.create(id, id + 1));
    (0..100).for_each(|id| bed.set(id, id + 2));
    bed.pool.flush_all().unwrap();
    assert!(writes.load(SeqCst) >= 400);
}

#[test]
fn lost_log_keeps_pages_dirty() {
    let bed = Bed::new(small(16));
    bed.create(5, 1);
    bed.log.lose();
    assert!(matches!(bed.pool.flush_all(), Err(PoolError::LogLost(_))));
    assert_eq!(bed.pool.stats().page_writes, 0);
    assert_eq!(bed.pool.oldest_dirty(Lsn::new(u64::MAX)).get(), 64);
}

#[test]
fn area_is_synced_before_home_and_home_before_the_area_is_used_again() {
    let bed = Bed::new(small(16));
    let trace = Arc::new(Mutex::new(String::new()));
    for (file, write, sync) in [(&bed.data, 'h', 'H'), (&bed.area, 'a', 'A')] {
        let trace = trace.clone();
        file.watch(move |call| {
            trace.lock().unwrap().push(match call {
                Call::Read { .. } | Call::ReadDone { .. } => return Ok(()),
                Call::Write { .. } => write,
                Call::Sync => sync,
            });
            Ok(())
        });
    }
    for round in 0..3 {
        [1, 2, 3, 7]
            .iter()
            .for_each(|id| bed.create(*id, round + 1));
        bed.pool.flush_all().unwrap();
    }
    bed.create(1, 9);
    bed.pool.flush_all().unwrap();
    // Pages 1, 2, 3 go home in one write.
    assert_eq!(*trace.lock().unwrap(), "aAhhHaAhhHaAhhHaAh");
}

#[test]
fn without_double_write_pages_go_straight_home() {
    let bed = Bed::new(PoolOptions {
        double_write: DoubleWrite::Off,
        ..small(16)
    });
    bed.area.watch(|_| panic!("the area is not to be used"));
    (0..50).for_each(|id| bed.create(id, id + 1));
    bed.pool.flush_all().unwrap();
    assert_eq!(bed.pool.stats().syncs, 0);
    (0..50).for_each(|id| assert_eq!(bed.get(id), id + 1));
}

#[test]
fn page_changed_while_it_is_written_stays_dirty() {
    // Race: clearing the dirty flag after a write forgets a change made during the write.
    for through_eviction in [false, true] {
        let bed = Bed::new(small(16));
        bed.create(5, 1);
        let pool = bed.pool.clone();
        let changed = AtomicBool::new(false);
        bed.data.watch(move |call| {
            if matches!(call, Call::Write { .. }) && !changed.swap(true, SeqCst) {
                let mut guard = pool.fix_exclusive(P).unwrap();
                crate::support::fill(&mut guard.page_mut(), 5, 2);
                guard.stamp(Lsn::new(9999));
            }
            Ok(())
        });
        if through_eviction {
            bed.push_out(100);
        } else {
            bed.pool.flush_all().unwrap();
        }
        bed.push_out(100);
        assert!(!bed.is_resident(5));
        assert_eq!(bed.get(5), 2);
        assert_eq!(bed.pool.stats().page_writes_stale, 1);
    }
}

#[test]
fn victim_is_found_in_the_pool_until_it_is_written_and_a_fix_rescues_it() {
    // Race: a dirty victim that leaves the table before it is written is read again, old, from disk.
    let bed = Bed::new(small(16));
    bed.create(5, 1);
    bed.pool.flush_all().unwrap();
    bed.set(5, 2);
    let pool = bed.pool.clone();
    let met = Arc::new(AtomicU64::new(0));
    let seen = met.clone();
    bed.data.watch(move |call| {
        if matches!(call, Call::Write { .. }) && seen.load(SeqCst) == 0 {
            let reads = pool.stats().page_reads;
            let guard = pool.fix_shared(P).unwrap();
            seen.store(check(guard.page(), 5), SeqCst);
            assert_eq!(pool.stats().page_reads, reads, "read from disk");
        }
        Ok(())
    });
    let mut next = 100;
    while met.load(SeqCst) == 0 {
        bed.scan(next);
        bed.pool.maintain(1).unwrap();
        next += 1;
    }
    assert_eq!(met.load(SeqCst), 2);
    assert!(bed.is_resident(5), "rescued");
    assert!(bed.pool.stats().rescues >= 1);
    bed.push_out(1000);
    assert!(!bed.is_resident(5));
    assert_eq!(bed.get(5), 2);
}

#[test]
fn reading_without_a_latch_rescues_too() {
    let bed = Bed::new(small(16));
    bed.create(5, 2);
    let pool = bed.pool.clone();
    bed.data.watch(move |call| {
        if matches!(call, Call::Write { page: 5, .. }) {
            let guard = pool.read(P).unwrap();
            assert_eq!(check(guard.page(), 5), 2);
            guard.validate().unwrap();
        }
        Ok(())
    });
    while bed.pool.stats().page_writes == 0 {
        let next = 100 + bed.pool.stats().misses;
        bed.scan(next);
        bed.pool.maintain(1).unwrap();
    }
    assert!(bed.is_resident(5));
}

#[test]
fn failed_write_keeps_the_page_and_is_made_good() {
    for (on_area, kind) in [
        (false, DiskErrorKind::Io),
        (true, DiskErrorKind::Io),
        (true, DiskErrorKind::Full),
    ] {
        let bed = Bed::new(small(16));
        (0..8).for_each(|id| bed.create(id, 1));
        bed.pool.flush_all().unwrap();
        (0..8).for_each(|id| bed.set(id, 2));
        let file = if on_area { &bed.area } else { &bed.data };
        file.watch(move |call| match call {
            Call::Write { .. } => Err(kind),
            _ => Ok(()),
        });
        let error = bed.pool.flush_all().unwrap_err();
        assert!(matches!(error, PoolError::Disk(_)), "{error}");
        assert!(!bed.pool.is_poisoned());
        let misses_fail = (0..40).any(|id| bed.pool.read_scan(PageId::new(100 + id)).is_err());
        assert!(misses_fail, "a pool of dirty pages cannot take others in");
        (0..8).for_each(|id| assert_eq!(bed.get(id), 2));
        file.unwatch();
        bed.pool.flush_all().unwrap();
        let bed = bed.reopen(small(16));
        (0..8).for_each(|id| assert_eq!(bed.get(id), 2));
    }
}

#[test]
fn page_half_written_home_is_finished_before_the_area_is_used_again() {
    let bed = Bed::new(small(16));
    bed.create(5, 1);
    let file = bed.disk.open("data", OpenMode::Write).unwrap();
    bed.data.watch(move |call| match call {
        Call::Write { bytes, .. } => {
            // Half of it arrives.
            file.write_at(&bytes[..PAGE / 2], 5 * PAGE as u64).unwrap();
            Err(DiskErrorKind::Io)
        }
        _ => Ok(()),
    });
    assert!(bed.pool.flush_all().is_err());
    // From here on: as long as home is torn, the area must keep its copy.
    let home = bed.disk.open("data", OpenMode::Read).unwrap();
    bed.data.unwatch();
    bed.area.watch(move |call| {
        if let Call::Write { .. } = call {
            let mut page = [0; PAGE];
            home.read_at(&mut page, 5 * PAGE as u64).unwrap();
            assert!(
                longshore_base::page::check(P, &page).is_ok(),
                "area reused too early"
            );
        }
        Ok(())
    });
    bed.create(7, 1);
    bed.pool.flush_all().unwrap();
    assert_eq!(bed.get(5), 1);
}

#[test]
fn torn_page_is_restored_from_the_area() {
    let bed = Bed::new(small(16));
    (4..7).for_each(|id| bed.create(id, 1));
    bed.pool.flush_all().unwrap();
    let file = bed.disk.open("data", OpenMode::Write).unwrap();
    file.write_at(&[7; 600], 5 * PAGE as u64 + 512).unwrap();
    let bed = bed.reopen(small(16));
    assert!(matches!(bed.pool.read(P), Err(PoolError::Damaged { .. })));
    assert_eq!(bed.pool.recover_double_write().unwrap(), [P]);
    assert_eq!(bed.get(5), 1);
    assert_eq!(bed.pool.recover_double_write().unwrap(), []);
}

#[test]
fn torn_or_missing_area_restores_nothing() {
    let bed = Bed::new(small(16));
    assert_eq!(bed.pool.recover_double_write().unwrap(), []);
    bed.create(5, 1);
    bed.pool.flush_all().unwrap();
    let area = bed.disk.open("double-write", OpenMode::Write).unwrap();
    area.write_at(&[1], 25).unwrap();
    assert_eq!(bed.pool.recover_double_write().unwrap(), []);
}

#[test]
fn failed_sync_poisons() {
    for on_area in [false, true] {
        let bed = Bed::new(small(16));
        bed.create(5, 1);
        let file = if on_area { &bed.area } else { &bed.data };
        let once = AtomicBool::new(true);
        file.watch(move |call| match call {
            Call::Sync if once.swap(false, SeqCst) => Err(DiskErrorKind::Io),
            _ => Ok(()),
        });
        let failed = bed.pool.flush_all().and_then(|()| bed.pool.sync_data());
        assert!(matches!(failed, Err(PoolError::Disk(_))));
        assert!(bed.pool.is_poisoned());
        for again in [
            bed.pool.sync_data(),
            bed.pool.flush_all().and_then(|()| bed.pool.sync_data()),
            bed.pool.read(P).map(drop),
            bed.pool.fix_exclusive(P).map(drop),
            bed.pool.maintain(1).map(drop),
            bed.pool.grow(100),
            bed.pool.truncate(1),
        ] {
            assert!(matches!(again, Err(PoolError::Poisoned { .. })));
        }
    }
}

#[test]
fn rounds_keep_frames_free_within_their_budget() {
    let bed = Bed::new(small(64));
    (0..80).for_each(|id| bed.create(id, 1));
    let mut id = 80;
    while bed.pool.stats().frames_free > 0 {
        bed.create(id, 1);
        id += 1;
    }
    assert!(bed.pool.wait_for_work(std::time::Duration::ZERO));
    let mut written = 0;
    for _ in 0..20 {
        let round = bed.pool.maintain(3).unwrap();
        assert!(round.written <= 3);
        written += round.written;
        if !round.more {
            break;
        }
    }
    assert!(written > 0);
    assert!(bed.pool.stats().frames_free >= 4);
    assert!(!bed.pool.wait_for_work(std::time::Duration::ZERO));
}

#[test]
fn every_crash_point_of_a_batch_is_reached() {
    let bed = Bed::new(small(16));
    let seen = Rc::new(RefCell::new(BTreeSet::new()));
    let names = seen.clone();
    let installed = crash_point::install(move |name| {
        names.borrow_mut().insert(name);
    });
    (0..60).for_each(|id| bed.create(id, 1));
    bed.pool.flush_all().unwrap();
    bed.pool.sync_data().unwrap();
    bed.pool.truncate(30).unwrap();
    drop(installed);
    let wanted = [
        "cleaner.double_write.synced",
        "cleaner.double_write.written",
        "cleaner.home.run",
        "cleaner.home.synced",
        "cleaner.home.written",
        "cleaner.log.durable",
        "cleaner.marked_clean",
        "pool.data.synced",
        "pool.truncated",
    ];
    assert_eq!(seen.borrow().iter().copied().collect::<Vec<_>>(), wanted);
}
