//! What leaves: as the GCLOCK of `longshore-policy` has it.

use longshore_cache::Cache;
use longshore_policy::Trace;
use longshore_policy::simulator::Contender;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use rand_distr::Zipf;

fn trace(seed: u64) -> Trace {
    println!("seed {seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let zipf = Zipf::new(2000.0, 0.9).unwrap();
    let mut trace = Trace::new();
    for step in 0..60_000_u64 {
        let page = match step % 4 {
            0 => 10_000 + step % 3000,
            _ => random.sample(zipf) as u64,
        };
        trace.push(page).unwrap();
    }
    trace
}

fn misses(trace: &Trace, capacity: u64) -> u64 {
    let cache = Cache::new(capacity);
    for page in trace.iter() {
        let _ = cache.get_or_load(&page, || Ok::<_, ()>(()));
    }
    cache.stats().misses
}

fn simulated(trace: &Trace, capacity: u64) -> u64 {
    let gclock: Contender = "gclock:cap=3".parse().unwrap();
    gclock
        .run(trace, capacity as u32, &mut |_| {})
        .unwrap()
        .misses
}

/// The hand of a small cache goes step by step.
#[test]
fn one_thread_misses_as_often_as_gclock() {
    let trace = trace(1);
    for capacity in [1, 2, 7, 50, 127] {
        assert_eq!(
            misses(&trace, capacity),
            simulated(&trace, capacity),
            "{capacity} entries"
        );
    }
}

/// That of a larger one sweeps by the stretch, so that victims may leave a few misses early.
#[test]
fn a_large_cache_misses_nearly_as_often() {
    let trace = trace(2);
    for capacity in [512, 1000, 2000] {
        let more = misses(&trace, capacity) as f64 - simulated(&trace, capacity) as f64;
        let points = 100.0 * more / trace.refs().len() as f64;
        println!("{capacity} entries: {points:+.3} points");
        assert!(
            points.abs() <= 0.5,
            "{capacity} entries: {points:+.3} points"
        );
    }
}
