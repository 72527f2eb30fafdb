//! Where threads sleep until a latch or a page is to be had.
//!
//! # Protocol
//! A waiter parks under a key, with a closure that says, and records where it must, that it still has
//! to wait. Whoever ends the cause of the wait changes the shared word first and calls `unpark` with the
//! same key then. Keys share stripes, so a wake-up may be meant for somebody else: waiters always look
//! again.
//!
//! # Ordering
//! The closure runs with the stripe locked, and `unpark` locks the stripe after its change. So either the
//! closure sees the change, or the waiter sleeps before `unpark` counts the sleepers. No wake-up is
//! lost; time-outs are there for those who will not wait for ever.

use crate::sync::{Condvar, Mutex};
use crossbeam_utils::CachePadded;
use std::time::Duration;

const STRIPES: usize = if cfg!(loom) { 1 } else { 32 };

/// How a call of `park` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parked {
    /// There was no need to sleep.
    Awake,
    /// Woken, perhaps on behalf of another key.
    Woken,
    /// Nobody came in time.
    TimedOut,
}

/// Threads asleep, each under a key.
pub struct ParkingLot {
    stripes: Box<[CachePadded<Stripe>]>,
}

#[derive(Default)]
struct Stripe {
    sleepers: Mutex<usize>,
    wake_up: Condvar,
}

impl Default for ParkingLot {
    fn default() -> ParkingLot {
        ParkingLot::new()
    }
}

impl ParkingLot {
    /// A lot where nobody sleeps.
    pub fn new() -> ParkingLot {
        ParkingLot {
            stripes: (0..STRIPES).map(|_| CachePadded::default()).collect(),
        }
    }

    /// Sleeps for at most `limit` if `must_wait` still says so.
    pub fn park(&self, key: u64, limit: Duration, must_wait: impl FnOnce() -> bool) -> Parked {
        let stripe = self.stripe(key);
        let mut sleepers = stripe.sleepers.lock();
        if !must_wait() {
            return Parked::Awake;
        }
        *sleepers += 1;
        let (mut sleepers, timed_out) = stripe.wake_up.wait_timeout(sleepers, limit);
        *sleepers -= 1;
        if timed_out {
            Parked::TimedOut
        } else {
            Parked::Woken
        }
    }

    /// Wakes all who are parked under `key`.
    pub fn unpark(&self, key: u64) {
        let stripe = self.stripe(key);
        let sleepers = *stripe.sleepers.lock();
        if sleepers > 0 {
            stripe.wake_up.notify_all();
        }
    }

    fn stripe(&self, key: u64) -> &Stripe {
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        &self.stripes[hash as usize % STRIPES]
    }
}

/// The time that one call may spend waiting, however often it has to.
///
/// Counts time slept as well as time passed on the clock, so that it ends under a clock that stands. It begins with
/// the first wait: a call that never waits asks no clock.
pub struct Patience {
    started: Option<Duration>,
    slept: Duration,
    limit: Duration,
}

impl Patience {
    /// The longest sleep before the waiter looks for itself.
    const SLICE: Duration = Duration::from_millis(50);

    /// Patience that ends `limit` after the first wait.
    pub fn new(limit: Duration) -> Patience {
        Patience {
            started: None,
            slept: Duration::ZERO,
            limit,
        }
    }

    /// How long to sleep next; `None` when there is no time left. The first call begins the time.
    pub fn slice(&mut self, now: Duration) -> Option<Duration> {
        self.started.get_or_insert(now);
        let left = self.limit.saturating_sub(self.waited(now));
        (!left.is_zero()).then(|| left.min(Patience::SLICE))
    }

    /// Notes that a whole slice was slept.
    pub fn slept(&mut self, slice: Duration) {
        self.slept += slice;
    }

    /// The time waited so far.
    pub fn waited(&self, now: Duration) -> Duration {
        let started = self.started.unwrap_or(now);
        now.saturating_sub(started).max(self.slept)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    #[test]
    fn parks_only_while_it_must_and_wakes_when_told() {
        let lot = ParkingLot::new();
        assert_eq!(lot.park(1, Duration::MAX, || false), Parked::Awake);
        let slice = Duration::from_millis(1);
        assert_eq!(lot.park(1, slice, || true), Parked::TimedOut);
        let open = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while lot.park(7, Duration::from_secs(60), || !open.load(SeqCst)) != Parked::Awake {
                }
            });
            open.store(true, SeqCst);
            lot.unpark(7);
        });
    }

    #[test]
    fn patience_ends_under_a_clock_that_stands() {
        let mut patience = Patience::new(Duration::from_millis(120));
        let mut slices = 0;
        while let Some(slice) = patience.slice(Duration::ZERO) {
            patience.slept(slice);
            slices += 1;
        }
        assert_eq!(slices, 3);
        assert_eq!(patience.waited(Duration::ZERO), Duration::from_millis(120));
    }
}
