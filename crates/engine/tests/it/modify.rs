//! Rows changed by what they were, in one call.

use crate::people::{message, person, world};
use crate::support::{assert_sound, crash, in_memory, open, sim};
use longshore::{Database, Error, Isolation, Table, Transaction, TransactionOptions};
use std::sync::Arc;
use std::time::Duration;

const LEVELS: [Isolation; 3] = [
    Isolation::Serializable,
    Isolation::Snapshot,
    Isolation::ReadCommitted,
];

fn begin(db: &Database, isolation: Isolation) -> Transaction {
    let options = TransactionOptions::new()
        .isolation(isolation)
        .lock_wait(Duration::ZERO);
    db.begin_with(options).unwrap()
}

fn with_row(db: &Database, value: &str) -> Table {
    let table = db.table_or_create("t").unwrap();
    db.update(|tx| tx.put(&table, "k", value)).unwrap();
    table
}

/// Adds a letter.
fn append(letter: u8) -> impl FnOnce(&mut Vec<u8>) -> longshore::Result<()> {
    move |value| {
        value.push(letter);
        Ok(())
    }
}

#[test]
fn the_newest_value_is_changed_at_every_level() {
    for isolation in LEVELS {
        let db = in_memory();
        let table = with_row(&db, "a");
        let tx = begin(&db, isolation);
        assert!(tx.modify(&table, "k", append(b'b')).unwrap());
        assert!(tx.modify(&table, "k", append(b'c')).unwrap());
        assert!(!tx.modify(&table, "other", |_| panic!("no row")).unwrap());
        assert_eq!(tx.get(&table, "k").unwrap().unwrap(), b"abc");
        let reader = db
            .begin_with(TransactionOptions::new().read_only())
            .unwrap();
        assert_eq!(reader.get(&table, "k").unwrap().unwrap(), b"a");
        tx.commit().unwrap();
        assert_eq!(reader.get(&table, "k").unwrap().unwrap(), b"a");
        drop(reader);
        assert_eq!(db.get(&table, "k").unwrap().unwrap(), b"abc");
        assert_sound(&db);
    }
}

#[test]
fn a_row_that_has_changed_since_the_snapshot_is_a_conflict_only_there() {
    for isolation in LEVELS {
        let db = in_memory();
        let table = with_row(&db, "a");
        let tx = begin(&db, isolation);
        with_row(&db, "b");
        match tx.modify(&table, "k", append(b'c')) {
            Ok(done) => assert!(done && isolation != Isolation::Snapshot),
            Err(error) => assert!(
                matches!(error, Error::WriteConflict { .. }) && isolation == Isolation::Snapshot,
                "{isolation:?}: {error}"
            ),
        }
    }
}

#[test]
fn nobody_else_changes_the_row_whether_it_was_changed_missing_or_left() {
    for isolation in LEVELS {
        let db = in_memory();
        let table = with_row(&db, "a");
        for key in ["k", "missing"] {
            for letter in ["x", ""] {
                let tx = begin(&db, isolation);
                let change = |value: &mut Vec<u8>| {
                    value.extend_from_slice(letter.as_bytes());
                    Ok(())
                };
                assert_eq!(tx.modify(&table, key, change).unwrap(), key == "k");
                let other = begin(&db, isolation);
                let refused = other.put(&table, key, "z");
                assert!(
                    matches!(refused, Err(Error::LockTimeout { .. })),
                    "{isolation:?} {key} {letter}: {refused:?}"
                );
            }
        }
    }
}

#[test]
fn a_change_that_fails_or_leaves_the_value_writes_nothing() {
    for isolation in LEVELS {
        let db = in_memory();
        let table = with_row(&db, "a");
        let tx = begin(&db, isolation);
        let failed = tx.modify(&table, "k", |value| {
            value.clear();
            Err(Error::other("no"))
        });
        assert!(message(failed).contains("no"));
        assert!(tx.modify(&table, "k", |_| Ok(())).unwrap());
        let before = db.stats().log.bytes;
        tx.commit().unwrap();
        assert_eq!(db.stats().log.bytes, before);
        assert_eq!(db.get(&table, "k").unwrap().unwrap(), b"a");
    }
}

#[test]
fn the_transaction_may_be_used_while_a_row_is_modified() {
    for isolation in LEVELS {
        let db = in_memory();
        let table = with_row(&db, "a");
        let tx = begin(&db, isolation);
        let outcome = tx.modify(&table, "k", |value| {
            tx.put(&table, "k", "in between")?;
            tx.put(&table, "another", "row")?;
            assert_eq!(tx.get(&table, "k")?.unwrap(), b"in between");
            value.push(b'b');
            Ok(())
        });
        assert!(outcome.unwrap());
        assert_eq!(tx.get(&table, "k").unwrap().unwrap(), b"ab");
        let gone = tx.modify(&table, "k", |_| tx.delete(&table, "k").map(drop));
        assert!(!gone.unwrap());
        assert_eq!(tx.get(&table, "k").unwrap(), None);
        let moved = tx.modify(&table, "another", |value| {
            value.push(b's');
            let before = tx.savepoint()?;
            tx.put(&table, "another", vec![1; 50_000])?;
            tx.rollback_to(&before)
        });
        assert!(moved.unwrap());
        tx.commit().unwrap();
        assert_eq!(db.get(&table, "another").unwrap().unwrap(), b"rows");
        assert_sound(&db);
    }
}

#[test]
fn values_grow_beyond_their_page_and_shrink_again() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    db.update(|tx| (0..200u8).try_for_each(|n| tx.put(&table, [n], [n; 30])))
        .unwrap();
    for len in [31, 700, 60_000, 90_000, 3] {
        db.update(|tx| {
            (0..200u8).step_by(7).try_for_each(|n| {
                let resize = |value: &mut Vec<u8>| {
                    value.resize(len, n);
                    Ok(())
                };
                tx.modify(&table, [n], resize).map(|done| assert!(done))
            })
        })
        .unwrap();
        for n in (0..200u8).step_by(7) {
            assert_eq!(db.get(&table, [n]).unwrap().unwrap(), vec![n; len]);
        }
        db.maintain().unwrap();
        assert_sound(&db);
    }
}

#[test]
fn indexes_follow_and_their_refusal_leaves_the_row() {
    let db = in_memory();
    let world = world(&db).unwrap();
    let people = &world.people;
    people.insert(&db, 7, &person("Lovelace", 1)).unwrap();
    people.insert(&db, 8, &person("Hopper", 2)).unwrap();
    let numbers = |last: &str| -> Vec<u32> {
        let tx = db.begin().unwrap();
        let found = world.by_last.find(&tx, last).unwrap();
        found.map(|row| row.unwrap().1).collect()
    };
    let rename = |person: &mut crate::people::Person| {
        person.last = "King".into();
        Ok(())
    };
    assert!(people.modify(&db, 7, rename).unwrap());
    assert_eq!((numbers("Lovelace"), numbers("King")), (vec![], vec![7]));
    assert!(!people.modify(&db, 9, rename).unwrap());
    let refused = message(people.modify(&db, 8, |person| {
        person.badge = Some(1);
        Ok(())
    }));
    assert!(refused.contains("unique index `by badge`"), "{refused}");
    assert_eq!(people.get(&db, 8).unwrap(), Some(person("Hopper", 2)));
    let tx = db.begin().unwrap();
    let between = people.modify(&tx, 8, |person| {
        people.delete(&tx, 7)?;
        person.last = "Murray".into();
        Ok(())
    });
    assert!(between.unwrap());
    tx.commit().unwrap();
    assert_eq!((numbers("King"), numbers("Murray")), (vec![], vec![8]));
    // The row that is found is another one when it is changed.
    let tx = db.begin().unwrap();
    let within = people.modify(&tx, 8, |person| {
        people.put(&tx, 8, &crate::people::person("Bartik", 3))?;
        person.badge = Some(4);
        Ok(())
    });
    assert!(within.unwrap());
    tx.commit().unwrap();
    assert_eq!((numbers("Bartik"), numbers("Murray")), (vec![], vec![8]));
    assert_sound(&db);
}

#[test]
fn a_row_that_was_left_stays_locked_across_a_restart_of_who_prepared() {
    let disk = Arc::new(sim(1));
    let db = open(&disk, 1).unwrap();
    let table = with_row(&db, "a");
    let tx = db.begin().unwrap();
    tx.put(&table, "other", "b").unwrap();
    assert!(tx.modify(&table, "k", |_| Ok(())).unwrap());
    drop(tx.prepare(b"one").unwrap());
    drop(table);
    let crashed = crash(&disk, 2);
    drop(db);
    let db = open(&crashed, 2).unwrap();
    let table = db.table("t").unwrap();
    let refused = begin(&db, Isolation::Serializable).put(&table, "k", "z");
    assert!(
        matches!(refused, Err(Error::LockTimeout { .. })),
        "{refused:?}"
    );
    db.commit_prepared(b"one").unwrap();
    assert_eq!(db.get(&table, "k").unwrap().unwrap(), b"a");
    assert_eq!(db.get(&table, "other").unwrap().unwrap(), b"b");
}
