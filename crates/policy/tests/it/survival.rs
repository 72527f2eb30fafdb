//! One situation after the other that a pool can bring about.

use longshore_base::PageId;
use longshore_policy::{Entry, Gone, Inspector, Placement, Policy, Take};

use crate::all;
use crate::pool::Pool;

/// A mix with something hot, a loop, and pages seen once.
fn mixed(length: u64) -> impl Iterator<Item = u64> {
    (0..length).map(|at| match at % 4 {
        0 => at / 4 % 3,
        1 => 10 + at / 4 % 7,
        2 => 20 + at * at % 23,
        _ => 1000 + at,
    })
}

#[test]
fn all_pinned_is_no_victim_and_no_harm() {
    for spec in all() {
        let mut pool = Pool::new(&spec, 8);
        mixed(100).for_each(|page| {
            pool.use_page(page);
        });
        for answer in [Take::Busy, Take::Dirty, Take::Enough] {
            for page in 5000..5003 {
                assert_eq!(pool.use_unless(page, |_, _| answer), None, "{spec}");
                pool.check();
            }
            assert_eq!(pool.evict(None, |_, _| answer), None, "{spec}");
            assert_eq!(pool.len(), 8, "{spec}");
        }
        assert!(!pool.use_page(6000), "{spec}");
        assert!(pool.use_page(6000), "{spec}: a page brought in is there");
        pool.check();
    }
}

#[test]
fn the_only_frame_not_pinned_is_found() {
    for spec in all() {
        let mut pool = Pool::new(&spec, 16);
        mixed(300).for_each(|page| {
            pool.use_page(page);
        });
        for frame in 0..16 {
            let page = 7000 + u64::from(frame);
            let veto = |offered, _| match offered == frame {
                true => Take::Taken,
                false => Take::Busy,
            };
            assert_eq!(pool.use_unless(page, veto), Some(false), "{spec}");
            assert_eq!(pool.frame_of(page), Some(frame), "{spec}");
            pool.check();
        }
    }
}

#[test]
fn an_empty_pool_has_no_victim() {
    for spec in all() {
        let mut pool = Pool::new(&spec, 2);
        assert_eq!(pool.evict(None, |_, _| Take::Taken), None, "{spec}");
        let page = PageId::new(1);
        let at: Placement = pool.policy.on_miss(page);
        assert_eq!(
            pool.evict(Some((page, at)), |_, _| Take::Taken),
            None,
            "{spec}"
        );
        pool.check();
    }
}

#[test]
fn pools_of_a_few_frames_work() {
    for spec in all() {
        for capacity in 1..=5 {
            let mut pool = Pool::new(&spec, capacity);
            for page in mixed(500) {
                pool.use_page(page);
                assert!(
                    pool.use_page(page),
                    "{spec}: what was used just now is there"
                );
                pool.check();
            }
            for page in [1, 2, 1, 2, 1, 1, 3, 3, 2, 1, 3, 2] {
                pool.use_page(page);
                pool.check();
            }
            assert_eq!(pool.len(), capacity as usize, "{spec}");
        }
    }
}

#[test]
fn what_fits_is_never_missed_again() {
    for spec in all() {
        let mut pool = Pool::new(&spec, 50);
        (0..50).for_each(|page| assert!(!pool.use_page(page), "{spec}"));
        for round in 1..20 {
            (0..50).for_each(|at| assert!(pool.use_page(at * round % 50 % 49), "{spec}"));
        }
        pool.check();
    }
}

#[test]
fn a_pool_shrinks_by_half_and_grows_again() {
    for spec in all() {
        let mut pool = Pool::new(&spec, 64);
        let mut pages = mixed(100_000);
        for capacity in [32, 64, 3, 1, 2, 128, 64, 1, 40] {
            pages.by_ref().take(500).for_each(|page| {
                pool.use_page(page);
            });
            pool.resize(capacity);
            pool.check();
            pool.settle();
            pool.check();
            pages.by_ref().take(500).for_each(|page| {
                pool.use_page(page);
            });
            assert_eq!(pool.len(), capacity as usize, "{spec}");
            pool.check();
        }
    }
}

#[test]
fn residents_beyond_the_capacity_are_hit_and_evicted() {
    for spec in all() {
        let mut pool = Pool::new(&spec, 64);
        mixed(1000).for_each(|page| {
            pool.use_page(page);
        });
        pool.resize(8);
        for frame in 0..64 {
            pool.policy.on_hit(frame);
        }
        pool.check();
        for left in (8..64).rev() {
            assert!(pool.evict(None, |_, _| Take::Taken).is_some(), "{spec}");
            assert_eq!(pool.len(), left, "{spec}");
            pool.check();
        }
        pool.settle();
        mixed(1000).for_each(|page| {
            pool.use_page(page);
        });
        pool.check();
    }
}

#[test]
fn every_page_can_be_removed_at_any_time() {
    for spec in all() {
        for frame in 0..8 {
            let mut pool = Pool::new(&spec, 8);
            for (step, page) in mixed(400).enumerate() {
                pool.use_page(page);
                if step % 7 == 0 && pool.page_in(frame).is_some() {
                    match step % 3 {
                        0 => drop(pool.remove(frame, Gone::Invalidated)),
                        1 => drop(pool.relocate(frame)),
                        _ => pool.policy.forget_ghost(PageId::new(page + 1_000_000)),
                    }
                }
                pool.check();
            }
            for frame in 0..8 {
                if pool.page_in(frame).is_some() {
                    pool.remove(frame, Gone::Invalidated);
                    pool.check();
                }
            }
            assert_eq!(pool.evict(None, |_, _| Take::Taken), None, "{spec}");
        }
    }
}

#[test]
fn a_read_that_fails_leaves_no_trace() {
    for spec in all() {
        let mut pool = Pool::new(&spec, 8);
        for page in mixed(400) {
            if pool.frame_of(page).is_none() {
                let at = pool.policy.on_miss(PageId::new(page));
                pool.evict(Some((PageId::new(page), at)), |_, _| Take::Taken);
                pool.check();
            }
            pool.use_page(page);
            pool.check();
        }
    }
}

#[test]
fn misses_of_two_pages_may_interleave() {
    for spec in all() {
        let mut pool = Pool::new(&spec, 8);
        mixed(400).for_each(|page| {
            pool.use_page(page);
        });
        for page in (0..200).map(|at| at * 7 % 40) {
            let (one, other) = (PageId::new(page), PageId::new(page + 1));
            if pool.frame_of(page).is_some() || pool.frame_of(page + 1).is_some() {
                continue;
            }
            let at_one = pool.policy.on_miss(one);
            let at_other = pool.policy.on_miss(other);
            pool.evict(Some((one, at_one)), |_, _| Take::Taken);
            pool.evict(Some((other, at_other)), |_, _| Take::Taken);
            pool.insert_freed(other, at_other);
            pool.insert_freed(one, at_one);
            pool.check();
        }
    }
}

#[test]
fn which_frame_a_page_gets_does_not_matter() {
    for spec in all() {
        let (mut one, mut other) = (Pool::new(&spec, 16), Pool::new(&spec, 16));
        other.turn_free_frames();
        for (step, page) in mixed(5000).enumerate() {
            assert_eq!(
                one.use_page(page),
                other.use_page(page),
                "{spec}: step {step}"
            );
            if step % 50 == 0 {
                // Two frames become free, and are filled in another order.
                for pool in [&mut one, &mut other] {
                    pool.evict(None, |_, _| Take::Taken);
                    pool.evict(None, |_, _| Take::Taken);
                }
                other.turn_free_frames();
            }
        }
    }
}

/// Queues but for one page, and where that is.
struct Without {
    page: PageId,
    rest: Vec<(&'static str, Vec<Entry>)>,
    places: Vec<(&'static str, Entry)>,
}

impl Without {
    fn of(policy: &dyn Policy, page: PageId) -> Without {
        let mut without = Without {
            page,
            rest: Vec::new(),
            places: Vec::new(),
        };
        policy.inspect(&mut without);
        without
    }
}

impl Inspector for Without {
    fn queue(&mut self, name: &'static str, entries: &mut dyn Iterator<Item = Entry>) {
        let (its, rest): (Vec<Entry>, _) = entries.partition(|entry| entry.page == self.page);
        self.places
            .extend(its.into_iter().map(|entry| (name, entry)));
        self.rest.push((name, rest));
    }

    fn counter(&mut self, name: &'static str, value: u64) {
        let entry = Entry {
            page: PageId::new(value),
            frame: None,
            weight: 0,
            kind: "",
        };
        self.places.push((name, entry));
    }
}

#[test]
fn a_settled_page_that_is_used_again_only_moves_within_its_queue() {
    let mut settled = 0;
    for spec in all() {
        let mut pool = Pool::new(&spec, 40);
        for (nth, page) in mixed(20_000).enumerate() {
            pool.use_page(page);
            let (Some(frame), true) = (pool.frame_of(page), nth % 7 == 0) else {
                continue;
            };
            pool.policy.on_hit(frame);
            // Another page comes between, where there is one that stays as it is too.
            if let Some(other) = pool.frame_of(page / 2) {
                pool.policy.on_hit(other);
                if !pool.policy.is_settled(frame) || !pool.policy.is_settled(other) {
                    continue;
                }
            }
            if pool.policy.is_settled(frame) {
                settled += 1;
                let page = PageId::new(page);
                let before = Without::of(&*pool.policy, page);
                pool.policy.on_hit(frame);
                let after = Without::of(&*pool.policy, page);
                assert_eq!(after.places, before.places, "{spec}, use {nth}");
                assert_eq!(after.rest, before.rest, "{spec}, use {nth}");
            }
        }
    }
    assert!(settled > 10_000, "{settled} uses of settled pages");
}
