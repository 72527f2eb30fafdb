//! Every interleaving of small runs of the lock manager: grant, call, pass, wait, release, time-out, early
//! release.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p longshore-txn --test loom --release`
//!
//! A time-out is played by an owner that withdraws its request instead of sleeping: the model checker
//! has no clock, and what matters is which comes first, the withdrawal or the grant.

#![cfg(loom)]

mod passing;
mod tables;

use longshore_base::sync::Arc as LoomArc;
use longshore_base::sync::atomic::{AtomicU64, Ordering, fence};
use longshore_base::{Durability, DurabilityLost, Lsn, SeededEnvironment, StoreId, TxnId};
use longshore_txn::{
    Dependency, Escalation, GapCheck, LockError, LockManager, LockName, LockOptions, Mode, Owner,
    TableMode, Wait,
};
use loom::thread;
use std::sync::Arc;
use std::time::Duration;

struct NoLog;

impl Durability for NoLog {
    fn is_durable(&self, lsn: Lsn) -> bool {
        lsn == Lsn::ZERO
    }

    fn make_durable(&self, _: Lsn) -> Result<(), DurabilityLost> {
        Ok(())
    }
}

fn manager(owners_max: usize) -> Arc<LockManager> {
    let options = LockOptions {
        bytes_max: 1 << 20,
        owners_max,
        search_interval: Duration::from_secs(1),
        ..LockOptions::default()
    };
    let env = Arc::new(SeededEnvironment::new(1));
    LockManager::new(options, Arc::new(NoLog), env)
}

fn name(key: &[u8]) -> LockName {
    LockName::of_key(StoreId::new(16), key)
}

fn explore(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(test);
}

const FOR_EVER: Wait = Wait::For(Duration::from_secs(1 << 30));

/// Nobody is left in the table: a stranger gets each lock at once.
fn assert_empty(locks: &LockManager, keys: &[&[u8]]) {
    let mut stranger = locks.register(0, TxnId::new(99));
    for key in keys {
        assert!(
            locks
                .try_lock(&mut stranger, name(key), Mode::WRITE)
                .unwrap()
        );
    }
    locks.release_all(&mut stranger, Dependency::NONE);
}

/// Reads and writes that only the lock keeps apart: a stale value or a lost raise would show.
fn raise(value: &AtomicU64) {
    let before = value.load(Ordering::Relaxed);
    value.store(before + 1, Ordering::Relaxed);
}

#[test]
fn a_waiter_is_granted_and_sees_what_the_holder_did() {
    explore(3, || {
        let locks = manager(2);
        let value = LoomArc::new(AtomicU64::new(0));
        let work = |index: usize| {
            let (locks, value) = (Arc::clone(&locks), value.clone());
            move || {
                let mut owner = locks.register(index, TxnId::new(index as u64 + 1));
                locks
                    .lock(&mut owner, name(b"k"), Mode::WRITE, FOR_EVER)
                    .unwrap();
                raise(&value);
                locks.release_all(&mut owner, Dependency::NONE);
            }
        };
        let other = thread::spawn(work(1));
        work(0)();
        other.join().unwrap();
        assert_eq!(value.load(Ordering::Relaxed), 2);
        assert_empty(&locks, &[b"k"]);
    });
}

#[test]
fn a_time_out_races_the_grant_and_the_lock_is_never_lost() {
    explore(3, || {
        let locks = manager(2);
        let value = LoomArc::new(AtomicU64::new(0));
        let other = {
            let (locks, value) = (Arc::clone(&locks), value.clone());
            thread::spawn(move || {
                let mut owner = locks.register(1, TxnId::new(2));
                let granted = locks.lock_or_leave(&mut owner, name(b"k"), Mode::WRITE);
                if granted {
                    raise(&value);
                }
                locks.release_all(&mut owner, Dependency::NONE);
                u64::from(granted)
            })
        };
        let mut owner = locks.register(0, TxnId::new(1));
        locks
            .lock(&mut owner, name(b"k"), Mode::WRITE, FOR_EVER)
            .unwrap();
        raise(&value);
        locks.release_all(&mut owner, Dependency::NONE);
        let granted = other.join().unwrap();
        assert_eq!(value.load(Ordering::Relaxed), 1 + granted);
        assert_empty(&locks, &[b"k"]);
    });
}

/// A reader lines up behind a writer that gives up: nobody else would wake it.
#[test]
fn who_leaves_the_queue_lets_the_next_pass() {
    explore(2, || {
        let locks = manager(3);
        let mut holder = locks.register(0, TxnId::new(1));
        assert!(locks.try_lock(&mut holder, name(b"k"), Mode::READ).unwrap());
        let writer = {
            let locks = Arc::clone(&locks);
            thread::spawn(move || {
                let mut owner = locks.register(1, TxnId::new(2));
                assert!(!locks.lock_or_leave(&mut owner, name(b"k"), Mode::WRITE));
            })
        };
        let mut reader = locks.register(2, TxnId::new(3));
        // The holder does not let go before this returns.
        locks
            .lock(&mut reader, name(b"k"), Mode::READ, FOR_EVER)
            .unwrap();
        writer.join().unwrap();
        locks.release_all(&mut reader, Dependency::NONE);
        locks.release_all(&mut holder, Dependency::NONE);
        assert_empty(&locks, &[b"k"]);
    });
}

/// Both close the circle at once: it is found, and one of the two gets through.
#[test]
fn a_circle_that_closes_on_both_sides_at_once_is_broken() {
    explore(2, || {
        let locks = manager(2);
        let cross = |index: usize, first: &'static [u8], second: &'static [u8]| {
            let locks = Arc::clone(&locks);
            move || {
                let mut owner = locks.register(index, TxnId::new(index as u64 + 1));
                let done = locks
                    .lock(&mut owner, name(first), Mode::WRITE, FOR_EVER)
                    .is_ok()
                    && locks
                        .lock(&mut owner, name(second), Mode::WRITE, FOR_EVER)
                        .is_ok();
                locks.release_all(&mut owner, Dependency::NONE);
                done
            }
        };
        let other = thread::spawn(cross(1, b"b", b"a"));
        let old = cross(0, b"a", b"b")();
        let young = other.join().unwrap();
        assert!(old, "the older one is never the victim");
        let _ = young;
        assert_empty(&locks, &[b"a", b"b"]);
    });
}

/// A circle is broken although a path that looked like another one is over while it is looked at.
#[test]
fn a_wait_that_ends_under_the_search_hides_no_circle() {
    explore(2, || {
        let locks = manager(3);
        let register = |index| locks.register(index, TxnId::new(index as u64 + 1));
        let [mut old, mut young, mut guest] = [0, 1, 2].map(register);
        for (owner, key, mode) in [
            (&mut old, b"a", Mode::WRITE),
            (&mut young, b"b", Mode::READ),
            (&mut guest, b"b", Mode::READ),
        ] {
            locks.lock(owner, name(key), mode, Wait::No).unwrap();
        }
        let crosses = |mut owner: Owner, key: &'static [u8], mode: Mode| {
            let locks = Arc::clone(&locks);
            thread::spawn(move || {
                let outcome = locks.lock(&mut owner, name(key), mode, FOR_EVER);
                locks.release_all(&mut owner, Dependency::NONE);
                outcome
            })
        };
        let young = crosses(young, b"a", Mode::READ);
        let old = crosses(old, b"b", Mode::WRITE);
        let _ = locks.lock_or_leave(&mut guest, name(b"a"), Mode::READ);
        locks.release_all(&mut guest, Dependency::NONE);
        assert!(young.join().unwrap().is_err(), "one of the two had to fall");
        let old = old.join().unwrap();
        assert!(old.is_ok(), "the oldest is never the victim");
        assert_empty(&locks, &[b"a", b"b"]);
    });
}

/// A read without a lock that sees a change knows the commit that made it.
#[test]
fn a_glance_that_finds_the_lock_gone_finds_the_commit() {
    explore(3, || {
        let locks = manager(1);
        let version = LoomArc::new(AtomicU64::new(0));
        let row = LoomArc::new(AtomicU64::new(0));
        let commit = Dependency::sync(Lsn::new(64));
        let writer = {
            let (locks, version, row) = (Arc::clone(&locks), version.clone(), row.clone());
            thread::spawn(move || {
                let mut owner = locks.register(0, TxnId::new(1));
                assert!(locks.try_lock(&mut owner, name(b"k"), Mode::WRITE).unwrap());
                version.fetch_add(1, Ordering::AcqRel);
                // As the pool does: the bytes change after the version that says so.
                fence(Ordering::Release);
                row.store(1, Ordering::Relaxed);
                version.fetch_add(1, Ordering::Release);
                locks.release_all(&mut owner, commit);
            })
        };
        let before = version.load(Ordering::Acquire);
        let seen = row.load(Ordering::Relaxed);
        let unlocked = locks.unlocked_for_read(name(b"k"));
        fence(Ordering::Acquire);
        let after = version.load(Ordering::Relaxed);
        if before == after
            && before % 2 == 0
            && seen == 1
            && let Some(dependency) = unlocked
        {
            assert_eq!(dependency, commit);
        }
        writer.join().unwrap();
    });
}

/// An insert looks at the gap under the page's latch; a scan locks it and then looks at the page.
#[test]
fn an_insert_and_a_scan_do_not_miss_each_other() {
    explore(3, || {
        let locks = manager(2);
        let version = LoomArc::new(AtomicU64::new(0));
        let rows = LoomArc::new(AtomicU64::new(0));
        let inserter = {
            let (locks, version, rows) = (Arc::clone(&locks), version.clone(), rows.clone());
            thread::spawn(move || {
                let owner = locks.register(0, TxnId::new(1));
                version.fetch_add(1, Ordering::AcqRel);
                // As the pool does: the bytes change after the version that says so.
                fence(Ordering::Release);
                let inserts = locks.check_gap(&owner, name(b"k")) == GapCheck::Free;
                if inserts {
                    rows.store(1, Ordering::Relaxed);
                }
                version.fetch_add(1, Ordering::Release);
                inserts
            })
        };
        let mut owner = locks.register(1, TxnId::new(2));
        let before = version.load(Ordering::Acquire);
        let seen = rows.load(Ordering::Relaxed);
        assert!(
            locks
                .try_lock(&mut owner, name(b"k"), Mode::READ_GAP)
                .unwrap()
        );
        locks.publish_locks();
        fence(Ordering::Acquire);
        let is_valid = before % 2 == 0 && version.load(Ordering::Relaxed) == before;
        let inserted = inserter.join().unwrap();
        if is_valid && seen == 0 {
            assert!(
                !inserted,
                "a phantom: the scan read an empty gap and holds it"
            );
        }
        locks.release_all(&mut owner, Dependency::NONE);
    });
}

const TABLE: StoreId = StoreId::new(16);

/// Nobody has anything: a stranger gets the whole database at once.
fn assert_nobody_is_left(locks: &LockManager) {
    let mut stranger = locks.register(0, TxnId::new(99));
    locks
        .lock_database(&mut stranger, TableMode::Exclusive, Wait::No)
        .unwrap();
    locks.release_all(&mut stranger, Dependency::NONE);
}

/// A cancellation meets a wait that begins, that lasts or that is granted.
#[test]
fn a_cancellation_races_the_grant_and_the_lock_is_never_lost() {
    explore(2, || {
        let locks = manager(2);
        let value = LoomArc::new(AtomicU64::new(0));
        let mut holder = locks.register(0, TxnId::new(1));
        assert!(
            locks
                .try_lock(&mut holder, name(b"k"), Mode::WRITE)
                .unwrap()
        );
        let mut waiter = locks.register(1, TxnId::new(2));
        let other = {
            let (locks, value) = (Arc::clone(&locks), value.clone());
            thread::spawn(move || {
                let outcome = locks.lock(&mut waiter, name(b"k"), Mode::WRITE, FOR_EVER);
                if outcome.is_ok() {
                    raise(&value);
                }
                locks.release_all(&mut waiter, Dependency::NONE);
                u64::from(outcome.is_ok())
            })
        };
        raise(&value);
        locks.cancel(TxnId::new(2));
        locks.release_all(&mut holder, Dependency::NONE);
        let done = other.join().unwrap();
        assert_eq!(value.load(Ordering::Relaxed), 1 + done);
        assert_nobody_is_left(&locks);
    });
}

/// The holder lets go only after the wait has ended, so a cancellation that is lost hangs.
#[test]
fn a_cancellation_is_seen_before_the_wait_or_during_it() {
    explore(3, || {
        let locks = manager(2);
        let mut holder = locks.register(0, TxnId::new(1));
        assert!(
            locks
                .try_lock(&mut holder, name(b"k"), Mode::WRITE)
                .unwrap()
        );
        let mut waiter = locks.register(1, TxnId::new(2));
        let other = {
            let locks = Arc::clone(&locks);
            thread::spawn(move || {
                let outcome = locks.lock(&mut waiter, name(b"k"), Mode::WRITE, FOR_EVER);
                locks.release_all(&mut waiter, Dependency::NONE);
                outcome
            })
        };
        assert!(locks.cancel(TxnId::new(2)));
        assert_eq!(other.join().unwrap(), Err(LockError::Cancelled));
        locks.release_all(&mut holder, Dependency::NONE);
    });
}

/// One of two readers wants to change the row and gives up, as the other lets go and comes back to
/// change it: whoever gives up still holds what it held. The mark is stored without a load before it, which
/// would hide the looks at it from the checker (see the crate's README).
#[test]
fn a_conversion_that_gives_up_races_its_grant_and_keeps_what_it_held() {
    explore(3, || {
        let locks = manager(2);
        let value = LoomArc::new(AtomicU64::new(0));
        let register = |index| {
            let mut owner = locks.register(index, TxnId::new(index as u64 + 1));
            assert!(locks.try_lock(&mut owner, name(b"k"), Mode::READ).unwrap());
            owner
        };
        let (mut stays, mut goes) = (register(0), register(1));
        let mark = LoomArc::new(AtomicU64::new(0));
        let other = {
            let (locks, value, mark) = (Arc::clone(&locks), value.clone(), mark.clone());
            thread::spawn(move || {
                locks.release_all(&mut goes, Dependency::NONE);
                locks
                    .lock(&mut goes, name(b"k"), Mode::WRITE, FOR_EVER)
                    .unwrap();
                mark.store(1, Ordering::Relaxed);
                raise(&value);
                locks.release_all(&mut goes, Dependency::NONE);
            })
        };
        let granted = locks.lock_or_leave(&mut stays, name(b"k"), Mode::WRITE);
        let seen = mark.load(Ordering::Relaxed);
        if granted {
            raise(&value);
        }
        assert_eq!(mark.load(Ordering::Relaxed), seen, "it holds the row");
        locks.release_all(&mut stays, Dependency::NONE);
        other.join().unwrap();
        assert_eq!(value.load(Ordering::Relaxed), 1 + u64::from(granted));
        assert_empty(&locks, &[b"k"]);
    });
}

/// A conversion that waits is cancelled as it is granted.
#[test]
fn a_cancellation_races_the_grant_of_a_conversion() {
    explore(2, || {
        let locks = manager(2);
        let value = LoomArc::new(AtomicU64::new(0));
        let [mut holder, mut converter] =
            [0, 1].map(|index| locks.register(index, TxnId::new(index as u64 + 1)));
        for (owner, mode) in [(&mut holder, Mode::READ), (&mut converter, Mode::UPDATE)] {
            assert!(locks.try_lock(owner, name(b"k"), mode).unwrap());
        }
        let other = {
            let (locks, value) = (Arc::clone(&locks), value.clone());
            thread::spawn(move || {
                let outcome = locks.lock(&mut converter, name(b"k"), Mode::WRITE, FOR_EVER);
                match &outcome {
                    Ok(()) => raise(&value),
                    Err(error) => assert_eq!(*error, LockError::Cancelled),
                }
                locks.release_all(&mut converter, Dependency::NONE);
                u64::from(outcome.is_ok())
            })
        };
        assert!(locks.cancel(TxnId::new(2)));
        assert_eq!(value.load(Ordering::Relaxed), 0, "it is being read");
        locks.release_all(&mut holder, Dependency::NONE);
        let done = other.join().unwrap();
        assert_eq!(value.load(Ordering::Relaxed), done);
        assert_empty(&locks, &[b"k"]);
    });
}
