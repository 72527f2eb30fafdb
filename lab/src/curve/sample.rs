//! Samples: a part of the pages, and all references to them.
//!
//! Whether a page is in a sample is decided by a hash of its number, so its references are in it all or none, and
//! their order stays. A cache of `rate` times the size does to the sample what the whole cache does to the trace,
//! nearly. Samples are taken in groups of several that share no page: their mean is the answer, their spread its error.
//!
//! The misses of a sample are set against the references that it should have had, `rate` of all, not against those that
//! it has: whether one of the few pages used most is in the sample changes its references much, its misses hardly.
//!
//! # Source
//! C. A. Waldspurger et al.: Efficient MRC Construction with SHARDS. FAST'15. (One sample at a fixed rate, whose
//! correction adds the missing references as hits of the smallest cache. We differ: several samples, for the error.)
//! C. A. Waldspurger et al.: Cache Modeling and Optimization using Miniature Simulations. ATC'17.

use longshore_policy::Trace;

/// Samples of a group.
pub const SAMPLES: usize = 8;
/// Below so many pages a sample of a cache says little.
pub const SIZE_MIN: u32 = 8;

/// Samples of one trace at one rate that share no page.
pub struct Samples {
    /// The samples.
    pub traces: Vec<Trace>,
    /// Which part of the pages each of them should have.
    pub rate: f64,
    /// References that each of them should have.
    expected: f64,
}

/// A value and how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean over the samples.
    pub mean: f64,
    /// The standard error of the mean.
    pub error: f64,
}

impl Estimate {
    /// The mean of values that were found independently, and its error.
    pub fn of(values: &[f64]) -> Estimate {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = match values.len() {
            0 | 1 => 0.0,
            _ => (squares / (count - 1.0) / count).sqrt(),
        };
        Estimate { mean, error }
    }

    /// A value that is known.
    pub fn exact(mean: f64) -> Estimate {
        Estimate { mean, error: 0.0 }
    }
}

impl Samples {
    /// The samples of `trace` with `rate` of its pages each, at most an eighth, so that they share none.
    pub fn of(trace: &Trace, rate: f64) -> Samples {
        let rate = rate.min(1.0 / SAMPLES as f64);
        let width = (rate * u32::MAX as f64) as u64 + 1;
        let sample_of: Vec<u8> = trace
            .pages()
            .iter()
            .map(|&page| (hash(page) >> 32) / width)
            .map(|sample| sample.min(SAMPLES as u64) as u8)
            .collect();
        let mut traces = vec![Trace::new(); SAMPLES];
        for &page in trace.refs() {
            if let Some(sample) = traces.get_mut(usize::from(sample_of[page as usize])) {
                let pushed = sample.push(trace.pages()[page as usize]);
                pushed.expect("a sample is no longer than the trace");
            }
        }
        Samples {
            traces,
            rate,
            expected: rate * trace.refs().len() as f64,
        }
    }

    /// What a cache of `size` pages is to a sample.
    pub fn scaled(&self, size: u32) -> u32 {
        ((f64::from(size) * self.rate).round() as u32).max(1)
    }

    /// The miss ratio that so many misses of each sample stand for.
    pub fn miss_ratio(&self, misses: impl IntoIterator<Item = u64>) -> Estimate {
        let ratios = misses.into_iter().map(|misses| self.ratio(misses));
        Estimate::of(&ratios.collect::<Vec<_>>())
    }

    /// The miss ratio that so many misses of one sample stand for.
    pub fn ratio(&self, misses: u64) -> f64 {
        (misses as f64 / self.expected).min(1.0)
    }
}

/// The rate at which each sample has about `pages` of a trace's `distinct` pages.
pub fn rate_for(pages: u32, distinct: usize) -> f64 {
    (f64::from(pages) / distinct as f64).min(1.0 / SAMPLES as f64)
}

/// Spreads every bit of a page's number over the word (the finaliser of MurmurHash3).
fn hash(mut page: u64) -> u64 {
    page ^= page >> 33;
    page = page.wrapping_mul(0xff51_afd7_ed55_8ccd);
    page ^= page >> 33;
    page = page.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    page ^ page >> 33
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::stack_distance::LruCurve;
    use crate::workload::Workload;

    fn trace(text: &str) -> Trace {
        let workload: Workload = text.parse().unwrap();
        workload.accesses().map(|access| access.page).collect()
    }

    #[test]
    fn samples_share_no_page_and_have_all_references_to_theirs() {
        let trace = trace("zipf:pages=20000,requests=100000");
        let samples = Samples::of(&trace, 1.0);
        assert_eq!(samples.rate, 0.125);
        let mut pages: Vec<u64> = samples
            .traces
            .iter()
            .flat_map(|sample| sample.pages().to_vec())
            .collect();
        let count = pages.len();
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(
            (pages.len(), count),
            (trace.pages().len(), trace.pages().len()),
            "an eighth each: all"
        );
        let references: usize = samples
            .traces
            .iter()
            .map(|sample| sample.refs().len())
            .sum();
        assert_eq!(references, trace.refs().len());
        let few = Samples::of(&trace, 0.01);
        for sample in &few.traces {
            let kept: Vec<u64> = trace
                .iter()
                .filter(|page| sample.pages().contains(page))
                .collect();
            assert_eq!(sample.iter().collect::<Vec<_>>(), kept);
        }
    }

    #[test]
    fn estimates_are_as_near_as_their_error_says() {
        let trace = trace("nbg:requests=1000000");
        let exact = LruCurve::of(&trace, &mut |_| {});
        let samples = Samples::of(&trace, 0.02);
        let curves: Vec<LruCurve> = samples
            .traces
            .iter()
            .map(|sample| LruCurve::of(sample, &mut |_| {}))
            .collect();
        for size in [2000, 5000, 10_000, 20_000, 40_000] {
            let known = exact.misses(size) as f64 / exact.requests() as f64;
            let estimate = samples.miss_ratio(
                curves
                    .iter()
                    .map(|curve| curve.misses(samples.scaled(size))),
            );
            let off = (estimate.mean - known).abs();
            assert!(
                off < 4.0 * estimate.error + 0.002,
                "{size}: {estimate:?}, not {known}"
            );
            assert!(estimate.error < 0.03, "{size}: {estimate:?}");
        }
    }

    #[test]
    fn the_error_is_that_of_the_mean() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(estimate.mean, 2.5);
        assert!((estimate.error - (5.0f64 / 3.0 / 4.0).sqrt()).abs() < 1e-12);
        assert_eq!(Estimate::of(&[7.0]), Estimate::exact(7.0));
    }
}
