//! Transactions that read snapshots: at which level, beside what, and what ends them.

use longshore::{
    Database, Durability, Error, Isolation, LongReaders, Options, Table, Transaction,
    TransactionOptions,
};
use std::time::Duration;

fn store() -> (Database, Table) {
    store_with(Options::new())
}

fn store_with(options: Options) -> (Database, Table) {
    let db = options
        .durability(Durability::None)
        .lock_wait(Duration::from_millis(100))
        .in_memory()
        .unwrap();
    let table = db.create_table("t").unwrap();
    (db, table)
}

fn put(db: &Database, table: &Table, key: &str, value: &str) {
    db.update(|tx| tx.put(table, key, value)).unwrap();
}

fn begin(db: &Database, isolation: Isolation) -> Transaction {
    let options = TransactionOptions::new().isolation(isolation);
    db.begin_with(options).unwrap()
}

fn text(tx: &Transaction, table: &Table, key: &str) -> String {
    let value = tx.get(table, key).unwrap().unwrap();
    String::from_utf8(value).unwrap()
}

#[test]
fn a_view_neither_waits_for_a_writer_nor_stops_one() {
    let (db, table) = store();
    put(&db, &table, "a", "1");
    let writer = db.begin().unwrap();
    writer.put(&table, "a", "2").unwrap();
    writer.put(&table, "b", "2").unwrap();
    let rows = db.view(|tx| {
        assert_eq!(text(tx, &table, "a"), "1");
        Ok(tx.scan(&table, ..)?.count())
    });
    assert_eq!(rows.unwrap(), 1);
    let reader = db
        .begin_with(TransactionOptions::new().read_only().label("report"))
        .unwrap();
    assert_eq!(text(&reader, &table, "a"), "1");
    writer.put(&table, "a", "3").unwrap();
    writer.commit().unwrap();
    assert_eq!(text(&reader, &table, "a"), "1");
    assert!(matches!(reader.put(&table, "a", "4"), Err(Error::ReadOnly)));
    let open = db.snapshots();
    assert_eq!(open.len(), 1);
    assert_eq!((open[0].txn, open[0].label), (reader.id(), "report"));
    assert_eq!(db.stats().transactions.versions.kept, 2);
    reader.commit().unwrap();
    assert!(db.snapshots().is_empty());
    assert_eq!(db.stats().transactions.versions.kept, 0);
}

#[test]
fn levels_differ_in_what_they_see_and_who_gives_way() {
    let (db, table) = store();
    put(&db, &table, "a", "1");
    let snapshot = begin(&db, Isolation::Snapshot);
    let committed = begin(&db, Isolation::ReadCommitted);
    put(&db, &table, "a", "2");
    assert_eq!(text(&snapshot, &table, "a"), "1");
    assert_eq!(text(&committed, &table, "a"), "2");
    committed.put(&table, "a", "3").unwrap();
    assert_eq!(text(&committed, &table, "a"), "3");
    committed.commit().unwrap();
    let error = snapshot.put(&table, "a", "4").unwrap_err();
    assert!(matches!(&error, Error::WriteConflict { table } if table == "t"));
    assert!(error.is_retryable() && error.to_string().contains("run it again"));
    assert!(matches!(
        snapshot.get(&table, "a"),
        Err(Error::WriteConflict { .. })
    ));
}

#[test]
fn a_cursor_is_one_statement_and_goes_from_thread_to_thread() {
    for isolation in [Isolation::Snapshot, Isolation::ReadCommitted] {
        let (db, table) = store();
        for key in 0..100u8 {
            db.update(|tx| tx.put(&table, [key], "old")).unwrap();
        }
        let tx = begin(&db, isolation);
        let mut cursor = tx.scan(&table, ..).unwrap();
        assert_eq!(cursor.next().unwrap().unwrap().1, b"old");
        db.update(|tx| tx.delete_range(&table, [50u8]..)).unwrap();
        db.update(|tx| tx.put(&table, [2u8], "new")).unwrap();
        db.maintain().unwrap();
        let rows = std::thread::spawn(move || {
            let rows: Result<Vec<_>, Error> = cursor.collect();
            rows.unwrap()
        });
        let rows = rows.join().unwrap();
        assert_eq!(rows.len(), 99, "{isolation:?}");
        assert!(rows.iter().all(|(_, value)| value == b"old"));
        let late = tx.scan(&table, ..).unwrap();
        tx.commit().unwrap();
        drop(late);
        assert!(db.snapshots().is_empty(), "{isolation:?}");
    }
}

#[test]
fn a_large_value_can_be_read_while_it_is_replaced() {
    let (db, table) = store();
    let old = vec![1; 300_000];
    db.update(|tx| tx.put(&table, "k", &old)).unwrap();
    for isolation in [Isolation::Snapshot, Isolation::ReadCommitted] {
        let tx = begin(&db, isolation);
        let mut reader = tx.get_stream(&table, "k").unwrap().unwrap();
        db.update(|tx| tx.put(&table, "k", vec![2; 300_000]))
            .unwrap();
        for _ in 0..5 {
            db.maintain().unwrap();
        }
        let mut value = Vec::new();
        std::io::Read::read_to_end(&mut reader, &mut value).unwrap();
        assert_eq!(value, old, "{isolation:?}");
        tx.rollback().unwrap();
        db.update(|tx| tx.put(&table, "k", &old)).unwrap();
    }
}

#[test]
fn a_table_loaded_anew_is_in_no_older_snapshot() {
    let (db, table) = store();
    let reader = db
        .begin_with(TransactionOptions::new().read_only())
        .unwrap();
    db.bulk_load(&table, (0..10u8).map(|key| Ok(([key], [key]))))
        .unwrap();
    let error = reader.get(&table, [1]).unwrap_err();
    assert!(matches!(&error, Error::SnapshotTooOld { table } if table == "t"));
    assert!(error.is_retryable());
    assert_eq!(db.view(|tx| tx.get(&table, [1])).unwrap(), Some(vec![1]));
}

#[test]
fn memory_for_older_states_has_a_limit_and_a_policy() {
    for (policy, ends) in [
        (LongReaders::EndOldest, true),
        (LongReaders::RefuseGrowth, false),
    ] {
        let options = Options::new()
            .version_bytes_max(64 << 10)
            .long_readers(policy);
        let (db, table) = store_with(options);
        put(&db, &table, "a", "1");
        let reader = db
            .begin_with(TransactionOptions::new().read_only())
            .unwrap();
        let write = |n: u32| {
            let tx = db.begin()?;
            tx.put(&table, n.to_be_bytes(), [0; 200])?;
            tx.put(&table, "a", n.to_be_bytes())?;
            tx.commit()
        };
        let refused = (0..1000).find_map(|n| write(n).err());
        match (ends, refused) {
            (true, None) => {
                let error = reader.get(&table, "a").unwrap_err();
                assert!(matches!(error, Error::SnapshotTooOld { .. }), "{error}");
            }
            (false, Some(Error::VersionsFull { bytes_max })) => {
                assert_eq!(bytes_max, 64 << 10);
                assert_eq!(text(&reader, &table, "a"), "1");
            }
            (_, outcome) => panic!("{policy:?}: {outcome:?}"),
        }
    }
}
