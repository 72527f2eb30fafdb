//! Running a transaction again when it had to give way to another.
//!
//! # Protocol
//! Attempt `n` is followed by a pause drawn evenly from zero to `2^n` times 50 µs, at most 25 ms, so
//! that those who met do not meet again. The first retry does not pause at all: most conflicts
//! are over by then.

use crate::error::{Error, Result};
use longshore_base::Environment;
use std::time::Duration;

const PAUSE_FIRST_US: u64 = 50;
const PAUSE_MAX_US: u64 = 25_000;

/// How long it is worth trying.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) attempts_max: u32,
    /// No attempt begins later than this after the first.
    pub(crate) wait: Duration,
}

/// Calls `attempt` until it succeeds, fails for good, or the limits are reached.
pub(crate) fn run<T>(
    env: &dyn Environment,
    limits: Limits,
    pause: impl Fn(Duration),
    mut attempt: impl FnMut() -> Result<T>,
) -> Result<T> {
    let deadline = env.now() + limits.wait;
    let mut attempts = 0;
    loop {
        attempts += 1;
        match attempt() {
            Err(error)
                if error.is_retryable()
                    && attempts < limits.attempts_max
                    && env.now() < deadline =>
            {
                if attempts > 1 {
                    pause(pause_before(attempts, env.random()));
                }
            }
            Err(error) if error.is_retryable() => {
                let last = Box::new(error);
                return Err(Error::GaveUp { attempts, last });
            }
            outcome => return outcome,
        }
    }
}

fn pause_before(attempt: u32, random: u64) -> Duration {
    let bound = (PAUSE_FIRST_US << attempt.min(16)).min(PAUSE_MAX_US);
    Duration::from_micros(random % (bound + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_base::SeededEnvironment;
    use std::cell::RefCell;

    fn attempts(max: u32, outcomes: &[fn() -> Result<u32>]) -> (Result<u32>, Vec<Duration>) {
        let pauses = RefCell::new(Vec::new());
        let mut calls = outcomes.iter();
        let env = SeededEnvironment::new(1);
        let limits = Limits {
            attempts_max: max,
            wait: Duration::from_secs(1),
        };
        let outcome = run(
            &env,
            limits,
            |pause| pauses.borrow_mut().push(pause),
            || calls.next().expect("one attempt too many")(),
        );
        (outcome, pauses.into_inner())
    }

    #[test]
    fn retryable_errors_are_tried_again_with_growing_pauses() {
        let (outcome, pauses) = attempts(
            9,
            &[
                || Err(Error::Deadlock),
                || Err(Error::Deadlock),
                || Err(Error::Deadlock),
                || Ok(7),
            ],
        );
        assert_eq!(outcome.unwrap(), 7);
        assert_eq!(pauses.len(), 2);
        assert!(pauses[1] <= Duration::from_micros(PAUSE_FIRST_US << 3));
    }

    #[test]
    fn other_errors_end_it_at_once() {
        let (outcome, pauses) = attempts(9, &[|| Err(Error::other("no money"))]);
        assert_eq!(outcome.unwrap_err().to_string(), "no money");
        assert!(pauses.is_empty());
    }

    #[test]
    fn attempts_are_bounded_and_the_last_error_told() {
        let (outcome, _) = attempts(2, &[|| Err(Error::Deadlock), || Err(Error::Deadlock)]);
        let message = outcome.unwrap_err().to_string();
        assert!(
            message.starts_with("gave up after 2 attempts; the last one failed so: deadlock"),
            "{message}"
        );
    }

    #[test]
    fn pauses_are_bounded() {
        assert_eq!(pause_before(3, 0), Duration::ZERO);
        assert!(pause_before(1000, u64::MAX) <= Duration::from_micros(PAUSE_MAX_US));
    }
}
