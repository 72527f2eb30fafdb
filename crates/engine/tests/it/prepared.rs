//! Two-phase commit: prepared transactions, resolved at once, after a close, and after a crash.

use crate::people::{person, world};
use crate::support::{assert_sound, crash, get, open, put, rows, sim};
use longshore::{Database, Error, Isolation, Table, Transaction, TransactionOptions};
use longshore_disk::SimDisk;
use std::sync::Arc;
use std::time::Duration;

pub fn is_locked<T>(outcome: Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::LockTimeout { .. }))
}

/// A table with four rows, and a transaction that updates, deletes, inserts and deletes a row of its own.
fn begun(db: &Database) -> (Table, Transaction) {
    let table = db.table_or_create("t").unwrap();
    for key in ["changed", "deleted", "replaced", "left"] {
        put(db, &table, key, "old");
    }
    put(db, &table, "large", &"x".repeat(20_000));
    let tx = db.begin().unwrap();
    tx.put(&table, "changed", "1").unwrap();
    tx.put(&table, "changed", "2").unwrap();
    tx.delete(&table, "deleted").unwrap();
    tx.delete(&table, "replaced").unwrap();
    tx.put(&table, "replaced", "3").unwrap();
    tx.put(&table, "large", "y".repeat(30_000)).unwrap();
    tx.insert(&table, "new", "4").unwrap();
    let before = tx.savepoint().unwrap();
    tx.put(&table, "left", "taken back").unwrap();
    tx.delete(&table, "changed").unwrap();
    tx.rollback_to(&before).unwrap();
    (table, tx)
}

fn committed(db: &Database, table: &Table) {
    for (key, value) in [
        ("changed", "2"),
        ("replaced", "3"),
        ("new", "4"),
        ("left", "old"),
    ] {
        assert_eq!(get(db, table, key).as_deref(), Some(value), "{key}");
    }
    assert_eq!(get(db, table, "deleted"), None);
    assert_eq!(get(db, table, "large").unwrap().len(), 30_000);
}

fn rolled_back(db: &Database, table: &Table) {
    for key in ["changed", "deleted", "replaced", "left"] {
        assert_eq!(get(db, table, key).as_deref(), Some("old"), "{key}");
    }
    assert_eq!(get(db, table, "new"), None);
    assert_eq!(get(db, table, "large").unwrap().len(), 20_000);
}

fn refuses(db: &Database, table: &Table) {
    for key in ["changed", "deleted", "replaced", "new", "large"] {
        let tx = db.begin().unwrap();
        assert!(is_locked(tx.get(table, key)), "{key}");
        let tx = db.begin().unwrap();
        assert!(is_locked(tx.put(table, key, "other")), "{key}");
    }
    let tx = db.begin().unwrap();
    assert!(is_locked(tx.scan(table, ..).unwrap().count_rows()));
    // Snapshots see what was before, and wait for nobody.
    let before = db.view(|tx| tx.scan(table, ..)?.collect::<Result<Vec<_>, _>>());
    let before: Vec<_> = before.unwrap();
    assert_eq!(before.len(), 5);
    for (key, value) in before {
        match key.as_slice() {
            b"large" => assert_eq!(value, vec![b'x'; 20_000]),
            _ => assert_eq!(value, b"old", "{}", key.escape_ascii()),
        }
    }
}

trait CountRows {
    fn count_rows(self) -> Result<usize, Error>;
}

impl CountRows for longshore::Cursor {
    fn count_rows(self) -> Result<usize, Error> {
        self.collect::<Result<Vec<_>, _>>().map(|rows| rows.len())
    }
}

pub enum Between {
    Nothing,
    Close,
    Crash,
    CrashTwice,
}

pub const WAYS: [Between; 4] = [
    Between::Nothing,
    Between::Close,
    Between::Crash,
    Between::CrashTwice,
];

pub fn interrupted(
    disk: Arc<SimDisk>,
    db: Database,
    between: &Between,
    seed: u64,
) -> (Arc<SimDisk>, Database) {
    match between {
        Between::Nothing => (disk, db),
        Between::Close => {
            db.close().unwrap();
            drop(db);
            let db = open(&disk, seed).unwrap();
            (disk, db)
        }
        Between::Crash => {
            drop(db);
            let disk = crash(&disk, seed);
            let db = open(&disk, seed).unwrap();
            (disk, db)
        }
        Between::CrashTwice => {
            let (disk, db) = interrupted(disk, db, &Between::Crash, seed);
            db.checkpoint().unwrap();
            interrupted(disk, db, &Between::Crash, seed + 1)
        }
    }
}

#[test]
fn a_prepared_transaction_lasts_and_is_resolved_either_way() {
    for (seed, between) in (1..).zip(WAYS) {
        for commits in [true, false] {
            let disk = Arc::new(sim(seed));
            let db = open(&disk, seed).unwrap();
            let (table, tx) = begun(&db);
            let id = tx.id();
            let prepared = tx.prepare(b"first").unwrap();
            assert_eq!((prepared.gid(), prepared.id()), (&b"first"[..], id));
            drop((prepared, table));
            let (disk, db) = interrupted(disk, db, &between, seed);
            let table = db.table("t").unwrap();
            let found = db.prepared();
            assert_eq!(found.len(), 1);
            assert_eq!((&found[0].gid[..], found[0].txn), (&b"first"[..], id));
            refuses(&db, &table);
            let refused = db.drop_table("t");
            assert!(matches!(refused, Err(Error::TablePrepared { .. })));
            match commits {
                true => db.commit_prepared(b"first").unwrap(),
                false => db.rollback_prepared(b"first").unwrap(),
            }
            let check = [rolled_back, committed][usize::from(commits)];
            check(&db, &table);
            assert!(db.prepared().is_empty());
            assert!(db.locks(10).is_empty());
            assert!(matches!(
                db.commit_prepared(b"first"),
                Err(Error::NotPrepared { .. })
            ));
            drop((db, table));
            let disk = crash(&disk, seed);
            let db = open(&disk, seed).unwrap();
            check(&db, &db.table("t").unwrap());
            assert!(db.prepared().is_empty());
            while db.maintain().unwrap().freed > 0 {}
            assert_sound(&db);
            db.drop_table("t").unwrap();
        }
    }
}

#[test]
fn names_are_taken_once_and_have_a_length() {
    let disk = Arc::new(sim(1));
    let db = open(&disk, 1).unwrap();
    let table = db.create_table("t").unwrap();
    let begin = |key: &str| {
        let tx = db.begin().unwrap();
        tx.put(&table, key, "v").unwrap();
        tx
    };
    let first = begin("a").prepare(b"name").unwrap();
    let refused = begin("b").prepare(b"name").unwrap_err();
    assert!(
        matches!(refused, Error::AlreadyPrepared { .. }),
        "{refused}"
    );
    for length in [0, 256] {
        let refused = begin("c").prepare(&vec![b'g'; length]).unwrap_err();
        assert!(matches!(refused, Error::GidLength { .. }), "{refused}");
    }
    // Those refused were rolled back.
    assert_eq!(get(&db, &table, "b"), None);
    put(&db, &table, "b", "free");
    first.rollback().unwrap();
    let nothing = db.begin().unwrap().prepare(b"name").unwrap();
    nothing.commit().unwrap();
    let reads = db
        .begin_with(TransactionOptions::new().read_only())
        .unwrap();
    assert!(matches!(reads.prepare(b"name"), Err(Error::ReadOnly)));
    assert_eq!(rows(&db, &table).len(), 1);
}

#[test]
fn several_levels_and_indexes_survive_with_others_undone() {
    let disk = Arc::new(sim(5));
    let db = open(&disk, 5).unwrap();
    let people = world(&db).unwrap();
    people.people.insert(&db, 1, &person("Hopper", 1)).unwrap();
    for (n, isolation) in (10..).zip([
        Isolation::Serializable,
        Isolation::Snapshot,
        Isolation::ReadCommitted,
    ]) {
        let options = TransactionOptions::new().isolation(isolation);
        let limited = options.time_limit(Duration::from_secs(3600));
        let tx = db.begin_with(limited).unwrap();
        people.people.insert(&tx, n, &person("New", n)).unwrap();
        if n == 10 {
            people.people.put(&tx, 1, &person("Murray", 99)).unwrap();
        }
        drop(tx.prepare(&[n as u8]).unwrap());
    }
    let loser = db.begin().unwrap();
    people
        .people
        .insert(&loser, 20, &person("Loser", 20))
        .unwrap();
    std::mem::forget(loser);
    let disk = crash(&disk, 5);
    let db = open(&disk, 5).unwrap();
    let people = world(&db).unwrap();
    assert_eq!(db.prepared().len(), 3);
    let found: Vec<u32> = db
        .view(|tx| people.by_last.scan(tx, ..)?.map(|row| Ok(row?.1)).collect())
        .unwrap();
    assert_eq!(
        found,
        [1],
        "a snapshot sees what was before, also by the index"
    );
    let mine = db.begin().unwrap();
    assert!(
        is_locked(people.people.insert(&mine, 30, &person("New", 11))),
        "the badge is taken"
    );
    drop(mine);
    db.commit_prepared(&[10]).unwrap();
    db.rollback_prepared(&[11]).unwrap();
    db.commit_prepared(&[12]).unwrap();
    let tx = db.begin().unwrap();
    let found: Vec<u32> = people
        .by_last
        .scan(&tx, ..)
        .unwrap()
        .map(|row| row.unwrap().1)
        .collect();
    assert_eq!(found, [1, 10, 12]);
    drop(tx);
    assert_sound(&db);
}
