//! Many threads at once.

use crate::support::{assert_sound, in_memory};
use longshore::{Database, Durability, Error, Options, Result, Table, Transaction};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const ACCOUNTS: u64 = 20;
const BALANCE: u64 = 100;

fn balance(tx: &Transaction, table: &Table, account: u64) -> Result<u64> {
    let value = tx
        .get(table, account.to_be_bytes())?
        .expect("the account is there");
    Ok(u64::from_be_bytes(value.try_into().expect("eight bytes")))
}

fn set(tx: &Transaction, table: &Table, account: u64, balance: u64) -> Result<()> {
    tx.put(table, account.to_be_bytes(), balance.to_be_bytes())
}

fn total(db: &Database, table: &Table) -> u64 {
    db.view(|tx| {
        (0..ACCOUNTS)
            .map(|account| balance(tx, table, account))
            .sum()
    })
    .unwrap()
}

#[test]
fn money_is_neither_made_nor_lost_under_contention() {
    let db = in_memory();
    let table = db.create_table("accounts").unwrap();
    db.update(|tx| (0..ACCOUNTS).try_for_each(|a| set(tx, &table, a, BALANCE)))
        .unwrap();
    let (done, transfers) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let tellers: Vec<_> = (0..8)
            .map(|seed| {
                let (db, table, transfers) = (&db, &table, &transfers);
                scope.spawn(move || {
                    let mut random = SmallRng::seed_from_u64(seed);
                    for _ in 0..150 {
                        let (from, to) = (
                            random.random_range(0..ACCOUNTS),
                            random.random_range(0..ACCOUNTS),
                        );
                        // Read first, write later: this deadlocks and must be retried.
                        db.update(|tx| {
                            let has = balance(tx, table, from)?;
                            let other = balance(tx, table, to)?;
                            if has == 0 || from == to {
                                return Ok(());
                            }
                            set(tx, table, from, has - 1)?;
                            set(tx, table, to, other + 1)
                        })
                        .unwrap();
                        transfers.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let auditor = scope.spawn(|| {
            let mut audits = 0;
            loop {
                assert_eq!(total(&db, &table), ACCOUNTS * BALANCE);
                audits += 1;
                if done.load(Ordering::Relaxed) {
                    return audits;
                }
            }
        });
        tellers
            .into_iter()
            .for_each(|teller| teller.join().unwrap());
        done.store(true, Ordering::Relaxed);
        assert!(auditor.join().unwrap() > 0);
    });
    assert_eq!(transfers.into_inner(), 1200);
    assert_eq!(total(&db, &table), ACCOUNTS * BALANCE);
    assert_sound(&db);
}

#[test]
fn single_reads_see_committed_values_only() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    db.update(|tx| tx.put(&table, "k", [0, 0])).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut last = 0;
            while !done.load(Ordering::Relaxed) {
                let value = db.get(&table, "k").unwrap().unwrap();
                assert_eq!(value[0], value[1], "half of a transaction was seen");
                assert!(value[0] >= last, "an older value after a newer one");
                last = value[0];
            }
        });
        for n in 1..=200u8 {
            let tx = db.begin().unwrap();
            tx.put(&table, "k", [n, 0]).unwrap();
            tx.put(&table, "k", [n, n]).unwrap();
            match n % 5 {
                0 => tx.rollback().unwrap(),
                _ => tx.commit().unwrap(),
            }
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
}

#[test]
fn anomaly_write_skew_is_prevented() {
    let db = in_memory();
    let table = db.create_table("on_call").unwrap();
    for round in 0..50 {
        db.update(|tx| {
            tx.put(&table, "alice", "yes")?;
            tx.put(&table, "bob", "yes")
        })
        .unwrap();
        // Each goes off call if the other one is on call.
        let leave = |me: &str| {
            db.update(|tx| {
                let on_call = tx
                    .scan(&table, ..)?
                    .filter(|row| matches!(row, Ok((_, v)) if v == b"yes"));
                if on_call.count() == 2 {
                    tx.put(&table, me, "no")?;
                }
                Ok(())
            })
            .unwrap();
        };
        std::thread::scope(|scope| {
            scope.spawn(|| leave("alice"));
            scope.spawn(|| leave("bob"));
        });
        let on_call = crate::support::rows(&db, &table)
            .iter()
            .filter(|(_, v)| v == b"yes")
            .count();
        assert_eq!(on_call, 1, "round {round}");
    }
}

#[test]
fn phantoms_do_not_appear() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    let reader = db.begin().unwrap();
    assert_eq!(reader.scan(&table, "a".."m").unwrap().count(), 0);
    let impatient = longshore::TransactionOptions::new().lock_wait(std::time::Duration::ZERO);
    let writer = db.begin_with(impatient).unwrap();
    let refused = writer.insert(&table, "k", "v").unwrap_err();
    assert!(matches!(refused, Error::LockTimeout { .. }), "{refused}");
    assert!(refused.is_retryable());
    drop(writer);
    assert_eq!(reader.scan(&table, "a".."m").unwrap().count(), 0);
    reader.commit().unwrap();
    db.update(|tx| tx.insert(&table, "k", "v")).unwrap();
}

#[test]
fn deadlock_victim_is_told_and_everything_else_goes_on() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    db.update(|tx| {
        tx.put(&table, "a", "0")?;
        tx.put(&table, "b", "0")
    })
    .unwrap();
    let (one, two) = (db.begin().unwrap(), db.begin().unwrap());
    one.put(&table, "a", "1").unwrap();
    two.put(&table, "b", "2").unwrap();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| one.put(&table, "b", "1"));
        let second = two.put(&table, "a", "2");
        let first = first.join().unwrap();
        let victims = [&first, &second]
            .iter()
            .filter(|outcome| outcome.is_err())
            .count();
        assert_eq!(victims, 1, "{first:?} {second:?}");
        for (outcome, tx) in [(first, &one), (second, &two)] {
            if let Err(error) = outcome {
                assert!(matches!(error, Error::Deadlock), "{error}");
                let again = tx.get(&table, "a").unwrap_err();
                assert!(matches!(again, Error::Deadlock), "{again}");
            }
        }
    });
}

#[test]
fn commit_handles_answer_waiters_and_futures() {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    let db = in_memory();
    let table = db.create_table("t").unwrap();
    let tx = db.begin().unwrap();
    tx.put(&table, "k", "v").unwrap();
    let handle = tx.commit_with(Durability::Sync).unwrap();
    // Visible before it is durable, and durable in the end.
    assert!(db.view(|tx| tx.contains(&table, "k")).unwrap());
    handle.wait().unwrap();

    let tx = db.begin().unwrap();
    tx.put(&table, "k", "w").unwrap();
    let mut handle = pin!(tx.commit_with(Durability::Sync).unwrap());
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match handle.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => break outcome.unwrap(),
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

#[test]
fn background_threads_keep_a_small_log_and_pool_going() {
    let db = Options::new()
        .durability(Durability::None)
        .pool_bytes(1 << 20)
        .log_segment_bytes(128 << 10)
        .log_bytes_max(1 << 20)
        .log_buffer_bytes(64 << 10)
        .in_memory()
        .unwrap();
    let table = db.create_table("t").unwrap();
    std::thread::scope(|scope| {
        for writer in 0..2u32 {
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                for n in 0..4000u32 {
                    let key = (n * 2 + writer).to_be_bytes();
                    db.update(|tx| tx.put(table, key, [writer as u8; 300]))
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(crate::support::rows(&db, &table).len(), 8000);
    assert!(db.stats().checkpoints > 1, "{:?}", db.stats());
    assert!(
        db.stats().background_error.is_none(),
        "{:?}",
        db.stats().background_error
    );
    assert_sound(&db);
}
