//! The gate of a table: many transactions pass, and one that drops the table keeps all others out.
//!
//! # Protocol
//! A transaction enters on its first use of a table and leaves when it ends. Whoever drops or
//! reloads a table closes the gate: nobody enters any more, and the closer waits until those inside
//! have left. Then the table is its own, until it opens the gate again or removes it for good. Some of
//! those inside may *stay* meanwhile: the closer sees to it that they keep still.
//!
//! | from   | to     | by                  |
//! |--------|--------|---------------------|
//! | open   | closed | [`Gate::close`]     |
//! | closed | open   | dropping [`Closed`] |
//! | closed | gone   | [`Closed::remove`]  |
//!
//! # Invariants
//! I1. While the gate is closed, and once it is gone, nobody is inside but who stays.
//! I2. Entering and leaving touch one cache line, the stripe of the entering thread.
//!
//! # Ordering
//! `enter` counts itself, then reads the state; `close` sets the state, then reads the counts. All
//! four are SeqCst, so at least one of the two sees the other.
//!
//! Single reads do not enter: they ask for the gate's [`Epoch`] before and after. Each closing makes
//! another epoch, so two equal ones mean that the gate was open all the time between.

use crossbeam_utils::CachePadded;
use longshore_base::Environment;
use longshore_base::metrics::{self, thread_number};
use longshore_base::sync::atomic::{AtomicU64, Ordering, fence};
use longshore_base::sync::{Condvar, Mutex};
use std::time::Duration;

/// Stripes of the count of those inside. The model checker tries every order of one enterer's and one
/// closer's steps on a stripe; more stripes would only make it try the same again.
const STRIPES: usize = if cfg!(loom) { 1 } else { metrics::STRIPES };
/// Time between two looks at those inside.
const LOOK: Duration = Duration::from_micros(200);

const OPEN: u64 = 0;
const CLOSED: u64 = 1;
const GONE: u64 = 2;
/// The bits of the state word that hold one of the above; the others count closings.
const PHASE: u64 = 3;

/// Why nobody is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Somebody else drops or reloads the table right now.
    Busy,
    /// The table has been dropped.
    Gone,
}

/// The gate itself.
pub(crate) struct Gate {
    inside: [CachePadded<AtomicU64>; STRIPES],
    /// Phase and number of closings. Changed by the closer, read by everybody.
    state: AtomicU64,
    /// Guards nothing; those who wait for the gate to open wait here.
    turn: Mutex<()>,
    opened: Condvar,
}

/// A time during which the gate is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch(u64);

/// What `enter` gives: the stripe to leave by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entered(usize);

impl Gate {
    /// An open gate with nobody inside.
    pub(crate) fn new() -> Gate {
        Gate {
            inside: std::array::from_fn(|_| CachePadded::new(AtomicU64::new(0))),
            state: AtomicU64::new(OPEN),
            turn: Mutex::new(()),
            opened: Condvar::new(),
        }
    }

    /// Enters, waiting at most `limit` while the gate is closed.
    pub(crate) fn enter(&self, env: &dyn Environment, limit: Duration) -> Result<Entered, Refused> {
        match self.try_enter() {
            Err(Refused::Busy) if !limit.is_zero() => self.wait_to_enter(env, limit),
            outcome => outcome,
        }
    }

    #[inline]
    fn try_enter(&self) -> Result<Entered, Refused> {
        let stripe = thread_number() % STRIPES;
        // SeqCst: count, then look; pairs with `close`, which sets, then counts.
        self.inside[stripe].fetch_add(1, Ordering::SeqCst);
        store_before_load();
        match self.state.load(Ordering::SeqCst) & PHASE {
            OPEN => Ok(Entered(stripe)),
            state => {
                self.leave(Entered(stripe));
                Err(refusal(state))
            }
        }
    }

    #[cold]
    fn wait_to_enter(&self, env: &dyn Environment, limit: Duration) -> Result<Entered, Refused> {
        let deadline = env.now() + limit;
        loop {
            let outcome = self.try_enter();
            let left = deadline.saturating_sub(env.now());
            if outcome != Err(Refused::Busy) || left.is_zero() {
                return outcome;
            }
            let turn = self.turn.lock();
            // Relaxed: `turn` orders this against `Closed::drop`.
            if self.state.load(Ordering::Relaxed) & PHASE == CLOSED {
                let _ = self.opened.wait_timeout(turn, left);
            }
        }
    }

    /// Leaves; exactly once for each time entered.
    pub(crate) fn leave(&self, entered: Entered) {
        // SeqCst: whoever closes and finds zero sees all that was done inside.
        self.inside[entered.0].fetch_sub(1, Ordering::SeqCst);
    }

    /// The present epoch of an open gate.
    #[inline]
    pub(crate) fn epoch(&self) -> Result<Epoch, Refused> {
        // Acquire: pairs with `Closed::settle`; what was done behind the gate is seen.
        let state = self.state.load(Ordering::Acquire);
        match state & PHASE {
            OPEN => Ok(Epoch(state)),
            phase => Err(refusal(phase)),
        }
    }

    /// Whether the gate was open ever since `epoch` was asked for.
    #[inline]
    pub(crate) fn is_still(&self, epoch: Epoch) -> bool {
        // Acquire fence: what was read before is not read later than the state. Pairs with the fence in
        // `close`, which comes before anything that is done behind the gate.
        fence(Ordering::Acquire);
        // Relaxed: ordered by the fence.
        self.state.load(Ordering::Relaxed) == epoch.0
    }

    /// Closes the gate and waits at most `limit` until nobody is inside.
    ///
    /// # Errors
    /// The refusal, and the number of those still inside; the gate is open again.
    pub(crate) fn close(
        &self,
        env: &dyn Environment,
        limit: Duration,
    ) -> Result<Closed<'_>, (Refused, u64)> {
        self.close_beside(env, limit, || 0)
    }

    /// The same, but those may stay inside of whom `staying` tells the number: no more than are there, and it
    /// grows only by one who is.
    pub(crate) fn close_beside(
        &self,
        env: &dyn Environment,
        limit: Duration,
        staying: impl Fn() -> u64,
    ) -> Result<Closed<'_>, (Refused, u64)> {
        // SeqCst: set, then count; pairs with `try_enter`.
        self.state
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |state| {
                (state & PHASE == OPEN).then_some(state | CLOSED)
            })
            .map_err(|state| (refusal(state & PHASE), 1))?;
        // SeqCst: who sees anything of what is done behind the gate finds it closed. Pairs with the fence
        // in `is_still`.
        fence(Ordering::SeqCst);
        let closed = Closed { gate: self };
        let deadline = env.now() + limit;
        loop {
            // Asked for last: nobody enters, so who stays now was counted; if they are as many, they are the same.
            let inside = self.count();
            let others = inside - staying();
            if others == 0 {
                return Ok(closed);
            }
            if env.now() >= deadline {
                return Err((Refused::Busy, others));
            }
            let turn = self.turn.lock();
            let _ = self.opened.wait_timeout(turn, LOOK.min(limit));
        }
    }

    fn count(&self) -> u64 {
        // SeqCst: after the store of `close`. The sum may count somebody who is about to be
        // refused; it never misses anybody who was let in.
        self.inside
            .iter()
            .map(|stripe| stripe.load(Ordering::SeqCst))
            .sum()
    }
}

/// The gate is closed and nobody is inside who does not stay (I1). Opens when dropped.
pub(crate) struct Closed<'a> {
    gate: &'a Gate,
}

impl Closed<'_> {
    /// The table is gone: the gate never opens again.
    pub(crate) fn remove(self) {
        self.settle(GONE);
        std::mem::forget(self);
    }

    fn settle(&self, phase: u64) {
        let _turn = self.gate.turn.lock();
        // Relaxed: between closing and opening only we change it.
        let closings = (self.gate.state.load(Ordering::Relaxed) & !PHASE) + PHASE + 1;
        // SeqCst: what was done behind the gate is seen by who enters next.
        self.gate.state.store(closings | phase, Ordering::SeqCst);
        self.gate.opened.notify_all();
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.settle(OPEN);
    }
}

/// Between counting oneself and looking at the state. Says again to the model checker what SeqCst says: it
/// takes such operations for AcqRel ones, and knows a total order of fences only.
#[inline]
fn store_before_load() {
    if cfg!(loom) {
        // SeqCst: pairs with the fence in `close_beside`.
        fence(Ordering::SeqCst);
    }
}

fn refusal(phase: u64) -> Refused {
    match phase {
        GONE => Refused::Gone,
        _ => Refused::Busy,
    }
}

#[cfg(all(test, loom))]
mod loom_tests;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use longshore_base::SystemEnvironment;
    use std::sync::{Arc, LazyLock};

    const NOW: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(10);
    static ENV: LazyLock<SystemEnvironment> = LazyLock::new(SystemEnvironment::new);

    #[test]
    fn closing_waits_for_those_inside_and_gives_up_in_time() {
        let gate = Gate::new();
        let entered = gate.enter(&*ENV, NOW).unwrap();
        let refused = gate.close(&*ENV, Duration::from_millis(3)).err();
        assert_eq!(refused, Some((Refused::Busy, 1)));
        assert!(gate.epoch().is_ok());
        gate.leave(entered);
        let epoch = gate.epoch().unwrap();
        assert!(gate.is_still(epoch));
        let closed = gate.close(&*ENV, NOW).map_err(drop).unwrap();
        assert!(!gate.is_still(epoch));
        drop(closed);
        assert!(gate.epoch().is_ok());
        assert!(
            !gate.is_still(epoch),
            "a closing in between was not noticed"
        );
    }

    #[test]
    fn nobody_enters_a_closed_gate_and_waiters_enter_when_it_opens() {
        let gate = Arc::new(Gate::new());
        let closed = gate.close(&*ENV, NOW).map_err(drop).unwrap();
        assert_eq!(gate.enter(&*ENV, NOW), Err(Refused::Busy));
        let waiter = {
            let gate = Arc::clone(&gate);
            std::thread::spawn(move || gate.enter(&*ENV, LONG))
        };
        std::thread::sleep(Duration::from_millis(5));
        drop(closed);
        gate.leave(waiter.join().unwrap().unwrap());
        gate.close(&*ENV, NOW).map_err(drop).unwrap().remove();
        assert_eq!(gate.enter(&*ENV, LONG), Err(Refused::Gone));
    }

    #[test]
    fn closer_is_alone_inside() {
        let gate = Arc::new(Gate::new());
        let inside = Arc::new(AtomicU64::new(0));
        let visitors: Vec<_> = (0..3)
            .map(|_| {
                let (gate, inside) = (Arc::clone(&gate), Arc::clone(&inside));
                std::thread::spawn(move || {
                    for _ in 0..2000 {
                        let entered = gate.enter(&*ENV, LONG).expect("the gate opens again");
                        // SeqCst: the strictest witness; the closer's load must find nobody here.
                        inside.fetch_add(1, Ordering::SeqCst);
                        std::hint::spin_loop();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        gate.leave(entered);
                    }
                })
            })
            .collect();
        while visitors.iter().any(|visitor| !visitor.is_finished()) {
            if let Ok(_closed) = gate.close(&*ENV, Duration::from_millis(50)) {
                // SeqCst: pairs with the visitors' steps above.
                assert_eq!(inside.load(Ordering::SeqCst), 0, "gate I1");
            }
        }
        visitors.into_iter().for_each(|v| v.join().unwrap());
    }
}
