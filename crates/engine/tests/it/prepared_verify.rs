//! Verifying beside prepared transactions: they stay as they are, and nobody resolves them meanwhile.

use crate::people::{person, world};
use crate::prepared::{WAYS, interrupted, is_locked};
use crate::support::{assert_sound, get, open, open_with, put, sim, small};
use longshore::{Background, Database, Error, IndexSpec, TypedTable};
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

#[test]
fn a_database_with_prepared_transactions_is_verified_as_it_stands() {
    for (seed, between) in (1..).zip(WAYS) {
        for commits in [true, false] {
            let disk = Arc::new(sim(seed));
            let db = open(&disk, seed).unwrap();
            let people = world(&db).unwrap().people;
            let table = db.create_table("large").unwrap();
            for n in 0..40 {
                people.insert(&db, n, &person("old", n)).unwrap();
            }
            put(&db, &table, "changed", &"x".repeat(20_000));
            put(&db, &table, "deleted", &"x".repeat(20_000));
            let tx = db.begin().unwrap();
            for n in 0..10 {
                people.delete(&tx, n).unwrap();
                people.put(&tx, 10 + n, &person("new", 100 + n)).unwrap();
                people.insert(&tx, 40 + n, &person("new", n)).unwrap();
            }
            tx.put(&table, "changed", "y".repeat(30_000)).unwrap();
            tx.put(&table, "new", "y".repeat(30_000)).unwrap();
            assert!(tx.delete(&table, "deleted").unwrap());
            drop(tx.prepare(b"g").unwrap());
            drop((people, table));

            let (_disk, db) = interrupted(disk, db, &between, seed);
            let people = world(&db).unwrap();
            let report = db.verify().unwrap();
            assert!(report.is_sound(), "{:?}", report.faults);
            let found = report.tables.iter().find(|t| t.name == "people").unwrap();
            assert_eq!((found.rows, found.ghosts), (40, 10));
            assert!(found.indexes.iter().all(|index| index.is_compared));
            // It has its locks as before.
            let tx = db.begin().unwrap();
            assert!(is_locked(people.people.get(&tx, 5)));
            drop(tx);
            assert_sound(&db);
            match commits {
                true => db.commit_prepared(b"g").unwrap(),
                false => db.rollback_prepared(b"g").unwrap(),
            }
            assert_sound(&db);
            let large = get(&db, &db.table("large").unwrap(), "changed").unwrap();
            assert_eq!(large.len(), [20_000, 30_000][usize::from(commits)]);
        }
    }
}

#[test]
fn others_than_prepared_ones_are_waited_for() {
    let disk = Arc::new(sim(1));
    let db = open(&disk, 1).unwrap();
    let table = db.create_table("t").unwrap();
    let begin = |key: &str| {
        let tx = db.begin().unwrap();
        tx.put(&table, key, "v").unwrap();
        tx
    };
    drop(begin("a").prepare(b"a").unwrap());
    let other = begin("b");
    let refused = db.verify().unwrap_err();
    assert!(
        matches!(
            refused,
            Error::TableBusy {
                transactions: 1,
                ..
            }
        ),
        "{refused}"
    );
    drop(other.prepare(b"b").unwrap());
    assert_sound(&db);
    db.rollback_prepared(b"a").unwrap();
    assert_sound(&db);
    db.commit_prepared(b"b").unwrap();
    assert_sound(&db);
}

/// The index's function, which `verify` calls, tries to resolve the transaction.
#[test]
fn nobody_resolves_what_is_being_verified() {
    let disk = Arc::new(sim(1));
    let options = small()
        .background(Background::Off)
        .lock_wait(Duration::from_millis(1));
    let db = open_with(&disk, 1, options).unwrap();
    let numbers: TypedTable<u32, u32> = TypedTable::create(&db, "numbers").unwrap();
    let within: Arc<OnceLock<Database>> = Arc::default();
    let seen = Arc::clone(&within);
    let spec = IndexSpec::new("value", "v1", move |_: &u32, value: &u32| {
        if let Some(db) = seen.get() {
            let refused = [db.commit_prepared(b"g"), db.rollback_prepared(b"g")];
            let is_refused = |outcome| matches!(outcome, Err(Error::Verifying { .. }));
            assert!(refused.into_iter().all(is_refused));
        }
        [*value]
    });
    numbers.create_index(&db, spec).unwrap();
    numbers.insert(&db, 1, &1).unwrap();
    let tx = db.begin().unwrap();
    numbers.insert(&tx, 2, &2).unwrap();
    drop(tx.prepare(b"g").unwrap());
    assert!(within.set(db.clone()).is_ok());
    assert_sound(&db);
    db.commit_prepared(b"g").unwrap();
    assert_eq!(numbers.get(&db, 2).unwrap(), Some(2));
}
