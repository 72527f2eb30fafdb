//! What checkpoints rely on.

use crate::support::{Bed, Call, fill, small};
use longshore_base::{Lsn, PageId};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

const P: PageId = PageId::new(5);

#[test]
fn oldest_dirty_is_the_first_change_since_clean() {
    let bed = Bed::new(small(16));
    let begin = Lsn::new(1 << 20);
    assert_eq!(bed.pool.oldest_dirty(begin), begin);
    bed.create(5, 1); // 64
    bed.create(6, 1); // 128
    bed.set(5, 2); // 192
    assert_eq!(bed.pool.oldest_dirty(begin), Lsn::new(64));
    assert_eq!(bed.pool.oldest_dirty(Lsn::new(60)), Lsn::new(60));
    assert_eq!(bed.pool.flush_older_than(Lsn::new(128), 100).unwrap(), 1);
    assert_eq!(bed.pool.oldest_dirty(begin), Lsn::new(128));
    bed.set(5, 3); // 256
    bed.pool.flush_older_than(Lsn::new(200), 100).unwrap();
    assert_eq!(bed.pool.oldest_dirty(begin), Lsn::new(256));
    bed.pool.flush_all().unwrap();
    assert_eq!(bed.pool.oldest_dirty(begin), begin);
}

#[test]
fn oldest_dirty_waits_for_a_holder_who_has_logged_but_not_stamped() {
    let bed = Bed::new(small(16));
    bed.create(5, 1);
    bed.pool.flush_all().unwrap();
    let mut guard = bed.pool.fix_exclusive(P).unwrap();
    let logged = bed.lsn();
    let begin = bed.lsn();
    let answered = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let checkpoint = scope.spawn(|| {
            let oldest = bed.pool.oldest_dirty(begin);
            answered.store(true, SeqCst);
            oldest
        });
        std::thread::sleep(std::time::Duration::from_millis(30));
        assert!(!answered.load(SeqCst));
        fill(&mut guard.page_mut(), 5, 2);
        guard.stamp(logged);
        drop(guard);
        assert_eq!(checkpoint.join().unwrap(), logged);
    });
}

#[test]
fn flush_waits_for_latched_pages_and_writes_the_others() {
    let bed = Bed::new(small(16));
    (0..8).for_each(|id| bed.create(id, 1));
    let mut guard = bed.pool.fix_exclusive(P).unwrap();
    std::thread::scope(|scope| {
        let flush = scope.spawn(|| bed.pool.flush_all());
        while bed.pool.stats().page_writes < 7 {
            std::thread::yield_now();
        }
        fill(&mut guard.page_mut(), 5, 2);
        guard.stamp(bed.lsn());
        drop(guard);
        flush.join().unwrap().unwrap();
    });
    let bed = bed.reopen(small(16));
    assert_eq!(bed.get(5), 2);
}

#[test]
fn page_latched_for_ever_fails_the_flush() {
    let bed = Bed::new(small(16));
    bed.create(5, 1);
    let _held = bed.pool.fix_exclusive(P).unwrap();
    let error = std::thread::scope(|scope| scope.spawn(|| bed.pool.flush_all()).join().unwrap());
    assert!(
        error
            .unwrap_err()
            .to_string()
            .starts_with("page 5 was held")
    );
}

#[test]
fn unstamped_changes_are_written_but_hold_back_no_checkpoint() {
    let bed = Bed::new(small(16));
    let mut guard = bed.pool.fix_exclusive(P).unwrap();
    fill(&mut guard.page_mut(), 5, 2);
    drop(guard);
    let begin = Lsn::new(1 << 20);
    assert_eq!(bed.pool.oldest_dirty(begin), begin);
    bed.push_out(100);
    assert_eq!(bed.get(5), 2);
}

#[test]
fn flush_writes_in_the_order_of_pages() {
    let bed = Bed::new(small(64));
    let order = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let pages = order.clone();
    bed.data.watch(move |call| {
        if let Call::Write { page, .. } = call {
            pages.lock().unwrap().push(page);
        }
        Ok(())
    });
    [9, 3, 50, 21, 40, 1, 30, 60, 11, 7, 70, 80]
        .iter()
        .for_each(|id| bed.create(*id, 1));
    bed.pool.flush_all().unwrap();
    let order = order.lock().unwrap();
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(order.len(), 12);
}
