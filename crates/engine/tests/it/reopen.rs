//! What was committed is there when the database is opened again.

use crate::support::{assert_sound, get, open, put, rows, sim};
use longshore::{Database, Options};
use std::sync::Arc;

#[test]
fn rows_and_tables_survive_closing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    {
        let db = Database::create(&path).unwrap();
        let table = db.create_table("one").unwrap();
        put(&db, &table, "key", "value");
        db.create_table("two").unwrap();
        db.close().unwrap();
    }
    let db = Database::open(&path).unwrap();
    assert_eq!(db.tables().unwrap(), ["one", "two"]);
    assert_eq!(
        get(&db, &db.table("one").unwrap(), "key").as_deref(),
        Some("value")
    );
    assert_sound(&db);
}

#[test]
fn dropping_the_last_handle_closes_cleanly() {
    let directory = tempfile::tempdir().unwrap();
    {
        let db = Database::create(directory.path().join("db")).unwrap();
        let table = db.create_table("t").unwrap();
        put(&db, &table, "key", "value");
    }
    // Only a cleanly closed database can be opened for reading only.
    let db = Options::new()
        .read_only()
        .open(directory.path().join("db"))
        .unwrap();
    assert_eq!(
        get(&db, &db.table("t").unwrap(), "key").as_deref(),
        Some("value")
    );
}

#[test]
fn transaction_keeps_the_database_open() {
    let disk = Arc::new(sim(1));
    let db = open(&disk, 1).unwrap();
    let table = db.create_table("t").unwrap();
    let tx = db.begin().unwrap();
    drop(db);
    tx.put(&table, "late", "but in time").unwrap();
    tx.commit().unwrap();
    let db = open(&disk, 1).unwrap();
    assert_eq!(
        get(&db, &db.table("t").unwrap(), "late").as_deref(),
        Some("but in time")
    );
}

#[test]
fn opening_after_a_clean_close_reads_no_log_to_speak_of() {
    let disk = Arc::new(sim(1));
    let db = open(&disk, 1).unwrap();
    let table = db.create_table("t").unwrap();
    for n in 0..500u32 {
        db.update(|tx| tx.put(&table, n.to_be_bytes(), [7; 100]))
            .unwrap();
    }
    db.close().unwrap();
    drop((db, table));
    let before = disk.io_count();
    let db = open(&disk, 1).unwrap();
    assert!(
        db.stats().recovery_bytes < 1000,
        "{}",
        db.stats().recovery_bytes
    );
    assert!(
        disk.io_count() - before < 60,
        "{} I/Os",
        disk.io_count() - before
    );
    assert_eq!(rows(&db, &db.table("t").unwrap()).len(), 500);
}

#[test]
fn numbers_of_transactions_and_stores_are_never_used_again() {
    let disk = Arc::new(sim(1));
    let db = open(&disk, 1).unwrap();
    let store = db.create_table("first").unwrap().id();
    let tx = db.begin().unwrap();
    let txn = tx.id();
    tx.put(&db.table("first").unwrap(), "k", "v").unwrap();
    tx.commit().unwrap();
    db.drop_table("first").unwrap();
    db.close().unwrap();
    drop(db);
    let db = open(&disk, 2).unwrap();
    assert!(db.create_table("second").unwrap().id() > store);
    assert!(db.begin().unwrap().id() > txn);
}

#[test]
fn any_replacement_serves_a_database_that_is_larger_than_its_pool() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let key = |n: u32| format!("key {n:05}");
    let value = |n: u32| format!("{n}").repeat(40);
    // Each opens what the one before it left, under another name of the same row of forms.
    let chosen = ["lirs", "bp-wrapper:batch=16/2q", "spin/arc", "nb-gclock"];
    let stored = [
        "bp-wrapper/lirs",
        "bp-wrapper:batch=16/2q",
        "spin/arc",
        "nb-gclock",
    ];
    for (round, (chosen, stored)) in (0..).zip(chosen.into_iter().zip(stored)) {
        let options = || Options::new().pool_bytes(1 << 20).replacement(chosen);
        let db = options().open_or_create(&path).unwrap();
        assert_eq!(db.stats().replacement, stored);
        let table = db.table_or_create("t").unwrap();
        for n in (0..20_000u32).filter(|n| n % 4 == round) {
            db.update(|tx| tx.put(&table, key(n), value(n + round)))
                .unwrap();
        }
        db.close().unwrap();
        let db = options().open(&path).unwrap();
        let table = db.table("t").unwrap();
        for n in (0..20_000u32).filter(|n| n % 4 <= round) {
            let there = get(&db, &table, &key(n));
            assert_eq!(there, Some(value(n + n % 4)), "{chosen}: {n}");
        }
        assert_sound(&db);
        assert!(db.stats().pool.evictions > 100, "{chosen}");
        db.close().unwrap();
    }
}
