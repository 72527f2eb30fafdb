//! What the lock manager promises its callers.

use crate::actors::{Actor, FakeLog, LONG, manager, name};

use longshore_access::Boundaries;
use longshore_base::{Lsn, StoreId, SystemEnvironment, TxnId};
use longshore_txn::{
    CommitLevel, Dependency, Escalation, LockError, LockManager, LockOptions, Mode, Wait,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

fn small() -> LockOptions {
    LockOptions {
        bytes_max: 64 << 10,
        owners_max: 16,
        search_interval: Duration::from_millis(10),
        ..LockOptions::default()
    }
}

#[test]
fn readers_share_and_writers_exclude() {
    let locks = manager(small());
    let [a, b] = [0, 1].map(|n| Actor::new(&locks, n));
    a.takes("k", Mode::READ);
    b.takes("k", Mode::READ);
    b.is_refused("k", Mode::WRITE);
    a.ends(Dependency::NONE);
    b.takes("k", Mode::WRITE);
    a.is_refused("k", Mode::READ);
}

#[test]
fn a_lock_held_is_not_asked_for_again() {
    let locks = manager(small());
    let mut owner = locks.register(3, TxnId::new(3));
    for _ in 0..10 {
        locks
            .lock(&mut owner, name("k"), Mode::WRITE, Wait::No)
            .unwrap();
        locks
            .lock(&mut owner, name("k"), Mode::READ, Wait::No)
            .unwrap();
    }
    assert_eq!(owner.locks_held(), 1);
    locks.release_all(&mut owner, Dependency::NONE);
    assert_eq!(locks.stats().acquired, 1);
}

#[test]
fn a_time_out_names_who_is_in_the_way_and_leaves_the_queue() {
    let locks = manager(small());
    let [a, b, c] = [1, 2, 3].map(|n| Actor::new(&locks, n));
    a.takes("k", Mode::READ);
    b.asks_for("k", Mode::WRITE, Duration::from_millis(300));
    b.is_waiting();
    // 3 waits behind 2 until 2 gives up.
    c.waits_for("k", Mode::READ);
    let error = b.answer().unwrap_err();
    assert!(
        matches!(error, LockError::Timeout { holder: Some(h), .. } if h == TxnId::new(1)),
        "{error:?}"
    );
    assert!(
        error.to_string().contains("transaction 1 is in the way"),
        "{error}"
    );
    c.answer().unwrap();
}

#[test]
fn the_view_of_waits_tells_who_waits_for_whom() {
    let locks = manager(small());
    let [a, b] = [1, 2].map(|n| Actor::new(&locks, n));
    a.takes("k", Mode::WRITE);
    b.waits_for("k", Mode::READ);
    let waits = locks.waits();
    assert_eq!(waits.len(), 1);
    assert_eq!(waits[0].waiter, TxnId::new(2));
    assert_eq!(waits[0].waits_for, [TxnId::new(1)]);
    assert_eq!((waits[0].name, waits[0].wanted), (name("k"), Mode::READ));
    a.ends(Dependency::NONE);
    b.answer().unwrap();
    assert!(locks.waits().is_empty());
}

#[test]
fn a_full_table_says_which_option_to_raise_and_recovers() {
    let locks = manager(LockOptions {
        escalation: Escalation::Never,
        ..small()
    });
    let mut owner = locks.register(0, TxnId::new(1));
    let before = locks.stats().bytes_used;
    let error = (0u64..)
        .find_map(|n| {
            let name = name(&n.to_string());
            locks.lock(&mut owner, name, Mode::WRITE, Wait::No).err()
        })
        .unwrap();
    assert_eq!(
        error,
        LockError::TableFull {
            bytes_max: 64 << 10
        }
    );
    assert!(error.to_string().contains("lock_bytes_max"), "{error}");
    assert!(owner.locks_held() > 1000, "{}", owner.locks_held());
    assert!(locks.stats().bytes_used <= 64 << 10);
    locks.release_all(&mut owner, Dependency::NONE);
    // Buckets keep a little for their next rush.
    assert!(locks.stats().bytes_used <= before + (16 << 10));
    locks
        .lock(&mut owner, name("again"), Mode::WRITE, Wait::No)
        .unwrap();
    locks.release_all(&mut owner, Dependency::NONE);
}

#[test]
fn who_takes_over_a_changed_key_depends_on_the_commit_that_changed_it() {
    let locks = manager(small());
    let [a, b, c] = [1, 2, 3].map(|n| Actor::new(&locks, n));
    a.takes("k", Mode::WRITE);
    a.takes("read", Mode::READ);
    b.waits_for("k", Mode::READ);
    let commit = Dependency::sync(Lsn::new(640));
    a.ends(commit);
    b.answer().unwrap();
    assert_eq!(b.ends(Dependency::NONE), commit);
    assert_eq!(locks.unlocked_for_read(name("k")), Some(commit));
    // Nothing was changed under the lock on `read`.
    assert_eq!(
        locks.unlocked_for_read(name("read")),
        Some(Dependency::NONE)
    );
    c.takes("read", Mode::READ);
    assert_eq!(c.ends(Dependency::NONE), Dependency::NONE);
}

#[test]
fn a_lax_commit_after_a_strict_one_that_is_durable_makes_nobody_sync() {
    let log = Arc::new(FakeLog(AtomicU64::new(0)));
    let env = Arc::new(SystemEnvironment::new());
    let locks = LockManager::new(small(), log.clone(), env);
    let mut owner = locks.register(0, TxnId::new(1));
    let mut commit = |lsn, level| {
        locks
            .lock(&mut owner, name("k"), Mode::WRITE, Wait::No)
            .unwrap();
        locks.release_all(&mut owner, Dependency::new(Lsn::new(lsn), level));
        locks.unlocked_for_read(name("k")).unwrap()
    };
    commit(64, CommitLevel::Sync);
    let both = commit(128, CommitLevel::Os);
    assert_eq!(
        (both.lsn(), both.level()),
        (Lsn::new(128), CommitLevel::Sync)
    );
    log.0.store(256, Ordering::Relaxed);
    let lax = commit(192, CommitLevel::Os);
    assert_eq!((lax.lsn(), lax.level()), (Lsn::new(192), CommitLevel::Os));
}

/// Buckets are shared by names: an older commit may be the later one to let go.
#[test]
fn the_position_left_behind_only_grows_and_is_kept_of_lax_commits_too() {
    let log = Arc::new(FakeLog(AtomicU64::new(1 << 20)));
    let locks = LockManager::new(small(), log, Arc::new(SystemEnvironment::new()));
    let mut owner = locks.register(0, TxnId::new(1));
    let mut commit = |lsn, level| {
        locks
            .lock(&mut owner, name("k"), Mode::WRITE, Wait::No)
            .unwrap();
        locks.release_all(&mut owner, Dependency::new(Lsn::new(lsn), level));
        let left = locks.unlocked_for_read(name("k")).unwrap();
        (left.lsn().get(), left.level())
    };
    assert_eq!(commit(192, CommitLevel::Sync), (192, CommitLevel::Sync));
    assert_eq!(commit(64, CommitLevel::Os), (192, CommitLevel::Os));
    assert_eq!(commit(128, CommitLevel::None), (192, CommitLevel::None));
    assert_eq!(commit(256, CommitLevel::None), (256, CommitLevel::None));
}

#[test]
fn a_boundary_stays_while_locked_awaited_or_not_durable() {
    let log = Arc::new(FakeLog(AtomicU64::new(0)));
    let locks = LockManager::new(small(), log.clone(), Arc::new(SystemEnvironment::new()));
    let store = StoreId::new(16);
    let may_remove = || locks.may_remove(store, b"k");
    assert!(may_remove());
    let mut owner = locks.register(0, TxnId::new(1));
    for mode in [Mode::READ, Mode::READ_GAP, Mode::INSERT] {
        locks.lock(&mut owner, name("k"), mode, Wait::No).unwrap();
        assert!(!may_remove(), "{mode:?}");
        locks.release_all(&mut owner, Dependency::NONE);
        assert!(may_remove());
    }
    locks
        .lock(&mut owner, name("k"), Mode::WRITE, Wait::No)
        .unwrap();
    locks.release_all(&mut owner, Dependency::sync(Lsn::new(64)));
    assert!(!may_remove(), "its commit is not durable");
    log.0.store(128, Ordering::Relaxed);
    assert!(may_remove());
}

/// A writer gets its turn though readers never let go all at once.
#[test]
fn a_stream_of_readers_does_not_starve_a_writer() {
    let locks = manager(small());
    let writer = Actor::new(&locks, 9);
    let readers: Vec<_> = (0..2).map(|n| Actor::new(&locks, n)).collect();
    readers[0].takes("k", Mode::READ);
    writer.waits_for("k", Mode::WRITE);
    // A reader that comes now lines up behind the writer.
    readers[1].asks_for("k", Mode::READ, LONG);
    readers[1].is_waiting();
    readers[0].ends(Dependency::NONE);
    writer.answer().unwrap();
    assert!(readers[1].is_silent());
    writer.ends(Dependency::NONE);
    readers[1].answer().unwrap();
}

/// Many threads on few keys: mutual exclusion, counted by the keys themselves.
#[test]
fn exclusion_holds_under_a_crowd() {
    let locks = manager(small());
    let cells: Arc<Vec<AtomicU64>> = Arc::new((0..3).map(|_| AtomicU64::new(0)).collect());
    let threads: Vec<_> = (0..8)
        .map(|n| {
            let (locks, cells) = (Arc::clone(&locks), Arc::clone(&cells));
            std::thread::spawn(move || crowd_member(&locks, &cells, n))
        })
        .collect();
    let done: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
    let sum: u64 = cells.iter().map(|c| c.load(Ordering::Relaxed)).sum();
    assert_eq!(sum, done);
    assert!(locks.waits().is_empty());
}

fn crowd_member(locks: &LockManager, cells: &[AtomicU64], n: usize) -> u64 {
    let mut done = 0;
    let mut seed = n as u64 + 1;
    for round in 0..400 {
        let mut owner = locks.register(n, TxnId::new(round * 16 + n as u64));
        let mut changed = Vec::new();
        for _ in 0..3 {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let key = (seed >> 33) as usize % cells.len();
            let mode = if seed >> 62 & 1 == 0 {
                Mode::READ
            } else {
                Mode::WRITE
            };
            let wait = Wait::For(Duration::from_millis(1 + (seed >> 60)));
            match locks.lock(&mut owner, name(&key.to_string()), mode, wait) {
                Ok(()) if mode == Mode::WRITE => changed.push(key),
                Ok(()) => {}
                Err(_) => break,
            }
        }
        for key in changed {
            // Not an atomic increment: only the lock keeps two from losing one.
            let value = cells[key].load(Ordering::Relaxed);
            std::thread::yield_now();
            cells[key].store(value + 1, Ordering::Relaxed);
            done += 1;
        }
        locks.release_all(&mut owner, Dependency::NONE);
    }
    done
}
