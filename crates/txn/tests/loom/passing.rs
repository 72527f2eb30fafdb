//! Waiters who are called, passed by newcomers, granted the lock at last, or give up in between.

use super::{FOR_EVER, assert_empty, explore, manager, name, raise};
use longshore_base::sync::Arc as LoomArc;
use longshore_base::sync::atomic::{AtomicU64, Ordering};
use longshore_base::{Lsn, TxnId};
use longshore_txn::{Dependency, LockError, Mode, Owner};
use loom::thread;
use std::sync::Arc;

/// Who lets go comes back at once, and again: it may pass the waiter, whose patience ends.
#[test]
fn who_comes_back_at_once_may_pass_the_waiter_and_both_get_through() {
    explore(3, || {
        let locks = manager(2);
        let value = LoomArc::new(AtomicU64::new(0));
        let register = |index| locks.register(index, TxnId::new(index as u64 + 1));
        let [mut comes_back, mut waits] = [0, 1].map(register);
        let commit = Dependency::sync(Lsn::new(64));
        let other = {
            let (locks, value) = (Arc::clone(&locks), value.clone());
            thread::spawn(move || {
                let outcome = locks.lock(&mut waits, name(b"k"), Mode::WRITE, FOR_EVER);
                outcome.unwrap();
                let seen = value.load(Ordering::Relaxed);
                let depends = waits.dependency();
                raise(&value);
                locks.release_all(&mut waits, Dependency::NONE);
                (seen, depends)
            })
        };
        for _ in 0..3 {
            let outcome = locks.lock(&mut comes_back, name(b"k"), Mode::WRITE, FOR_EVER);
            outcome.unwrap();
            raise(&value);
            locks.release_all(&mut comes_back, commit);
        }
        let (seen, depends) = other.join().unwrap();
        assert_eq!(value.load(Ordering::Relaxed), 4);
        let expected = match seen {
            0 => Dependency::NONE,
            _ => commit,
        };
        assert_eq!(depends, expected, "whoever sees a change depends on it");
        assert_empty(&locks, &[b"k"]);
    });
}

/// The first waiter is cancelled as it is called and passed: the second gets the lock all the same.
#[test]
fn a_waiter_that_is_called_and_gives_up_leaves_its_turn_to_the_next() {
    explore(2, || {
        let locks = manager(3);
        let value = LoomArc::new(AtomicU64::new(0));
        let register = |index| locks.register(index, TxnId::new(index as u64 + 1));
        let [mut holder, first, second] = [0, 1, 2].map(register);
        locks
            .lock(&mut holder, name(b"k"), Mode::WRITE, FOR_EVER)
            .unwrap();
        let waits = |mut owner: Owner| {
            let (locks, value) = (Arc::clone(&locks), value.clone());
            thread::spawn(move || {
                let outcome = locks.lock(&mut owner, name(b"k"), Mode::WRITE, FOR_EVER);
                if outcome.is_ok() {
                    raise(&value);
                }
                locks.release_all(&mut owner, Dependency::NONE);
                outcome
            })
        };
        let (first, second) = (waits(first), waits(second));
        locks.release_all(&mut holder, Dependency::NONE);
        locks.cancel(TxnId::new(2));
        let passes = locks
            .try_lock(&mut holder, name(b"k"), Mode::WRITE)
            .unwrap();
        if passes {
            raise(&value);
        }
        locks.release_all(&mut holder, Dependency::NONE);
        let first = first.join().unwrap();
        second.join().unwrap().unwrap();
        assert!(matches!(first, Ok(()) | Err(LockError::Cancelled)));
        let done = 1 + u64::from(first.is_ok()) + u64::from(passes);
        assert_eq!(value.load(Ordering::Relaxed), done);
        assert_empty(&locks, &[b"k"]);
    });
}
