//! Every interleaving of entering, reading without entering, and closing, under loom.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p longshore --lib --release gate::loom_tests`
//!
//! The table behind the gate is two of the checker's atomics, so that it also tries every order in which
//! their stores may be seen. Closing gives up at once instead of looking again: the checker has no clock.

use super::{Closed, Gate, Refused};
use longshore_base::SeededEnvironment;
use longshore_base::sync::atomic::{AtomicU64, Ordering::Relaxed};
use longshore_base::sync::{Arc, Mutex};
use loom::thread;
use std::time::Duration;

const NOW: Duration = Duration::ZERO;
const LONG: Duration = Duration::from_secs(1 << 30);

struct Guarded {
    gate: Gate,
    env: SeededEnvironment,
    table: [AtomicU64; 2],
}

impl Guarded {
    fn new() -> Arc<Guarded> {
        Arc::new(Guarded {
            gate: Gate::new(),
            env: SeededEnvironment::new(1),
            table: Default::default(),
        })
    }

    fn close(&self) -> Option<Closed<'_>> {
        self.gate.close(&self.env, NOW).ok()
    }

    /// What only the gate keeps apart: a lost raise, or a stale value, would show.
    fn raise(&self) {
        for value in &self.table {
            value.store(value.load(Relaxed) + 1, Relaxed);
        }
    }

    fn values(&self) -> [u64; 2] {
        [self.table[0].load(Relaxed), self.table[1].load(Relaxed)]
    }
}

fn explore(test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(test);
}

/// I1, with what was done inside seen behind the gate and the other way round.
#[test]
fn nobody_is_inside_while_the_gate_is_closed() {
    explore(|| {
        let guarded = Guarded::new();
        let visitor = {
            let guarded = guarded.clone();
            thread::spawn(move || {
                let Ok(entered) = guarded.gate.enter(&guarded.env, NOW) else {
                    return 0;
                };
                guarded.raise();
                guarded.gate.leave(entered);
                1
            })
        };
        let closed = guarded.close().map(|_closed| guarded.raise());
        let raised = visitor.join().unwrap() + u64::from(closed.is_some());
        assert_eq!(guarded.values(), [raised; 2], "gate I1");
    });
}

/// Two closers, one at a time, and one who enters: the refused closer opens nothing.
#[test]
fn one_of_two_closers_is_refused_or_waits_its_turn() {
    explore(|| {
        let guarded = Guarded::new();
        let close = |guarded: Arc<Guarded>| {
            move || {
                let closed = guarded.close();
                u64::from(closed.map(|_closed| guarded.raise()).is_some())
            }
        };
        let other = thread::spawn(close(guarded.clone()));
        let mut raised = close(guarded.clone())();
        raised += other.join().unwrap();
        assert_eq!(guarded.values(), [raised; 2], "gate I1");
        assert!(guarded.gate.enter(&guarded.env, NOW).is_ok(), "it is open");
    });
}

/// One stays inside and then leaves, while another is inside: the closer never takes that one for it.
#[test]
fn nobody_is_taken_for_one_who_stays() {
    explore(|| {
        let guarded = Guarded::new();
        let staying = Arc::new(Mutex::new(1));
        let stays = guarded.gate.enter(&guarded.env, NOW).expect("it is open");
        let visitor = {
            let guarded = guarded.clone();
            thread::spawn(move || {
                let Ok(entered) = guarded.gate.enter(&guarded.env, NOW) else {
                    return 0;
                };
                guarded.raise();
                guarded.gate.leave(entered);
                1
            })
        };
        let leaver = {
            let (guarded, staying) = (guarded.clone(), staying.clone());
            thread::spawn(move || {
                *staying.lock() -= 1;
                guarded.gate.leave(stays);
            })
        };
        let inside = || *staying.lock();
        let closed = guarded.gate.close_beside(&guarded.env, NOW, inside);
        let raised = u64::from(closed.map(|_closed| guarded.raise()).is_ok());
        let raised = raised + visitor.join().unwrap();
        leaver.join().unwrap();
        assert_eq!(guarded.values(), [raised; 2], "gate I1");
    });
}

/// A reader that never enters finds out that somebody was at the table meanwhile.
#[test]
fn a_closing_between_two_reads_is_noticed() {
    explore(|| {
        let guarded = Guarded::new();
        let reader = {
            let guarded = guarded.clone();
            thread::spawn(move || {
                let epoch = guarded.gate.epoch();
                let [first, second] = guarded.values();
                if epoch.is_ok_and(|epoch| guarded.gate.is_still(epoch)) {
                    assert_eq!(first, second, "gate: a closing was not noticed");
                }
            })
        };
        if let Some(_closed) = guarded.close() {
            guarded.raise();
        }
        reader.join().unwrap();
    });
}

/// Who waits for the gate to open is woken: a lost call would be a deadlock here, as nothing times out.
#[test]
fn a_waiter_enters_when_the_gate_opens_and_is_refused_when_it_is_gone() {
    for is_dropped in [false, true] {
        explore(move || {
            let guarded = Guarded::new();
            let closed = guarded.close().expect("nobody is inside");
            let waiter = {
                let guarded = guarded.clone();
                thread::spawn(move || guarded.gate.enter(&guarded.env, LONG))
            };
            match is_dropped {
                true => closed.remove(),
                false => drop(closed),
            }
            match waiter.join().unwrap() {
                Ok(entered) => {
                    assert!(!is_dropped);
                    guarded.gate.leave(entered);
                    assert!(guarded.close().is_some(), "everybody has left");
                }
                Err(refused) => assert!(is_dropped && refused == Refused::Gone),
            }
        });
    }
}
