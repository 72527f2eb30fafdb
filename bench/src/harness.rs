//! Runs clients side by side for a time, and measures throughput and latency.
//!
//! # Protocol
//! All clients make their work ready, meet at the start line, and run. The phase moves on for all
//! at once; a client looks at it before each call.
//!
//! | phase   | a call is | moves on                                                        |
//! |---------|-----------|-----------------------------------------------------------------|
//! | warm-up | forgotten | after `warm_up`                                                 |
//! | measure | counted   | after `duration`; when no client has work left; at a failure    |
//! | stop    | not begun |                                                                 |
//!
//! A call that is under way when the phase changes belongs to the phase in which it began, and time
//! is measured until the last client has ended: what is counted in is counted whole.
//!
//! # Failure
//! The first client that fails stops all others; its error is the run's.

use crate::process::{processor_time, processor_time_of_thread};
use crate::store::Outcome;
use hdrhistogram::Histogram;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// How clients are run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Clients, a thread each.
    pub(crate) clients: usize,
    /// Time before anything counts.
    pub(crate) warm_up: Duration,
    /// Time that counts, unless the work is done before.
    pub(crate) duration: Duration,
    /// One call in so many is timed.
    pub(crate) sample: u64,
}

/// What a client did in one call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    /// Operations that took effect.
    pub(crate) operations: u64,
    /// Attempts that had to be given up and repeated.
    pub(crate) aborts: u64,
    /// Which kind of call it was, counted from 0, where there are several.
    pub(crate) kind: usize,
}

impl Done {
    /// So many operations at the first attempt.
    pub(crate) fn operations(operations: u64) -> Done {
        Done {
            operations,
            ..Done::default()
        }
    }
}

/// What calls of one kind yielded.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Operations that took effect.
    pub(crate) operations: u64,
    /// Attempts given up.
    pub(crate) aborts: u64,
    /// Time of a call, in nanoseconds.
    pub(crate) latency: Histogram<u64>,
}

impl Tally {
    /// Nothing yet.
    pub(crate) fn new() -> Tally {
        Tally {
            operations: 0,
            aborts: 0,
            latency: new_latencies(),
        }
    }

    /// A quantile of the latency in microseconds; `at` from 0 to 1.
    pub(crate) fn latency_us(&self, at: f64) -> f64 {
        self.latency.value_at_quantile(at) as f64 / 1000.0
    }

    /// Adds what another has counted.
    pub(crate) fn add(&mut self, part: &Tally) {
        self.operations += part.operations;
        self.aborts += part.aborts;
        self.latency
            .add(&part.latency)
            .expect("histograms of one shape");
    }
}

/// What a run yielded.
#[derive(Debug)]
pub(crate) struct Measured {
    /// Over all clients and kinds.
    pub(crate) total: Tally,
    /// By kind; those behind the last that occurred are left out.
    pub(crate) kinds: Vec<Tally>,
    /// From the end of the warm-up to the last client's end.
    pub(crate) elapsed: Duration,
    /// Processor time of the whole process meanwhile, where the system tells.
    pub(crate) processor: Option<Duration>,
    /// That of the clients alone.
    pub(crate) processor_of_clients: Option<Duration>,
}

/// No latencies yet; for up to [`LATENCY_MAX_NS`], to three digits.
pub(crate) fn new_latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3).expect("legal bounds")
}

impl Measured {
    /// What calls of a single kind yielded in a time.
    pub(crate) fn of(total: Tally, elapsed: Duration, processor: Option<Duration>) -> Measured {
        Measured {
            total,
            kinds: Vec::new(),
            elapsed,
            processor,
            processor_of_clients: None,
        }
    }

    /// Operations per second, over all clients.
    pub(crate) fn operations_per_second(&self) -> f64 {
        self.total.operations as f64 / self.elapsed.as_secs_f64()
    }

    /// Processor time per operation, background threads included.
    pub(crate) fn processor_ns_per_operation(&self) -> Option<f64> {
        self.per_operation(self.processor)
    }

    /// Processor time of the clients per operation.
    pub(crate) fn client_ns_per_operation(&self) -> Option<f64> {
        self.per_operation(self.processor_of_clients)
    }

    fn per_operation(&self, time: Option<Duration>) -> Option<f64> {
        let time = time.filter(|time| !time.is_zero())?;
        Some(time.as_nanos() as f64 / self.total.operations.max(1) as f64)
    }
}

/// The tally of a kind; those before it are made, too.
fn of_kind(kinds: &mut Vec<Tally>, kind: usize) -> &mut Tally {
    if kinds.len() <= kind {
        kinds.resize_with(kind + 1, Tally::new);
    }
    &mut kinds[kind]
}

/// Longer calls are recorded as this long: a minute.
const LATENCY_MAX_NS: u64 = 60_000_000_000;

const WARM_UP: u8 = 0;
const MEASURE: u8 = 1;
const STOP: u8 = 2;

/// The phase of a run. Relaxed throughout: a flag that is seen soon enough, and orders nothing; the
/// results are ordered by joining the threads.
struct Phase(AtomicU8);

impl Phase {
    fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    /// Moves on to `phase`, never back.
    fn advance(&self, phase: u8) {
        self.0.fetch_max(phase, Ordering::Relaxed);
    }
}

/// Runs clients as planned. `client(n)` makes the n-th client's work, on its thread; the work is
/// called again and again until the time is up or it returns `None`. `at_start` is called when the
/// warm-up is over.
///
/// # Errors
/// The first failure of a client.
pub(crate) fn run<W>(
    plan: &Plan,
    client: impl Fn(usize) -> W + Sync,
    at_start: impl FnOnce(),
) -> Outcome<Measured>
where
    W: FnMut() -> Outcome<Option<Done>>,
{
    let phase = Phase(AtomicU8::new(if plan.warm_up.is_zero() {
        MEASURE
    } else {
        WARM_UP
    }));
    let start_line = Barrier::new(plan.clients + 1);
    // Nothing is ever sent: the channel is closed when the last client is done.
    let (running, all_done) = channel::<()>();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for number in 0..plan.clients {
            let running = running.clone();
            let (phase, start_line, client) = (&phase, &start_line, &client);
            threads.push(scope.spawn(move || {
                let work = client(number);
                start_line.wait();
                work_until_stopped(phase, plan.sample, work, running)
            }));
        }
        drop(running);
        start_line.wait();
        let _ = all_done.recv_timeout(plan.warm_up);
        at_start();
        let processor_before = processor_time();
        let start = Instant::now();
        phase.advance(MEASURE);
        let _ = all_done.recv_timeout(plan.duration);
        phase.advance(STOP);

        let (mut total, mut kinds, mut failure) = (Tally::new(), Vec::new(), None);
        let mut of_clients = Some(Duration::ZERO);
        for thread in threads {
            match thread.join().expect("clients do not panic") {
                Ok(worked) => {
                    for (kind, part) in worked.kinds.iter().enumerate() {
                        of_kind(&mut kinds, kind).add(part);
                        total.add(part);
                    }
                    of_clients = of_clients.zip(worked.processor).map(|(all, one)| all + one);
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        let measured = Measured {
            total,
            kinds,
            elapsed: start.elapsed(),
            processor: processor_time()
                .zip(processor_before)
                .map(|(now, then)| now - then),
            processor_of_clients: of_clients,
        };
        failure.map_or(Ok(measured), Err)
    })
}

/// What one client did after the warm-up.
struct Worked {
    /// By kind.
    kinds: Vec<Tally>,
    /// Its processor time, where the system tells.
    processor: Option<Duration>,
}

fn work_until_stopped(
    phase: &Phase,
    sample: u64,
    mut work: impl FnMut() -> Outcome<Option<Done>>,
    _running: Sender<()>,
) -> Outcome<Worked> {
    let mut kinds = Vec::new();
    let mut calls = 0u64;
    let mut processor_before = None;
    let worked = |kinds, before: Option<Duration>| Worked {
        kinds,
        processor: processor_time_of_thread()
            .zip(before)
            .map(|(now, then)| now.saturating_sub(then)),
    };
    loop {
        let began_in = phase.get();
        if began_in == STOP {
            return Ok(worked(kinds, processor_before));
        }
        if began_in == MEASURE && processor_before.is_none() {
            processor_before = processor_time_of_thread();
        }
        let timed = calls.is_multiple_of(sample).then(Instant::now);
        calls += 1;
        let done = match work() {
            Ok(Some(done)) => done,
            Ok(None) => return Ok(worked(kinds, processor_before)),
            Err(error) => {
                phase.advance(STOP);
                return Err(error);
            }
        };
        if began_in == MEASURE {
            let time = timed.map(|begun| begun.elapsed());
            let tally = of_kind(&mut kinds, done.kind);
            tally.operations += done.operations;
            tally.aborts += done.aborts;
            if let Some(time) = time {
                tally.latency.saturating_record(time.as_nanos() as u64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    const PLAN: Plan = Plan {
        clients: 3,
        warm_up: Duration::ZERO,
        duration: Duration::from_millis(30),
        sample: 1,
    };

    fn nap() {
        std::thread::sleep(Duration::from_micros(100));
    }

    #[test]
    fn counts_what_clients_did() {
        let work = || {
            nap();
            Ok(Some(Done {
                operations: 2,
                aborts: 1,
                kind: 0,
            }))
        };
        let measured = run(&PLAN, |_| work, || ()).unwrap();
        assert_eq!(measured.total.operations, 2 * measured.total.aborts);
        assert_eq!(measured.total.latency.len(), measured.total.aborts);
        assert!(measured.total.latency_us(0.5) >= 100.0);
        assert!(measured.operations_per_second() > 0.0);
        assert!(measured.elapsed >= PLAN.duration);
    }

    #[test]
    fn kinds_are_told_apart() {
        let client = |number: usize| {
            move || {
                nap();
                Ok(Some(Done {
                    kind: 2 * number,
                    ..Done::operations(1)
                }))
            }
        };
        let measured = run(&PLAN, client, || ()).unwrap();
        let operations: Vec<u64> = measured.kinds.iter().map(|kind| kind.operations).collect();
        assert_eq!(operations.len(), 5);
        assert_eq!((operations[1], operations[3]), (0, 0));
        assert!(operations[0] > 0 && operations[2] > 0 && operations[4] > 0);
        assert_eq!(operations.iter().sum::<u64>(), measured.total.operations);
    }

    #[test]
    fn forgets_the_warm_up() {
        let (calls, at_start) = (AtomicU64::new(0), AtomicU64::new(0));
        let plan = Plan {
            warm_up: Duration::from_millis(30),
            ..PLAN
        };
        let work = || {
            nap();
            calls.fetch_add(1, SeqCst);
            Ok(Some(Done::operations(1)))
        };
        let measured = run(
            &plan,
            |_| work,
            || at_start.store(calls.load(SeqCst), SeqCst),
        )
        .unwrap();
        assert!(at_start.load(SeqCst) > 0);
        let after = calls.load(SeqCst) - at_start.load(SeqCst);
        assert!((1..=after).contains(&measured.total.operations));
    }

    #[test]
    fn ends_when_the_work_is_done() {
        let plan = Plan {
            duration: Duration::from_secs(600),
            ..PLAN
        };
        let client = |number: usize| {
            let mut left = number;
            move || {
                let more = left > 0;
                left = left.saturating_sub(1);
                Ok(more.then(|| Done::operations(1)))
            }
        };
        let measured = run(&plan, client, || ()).unwrap();
        assert_eq!(measured.total.operations, 1 + 2);
        assert!(measured.elapsed < Duration::from_secs(60));
    }

    #[test]
    fn a_failure_stops_everybody() {
        let plan = Plan {
            duration: Duration::from_secs(600),
            ..PLAN
        };
        let client = |number: usize| {
            move || {
                nap();
                if number == 1 {
                    Err("the disk is gone".into())
                } else {
                    Ok(Some(Done::default()))
                }
            }
        };
        let error = run(&plan, client, || ()).unwrap_err();
        assert_eq!(error.to_string(), "the disk is gone");
    }
}
