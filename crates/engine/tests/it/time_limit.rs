//! Transactions that may take so long and no longer.

use crate::support::{in_memory, put, rows, sim, small};
use longshore::{Database, Error, Isolation, Result, TransactionOptions};
use longshore_base::SeededEnvironment;
use std::sync::Arc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(5);

/// A database whose clock stands still unless it is moved.
fn world() -> (Arc<SeededEnvironment>, Database) {
    let env = Arc::new(SeededEnvironment::new(1));
    let disk = Arc::new(sim(1));
    let db = Database::open_with_disk(disk as _, Arc::clone(&env) as _, small()).unwrap();
    (env, db)
}

fn is_up<T>(outcome: Result<T>) -> bool {
    matches!(outcome, Err(Error::TimeLimit { limit }) if limit == LIMIT)
}

#[test]
fn a_statement_that_comes_too_late_ends_the_transaction_and_frees_its_locks() {
    for isolation in [
        Isolation::Serializable,
        Isolation::Snapshot,
        Isolation::ReadCommitted,
    ] {
        let (env, db) = world();
        let table = db.create_table("t").unwrap();
        put(&db, &table, "k", "old");
        let options = TransactionOptions::new().isolation(isolation);
        let tx = db.begin_with(options.time_limit(LIMIT)).unwrap();
        tx.put(&table, "k", "new").unwrap();
        let mut cursor = tx.scan(&table, ..).unwrap();
        env.advance(LIMIT / 2);
        assert!(tx.get(&table, "k").unwrap().is_some());
        env.advance(LIMIT / 2);
        // Nobody watches it: its locks are held until it is heard of again.
        assert!(!db.locks(10).is_empty());
        let late = tx.get(&table, "k");
        assert!(is_up(late), "{isolation:?}");
        assert!(db.locks(10).is_empty(), "{isolation:?}");
        assert!(db.snapshots().is_empty(), "{isolation:?}");
        assert_eq!(rows(&db, &table), [(b"k".to_vec(), b"old".to_vec())]);
        // What follows says why.
        assert!(is_up(tx.put(&table, "k", "v")));
        assert!(is_up(cursor.next().unwrap()));
        assert!(is_up(tx.savepoint()));
        assert!(is_up(tx.commit()));
    }
}

#[test]
fn a_commit_that_comes_too_late_is_a_rollback() {
    let (env, db) = world();
    let table = db.create_table("t").unwrap();
    let options = TransactionOptions::new().time_limit(LIMIT);
    let tx = db.begin_with(options).unwrap();
    tx.put(&table, "k", "v").unwrap();
    env.advance(LIMIT);
    assert!(is_up(tx.commit()));
    assert_eq!(rows(&db, &table), []);
    assert!(db.locks(10).is_empty());
    // What reads only is late as well.
    let tx = db.begin_with(options.read_only()).unwrap();
    env.advance(LIMIT);
    assert!(is_up(tx.commit()));
    // One that has taken longer may still be rolled back by its user.
    let tx = db.begin_with(options).unwrap();
    tx.put(&table, "k", "v").unwrap();
    env.advance(LIMIT);
    tx.rollback().unwrap();
    assert!(db.locks(10).is_empty());
}

#[test]
fn a_wait_for_a_lock_lasts_no_longer_than_the_time_that_is_left() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    let holder = db.begin().unwrap();
    holder.put(&table, "k", "held").unwrap();
    let options = TransactionOptions::new().lock_wait(Duration::from_secs(3600));
    let limit = Duration::from_millis(20);
    let tx = db.begin_with(options.time_limit(limit)).unwrap();
    tx.put(&table, "own", "v").unwrap();
    let refused = tx.put(&table, "k", "v");
    assert!(
        matches!(refused, Err(Error::TimeLimit { .. })),
        "{refused:?}"
    );
    assert_eq!(db.get(&table, "own").unwrap(), None);
    // A wait that is given up before that is a time-out as ever.
    let short = options.lock_wait(Duration::from_millis(1));
    let tx = db.begin_with(short.time_limit(LIMIT * 100)).unwrap();
    let refused = tx.put(&table, "k", "v");
    assert!(
        matches!(refused, Err(Error::LockTimeout { .. })),
        "{refused:?}"
    );
}
