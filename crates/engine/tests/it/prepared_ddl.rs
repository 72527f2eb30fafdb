//! Changes of tables and indexes beside a prepared transaction that uses them: refused by its name, or put off.

use crate::people::{People, Person, by_last, person, world};
use crate::prepared::{WAYS, interrupted};
use crate::support::{assert_sound, crash, get, open, open_with, put, sim, small};
use longshore::{Database, Error, IndexSpec, Result, TypedTable};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the table is not to be had because of the transaction "g".
fn is_refused<T>(outcome: Result<T>) -> bool {
    match outcome {
        Err(Error::TablePrepared { gid, .. }) => &gid[..] == b"g",
        _ => false,
    }
}

#[test]
fn what_needs_the_table_alone_is_refused_by_name() {
    for (seed, between) in (1..).zip(WAYS) {
        let disk = Arc::new(sim(seed));
        let db = open(&disk, seed).unwrap();
        let people = world(&db).unwrap().people;
        let table = db.create_table("beside").unwrap();
        let tx = db.begin().unwrap();
        people.insert(&tx, 1, &person("Hopper", 1)).unwrap();
        drop(tx.prepare(b"g").unwrap());
        drop((people, table));
        let (_disk, db) = interrupted(disk, db, &between, seed);
        let people = world(&db).unwrap().people;
        let badges = || IndexSpec::new("more", "", |_: &u32, person: &Person| person.badge);

        let refused = db.drop_table("people");
        let message = refused.as_ref().unwrap_err().to_string();
        assert!(message.contains("prepared as \"g\""), "{message}");
        assert!(is_refused(refused));
        assert!(is_refused(db.drop_index(people.table(), "by last")));
        assert!(is_refused(people.create_index(&db, badges())));
        let rows = [Ok((2, person("x", 2)))];
        assert!(is_refused(people.bulk_load(&db, rows)));
        // The other table is nobody's.
        db.drop_table("beside").unwrap();

        db.commit_prepared(b"g").unwrap();
        people.create_index(&db, badges()).unwrap();
        assert_sound(&db);
        db.drop_index(people.table(), "by last").unwrap();
        db.drop_table("people").unwrap();
        assert_sound(&db);
    }
}

#[test]
fn a_renamed_table_is_still_the_one_that_was_changed() {
    for (seed, between) in (10..).zip(WAYS) {
        for commits in [true, false] {
            let disk = Arc::new(sim(seed));
            let db = open(&disk, seed).unwrap();
            let table = db.create_table("old").unwrap();
            put(&db, &table, "key", "before");
            let tx = db.begin().unwrap();
            tx.put(&table, "key", "after").unwrap();
            drop(tx.prepare(b"g").unwrap());
            db.rename_table("old", "new").unwrap();
            // Another table has its name now.
            put(&db, &db.create_table("old").unwrap(), "key", "another");
            drop(table);
            let (_disk, db) = interrupted(disk, db, &between, seed);
            assert!(is_refused(db.drop_table("new")));
            match commits {
                true => db.commit_prepared(b"g").unwrap(),
                false => db.rollback_prepared(b"g").unwrap(),
            }
            let value = |name: &str| get(&db, &db.table(name).unwrap(), "key").unwrap();
            assert_eq!(value("new"), ["before", "after"][usize::from(commits)]);
            assert_eq!(value("old"), "another");
            db.drop_table("new").unwrap();
            assert_sound(&db);
        }
    }
}

/// Two hundred people, and an index whose building fails: while it is built, somebody changes a row that it has
/// not come to, and is prepared.
fn failed_build(db: &Database) -> People {
    let people: People = TypedTable::create(db, "people").unwrap();
    let loaded = (0..200u32).map(|n| Ok((n, person("old", n))));
    people.bulk_load(db, loaded).unwrap();
    let once = AtomicBool::new(true);
    let (in_build, in_table) = (db.clone(), people.clone());
    let spec = IndexSpec::new("by last", "last v1", move |_: &u32, person: &Person| {
        if once.swap(false, Ordering::Relaxed) {
            let tx = in_build.begin().unwrap();
            let changed = Person {
                last: "changed".into(),
                ..person.clone()
            };
            in_table.put(&tx, 190, &changed).unwrap();
            in_table.delete(&tx, 191).unwrap();
            drop(tx.prepare(b"g").unwrap());
        }
        [person.last.clone()]
    });
    let failed = people.create_index(db, spec).map(drop);
    assert!(failed.is_err(), "it has passed locked rows");
    people
}

#[test]
fn an_index_whose_building_failed_beside_it_goes_when_it_is_resolved() {
    for (seed, between) in (20..).zip(WAYS) {
        for commits in [true, false] {
            let disk = Arc::new(sim(seed));
            // Builders give up soon.
            let db = open_with(&disk, seed, small().update_attempts_max(3)).unwrap();
            let people = failed_build(&db);
            assert!(is_refused(db.drop_index(people.table(), "by last")));
            assert!(is_refused(people.create_index(&db, by_last())));
            drop(people);
            let (disk, db) = interrupted(disk, db, &between, seed);
            let people: People = TypedTable::open(&db, "people").unwrap();
            let indexes = people.table().indexes();
            assert!(indexes.len() == 1 && !indexes[0].is_ready, "{indexes:?}");
            match commits {
                true => db.commit_prepared(b"g").unwrap(),
                false => db.rollback_prepared(b"g").unwrap(),
            }
            let by_last = people.create_index(&db, by_last()).unwrap();
            let tx = db.begin().unwrap();
            let changed = by_last.scan(&tx, "changed".to_owned()..="changed".to_owned());
            assert_eq!(changed.unwrap().count(), usize::from(commits));
            drop((tx, by_last, people));
            assert_sound(&db);
            let disk = crash(&disk, seed);
            assert_sound(&open(&disk, seed).unwrap());
        }
    }
}
