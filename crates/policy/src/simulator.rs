//! Runs a trace through a policy and counts: one request after the other, no threads, no pages.
//!
//! The cache is cold at first, every request counts, a page is a unit. Frames are handed out in order until all are in
//! use; from then on the victim's frame takes the new page.

use std::fmt;
use std::str::FromStr;

use longshore_base::PageId;

use crate::catalogue::Visitor;
use crate::opt;
use crate::policy::{Frame, Policy, Take};
use crate::spec::{Spec, SpecError};
use crate::trace::Trace;

/// What came of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Requests of the trace.
    pub requests: u64,
    /// Those whose page was not resident.
    pub misses: u64,
}

impl Outcome {
    /// Hits in a hundred requests; 0 for an empty trace.
    pub fn hit_percent(&self) -> f64 {
        100.0 * (self.requests - self.misses) as f64 / self.requests.max(1) as f64
    }

    /// Misses in a request; 0 for an empty trace.
    pub fn miss_ratio(&self) -> f64 {
        self.misses as f64 / self.requests.max(1) as f64
    }
}

/// What can be simulated: a policy of the catalogue, or `opt`, which must know the future.
#[derive(Clone, Debug, PartialEq)]
pub enum Contender {
    /// A policy that could run anywhere.
    Policy(Spec),
    /// The bound: evicts what is needed last.
    Opt,
}

impl Contender {
    /// Simulates it with `capacity` frames. `progress` is told how many requests are done, now and then.
    ///
    /// # Errors
    /// [`SpecError::NoFrames`] when `capacity` is zero.
    pub fn run(
        &self,
        trace: &Trace,
        capacity: u32,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Outcome, SpecError> {
        // With a frame for each page of the trace nothing is evicted; more frames would only take memory.
        let capacity = capacity.min(trace.pages().len().max(1) as u32);
        match self {
            Contender::Policy(spec) => {
                let run = Run {
                    trace,
                    capacity,
                    progress,
                };
                spec.visit(capacity, run)
            }
            Contender::Opt if capacity == 0 => Err(SpecError::NoFrames),
            Contender::Opt => Ok(Outcome {
                requests: trace.refs().len() as u64,
                misses: opt::misses(trace, capacity, progress),
            }),
        }
    }
}

impl FromStr for Contender {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Contender, SpecError> {
        match text {
            "opt" => Ok(Contender::Opt),
            _ => match text.parse() {
                Err(SpecError::UnknownPolicy { policy, known }) => Err(SpecError::UnknownPolicy {
                    policy,
                    known: format!("{known}, opt"),
                }),
                other => other.map(Contender::Policy),
            },
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contender::Policy(spec) => spec.fmt(f),
            Contender::Opt => f.write_str("opt"),
        }
    }
}

struct Run<'a> {
    trace: &'a Trace,
    capacity: u32,
    progress: &'a mut dyn FnMut(u64),
}

impl Visitor for Run<'_> {
    type Output = Outcome;

    fn visit<P: Policy + 'static>(self, mut policy: P) -> Outcome {
        run(self.trace, &mut policy, self.capacity, self.progress)
    }
}

/// Runs `trace` through `policy`, which is new and built for `capacity` frames. `progress` is told how many requests
/// are done, now and then.
///
/// # Panics
/// if the policy offers no victim.
pub fn run<P: Policy + ?Sized>(
    trace: &Trace,
    policy: &mut P,
    capacity: u32,
    progress: &mut dyn FnMut(u64),
) -> Outcome {
    let mut pool = Pool {
        frame_of: vec![NOWHERE; trace.pages().len()],
        number_in: Vec::with_capacity(trace.pages().len().min(capacity as usize)),
        capacity,
    };
    let mut misses = 0;
    let mut done = 0;
    for part in trace.refs().chunks(opt::PROGRESS) {
        progress(done);
        for &number in part {
            let frame = pool.frame_of[number as usize];
            if frame == NOWHERE {
                misses += 1;
                pool.fault(policy, number, PageId::new(trace.pages()[number as usize]));
            } else {
                policy.on_hit(frame);
            }
        }
        done += part.len() as u64;
    }
    Outcome {
        requests: done,
        misses,
    }
}

const NOWHERE: Frame = Frame::MAX;

/// Which page is where.
struct Pool {
    /// By the page's number in the trace.
    frame_of: Vec<Frame>,
    /// The inverse.
    number_in: Vec<u32>,
    capacity: u32,
}

impl Pool {
    #[inline(never)]
    fn fault<P: Policy + ?Sized>(&mut self, policy: &mut P, number: u32, page: PageId) {
        let at = policy.on_miss(page);
        let frame = if self.number_in.len() < self.capacity as usize {
            self.number_in.push(number);
            self.number_in.len() as Frame - 1
        } else {
            let victim = policy.evict(Some((page, at)), &mut |_, _| Take::Taken);
            let victim = victim.expect("a policy offers a victim while a frame is resident");
            let gone = std::mem::replace(&mut self.number_in[victim as usize], number);
            self.frame_of[gone as usize] = NOWHERE;
            victim
        };
        self.frame_of[number as usize] = frame;
        policy.on_insert(frame, page, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simulate(contender: &str, trace: &Trace, capacity: u32) -> Outcome {
        let contender: Contender = contender.parse().unwrap();
        contender.run(trace, capacity, &mut |_| {}).unwrap()
    }

    #[test]
    fn a_loop_defeats_lru_and_not_opt() {
        let trace: Trace = (0..1000).map(|at| at % 10).collect();
        assert_eq!(simulate("lru", &trace, 9).misses, 1000);
        assert_eq!(simulate("fifo", &trace, 10).misses, 10);
        assert_eq!(simulate("opt", &trace, 9).misses, 10 + 990 / 9);
        assert_eq!(simulate("opt", &trace, 9).requests, 1000);
    }

    #[test]
    fn names_and_errors_are_those_of_the_catalogue_and_opt() {
        assert_eq!("opt".parse::<Contender>().unwrap().to_string(), "opt");
        assert_eq!("lru".parse::<Contender>().unwrap().to_string(), "lru");
        let error = "nothing".parse::<Contender>().unwrap_err().to_string();
        assert!(error.ends_with(", opt"), "{error}");
        let opt = Contender::Opt.run(&Trace::new(), 0, &mut |_| {});
        assert_eq!(opt, Err(SpecError::NoFrames));
    }

    #[test]
    fn more_frames_than_pages_cost_nothing() {
        let trace: Trace = (0..1000).map(|at| at * at % 37).collect();
        for contender in ["lru", "2q", "lirs", "opt"] {
            let outcome = simulate(contender, &trace, u32::MAX);
            assert_eq!(outcome.misses, trace.pages().len() as u64, "{contender}");
        }
    }

    #[test]
    fn an_empty_trace_has_no_hits() {
        let outcome = simulate("clock", &Trace::new(), 3);
        assert_eq!((outcome.requests, outcome.misses), (0, 0));
        assert_eq!((outcome.hit_percent(), outcome.miss_ratio()), (0.0, 0.0));
    }
}
