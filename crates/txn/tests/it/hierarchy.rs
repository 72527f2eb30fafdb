//! Locks on tables and on the database beside those on rows.

use crate::actors::{Actor, FakeLog, LONG, TABLE, manager, name};
use longshore_access::Boundaries;
use longshore_base::{Lsn, StoreId, SystemEnvironment, TxnId};
use longshore_txn::{
    Dependency, LockError, LockManager, LockName, LockOptions, Mode, TableMode, Wait,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const DATABASE: StoreId = StoreId::NONE;
const OTHER: StoreId = StoreId::new(17);

fn small() -> LockOptions {
    LockOptions {
        bytes_max: 1 << 20,
        owners_max: 16,
        search_interval: Duration::from_millis(10),
        ..LockOptions::default()
    }
}

#[test]
fn a_reader_of_the_whole_table_waits_for_who_changes_a_row_and_not_for_readers() {
    let locks = manager(small());
    let [writer, reader, whole] = [1, 2, 3].map(|n| Actor::new(&locks, n));
    reader.takes("a", Mode::READ);
    whole.takes_table(TABLE, TableMode::Shared);
    whole.ends(Dependency::NONE);
    writer.takes("b", Mode::WRITE);
    whole.waits_for_table(TABLE, TableMode::Shared);
    let commit = Dependency::sync(Lsn::new(64));
    writer.ends(commit);
    whole.answer().unwrap();
    assert!(matches!(
        writer.is_refused("c", Mode::WRITE),
        LockError::Timeout { name, holder: Some(_), .. } if name.is_table()
    ));
    writer.takes("c", Mode::READ);
    assert_eq!(locks.stats().deadlocks, 0);
}

#[test]
fn a_strong_lock_excludes_what_it_must_and_covers_its_rows() {
    let locks = manager(small());
    let [a, b] = [1, 2].map(|n| Actor::new(&locks, n));
    a.takes_table(TABLE, TableMode::Exclusive);
    a.takes("k", Mode::WRITE);
    a.takes("k", Mode::READ_RANGE);
    assert_eq!(locks.stats().acquired, 0);
    b.is_refused("other", Mode::READ);
    assert_eq!(locks.unlocked_for_read(name("k")), None);
    assert!(!locks.may_remove(TABLE, b"k"));
    a.ends(Dependency::NONE);
    b.takes_table(TABLE, TableMode::SharedIntentExclusive);
    b.takes("k", Mode::READ);
    b.takes("k", Mode::WRITE);
    a.takes("other", Mode::READ);
    a.is_refused("k", Mode::READ);
    a.is_refused("other", Mode::WRITE);
    b.ends(Dependency::NONE);
    assert_eq!(locks.stats().acquired, 1, "only the row that was changed");
    a.ends(Dependency::NONE);
    assert!(locks.holds(10).is_empty());
}

#[test]
fn an_update_lock_goes_beside_readers_and_alone_among_its_kind() {
    let locks = manager(small());
    let [a, b, c] = [1, 2, 3].map(|n| Actor::new(&locks, n));
    c.takes("k", Mode::READ);
    a.takes("k", Mode::UPDATE);
    b.takes("k", Mode::READ);
    b.is_refused("k", Mode::UPDATE);
    a.waits_for("k", Mode::WRITE);
    b.ends(Dependency::NONE);
    // Who comes now does not delay the conversion.
    b.is_refused("k", Mode::READ);
    c.ends(Dependency::NONE);
    a.answer().unwrap();
    a.ends(Dependency::NONE);
    a.takes_table(TABLE, TableMode::Update);
    b.takes_table(TABLE, TableMode::Shared);
    c.is_refused_table(TABLE, TableMode::Update);
    c.is_refused("k", Mode::UPDATE);
    c.takes("k", Mode::READ);
}

/// Early release, with rows that had no lock of their own.
#[test]
fn all_who_come_after_a_table_was_changed_depend_on_the_commit() {
    let log = Arc::new(FakeLog(AtomicU64::new(0)));
    let locks = LockManager::new(small(), log.clone(), Arc::new(SystemEnvironment::new()));
    let [a, b] = [1, 2].map(|n| Actor::new(&locks, n));
    a.takes_table(TABLE, TableMode::Exclusive);
    a.takes("k", Mode::WRITE);
    let commit = Dependency::sync(Lsn::new(640));
    a.ends(commit);
    assert_eq!(locks.unlocked_for_read(name("k")), Some(commit));
    assert_eq!(locks.unlocked_for_read(name("any")), Some(commit));
    assert!(!locks.may_remove(TABLE, b"k"), "its commit is not durable");
    b.takes("any", Mode::READ);
    assert_eq!(b.ends(Dependency::NONE), commit);
    let elsewhere = LockName::of_key(OTHER, b"k");
    assert_eq!(locks.unlocked_for_read(elsewhere), Some(Dependency::NONE));
    log.0.store(1 << 20, Ordering::Relaxed);
    assert!(locks.may_remove(TABLE, b"k"));
}

#[test]
fn all_who_come_after_the_database_was_changed_depend_on_the_commit() {
    let locks = manager(small());
    let [a, b] = [1, 2].map(|n| Actor::new(&locks, n));
    b.takes("k", Mode::READ);
    a.is_refused_table(DATABASE, TableMode::Exclusive);
    b.ends(Dependency::NONE);
    a.takes_table(DATABASE, TableMode::Exclusive);
    a.takes("k", Mode::WRITE);
    b.is_refused("other", Mode::READ);
    b.is_refused_table(OTHER, TableMode::IntentShared);
    assert_eq!(locks.unlocked_for_read(name("k")), None);
    let commit = Dependency::sync(Lsn::new(640));
    a.ends(commit);
    let elsewhere = LockName::of_key(OTHER, b"k");
    assert_eq!(locks.unlocked_for_read(elsewhere), Some(commit));
    b.takes("other", Mode::READ);
    assert_eq!(b.ends(Dependency::NONE), commit);
}

#[test]
fn a_stream_of_intents_does_not_starve_who_wants_the_table() {
    let locks = manager(small());
    let [whole, first, second] = [1, 2, 3].map(|n| Actor::new(&locks, n));
    first.takes("a", Mode::READ);
    whole.waits_for_table(TABLE, TableMode::Exclusive);
    second.waits_for("b", Mode::READ);
    first.ends(Dependency::NONE);
    whole.answer().unwrap();
    assert!(second.is_silent());
    whole.ends(Dependency::NONE);
    second.answer().unwrap();
}

/// IS becomes IX ahead of who waits for the table, as it is held already.
#[test]
fn a_converter_is_not_starved_and_passes_who_waits_for_it() {
    let locks = manager(small());
    let [whole, a, b] = [1, 2, 3].map(|n| Actor::new(&locks, n));
    a.takes("a", Mode::READ);
    whole.waits_for_table(TABLE, TableMode::Exclusive);
    a.takes("a", Mode::WRITE);
    a.ends(Dependency::NONE);
    whole.answer().unwrap();
    whole.ends(Dependency::NONE);
    // A converter that must wait is served before those who came earlier and hold nothing.
    whole.takes_table(TABLE, TableMode::Shared);
    a.takes("a", Mode::READ);
    b.waits_for("b", Mode::WRITE);
    a.waits_for("a", Mode::WRITE);
    whole.ends(Dependency::NONE);
    a.answer().unwrap();
    b.answer().unwrap();
}

#[test]
fn intents_that_nobody_opposes_leave_no_trace_in_the_queues() {
    let locks = manager(small());
    let mut owner = locks.register(3, TxnId::new(7));
    for (key, mode) in [("a", Mode::READ), ("b", Mode::WRITE), ("c", Mode::READ)] {
        locks.lock(&mut owner, name(key), mode, Wait::No).unwrap();
    }
    assert_eq!(locks.stats().intents_queued, 0);
    locks.note_time();
    let holds = locks.holds(100);
    let tables: Vec<_> = holds.iter().filter(|h| h.row.is_none()).collect();
    assert_eq!(tables.len(), 2);
    assert!(tables.iter().all(|h| h.mode == Mode::INTENT_EXCLUSIVE));
    assert!(holds.iter().all(|h| h.holder == TxnId::new(7)));
    let rows: Vec<_> = holds.iter().filter(|h| h.row.is_some()).collect();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|h| h.store == TABLE));
    assert_eq!(locks.holds(1).len(), 1);
    locks.release_all(&mut owner, Dependency::NONE);
    assert!(locks.holds(100).is_empty());
}

/// More tables than an owner's slot has words for.
#[test]
fn who_uses_many_tables_has_an_intent_on_each() {
    let locks = manager(small());
    let before = locks.stats().bytes_used;
    let [mut many, mut whole] = [1, 2].map(|n| locks.register(n, TxnId::new(n as u64)));
    let stores = || (100..140).map(StoreId::new);
    for store in stores() {
        let name = LockName::of_key(store, b"k");
        locks.lock(&mut many, name, Mode::WRITE, Wait::No).unwrap();
    }
    for store in stores() {
        let refused = locks.lock_table(&mut whole, store, TableMode::Shared, Wait::No);
        assert!(refused.is_err(), "{store}");
    }
    locks.release_all(&mut many, Dependency::NONE);
    for store in stores() {
        locks
            .lock_table(&mut whole, store, TableMode::Exclusive, Wait::No)
            .unwrap();
    }
    locks.release_all(&mut whole, Dependency::NONE);
    assert!(locks.holds(100).is_empty());
    assert!(locks.stats().bytes_used <= before + (16 << 10));
}

#[test]
fn circle_9_a_row_and_a_table() {
    let locks = manager(small());
    let [a, b] = [1, 2].map(|n| Actor::new(&locks, n));
    a.takes_table(OTHER, TableMode::Exclusive);
    b.takes("k", Mode::WRITE);
    a.waits_for("k", Mode::READ);
    b.asks_for_table(OTHER, TableMode::Shared, LONG);
    assert!(matches!(
        b.answer().unwrap_err(),
        LockError::Deadlock { name } if name.is_table()
    ));
    b.ends(Dependency::NONE);
    a.answer().unwrap();
}

#[test]
fn circle_10_two_who_change_rows_both_want_to_read_the_table() {
    let locks = manager(small());
    let [a, b] = [1, 2].map(|n| Actor::new(&locks, n));
    a.takes("a", Mode::WRITE);
    b.takes("b", Mode::WRITE);
    a.waits_for_table(TABLE, TableMode::Shared);
    b.asks_for_table(TABLE, TableMode::Shared, LONG);
    assert!(matches!(
        b.answer().unwrap_err(),
        LockError::Deadlock { .. }
    ));
    b.ends(Dependency::NONE);
    a.answer().unwrap();
    assert_eq!(locks.stats().deadlocks, 1);
}

#[test]
fn a_wait_that_another_thread_cancels_ends_and_so_does_every_later_one() {
    let locks = manager(small());
    let [a, b, c] = [1, 2, 3].map(|n| Actor::new(&locks, n));
    a.takes("k", Mode::READ);
    b.takes("mine", Mode::WRITE);
    b.waits_for("k", Mode::WRITE);
    c.waits_for("k", Mode::READ);
    assert!(!locks.cancel(TxnId::new(77)));
    assert!(locks.cancel(TxnId::new(2)));
    assert_eq!(b.answer(), Err(LockError::Cancelled));
    // Nobody waits behind a request that is gone.
    c.answer().unwrap();
    b.asks_for("k", Mode::WRITE, LONG);
    assert_eq!(b.answer(), Err(LockError::Cancelled));
    // What it holds it holds until it ends.
    c.is_refused("mine", Mode::READ);
    b.ends(Dependency::NONE);
    c.takes("mine", Mode::READ);
    assert_eq!(locks.stats().cancelled, 2);
    assert!(!locks.cancel(TxnId::new(2)), "it has ended");
}

#[test]
fn ages_of_locks_and_waits_are_told() {
    let locks = manager(small());
    locks.note_time();
    let [a, b] = [1, 2].map(|n| Actor::new(&locks, n));
    a.takes("k", Mode::WRITE);
    b.waits_for("k", Mode::READ);
    std::thread::sleep(Duration::from_millis(2));
    assert!(locks.waits()[0].waited >= Duration::from_millis(2));
    assert!(
        locks
            .holds(9)
            .iter()
            .all(|h| h.age >= Duration::from_millis(2))
    );
    a.ends(Dependency::NONE);
    b.answer().unwrap();
}

/// Rows and tables at random by many threads: whoever has the table is alone with it.
#[test]
fn exclusion_holds_between_rows_and_tables_under_a_crowd() {
    let locks = manager(small());
    let cells: Arc<Vec<AtomicU64>> = Arc::new((0..4).map(|_| AtomicU64::new(0)).collect());
    let threads: Vec<_> = (0..8)
        .map(|n| {
            let (locks, cells) = (Arc::clone(&locks), Arc::clone(&cells));
            std::thread::spawn(move || crowd_member(&locks, &cells, n))
        })
        .collect();
    let done: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
    let sum: u64 = cells.iter().map(|c| c.load(Ordering::Relaxed)).sum();
    assert_eq!(sum, done);
    assert!(locks.waits().is_empty() && locks.holds(10).is_empty());
    let mut stranger = locks.register(0, TxnId::new(1 << 40));
    locks
        .lock_database(&mut stranger, TableMode::Exclusive, Wait::No)
        .unwrap();
    locks.release_all(&mut stranger, Dependency::NONE);
}

fn crowd_member(locks: &LockManager, cells: &[AtomicU64], n: usize) -> u64 {
    let mut done = 0;
    let mut seed = n as u64 + 1;
    let mut random = |below: u64| {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 33) % below
    };
    for round in 0..600 {
        let mut owner = locks.register(n, TxnId::new(round * 16 + n as u64));
        let wait = Wait::For(Duration::from_millis(1 + random(4)));
        let whole = random(8);
        let mut changed = Vec::new();
        let outcome = match whole {
            0 => locks.lock_table(&mut owner, TABLE, TableMode::Exclusive, wait),
            1 => locks.lock_table(&mut owner, TABLE, TableMode::Shared, wait),
            2 => locks.lock_database(&mut owner, TableMode::Exclusive, wait),
            3 => locks.lock_table(&mut owner, TABLE, TableMode::SharedIntentExclusive, wait),
            _ => Ok(()),
        };
        if outcome.is_ok() {
            for _ in 0..2 {
                let key = random(cells.len() as u64) as usize;
                let mode = [Mode::READ, Mode::UPDATE, Mode::WRITE][random(3) as usize];
                match locks.lock(&mut owner, name(&key.to_string()), mode, wait) {
                    Ok(()) if mode == Mode::WRITE => changed.push(key),
                    Ok(()) => {}
                    Err(_) => break,
                }
            }
        }
        for key in changed {
            // Not an atomic increment: only the locks keep two from losing one.
            let value = cells[key].load(Ordering::Relaxed);
            std::thread::yield_now();
            cells[key].store(value + 1, Ordering::Relaxed);
            done += 1;
        }
        locks.release_all(&mut owner, Dependency::NONE);
    }
    done
}
