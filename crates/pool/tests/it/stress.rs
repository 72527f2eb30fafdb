//! Many threads on a pool that is too small for them; every page checks itself, every change is counted.

use crate::replacement::replacements;
use crate::support::{Bed, StopOnDrop, check, fill, small, under};
use longshore_base::PageId;
use longshore_pool::{HandKind, MissMode, PageTableKind, PoolOptions};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

const PAGES: u64 = 90;

fn add_one(bed: &Bed, id: u64, mut guard: longshore_pool::ExclusiveGuard<'_>) {
    let value = check(guard.page(), id);
    fill(&mut guard.page_mut(), id, value + 1);
    guard.stamp(bed.lsn());
}

/// Does one random thing; returns how many changes it made to the page.
fn step(bed: &Bed, rng: &mut SmallRng, seen: &mut [u64]) -> u64 {
    let id = rng.random_range(0..PAGES).min(rng.random_range(0..PAGES));
    let page = PageId::new(id);
    match rng.random_range(0..10) {
        0..3 => add_one(bed, id, bed.pool.fix_exclusive(page).unwrap()),
        3 => match bed.pool.try_fix_exclusive(page).unwrap() {
            Some(guard) => add_one(bed, id, guard),
            None => return 0,
        },
        4 => match bed.pool.read(page).unwrap().try_exclusive() {
            Ok(guard) => add_one(bed, id, guard),
            Err(_) => return 0,
        },
        5 => {
            let value = check(bed.pool.fix_shared(page).unwrap().page(), id);
            assert!(value >= seen[id as usize], "page {id} went back");
            seen[id as usize] = value;
            return 0;
        }
        6 => {
            bed.pool.prefetch(page);
            return 0;
        }
        _ => {
            let mut copy = [0; 4096];
            let guard = bed.pool.read(page).unwrap();
            guard.page().copy_out(0, &mut copy);
            if guard.validate().is_ok() {
                let copy = longshore_pool::PageBuffer::from_bytes(&copy);
                let value = check(copy.as_ref(), id);
                assert!(value >= seen[id as usize], "page {id} went back");
                seen[id as usize] = value;
            }
            return 0;
        }
    }
    1
}

fn stress(options: PoolOptions) {
    stress_for(options, Duration::from_millis(900));
}

fn stress_for(options: PoolOptions, duration: Duration) {
    let bed = Bed::new(PoolOptions {
        wait: Duration::from_secs(30),
        ..options
    });
    (0..PAGES).for_each(|id| bed.create(id, 1));
    let stop = AtomicBool::new(false);
    let end = Instant::now() + duration;
    let added: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|seed| {
                let bed = &bed;
                scope.spawn(move || {
                    let mut rng = SmallRng::seed_from_u64(seed);
                    let mut seen = vec![0; PAGES as usize];
                    let mut added = 0;
                    while Instant::now() < end {
                        added += step(bed, &mut rng, &mut seen);
                    }
                    added
                })
            })
            .collect();
        scope.spawn(|| {
            while !stop.load(SeqCst) {
                bed.pool.wait_for_work(Duration::from_millis(5));
                bed.pool.maintain(64).unwrap();
                bed.pool.oldest_dirty(bed.lsn());
            }
        });
        let _stop = StopOnDrop(&stop);
        workers.into_iter().map(|w| w.join().unwrap()).sum()
    });
    bed.pool.verify_replacement().unwrap();
    bed.pool.flush_all().unwrap();
    let bed = bed.reopen(small(128));
    let sum: u64 = (0..PAGES).map(|id| bed.get(id)).sum();
    assert_eq!(sum, PAGES + added);
}

#[test]
fn no_change_is_lost_when_one_loads() {
    stress(small(24));
}

#[test]
fn no_change_is_lost_when_all_load() {
    stress(PoolOptions {
        miss: MissMode::Optimistic,
        hand: HandKind::Striped,
        ..small(24)
    });
}

#[test]
fn no_change_is_lost_with_a_hash_table() {
    stress(PoolOptions {
        table: PageTableKind::Hash,
        ..small(24)
    });
}

#[test]
fn no_change_is_lost_with_a_hash_table_when_all_load() {
    stress(PoolOptions {
        miss: MissMode::Optimistic,
        table: PageTableKind::Hash,
        ..small(24)
    });
}

#[test]
fn no_change_is_lost_under_any_policy() {
    for (nth, replacement) in replacements().enumerate() {
        println!("{replacement}");
        let options = PoolOptions {
            miss: [MissMode::OneLoads, MissMode::Optimistic][nth % 2],
            table: [PageTableKind::Translation, PageTableKind::Hash][nth / 2 % 2],
            ..under(&replacement, small(24))
        };
        stress_for(options, Duration::from_millis(60));
    }
}
