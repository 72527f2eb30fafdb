//! Policies × sizes over one trace, on all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use longshore_policy::Trace;
use longshore_policy::simulator::{Contender, Outcome};

use crate::contenders::Named;
use crate::error::LabError;
use crate::progress::Progress;

/// One run of one policy.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// What over.
    pub trace: &'a Trace,
    /// Which policy.
    pub contender: &'a Contender,
    /// Pages of the cache.
    pub size: u32,
}

impl Job<'_> {
    fn run(self, progress: &Progress) -> Result<Outcome, LabError> {
        let mut told = 0;
        let mut tell = |done: u64| {
            progress.simulated(done - told);
            told = done;
        };
        let outcome = self.contender.run(self.trace, self.size, &mut tell)?;
        tell(outcome.requests);
        Ok(outcome)
    }
}

/// Runs all jobs; their outcomes stand in the same order.
///
/// # Errors
/// A cache of no pages.
pub fn run(jobs: &[Job<'_>], progress: &Progress) -> Result<Vec<Outcome>, LabError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let requests = jobs.iter().map(|job| job.trace.refs().len() as u64);
    progress.simulating(requests.sum());
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(jobs.len()));
    let work = || {
        // Relaxed: only distinct numbers matter; `done` orders the outcomes.
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(at) else { break };
            progress.say(&format!("{} at {}", job.contender, job.size));
            let outcome = job.run(progress);
            done.lock()
                .expect("no run panics with the list")
                .push((at, outcome));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(jobs.len()) {
            scope.spawn(work);
        }
        work();
    });
    progress.finish();
    let mut done = done.into_inner().expect("no run panics with the list");
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Runs every policy at every size: policy by policy, size by size.
///
/// # Errors
/// A cache of no pages.
pub fn curves(
    trace: &Trace,
    policies: &[Named],
    sizes: &[u32],
    progress: &Progress,
) -> Result<Vec<Vec<Outcome>>, LabError> {
    let jobs = policies.iter().flat_map(|policy| {
        sizes.iter().map(|&size| Job {
            trace,
            contender: &policy.contender,
            size,
        })
    });
    let outcomes = run(&jobs.collect::<Vec<_>>(), progress)?;
    Ok(outcomes.chunks(sizes.len()).map(<[_]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_stand_in_the_order_of_jobs() {
        let trace: Trace = (0..3000).map(|at| at * at % 311).collect();
        let contenders: Vec<Contender> = ["lru", "fifo", "opt"]
            .map(|text| text.parse().unwrap())
            .into();
        let jobs: Vec<Job<'_>> = contenders
            .iter()
            .flat_map(|contender| (1..40).map(move |size| (contender, size)))
            .map(|(contender, size)| Job {
                trace: &trace,
                contender,
                size,
            })
            .collect();
        let outcomes = run(&jobs, &Progress::hidden()).unwrap();
        assert_eq!(outcomes.len(), jobs.len());
        for (job, outcome) in jobs.iter().zip(outcomes) {
            let alone = job.contender.run(&trace, job.size, &mut |_| {}).unwrap();
            assert_eq!(outcome, alone, "{} at {}", job.contender, job.size);
        }
    }

    #[test]
    fn no_pages_is_an_error() {
        let (trace, contender) = (Trace::new(), Contender::Opt);
        let job = Job {
            trace: &trace,
            contender: &contender,
            size: 0,
        };
        assert!(run(&[job], &Progress::hidden()).is_err());
    }
}
