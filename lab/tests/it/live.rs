//! The real pool under workloads: what it must have in common with the simulator, and what it must count.

use lab::input::Input;
use lab::live::{self, Ground, Length, Measured, Place, Reads, Setup};
use longshore_policy::Trace;
use longshore_policy::simulator::Contender;
use longshore_pool::{HandKind, MissMode};
use std::time::Duration;

/// The paper's streams, cut short.
const NBG: &str = "nbg:requests=200000";

pub fn trace(text: &str) -> Trace {
    Input::of(text).load(&lab::Progress::hidden()).unwrap()
}

pub fn setup(replacement: &str, frames: u32) -> Setup {
    Setup::new(replacement.parse().unwrap(), frames)
}

pub fn once(ground: &Ground, setup: &Setup, threads: usize) -> Measured {
    let pool = ground.pool(setup).unwrap();
    live::run(&pool, ground, threads, Length::Once).unwrap()
}

fn simulated(policy: &str, trace: &Trace, frames: u32) -> u64 {
    let policy: Contender = policy.parse().unwrap();
    policy.run(trace, frames, &mut |_| {}).unwrap().misses
}

#[test]
fn one_thread_of_nb_gclock_hits_as_gclock_does() {
    // A3. The hand takes frames by the stretch, so that victims may leave a few misses early.
    let trace = trace(NBG);
    let ground = Ground::new(&trace, Place::Memory).unwrap();
    for frames in [1000, 4096, 16_384] {
        for (weight_max, policy) in [(3, "gclock:cap=3"), (15, "gclock:cap=15")] {
            for hand in [HandKind::Batched, HandKind::Striped] {
                let setup = Setup {
                    weight_max,
                    hand,
                    ..setup("nb-gclock", frames)
                };
                let measured = once(&ground, &setup, 1);
                let expected = simulated(policy, &trace, frames) as i64;
                let more = measured.stats.misses as i64 - expected;
                let points = 100.0 * more as f64 / measured.accesses as f64;
                println!("{frames} frames, {policy}, {hand:?}: {points:+.4} points");
                assert!(
                    points.abs() <= 0.05,
                    "{frames} frames, {policy}, {hand:?}: {points:+.4} points"
                );
            }
        }
    }
}

#[test]
fn a_policy_under_a_lock_hits_as_simulated() {
    let trace = trace(NBG);
    let ground = Ground::new(&trace, Place::Memory).unwrap();
    for policy in ["lru", "2q:in=20%,out=30%", "gclock", "lirs"] {
        for form in ["spin", "bp-wrapper:young=0"] {
            let measured = once(&ground, &setup(&format!("{form}/{policy}"), 4096), 1);
            assert_eq!(
                measured.stats.misses,
                simulated(policy, &trace, 4096),
                "{form}/{policy}"
            );
            assert_eq!(measured.accesses, 200_000);
        }
    }
}

#[test]
fn one_thread_reads_nothing_in_vain_and_waits_for_nobody() {
    let trace = trace("nbg:requests=50000");
    let ground = Ground::new(&trace, Place::Memory).unwrap();
    for reads in [Reads::AsTheyCome, Reads::OneAtATime] {
        let setup = Setup {
            miss: MissMode::Optimistic,
            reads,
            ..setup("nb-gclock", 4096)
        };
        let stats = once(&ground, &setup, 1).stats;
        assert_eq!(
            (stats.loads_lost, stats.load_waits, stats.latch_waits),
            (0, 0, 0)
        );
        assert_eq!(stats.page_reads, stats.misses);
    }
}

#[test]
fn threads_share_the_work_and_each_reference_counts_once() {
    let trace = trace("nbg-scan:requests=100000");
    let ground = Ground::new(&trace, Place::Memory).unwrap();
    for threads in [1, 3, 64, 100] {
        for replacement in ["nb-gclock", "mutex/lru"] {
            let measured = once(&ground, &setup(replacement, 2000), threads);
            assert_eq!(
                measured.accesses, 100_000,
                "{replacement}, {threads} threads"
            );
        }
    }
}

/// Hits of many threads are those of one, neither less nor more: whoever is free takes the next stretch.
fn assert_threads_hit_as_one(name: &str, trace: &Trace, frames: u32) {
    let ground = Ground::new(trace, Place::Memory).unwrap();
    for replacement in ["nb-gclock", "lru", "spin/lru"] {
        let setup = setup(replacement, frames);
        let one = once(&ground, &setup, 1).hit_percent();
        for threads in [8, 32] {
            let off = || once(&ground, &setup, threads).hit_percent() - one;
            let mut points = off();
            if points.abs() >= 1.0 {
                // What a thread held back that lost its core depends on the machine: the median of three.
                let mut runs = [points, off(), off()];
                runs.sort_by(f64::total_cmp);
                points = runs[1];
            }
            println!("{name}, {replacement}, {threads} threads: {points:+.2} points of {one:.2}");
            assert!(
                points.abs() < 1.0,
                "{name}, {replacement}, {threads} threads: {points:+.2} points"
            );
        }
    }
}

#[test]
fn many_threads_hit_as_one_does() {
    // Work that moves on: 20 uses for each new page, of the 800 newest, spread by a multiplication. What is used out of its turn is gone.
    let moving = (0..400_000_u64).map(|nth| nth / 20 + ((nth * 0x9E37_79B9) >> 7) % 800);
    assert_threads_hit_as_one("moving", &moving.collect(), 3_000);
}

#[test]
fn many_threads_hit_as_one_does_on_oltp() {
    let Some(folder) = crate::reference::folder() else {
        return;
    };
    let file = folder.join("arc/OLTP.lis.gz");
    let oltp = trace(file.to_str().unwrap());
    assert_threads_hit_as_one("OLTP", &oltp, 5_000);
}

#[test]
fn a_full_pool_that_has_all_pages_misses_none() {
    let trace = trace("zipf:pages=500,requests=20000");
    let ground = Ground::new(&trace, Place::Memory).unwrap();
    let frames = ground.distinct() as u32;
    for replacement in ["nb-gclock", "bp-wrapper/lirs", "spin/gclock"] {
        let pool = ground.pool(&setup(replacement, frames)).unwrap();
        let length = Length::For(Duration::from_millis(20));
        let measured = live::run(&pool, &ground, 4, length).unwrap();
        assert_eq!(measured.stats.misses, 0, "{replacement}");
        assert!(measured.accesses > 0, "{replacement}");
    }
}
