//! Miss ratios of policies from samples, on all cores.

use longshore_policy::Trace;

use super::sample::{Estimate, SAMPLES, SIZE_MIN, Samples};
use super::stack_distance::LruCurve;
use crate::contenders::Named;
use crate::error::LabError;
use crate::progress::Progress;
use crate::simulate::{self, Job};

/// A policy at one size.
#[derive(Clone, Copy, Debug)]
pub struct Estimated {
    /// Misses in a request.
    pub miss_ratio: Estimate,
    /// Pages of the cache that a sample was run in.
    pub size: u32,
    /// What each sample says.
    pub ratios: [f64; SAMPLES],
}

/// All policies at all sizes: policy by policy, size by size.
///
/// # Errors
/// A cache of no pages.
pub fn all(
    samples: &Samples,
    policies: &[Named],
    sizes: &[u32],
    progress: &Progress,
) -> Result<Vec<Vec<Estimated>>, LabError> {
    let mut jobs = Vec::new();
    for policy in policies {
        for &size in sizes {
            jobs.extend(samples.traces.iter().map(|trace| Job {
                trace,
                contender: &policy.contender,
                size: samples.scaled(size),
            }));
        }
    }
    let outcomes = simulate::run(&jobs, progress)?;
    let misses: Vec<u64> = outcomes.iter().map(|outcome| outcome.misses).collect();
    let estimated = misses
        .chunks(SAMPLES)
        .enumerate()
        .map(|(at, misses)| Estimated {
            miss_ratio: samples.miss_ratio(misses.iter().copied()),
            size: samples.scaled(sizes[at % sizes.len()]),
            ratios: std::array::from_fn(|sample| samples.ratio(misses[sample])),
        });
    let estimated: Vec<Estimated> = estimated.collect();
    Ok(estimated.chunks(sizes.len()).map(<[_]>::to_vec).collect())
}

/// LRU's curve over the whole trace.
pub fn lru_curve(trace: &Trace, progress: &Progress) -> LruCurve {
    progress.simulating(trace.refs().len() as u64);
    progress.say("lru at all sizes");
    let mut told = 0;
    let curve = LruCurve::of(trace, &mut |done| {
        progress.simulated(done - told);
        told = done;
    });
    progress.finish();
    curve
}

/// Is a cache of `size` pages too small in the samples to say much?
pub fn is_too_small(samples: &Samples, size: u32) -> bool {
    samples.rate * f64::from(size) < f64::from(SIZE_MIN)
}
