//! Locks on tables, their escalation, views of locks, and cancellation.

use longshore::{
    Background, Database, Error, LockEscalation, LockMode, Options, Table, TableLock,
    TransactionOptions,
};
use std::time::{Duration, Instant};

#[test]
fn a_locked_table_is_for_its_holder_alone_and_is_seen_in_the_views() {
    let db = Options::new().in_memory().unwrap();
    let table = db.create_table("stock").unwrap();
    let tx = db.begin().unwrap();
    tx.lock_table(&table, TableLock::Exclusive).unwrap();
    tx.put(&table, "k", "v").unwrap();
    let held = db.locks(10);
    assert_eq!(held.len(), 2, "the table and the database: {held:?}");
    assert!(held.iter().all(|lock| lock.transaction == tx.id()));
    assert!(
        held.iter()
            .any(|lock| lock.table.as_deref() == Some("stock")
                && lock.row.is_none()
                && lock.mode == LockMode::table(TableLock::Exclusive))
    );
    let hasty = TransactionOptions::new().lock_wait(Duration::ZERO);
    let other = db.begin_with(hasty).unwrap();
    assert!(matches!(
        other.get(&table, "x"),
        Err(Error::LockTimeout { .. })
    ));
    tx.commit().unwrap();
    assert_eq!(db.get(&table, "k").unwrap().as_deref(), Some(&b"v"[..]));
    assert!(db.locks(10).is_empty());
}

#[test]
fn many_rows_become_one_table_unless_the_table_is_exempt() {
    let options = Options::new().lock_escalation(LockEscalation::At(50));
    let db = options.in_memory().unwrap();
    let [table, exempt] = ["a", "b"].map(|name| db.create_table(name).unwrap());
    db.set_lock_escalation(&exempt, Some(LockEscalation::Never))
        .unwrap();
    for (table, rows) in [(&table, 0), (&exempt, 200)] {
        let tx = db.begin().unwrap();
        for n in 0..200_u32 {
            tx.put(table, n.to_be_bytes(), "v").unwrap();
        }
        let held = db.locks(1000);
        assert_eq!(held.iter().filter(|lock| lock.row.is_some()).count(), rows);
        tx.commit().unwrap();
    }
    let foreign = Database::in_memory().unwrap().create_table("x").unwrap();
    assert!(db.set_lock_escalation(&foreign, None).is_err());
}

/// Begins a transaction that takes a lock; its age, and the time since `before`.
fn age_of_a_lock(db: &Database, table: &Table, before: Instant) -> (Duration, Duration) {
    let tx = db.begin().unwrap();
    tx.get(table, "k").unwrap();
    let age = db.locks(10)[0].age;
    (age, before.elapsed())
}

#[test]
fn a_round_of_maintenance_tells_transactions_how_late_it_is() {
    let options = Options::new().background(Background::Off);
    let db = options.in_memory().unwrap();
    let table = db.create_table("t").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    let before = Instant::now();
    db.maintain().unwrap();
    let (age, elapsed) = age_of_a_lock(&db, &table, before);
    assert!(age <= elapsed, "{age:?} {elapsed:?}");
}

/// The view looks at the clock too, so the transaction must be younger than the view before it.
#[test]
fn background_threads_tell_transactions_how_late_it_is() {
    let db = Database::in_memory().unwrap();
    let table = db.create_table("t").unwrap();
    let start = Instant::now();
    loop {
        db.locks(1);
        let before = Instant::now();
        std::thread::sleep(Duration::from_millis(50));
        let (age, elapsed) = age_of_a_lock(&db, &table, before);
        if age < elapsed {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "nobody tells");
    }
}

#[test]
fn a_transaction_that_waits_is_cancelled_by_another_thread() {
    let db = Database::in_memory().unwrap();
    let table = db.create_table("t").unwrap();
    let holder = db.begin().unwrap();
    holder.put(&table, "k", "v").unwrap();
    let waiter = {
        let (db, table) = (db.clone(), table.clone());
        std::thread::spawn(move || {
            let tx = db.begin().unwrap();
            let error = tx.get(&table, "k").unwrap_err();
            assert!(matches!(error, Error::Cancelled), "{error}");
            assert!(!error.is_retryable());
            assert!(matches!(tx.get(&table, "x"), Err(Error::Cancelled)));
        })
    };
    let wait = loop {
        if let [wait] = &db.lock_waits()[..] {
            break wait.clone();
        }
        std::thread::yield_now();
    };
    assert_eq!(wait.table.as_deref(), Some("t"));
    assert_eq!(wait.waits_for, [holder.id()]);
    assert!(wait.row.is_some());
    assert!(db.cancel(wait.transaction));
    waiter.join().unwrap();
    assert!(!db.cancel(wait.transaction));
    holder.commit().unwrap();
}
