//! Which policy and which size: what follows from hit ratios.
//!
//! # Protocol
//! [`ladder`] says at which sizes to look; hit ratios there, found in full or from samples, make a [`Finding`] for each
//! policy; [`Advice::of`] decides. All values are hits in a hundred requests, differences are points.
//!
//! The policy is chosen at the greatest size. Nb-GCLOCK stays unless another is ahead of it by [`GAIN_MIN`] and by
//! twice the error: it needs no lock on a hit. Of those that are as good as the best, the one that is best over all sizes is
//! taken. The size is the smallest that hits within [`LOSS_MAX`] of what the greatest does.

use crate::curve::sample::Estimate;

/// Points that another policy must be ahead to be worth the change.
pub const GAIN_MIN: f64 = 0.5;
/// Points that less memory may cost.
pub const LOSS_MAX: f64 = 1.0;
/// Sizes from the smallest to the greatest allowed, each √2 of the one before.
const STEPS: i32 = 12;

/// Hits of one policy, size by size.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The policy.
    pub policy: String,
    /// At each size, by sample; one value where the whole trace was run.
    pub hits: Vec<Vec<f64>>,
}

impl Finding {
    /// Hits at the size number `at`.
    pub fn at(&self, at: usize) -> Estimate {
        Estimate::of(&self.hits[at])
    }

    /// How far it is ahead of `other` at the size number `at`, sample by sample: what both share cancels out.
    pub fn ahead_of(&self, other: &Finding, at: usize) -> Estimate {
        let pairs = self.hits[at].iter().zip(&other.hits[at]);
        Estimate::of(
            &pairs
                .map(|(ours, theirs)| ours - theirs)
                .collect::<Vec<_>>(),
        )
    }

    fn mean_up_to(&self, last: usize) -> f64 {
        let means = (0..=last).map(|at| self.at(at).mean);
        means.sum::<f64>() / (last + 1) as f64
    }
}

/// The sizes to look at: up to `pages`, ascending, and twice that, to tell what more memory would bring.
pub fn ladder(pages: u32, distinct: u32) -> Vec<u32> {
    let top = pages.min(distinct).max(1);
    let steps = (0..STEPS).map(|step| f64::from(top) / 2f64.powf(f64::from(step) / 2.0));
    let more = pages.saturating_mul(2).min(distinct);
    let sizes = steps.map(|size| (size.round() as u32).max(1)).chain([more]);
    crate::sizes::ascending(sizes.collect())
}

/// What is advised.
#[derive(Clone, Debug)]
pub struct Advice {
    /// Which of the findings.
    pub policy: usize,
    /// Which of the sizes.
    pub size: usize,
    /// The greatest size allowed, among the sizes.
    pub top: usize,
    /// The size from which on more memory brings less than it did in the mean before.
    pub knee: usize,
    /// Findings that are as good as the best at the top, best first.
    pub peers: Vec<usize>,
}

impl Advice {
    /// What follows from `findings` at `sizes`, of which number `top` is the greatest allowed. `native` is the finding
    /// of Nb-GCLOCK.
    pub fn of(findings: &[Finding], sizes: &[u32], top: usize, native: usize) -> Advice {
        let mut order: Vec<usize> = (0..findings.len()).collect();
        order.sort_by(|&a, &b| {
            findings[b]
                .at(top)
                .mean
                .total_cmp(&findings[a].at(top).mean)
        });
        let best = order[0];
        let is_peer = |&at: &usize| {
            let behind = findings[best].ahead_of(&findings[at], top);
            behind.mean <= (2.0 * behind.error).max(GAIN_MIN / 5.0)
        };
        let peers: Vec<usize> = order.into_iter().filter(is_peer).collect();
        let ahead = findings[best].ahead_of(&findings[native], top);
        let is_worth_it = ahead.mean >= GAIN_MIN && ahead.mean >= 2.0 * ahead.error;
        let over_all = |at: usize| findings[at].mean_up_to(top);
        let choice = peers
            .iter()
            .copied()
            .max_by(|&a, &b| over_all(a).total_cmp(&over_all(b)));
        let policy = match choice {
            Some(choice) if is_worth_it => choice,
            _ => native,
        };
        let hits = |at: usize| findings[policy].at(at).mean;
        let is_enough = |&at: &usize| hits(at) >= hits(top) - LOSS_MAX;
        Advice {
            policy,
            size: (0..=top).find(is_enough).unwrap_or(top),
            top,
            knee: knee(&sizes[..=top], hits),
            peers,
        }
    }
}

/// Where the curve lies highest above the straight line from its beginning to its end.
fn knee(sizes: &[u32], hits: impl Fn(usize) -> f64) -> usize {
    let last = sizes.len() - 1;
    let along =
        |at: usize| f64::from(sizes[at] - sizes[0]) / f64::from(sizes[last] - sizes[0]).max(1.0);
    let rise = hits(last) - hits(0);
    let above = |at: usize| hits(at) - hits(0) - rise * along(at);
    (0..=last)
        .max_by(|&a, &b| above(a).total_cmp(&above(b)))
        .unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(policy: &str, hits: &[f64]) -> Finding {
        Finding {
            policy: policy.to_string(),
            hits: hits.iter().map(|&hits| vec![hits]).collect(),
        }
    }

    fn sampled(policy: &str, hits: &[f64]) -> Finding {
        Finding {
            policy: policy.to_string(),
            hits: vec![hits.to_vec()],
        }
    }

    #[test]
    fn the_ladder_ends_at_what_is_allowed_and_at_twice_that() {
        let sizes = ladder(1024, 1_000_000);
        assert_eq!((sizes[0], sizes.len()), (23, 13));
        assert_eq!(sizes[10..], [724, 1024, 2048]);
        assert_eq!(
            *ladder(1024, 900).last().unwrap(),
            900,
            "no more than there are"
        );
        assert_eq!(ladder(1, 900), [1, 2]);
        assert_eq!(ladder(5, 1), [1]);
    }

    #[test]
    fn native_stays_unless_another_is_clearly_ahead() {
        let chosen = |ours: f64, other: f64| {
            let findings = [finding("gclock:cap=3", &[ours]), finding("arc", &[other])];
            findings[Advice::of(&findings, &[100], 0, 0).policy]
                .policy
                .clone()
        };
        assert_eq!(chosen(50.0, 50.4), "gclock:cap=3");
        assert_eq!(chosen(50.0, 50.6), "arc");
        assert_eq!(chosen(50.0, 40.0), "gclock:cap=3");
    }

    #[test]
    fn what_the_samples_do_not_agree_on_is_not_advised() {
        let chosen = |other: [f64; 4]| {
            let findings = [
                sampled("gclock:cap=3", &[50.0, 60.0, 55.0, 65.0]),
                sampled("arc", &other),
            ];
            Advice::of(&findings, &[100], 0, 0).policy
        };
        assert_eq!(
            chosen([52.0, 62.0, 57.0, 67.0]),
            1,
            "two points in every sample"
        );
        assert_eq!(
            chosen([60.0, 52.0, 63.0, 63.0]),
            0,
            "four and a half in the mean, but not everywhere"
        );
    }

    #[test]
    fn of_equals_the_one_that_is_best_at_all_sizes_is_taken() {
        let findings = [
            finding("gclock:cap=3", &[10.0, 40.0]),
            finding("arc", &[20.0, 50.0]),
            finding("lirs", &[30.0, 49.95]),
        ];
        let advice = Advice::of(&findings, &[10, 100], 1, 0);
        assert_eq!((advice.policy, advice.peers), (2, vec![1, 2]));
    }

    #[test]
    fn memory_that_brings_nothing_is_not_advised() {
        let findings = [finding("gclock:cap=3", &[10.0, 70.0, 79.2, 80.0, 95.0])];
        let advice = Advice::of(&findings, &[10, 100, 200, 400, 800], 3, 0);
        assert_eq!((advice.size, advice.knee, advice.top), (2, 1, 3));
    }
}
