//! The named workloads against what is known of them: hit ratios that simulators written for other purposes found, and
//! relations that the Nb-GCLOCK paper's figures show.

use lab::curve::stack_distance::LruCurve;
use lab::input::Input;
use longshore_policy::simulator::Contender;
use longshore_policy::{SpecError, Trace};

const SIZES: [u32; 4] = [4096, 8192, 16_384, 32_768];

fn trace(text: &str) -> Trace {
    Input::of(text).load(&lab::Progress::hidden()).unwrap()
}

fn lru(trace: &Trace) -> [f64; 4] {
    let curve = LruCurve::of(trace, &mut |_| {});
    SIZES.map(|size| 100.0 - 100.0 * curve.misses(size) as f64 / curve.requests() as f64)
}

/// Hit ratios at the four sizes; `None` where the catalogue does not have the policy.
fn hits(policy: &str, trace: &Trace) -> Option<[f64; 4]> {
    let contender: Contender = match policy.parse() {
        Err(SpecError::UnknownPolicy { .. }) => return None,
        other => other.unwrap(),
    };
    Some(SIZES.map(|size| {
        contender
            .run(trace, size, &mut |_| {})
            .unwrap()
            .hit_percent()
    }))
}

#[track_caller]
fn near(ours: &[f64], known: &[f64], points: f64) {
    let near = ours
        .iter()
        .zip(known)
        .all(|(ours, known)| (ours - known).abs() <= points);
    assert!(near, "{ours:?}, not {known:?}");
}

#[test]
fn nbg_hits_as_the_papers_experiment_does() {
    let trace = trace("nbg");
    near(&lru(&trace), &[50.98, 61.88, 74.80, 89.86], 0.5);
    let gclock = hits("gclock", &trace).unwrap();
    near(&gclock, &[54.08, 64.85, 77.13, 90.90], 0.5);
    let capped = hits("gclock:cap=3", &trace).unwrap();
    near(&capped, &gclock, 1.0);
    near(&capped, &[53.25, 64.04, 76.46, 90.66], 0.5);
    let Some(two_queues) = hits("2q:in=20%,out=30%", &trace) else {
        return;
    };
    near(&two_queues, &[58.57, 67.43, 77.55, 89.90], 0.5);
    for (at, ahead) in [4.0, 3.0, 1.0].into_iter().enumerate() {
        assert!(
            two_queues[at] - lru(&trace)[at] >= ahead,
            "at {}",
            SIZES[at]
        );
    }
    assert!(gclock[3] > two_queues[3]);
}

#[test]
fn nbg_with_the_flatter_law_hits_less() {
    let trace = trace("nbg:alpha=0.5");
    near(&lru(&trace)[2..], &[45.66, 75.30], 0.5);
}

#[test]
fn scans_cost_lru_more_than_gclock() {
    let trace = trace("nbg-scan");
    let (lru, gclock) = (lru(&trace), hits("gclock", &trace).unwrap());
    near(&lru, &[39.9, 50.2, 64.3, 83.9], 0.5);
    near(&gclock, &[42.5, 52.9, 66.6, 85.2], 0.5);
    let Some(two_queues) = hits("2q:in=20%,out=30%", &trace) else {
        return;
    };
    for at in 0..2 {
        assert!(
            two_queues[at] > gclock[at] && gclock[at] > lru[at],
            "at {}",
            SIZES[at]
        );
    }
}

#[test]
fn four_million_pages_are_hardly_hit() {
    near(&lru(&trace("db4m")), &[13.9, 17.0, 20.4, 24.2], 0.5);
}

#[test]
fn lru_k_s_two_pools_tell_lru_from_better() {
    let trace = trace("two-pools");
    let lru = Contender::Policy("lru".parse().unwrap());
    let hits = |contender: &Contender| {
        contender
            .run(&trace, 100, &mut |_| {})
            .unwrap()
            .hit_percent()
    };
    // The index is half of all references, and fits.
    assert!(
        hits(&lru) < 30.0 && hits(&Contender::Opt) > 50.0,
        "{}, {}",
        hits(&lru),
        hits(&Contender::Opt)
    );
}
