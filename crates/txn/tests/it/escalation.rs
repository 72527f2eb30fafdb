//! Many locks on rows traded for one on their table.

use crate::actors::{Actor, LONG, TABLE, manager, name};
use longshore_base::{Lsn, StoreId, TxnId};
use longshore_txn::{
    Dependency, Escalation, LockError, LockHold, LockManager, LockName, LockOptions, Mode, Owner,
    TableMode, Wait,
};
use std::sync::Arc;
use std::time::Duration;

fn options(rows: u32) -> LockOptions {
    LockOptions {
        bytes_max: 64 << 10,
        owners_max: 16,
        search_interval: Duration::from_millis(10),
        escalation: Escalation::At(rows),
    }
}

fn take(locks: &LockManager, owner: &mut Owner, from: usize, to: usize, mode: Mode) {
    for n in from..to {
        let name = name(&n.to_string());
        locks.lock(owner, name, mode, Wait::No).unwrap();
    }
}

#[test]
fn a_writer_of_many_rows_gets_the_table_and_leaves_its_commit_there() {
    let locks = manager(options(100));
    let mut owner = locks.register(0, TxnId::new(1));
    take(&locks, &mut owner, 0, 99, Mode::WRITE);
    assert_eq!((owner.locks_held(), locks.stats().escalations), (99, 0));
    take(&locks, &mut owner, 99, 100, Mode::READ);
    assert_eq!((owner.locks_held(), locks.stats().escalations), (0, 1));
    take(&locks, &mut owner, 100, 5000, Mode::WRITE);
    assert_eq!(owner.locks_held(), 0);
    let other = Actor::new(&locks, 1);
    other.is_refused("5", Mode::READ);
    assert_eq!(locks.unlocked_for_read(name("5")), None);
    let commit = Dependency::sync(Lsn::new(640));
    locks.release_all(&mut owner, commit);
    // The rows have no bucket that tells of the commit; the table has.
    assert_eq!(locks.unlocked_for_read(name("5")), Some(commit));
    other.takes("5", Mode::READ);
    assert_eq!(other.ends(Dependency::NONE), commit);
}

#[test]
fn a_reader_of_many_rows_gets_the_table_beside_other_readers() {
    let locks = manager(options(100));
    let other = Actor::new(&locks, 1);
    other.takes("5", Mode::READ);
    let mut owner = locks.register(0, TxnId::new(1));
    take(&locks, &mut owner, 0, 200, Mode::READ_RANGE);
    assert_eq!((owner.locks_held(), locks.stats().escalations), (0, 1));
    other.is_refused("7", Mode::WRITE);
    assert!(locks.unlocked_for_read(name("7")).is_some());
    other.ends(Dependency::NONE);
    // It changes a row after all, and then many.
    take(&locks, &mut owner, 0, 1, Mode::WRITE);
    assert_eq!(owner.locks_held(), 1);
    other.takes("7", Mode::READ);
    take(&locks, &mut owner, 10, 150, Mode::WRITE);
    assert_eq!(locks.stats().escalations, 1, "a reader is in the way");
    other.ends(Dependency::NONE);
    take(&locks, &mut owner, 150, 300, Mode::WRITE);
    assert_eq!((owner.locks_held(), locks.stats().escalations), (0, 2));
    locks.release_all(&mut owner, Dependency::NONE);
    assert!(locks.holds(10).is_empty());
}

#[test]
fn who_is_in_the_way_is_asked_again_at_twice_the_number() {
    let locks = manager(options(100));
    let other = Actor::new(&locks, 1);
    other.takes("x", Mode::READ);
    let mut owner = locks.register(0, TxnId::new(1));
    take(&locks, &mut owner, 0, 199, Mode::WRITE);
    assert_eq!(locks.stats().escalations_refused, 1);
    other.ends(Dependency::NONE);
    take(&locks, &mut owner, 199, 200, Mode::WRITE);
    assert_eq!((owner.locks_held(), locks.stats().escalations), (0, 1));
    locks.release_all(&mut owner, Dependency::NONE);
}

#[test]
fn tables_have_their_own_thresholds_and_the_engines_own_have_none() {
    let locks = manager(options(100));
    locks.set_escalation(TABLE, Some(Escalation::At(10)));
    let own = StoreId::GARBAGE;
    let mut owner = locks.register(0, TxnId::new(1));
    take(&locks, &mut owner, 0, 10, Mode::WRITE);
    assert_eq!(owner.locks_held(), 0);
    for n in 0..150u32 {
        let name = LockName::of_key(own, &n.to_be_bytes());
        locks.lock(&mut owner, name, Mode::WRITE, Wait::No).unwrap();
    }
    assert_eq!(owner.locks_held(), 150);
    locks.release_all(&mut owner, Dependency::NONE);
    locks.set_escalation(TABLE, Some(Escalation::Never));
    take(&locks, &mut owner, 0, 150, Mode::WRITE);
    assert_eq!(owner.locks_held(), 150);
    locks.release_all(&mut owner, Dependency::NONE);
    locks.set_escalation(TABLE, None);
    take(&locks, &mut owner, 0, 100, Mode::WRITE);
    assert_eq!(owner.locks_held(), 0);
    locks.release_all(&mut owner, Dependency::NONE);
}

/// Tables whose numbers agree in the part that a row's word has room for.
#[test]
fn the_rows_of_the_table_are_freed_and_no_others_however_alike_the_tables_numbers() {
    let locks = manager(options(100));
    let namesakes = [12, 16, 20, 31].map(|bit| StoreId::new(TABLE.get() + (1 << bit)));
    let mut owner = locks.register(0, TxnId::new(1));
    for store in namesakes {
        let theirs = LockName::of_key(store, b"k");
        locks
            .lock(&mut owner, theirs, Mode::WRITE, Wait::No)
            .unwrap();
    }
    take(&locks, &mut owner, 0, 100, Mode::WRITE);
    assert_eq!((owner.locks_held(), locks.stats().escalations), (4, 1));
    take(&locks, &mut owner, 100, 200, Mode::WRITE);
    assert_eq!(owner.locks_held(), 4, "the table covers the rest");
    let mut other = locks.register(1, TxnId::new(2));
    for store in namesakes {
        let theirs = LockName::of_key(store, b"k");
        assert!(!locks.try_lock(&mut other, theirs, Mode::READ).unwrap());
    }
    locks.release_all(&mut other, Dependency::NONE);
    let mut rows: Vec<StoreId> = locks.holds(100).iter().filter_map(row_of).collect();
    rows.sort();
    assert_eq!(rows, namesakes);
    // One of them in its turn.
    for n in 1..100u32 {
        let name = LockName::of_key(namesakes[1], &n.to_be_bytes());
        locks.lock(&mut owner, name, Mode::WRITE, Wait::No).unwrap();
    }
    assert_eq!((owner.locks_held(), locks.stats().escalations), (3, 2));
    locks.release_all(&mut owner, Dependency::NONE);
    assert!(locks.holds(10).is_empty());
}

fn row_of(hold: &LockHold) -> Option<StoreId> {
    hold.row.map(|_| hold.store)
}

#[test]
fn a_full_lock_table_makes_room_by_taking_the_table() {
    let locks = manager(options(u32::MAX - 1));
    let mut owner = locks.register(0, TxnId::new(1));
    take(&locks, &mut owner, 0, 20_000, Mode::WRITE);
    assert_eq!(locks.stats().escalations, 1);
    assert!(locks.stats().bytes_used < 64 << 10);
    locks.release_all(&mut owner, Dependency::NONE);
}

#[test]
fn a_full_lock_table_waits_for_who_is_in_the_way_of_taking_the_table() {
    let locks = manager(options(u32::MAX - 1));
    let other = Actor::new(&locks, 1);
    other.takes("x", Mode::READ);
    let mut owner = locks.register(0, TxnId::new(9));
    let full = (0..)
        .find_map(|n: u32| {
            let name = name(&n.to_string());
            locks.lock(&mut owner, name, Mode::WRITE, Wait::No).err()
        })
        .unwrap();
    assert!(matches!(full, LockError::TableFull { .. }), "{full}");
    let rows = owner.locks_held();
    let waiter = {
        let locks = Arc::clone(&locks);
        std::thread::spawn(move || {
            // There may be room for some more.
            for n in 0..1000 {
                let name = name(&format!("more {n}"));
                locks
                    .lock(&mut owner, name, Mode::WRITE, Wait::For(LONG))
                    .unwrap();
            }
            owner
        })
    };
    while locks.waits().is_empty() {
        assert!(!waiter.is_finished());
        std::thread::yield_now();
    }
    assert!(locks.waits()[0].name.is_table());
    assert_eq!(locks.waits()[0].waits_for, [TxnId::new(1)]);
    other.ends(Dependency::NONE);
    let mut owner = waiter.join().unwrap();
    assert!(rows > 1000 && owner.locks_held() == 0);
    other.is_refused_table(TABLE, TableMode::IntentShared);
    other.ends(Dependency::NONE);
    locks.release_all(&mut owner, Dependency::NONE);
    assert!(locks.holds(10).is_empty());
}
