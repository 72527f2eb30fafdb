//! The classical circles, each with its victim, and the crowds that look like one and are none.

use crate::actors::{Actor, LONG, manager, name};
use longshore_base::TxnId;
use longshore_txn::{Dependency, LockError, LockManager, LockOptions, Mode, Wait};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::time::Duration;

const READ: Mode = Mode::READ;
const WRITE: Mode = Mode::WRITE;

struct Stage {
    locks: Arc<LockManager>,
    actors: Vec<Actor>,
}

/// Actors 0 to `count`, the last the youngest.
fn stage(count: usize) -> Stage {
    let locks = manager(LockOptions {
        bytes_max: 1 << 20,
        owners_max: 32,
        // Circles must be found when the wait that closes them begins, not by the second look.
        search_interval: LONG,
        ..LockOptions::default()
    });
    let actors = (0..count).map(|n| Actor::new(&locks, n)).collect();
    Stage { locks, actors }
}

impl Stage {
    /// The victim is told, gives up its locks, and everybody else gets through.
    fn falls(&self, victim: usize) {
        let error = self.actors[victim].answer().unwrap_err();
        assert!(matches!(error, LockError::Deadlock { .. }), "{error}");
        self.actors[victim].ends(Dependency::NONE);
    }

    fn gets_through(&self, actor: usize) {
        self.actors[actor].answer().unwrap();
        self.actors[actor].ends(Dependency::NONE);
    }

    fn ends_with(&self, deadlocks: u64) {
        assert_eq!(self.locks.stats().deadlocks, deadlocks);
        assert_eq!(self.locks.stats().timeouts, 0);
        assert!(self.locks.waits().is_empty());
    }
}

#[test]
fn circle_1_two_writers_cross() {
    let s = stage(2);
    s.actors[0].takes("a", WRITE);
    s.actors[1].takes("b", WRITE);
    s.actors[0].waits_for("b", WRITE);
    s.actors[1].asks_for("a", WRITE, LONG);
    s.falls(1);
    s.gets_through(0);
    s.ends_with(1);
}

#[test]
fn circle_2_the_victim_is_the_youngest_not_the_one_that_closes_the_circle() {
    let s = stage(2);
    s.actors[0].takes("a", WRITE);
    s.actors[1].takes("b", WRITE);
    s.actors[1].waits_for("a", WRITE);
    s.actors[0].asks_for("b", WRITE, LONG);
    s.falls(1);
    s.gets_through(0);
    s.ends_with(1);
}

#[test]
fn circle_3_eight_in_a_ring() {
    let s = stage(8);
    for n in 0..8 {
        s.actors[n].takes(&format!("k{n}"), WRITE);
    }
    for n in 0..7 {
        s.actors[n].waits_for(&format!("k{}", n + 1), READ);
    }
    s.actors[7].asks_for("k0", READ, LONG);
    s.falls(7);
    for n in (0..7).rev() {
        s.gets_through(n);
    }
    s.ends_with(1);
}

#[test]
fn circle_4_two_readers_both_convert() {
    let s = stage(2);
    s.actors[0].takes("a", READ);
    s.actors[1].takes("a", READ);
    s.actors[0].waits_for("a", WRITE);
    s.actors[1].asks_for("a", WRITE, LONG);
    s.falls(1);
    s.gets_through(0);
    s.ends_with(1);
}

#[test]
fn circle_5_write_skew_each_reads_what_the_other_writes() {
    let s = stage(2);
    s.actors[0].takes("a", READ);
    s.actors[1].takes("b", READ);
    s.actors[0].waits_for("b", WRITE);
    s.actors[1].asks_for("a", WRITE, LONG);
    s.falls(1);
    s.gets_through(0);
    s.ends_with(1);
}

#[test]
fn circle_6_both_read_a_gap_and_insert_into_it() {
    let s = stage(2);
    s.actors[0].takes("a", Mode::READ_GAP);
    s.actors[1].takes("a", Mode::READ_GAP);
    s.actors[0].waits_for("a", Mode::INSERT);
    s.actors[1].asks_for("a", Mode::INSERT, LONG);
    s.falls(1);
    s.gets_through(0);
    s.ends_with(1);
}

/// 2 waits behind 1 in the queue for `a`, though it could share with the holder 0.
#[test]
fn circle_7_through_a_place_in_the_queue() {
    let s = stage(3);
    s.actors[0].takes("a", READ);
    s.actors[2].takes("b", WRITE);
    s.actors[1].waits_for("a", WRITE);
    s.actors[2].waits_for("a", READ);
    // 0 waits for 2, who waits for 1 (ahead of it), who waits for 0.
    s.actors[0].asks_for("b", READ, LONG);
    s.falls(2);
    s.gets_through(0);
    s.gets_through(1);
    s.ends_with(1);
}

/// 1 and 2 both wait for 0, which waits for both: one circle each.
#[test]
fn circle_8_two_circles_through_one_wait() {
    let s = stage(3);
    s.actors[0].takes("a", WRITE);
    s.actors[1].takes("b", READ);
    s.actors[2].takes("b", READ);
    s.actors[1].waits_for("a", READ);
    s.actors[2].waits_for("a", READ);
    s.actors[0].asks_for("b", WRITE, LONG);
    s.falls(2);
    s.falls(1);
    s.gets_through(0);
    s.ends_with(2);
}

/// A holder that wants more closes a circle with each of many readers; all of them are broken at once.
#[test]
fn circle_10_many_circles_through_one_wait() {
    let s = stage(24);
    s.actors[0].takes("a", WRITE);
    for n in 1..24 {
        s.actors[n].takes("b", READ);
        s.actors[n].waits_for("a", READ);
    }
    s.actors[0].asks_for("b", WRITE, LONG);
    for n in (1..24).rev() {
        s.falls(n);
    }
    s.gets_through(0);
    s.ends_with(23);
}

/// Waits that move while they are looked at hide no circle: nobody ever needs the second look.
#[test]
fn in_a_moving_crowd_every_circle_is_broken_by_who_closes_it() {
    const THREADS: usize = 16;
    let s = stage(0);
    let crowd = |number: usize| {
        let locks = &s.locks;
        let mut random = StdRng::seed_from_u64(number as u64);
        move || {
            let mut deadlocks = 0;
            for round in 0..300 {
                let txn = TxnId::new((round * THREADS + number) as u64);
                let mut owner = locks.register(number, txn);
                for _ in 0..3 {
                    let key = ["a", "b", "c", "d"][random.random_range(0..4)];
                    let mode = [READ, Mode::UPDATE, WRITE][random.random_range(0..3)];
                    match locks.lock(&mut owner, name(key), mode, Wait::For(LONG)) {
                        Ok(()) => std::thread::yield_now(),
                        Err(LockError::Deadlock { .. }) => {
                            deadlocks += 1;
                            break;
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
                locks.release_all(&mut owner, Dependency::NONE);
            }
            deadlocks
        }
    };
    let deadlocks: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(crowd(n))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    assert!(deadlocks > 0, "nobody met");
    s.ends_with(deadlocks);
}

#[test]
fn no_circle_a_convoy_waits_in_turn() {
    let s = stage(8);
    s.actors[0].takes("a", WRITE);
    for n in 1..8 {
        s.actors[n].waits_for("a", WRITE);
    }
    s.actors[0].ends(Dependency::NONE);
    for n in 1..8 {
        s.gets_through(n);
    }
    s.ends_with(0);
}

#[test]
fn no_circle_a_chain_ends_at_one_that_runs() {
    let s = stage(6);
    for n in 0..6 {
        s.actors[n].takes(&format!("k{n}"), WRITE);
    }
    for n in (1..6).rev() {
        s.actors[n].waits_for(&format!("k{}", n - 1), WRITE);
    }
    s.actors[0].ends(Dependency::NONE);
    for n in 1..6 {
        s.gets_through(n);
    }
    s.ends_with(0);
}

#[test]
fn no_circle_two_paths_to_one_holder() {
    let s = stage(4);
    s.actors[0].takes("a", WRITE);
    s.actors[1].takes("b", READ);
    s.actors[2].takes("b", READ);
    s.actors[1].waits_for("a", READ);
    s.actors[2].waits_for("a", READ);
    s.actors[3].waits_for("b", WRITE);
    s.actors[0].ends(Dependency::NONE);
    s.gets_through(1);
    s.gets_through(2);
    s.gets_through(3);
    s.ends_with(0);
}

#[test]
fn no_circle_a_conversion_waits_for_a_reader_that_runs() {
    let s = stage(3);
    s.actors[0].takes("a", READ);
    s.actors[1].takes("a", READ);
    s.actors[2].waits_for("a", WRITE);
    s.actors[0].waits_for("a", WRITE);
    s.actors[1].ends(Dependency::NONE);
    s.gets_through(0);
    s.gets_through(2);
    s.ends_with(0);
}

/// The conversion goes ahead of the waiter that it would else wait for.
#[test]
fn no_circle_a_conversion_passes_the_waiter_that_waits_for_it() {
    let s = stage(2);
    s.actors[0].takes("a", READ);
    s.actors[1].waits_for("a", WRITE);
    s.actors[0].takes("a", WRITE);
    s.actors[0].ends(Dependency::NONE);
    s.gets_through(1);
    s.ends_with(0);
}

#[test]
fn no_circle_key_and_gap_of_one_name_are_apart() {
    let s = stage(2);
    s.actors[0].takes("a", Mode::READ_GAP);
    s.actors[1].takes("a", WRITE);
    s.actors[1].takes("b", Mode::READ_GAP);
    s.actors[0].takes("b", WRITE);
    s.ends_with(0);
}

#[test]
fn circle_that_a_time_out_breaks_is_not_reported_twice() {
    let s = stage(3);
    s.actors[0].takes("a", WRITE);
    s.actors[1].takes("b", WRITE);
    s.actors[2].takes("c", WRITE);
    s.actors[0].asks_for("b", WRITE, Duration::from_millis(30));
    let error = s.actors[0].answer().unwrap_err();
    assert!(matches!(error, LockError::Timeout { .. }));
    // 0 no longer waits for 1, so 1 may wait for 0.
    s.actors[1].waits_for("a", WRITE);
    s.actors[0].ends(Dependency::NONE);
    s.gets_through(1);
    assert_eq!(s.locks.stats().deadlocks, 0);
    assert_eq!(s.locks.stats().timeouts, 1);
}
