//! Intents, whole tables, and rows that become a table.

use super::*;

/// An intent by a word, its release, and a request for the whole table that transfers it.
#[test]
fn an_intent_races_who_wants_the_whole_table() {
    explore(2, || {
        let locks = manager(2);
        let value = LoomArc::new(AtomicU64::new(0));
        let row = {
            let (locks, value) = (Arc::clone(&locks), value.clone());
            thread::spawn(move || {
                let mut owner = locks.register(1, TxnId::new(2));
                let intent = TableMode::IntentExclusive;
                locks
                    .lock_table(&mut owner, TABLE, intent, FOR_EVER)
                    .unwrap();
                raise(&value);
                locks.release_all(&mut owner, Dependency::NONE);
            })
        };
        let mut owner = locks.register(0, TxnId::new(1));
        locks
            .lock_table(&mut owner, TABLE, TableMode::Exclusive, FOR_EVER)
            .unwrap();
        raise(&value);
        locks.release_all(&mut owner, Dependency::NONE);
        row.join().unwrap();
        assert_eq!(value.load(Ordering::Relaxed), 2);
        assert_nobody_is_left(&locks);
    });
}

/// IS held in a word becomes IX while somebody asks for the table, to read it or for itself.
#[test]
fn a_converted_intent_races_who_wants_the_whole_table() {
    for mode in [TableMode::Shared, TableMode::Exclusive] {
        explore(2, move || {
            let locks = manager(2);
            let value = LoomArc::new(AtomicU64::new(0));
            let mut reader = locks.register(1, TxnId::new(2));
            locks
                .lock_database(&mut reader, TableMode::IntentShared, Wait::No)
                .unwrap();
            let writer = {
                let (locks, value) = (Arc::clone(&locks), value.clone());
                thread::spawn(move || {
                    let intent = TableMode::IntentExclusive;
                    // Never a circle: whoever has the database waits for nobody.
                    let done = locks.lock_database(&mut reader, intent, FOR_EVER).is_ok();
                    if done {
                        raise(&value);
                    }
                    locks.release_all(&mut reader, Dependency::NONE);
                    u64::from(done)
                })
            };
            let mut owner = locks.register(0, TxnId::new(1));
            locks.lock_database(&mut owner, mode, FOR_EVER).unwrap();
            raise(&value);
            locks.release_all(&mut owner, Dependency::NONE);
            let done = writer.join().unwrap();
            assert_eq!(done, 1);
            assert_eq!(value.load(Ordering::Relaxed), 2);
            assert_nobody_is_left(&locks);
        });
    }
}

/// Two who want the whole table transfer the word of a third, who lets go meanwhile.
#[test]
fn two_who_want_the_table_race_the_release_of_an_intent() {
    explore(1, || {
        let locks = manager(3);
        let value = LoomArc::new(AtomicU64::new(0));
        let mut holder = locks.register(2, TxnId::new(3));
        locks
            .lock_database(&mut holder, TableMode::IntentExclusive, Wait::No)
            .unwrap();
        let want = |index: usize| {
            let (locks, value) = (Arc::clone(&locks), value.clone());
            move || {
                let mut owner = locks.register(index, TxnId::new(index as u64 + 1));
                locks
                    .lock_database(&mut owner, TableMode::Exclusive, FOR_EVER)
                    .unwrap();
                raise(&value);
                locks.release_all(&mut owner, Dependency::NONE);
            }
        };
        let first = thread::spawn(want(0));
        let second = thread::spawn(want(1));
        raise(&value);
        locks.release_all(&mut holder, Dependency::NONE);
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!(value.load(Ordering::Relaxed), 3);
        assert_nobody_is_left(&locks);
    });
}

/// A read without a lock while a writer trades its row for the table and commits.
#[test]
fn a_glance_never_falls_between_a_row_and_its_table() {
    explore(2, || {
        let locks = manager(1);
        let commit = Dependency::sync(Lsn::new(64));
        let mut owner = locks.register(0, TxnId::new(1));
        assert!(locks.try_lock(&mut owner, name(b"k"), Mode::WRITE).unwrap());
        let writer = {
            let locks = Arc::clone(&locks);
            thread::spawn(move || {
                locks.escalate_now(&mut owner);
                locks.release_all(&mut owner, commit);
            })
        };
        // The row was changed before this begins, so it is locked, or its commit is known.
        if let Some(dependency) = locks.unlocked_for_read(name(b"k")) {
            assert_eq!(dependency, commit);
        }
        writer.join().unwrap();
    });
}

/// A word that says IX for a moment still stands for the IS that was held before.
#[test]
fn an_intent_being_converted_keeps_out_who_wants_the_table() {
    explore(2, || {
        let locks = manager(3);
        let value = LoomArc::new(AtomicU64::new(0));
        let mut reader = locks.register(2, TxnId::new(3));
        locks
            .lock_database(&mut reader, TableMode::IntentShared, Wait::No)
            .unwrap();
        let mut whole = locks.register(0, TxnId::new(1));
        locks
            .lock_database(&mut whole, TableMode::Shared, Wait::No)
            .unwrap();
        let wants_it = {
            let (locks, value) = (Arc::clone(&locks), value.clone());
            thread::spawn(move || {
                let mut owner = locks.register(1, TxnId::new(2));
                locks
                    .lock_database(&mut owner, TableMode::Exclusive, FOR_EVER)
                    .unwrap();
                value.store(1, Ordering::Relaxed);
                locks.release_all(&mut owner, Dependency::NONE);
            })
        };
        let converts = {
            let (locks, value) = (Arc::clone(&locks), value.clone());
            thread::spawn(move || {
                let intent = TableMode::IntentExclusive;
                let _ = locks.lock_database(&mut reader, intent, Wait::No);
                assert_eq!(
                    value.load(Ordering::Relaxed),
                    0,
                    "it has held IS all the time"
                );
                locks.release_all(&mut reader, Dependency::NONE);
            })
        };
        locks.release_all(&mut whole, Dependency::NONE);
        wants_it.join().unwrap();
        converts.join().unwrap();
    });
}

/// Rows become a table as another comes for a row: by its word, by a request, or too late.
#[test]
fn an_escalation_races_who_comes_for_a_row() {
    explore(2, || {
        let locks = manager(2);
        locks.set_escalation(TABLE, Some(Escalation::At(1)));
        let value = LoomArc::new(AtomicU64::new(0));
        let work = |index: usize, keys: &'static [&'static [u8]]| {
            let (locks, value) = (Arc::clone(&locks), value.clone());
            move || {
                let mut owner = locks.register(index, TxnId::new(index as u64 + 1));
                for key in keys {
                    locks
                        .lock(&mut owner, name(key), Mode::WRITE, FOR_EVER)
                        .unwrap();
                }
                raise(&value);
                locks.release_all(&mut owner, Dependency::NONE);
            }
        };
        let other = thread::spawn(work(1, &[b"k"]));
        work(0, &[b"a", b"k"])();
        other.join().unwrap();
        assert_eq!(value.load(Ordering::Relaxed), 2);
        assert_nobody_is_left(&locks);
    });
}
