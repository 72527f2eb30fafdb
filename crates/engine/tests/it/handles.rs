//! Handles: what they may be sent to, and when the database closes.

use crate::support::{assert_sound, in_memory, open, put, sim};
use longshore::{
    CommitHandle, Cursor, Database, Error, LogEntries, Savepoint, Table, Transaction, ValueReader,
};
use std::sync::Arc;

#[test]
fn handles_are_send_and_static() {
    fn send<T: Send + 'static>() {}
    fn sync<T: Sync>() {}
    send::<Database>();
    send::<Table>();
    send::<Transaction>();
    send::<Cursor>();
    send::<CommitHandle>();
    send::<ValueReader>();
    send::<Savepoint>();
    send::<LogEntries>();
    send::<Error>();
    sync::<Database>();
    sync::<Table>();
    sync::<Transaction>();
    sync::<Error>();
}

#[test]
fn transaction_moves_between_threads() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    let tx = db.begin().unwrap();
    tx.put(&table, "a", "1").unwrap();
    let (tx, handle) = (tx, table.clone());
    let tx = std::thread::spawn(move || {
        tx.put(&handle, "b", "2").unwrap();
        tx
    })
    .join()
    .unwrap();
    tx.commit().unwrap();
    assert_eq!(crate::support::rows(&db, &table).len(), 2);
}

#[test]
fn closing_waits_for_no_one_and_says_why() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    let tx = db.begin().unwrap();
    let busy = db.close().unwrap_err();
    assert!(
        matches!(busy, Error::StillInUse { transactions: 1 }),
        "{busy}"
    );
    tx.put(&table, "still", "open").unwrap();
    tx.commit().unwrap();
    db.close().unwrap();
    db.close().unwrap();
    assert!(matches!(db.begin(), Err(Error::Closed)));
    assert!(matches!(db.get(&table, "still"), Err(Error::Closed)));
    assert!(matches!(db.tables(), Err(Error::Closed)));
    assert!(matches!(db.checkpoint(), Err(Error::Closed)));
}

#[test]
fn an_ended_transaction_is_not_used_again() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    let tx = db.begin().unwrap();
    let savepoint = tx.savepoint().unwrap();
    let other = db.begin().unwrap();
    assert!(matches!(
        other.rollback_to(&savepoint),
        Err(Error::SavepointGone)
    ));
    let later = {
        tx.put(&table, "k", "v").unwrap();
        tx.savepoint().unwrap()
    };
    tx.rollback_to(&savepoint).unwrap();
    assert!(matches!(tx.rollback_to(&later), Err(Error::SavepointGone)));
    tx.rollback_to(&savepoint).unwrap();
}

#[test]
fn read_only_transactions_refuse_changes() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    put(&db, &table, "k", "v");
    let refused = db.view(|tx| tx.delete(&table, "k")).unwrap_err();
    assert!(matches!(refused, Error::ReadOnly), "{refused}");
}

#[test]
fn log_is_readable_for_people() {
    let db = open(&Arc::new(sim(1)), 1).unwrap();
    let table = db.create_table("t").unwrap();
    put(&db, &table, "needle", "in the log");
    db.checkpoint().unwrap();
    let entries: Vec<_> = db.log_entries(None).unwrap().map(Result::unwrap).collect();
    let kinds: Vec<_> = entries.iter().map(|entry| entry.kind).collect();
    assert!(kinds.contains(&"checkpoint"), "{kinds:?}");
    assert!(kinds.iter().all(|kind| *kind != "unknown"), "{entries:#?}");
    assert!(
        entries
            .iter()
            .all(|entry| !entry.text.contains("unreadable")),
        "{entries:#?}"
    );
}

#[test]
fn update_gives_up_after_the_attempts_it_may_make() {
    let db = longshore::Options::new()
        .update_attempts_max(3)
        .in_memory()
        .unwrap();
    let mut calls = 0;
    let outcome: longshore::Result<()> = db.update(|_| {
        calls += 1;
        Err(Error::Deadlock)
    });
    assert!(
        matches!(outcome, Err(Error::GaveUp { attempts: 3, .. })),
        "{outcome:?}"
    );
    assert_eq!(calls, 3);
}

/// Whatever races with closing is either in the database that the next opener finds, or refused; it
/// never happens behind the next opener's back.
#[test]
fn nothing_is_changed_after_closing() {
    for round in 0..20 {
        let disk = Arc::new(sim(round));
        let options = crate::support::small().background(longshore::Background::On);
        let db = crate::support::open_with(&disk, 1, options).unwrap();
        db.create_table("t").unwrap();
        let made = std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let mut made = vec!["t".to_owned()];
                for n in 0.. {
                    let name = format!("t{n}");
                    match db.create_table(&name).and_then(|_| db.checkpoint()) {
                        Ok(()) => made.push(name),
                        Err(Error::Closed) => break,
                        Err(error) => panic!("{error}"),
                    }
                    let _ = db.maintain();
                }
                made
            });
            while let Err(error) = db.close() {
                assert!(matches!(error, Error::StillInUse { .. }), "{error}");
            }
            let closed = disk.contents("data");
            let made = worker.join().unwrap();
            assert_eq!(disk.contents("data"), closed, "round {round}");
            made
        });
        let read_only = crate::support::small().read_only();
        let db = crate::support::open_with(&disk, 2, read_only).unwrap();
        let tables = db.tables().unwrap();
        assert!(
            made.iter().all(|name| tables.contains(name)),
            "{made:?} {tables:?}"
        );
        assert_sound(&db);
    }
}

#[test]
fn reading_into_a_buffer_replaces_what_it_held() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    let large = vec![7; 100_000];
    db.update(|tx| {
        tx.put(&table, "short", "v")?;
        tx.put(&table, "gone", "v")?;
        tx.put(&table, "large", &large)
    })
    .unwrap();
    db.update(|tx| tx.delete(&table, "gone")).unwrap();
    let mut value = b"left from before".to_vec();
    for (key, expected) in [
        ("short", Some(&b"v"[..])),
        ("absent", None),
        ("large", Some(&large)),
        ("gone", None),
    ] {
        let found = db.get_into(&table, key, &mut value).unwrap();
        assert_eq!(found, expected.is_some(), "{key}");
        assert_eq!(value, expected.unwrap_or_default(), "{key}");
    }
    // While a row is being changed, reading waits for it in a transaction: the other way through.
    let tx = db.begin().unwrap();
    tx.put(&table, "absent", "v").unwrap();
    let reader = std::thread::spawn({
        let (db, table) = (db.clone(), table.clone());
        move || {
            let mut value = b"left from before".to_vec();
            (db.get_into(&table, "absent", &mut value).unwrap(), value)
        }
    });
    std::thread::sleep(std::time::Duration::from_millis(50));
    tx.rollback().unwrap();
    assert_eq!(reader.join().unwrap(), (false, Vec::new()));
}
