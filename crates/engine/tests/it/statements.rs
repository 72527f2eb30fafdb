//! Statements on rows beyond put and get: update, compare-and-set, several keys at once; and what a part
//! of a transaction leaves when it is taken back or fails.

use crate::people::{Person, message, person, world};
use crate::support::{assert_sound, in_memory, rows, small};
use longshore::{Database, Error, Isolation, Savepoint, Table, Transaction, TransactionOptions};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::io::Read;
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

#[test]
fn compare_and_set_changes_what_is_as_expected_and_nothing_else() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    let large = vec![7; 50_000];
    // What it becomes from what; each also refused from anything else.
    let path: [Option<&[u8]>; 6] = [None, Some(b"a"), Some(&large), Some(b""), None, None];
    for isolation in LEVELS {
        for step in path.windows(2) {
            let tx = begin(&db, isolation);
            for wrong in path.into_iter().filter(|wrong| *wrong != step[0]) {
                assert!(!tx.compare_and_set(&table, "k", wrong, step[1]).unwrap());
                assert_eq!(tx.get(&table, "k").unwrap().as_deref(), step[0]);
            }
            assert!(tx.compare_and_set(&table, "k", step[0], step[1]).unwrap());
            assert_eq!(tx.get(&table, "k").unwrap().as_deref(), step[1]);
            tx.commit().unwrap();
            assert_eq!(db.get(&table, "k").unwrap().as_deref(), step[1]);
        }
    }
    assert_sound(&db);
}

#[test]
fn a_comparison_that_fails_keeps_the_row_as_it_is_to_the_end() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    for isolation in LEVELS {
        for key in ["absent", "present"] {
            db.update(|tx| tx.put(&table, "present", "1")).unwrap();
            let tx = begin(&db, isolation);
            assert!(!tx.compare_and_set(&table, key, Some(b"2"), None).unwrap());
            let other = begin(&db, isolation);
            let refused = other.put(&table, key, "3");
            assert!(
                matches!(refused, Err(Error::LockTimeout { .. })),
                "{isolation:?} {key}: {refused:?}"
            );
        }
    }
}

#[test]
fn counters_raised_by_compare_and_set_lose_nothing() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 50;
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    let raise = |isolation| {
        let tx = db.begin_with(TransactionOptions::new().isolation(isolation))?;
        let old = tx.get(&table, "n")?;
        let new = old
            .as_deref()
            .map_or(0, |n| u64::from_be_bytes(n.try_into().unwrap()))
            + 1;
        let done = tx.compare_and_set(&table, "n", old.as_deref(), Some(&new.to_be_bytes()))?;
        tx.commit()?;
        Ok::<bool, Error>(done)
    };
    std::thread::scope(|scope| {
        for n in 0..THREADS {
            scope.spawn(move || {
                let isolation = LEVELS[n as usize % LEVELS.len()];
                let mut done = 0;
                while done < ROUNDS {
                    match raise(isolation) {
                        Ok(raised) => done += u64::from(raised),
                        Err(error) => assert!(error.is_retryable(), "{error}"),
                    }
                }
            });
        }
    });
    let total = db.get(&table, "n").unwrap().unwrap();
    assert_eq!(total, (THREADS * ROUNDS).to_be_bytes());
}

#[test]
fn several_keys_are_read_in_the_order_asked_for() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    db.update(|tx| (0..2000u16).try_for_each(|n| tx.put(&table, n.to_be_bytes(), [7; 20])))
        .unwrap();
    db.update(|tx| tx.put(&table, [9, 9, 9], vec![1; 30_000]))
        .unwrap();
    for isolation in LEVELS {
        let tx = begin(&db, isolation);
        tx.put(&table, 3u16.to_be_bytes(), "own").unwrap();
        let keys = [&[7, 0][..], &[0, 3], b"not there", &[9, 9, 9], &[0, 3]];
        let found = tx.get_many(&table, &keys).unwrap();
        let one_by_one: Vec<_> = keys
            .iter()
            .map(|key| tx.get(&table, key).unwrap())
            .collect();
        assert_eq!(found, one_by_one);
        assert_eq!(found[1].as_deref(), Some(&b"own"[..]));
        let none: [&[u8]; 0] = [];
        assert_eq!(tx.get_many(&table, &none).unwrap(), []);
        tx.rollback().unwrap();
    }
    assert!(db.snapshots().is_empty());
}

#[test]
fn indexes_follow_updates_and_comparisons() {
    let db = in_memory();
    let world = world(&db).unwrap();
    let [ada, grace] = [person("Lovelace", 1), person("Hopper", 2)];
    let numbers = |last: &str| -> Vec<u32> {
        let tx = db.begin().unwrap();
        let found = world.by_last.find(&tx, last).unwrap();
        found.map(|row| row.unwrap().1).collect()
    };
    let people = &world.people;
    assert!(!people.update(&db, 7, &ada).unwrap());
    assert!(!people.compare_and_set(&db, 7, Some(&ada), None).unwrap());
    assert!(people.compare_and_set(&db, 7, None, None).unwrap());
    assert!(people.compare_and_set(&db, 7, None, Some(&ada)).unwrap());
    assert_eq!(numbers("Lovelace"), [7]);
    assert!(!people.compare_and_set(&db, 7, None, Some(&grace)).unwrap());
    assert!(people.update(&db, 7, &grace).unwrap());
    assert_eq!((numbers("Lovelace"), numbers("Hopper")), (vec![], vec![7]));

    people.insert(&db, 8, &ada).unwrap();
    let taken = Person {
        badge: grace.badge,
        ..ada.clone()
    };
    let refused = message(people.compare_and_set(&db, 8, Some(&ada), Some(&taken)));
    assert!(refused.contains("unique index `by badge`"), "{refused}");
    assert!(message(people.update(&db, 8, &taken)).contains("by badge"));
    assert!(people.compare_and_set(&db, 7, Some(&grace), None).unwrap());
    assert_eq!(numbers("Hopper"), []);
    assert_eq!(people.get_many(&db, [7, 8]).unwrap(), [None, Some(ada)]);
    assert_sound(&db);
}

#[test]
fn a_released_savepoint_is_gone_with_those_after_it_and_its_changes_stay() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    let tx = db.begin().unwrap();
    let outer = tx.savepoint().unwrap();
    tx.put(&table, "a", "1").unwrap();
    let middle = tx.savepoint().unwrap();
    tx.put(&table, "b", "2").unwrap();
    let inner = tx.savepoint().unwrap();
    tx.release_savepoint(&middle).unwrap();
    for gone in [&middle, &inner] {
        assert!(matches!(tx.rollback_to(gone), Err(Error::SavepointGone)));
        assert!(matches!(
            tx.release_savepoint(gone),
            Err(Error::SavepointGone)
        ));
    }
    assert_eq!(tx.get(&table, "b").unwrap().as_deref(), Some(&b"2"[..]));
    let foreign = db.begin().unwrap();
    let theirs = foreign.savepoint().unwrap();
    assert!(matches!(
        tx.release_savepoint(&theirs),
        Err(Error::SavepointGone)
    ));
    tx.rollback_to(&outer).unwrap();
    assert_eq!(tx.get(&table, "a").unwrap(), None);
}

/// A row of a model, and what of it is known at each savepoint.
type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Nested savepoints over some thousand rows in small pages: leaves split and empty between a savepoint
/// and the way back to it.
#[test]
fn nested_savepoints_go_back_across_splits() {
    for (seed, isolation) in (1..=3).zip(LEVELS) {
        println!("seed {seed}");
        let mut rng = SmallRng::seed_from_u64(seed);
        let options = small().log_bytes_max(64 << 20).lock_bytes_max(4 << 20);
        let db = options.in_memory().unwrap();
        let table = db.create_table("t").unwrap();
        let mut committed = Model::new();
        for _ in 0..6 {
            let tx = begin(&db, isolation);
            let mut now = committed.clone();
            let mut saves: Vec<(Savepoint, Model)> = Vec::new();
            for _ in 0..12 {
                change_many(&tx, &table, &mut now, &mut rng);
                match rng.random_range(0..4) {
                    0 if !saves.is_empty() => {
                        let at = rng.random_range(0..saves.len());
                        saves.truncate(at + 1);
                        tx.rollback_to(&saves[at].0).unwrap();
                        now = saves[at].1.clone();
                    }
                    1 if !saves.is_empty() => {
                        let at = rng.random_range(0..saves.len());
                        tx.release_savepoint(&saves[at].0).unwrap();
                        saves.truncate(at);
                    }
                    _ => saves.push((tx.savepoint().unwrap(), now.clone())),
                }
                let seen: Model = tx
                    .scan(&table, ..)
                    .unwrap()
                    .collect::<Result<_, _>>()
                    .unwrap();
                assert!(seen == now, "seed {seed}: not what the savepoints say");
            }
            if rng.random() {
                tx.commit().unwrap();
                committed = now;
            } else {
                tx.rollback().unwrap();
            }
            let seen: Model = rows(&db, &table).into_iter().collect();
            assert!(seen == committed, "seed {seed}: not what was committed");
        }
        assert_sound(&db);
    }
}

/// Some hundred inserts side by side, which split leaves, or deletes, which empty them.
fn change_many(tx: &Transaction, table: &Table, now: &mut Model, rng: &mut SmallRng) {
    let from: u16 = rng.random_range(0..5000);
    let many = from..from + rng.random_range(1..400);
    if rng.random_range(0..3) == 0 {
        let (low, high) = (many.start.to_be_bytes(), many.end.to_be_bytes());
        tx.delete_range(table, low..high).unwrap();
        now.retain(|key, _| !(low.to_vec()..high.to_vec()).contains(key));
        return;
    }
    for key in many.map(u16::to_be_bytes) {
        let value = vec![rng.random(); rng.random_range(0..90)];
        tx.put(table, key, &value).unwrap();
        now.insert(key.to_vec(), value);
    }
}

/// A statement that has changed many rows when it fails leaves none of them changed, nor an earlier
/// statement undone.
#[test]
fn a_statement_that_fails_half_way_has_changed_nothing() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    db.update(|tx| (0..2000u16).try_for_each(|n| tx.put(&table, n.to_be_bytes(), "old")))
        .unwrap();
    let before = rows(&db, &table);
    let holder = begin(&db, Isolation::Serializable);
    holder.put(&table, 1500u16.to_be_bytes(), "held").unwrap();
    for isolation in LEVELS {
        let tx = begin(&db, isolation);
        tx.put(&table, "own", "1").unwrap();
        // The row that another transaction holds ends this one, whole.
        let refused = tx.delete_range(&table, ..);
        assert!(
            matches!(refused, Err(Error::LockTimeout { .. })),
            "{isolation:?}: {refused:?}"
        );
        drop(tx);
        let left: usize = db.begin().unwrap().prefix(&table, "own").unwrap().count();
        assert_eq!(left, 0);
    }
    holder.rollback().unwrap();
    assert_eq!(rows(&db, &table), before);

    // An error that does not end the transaction takes its own statement back only.
    let tx = db.begin().unwrap();
    tx.put(&table, "own", "1").unwrap();
    let failing = std::io::repeat(1).take(100_000).chain(Failing);
    let refused = tx.put_stream(&table, 0u16.to_be_bytes(), failing);
    assert!(matches!(refused, Err(Error::Source { .. })), "{refused:?}");
    let too_long = vec![0; 4000];
    let refused = tx.compare_and_set(&table, &too_long, None, Some(b"v"));
    assert!(matches!(refused, Err(Error::KeyTooLong { .. })));
    tx.commit().unwrap();
    assert_eq!(rows(&db, &table).len(), before.len() + 1);
    assert_eq!(
        db.get(&table, 0u16.to_be_bytes()).unwrap().as_deref(),
        Some(&b"old"[..])
    );
    assert_sound(&db);
}

/// A source that gives nothing but an error.
struct Failing;

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("the tape is torn"))
    }
}

/// A cursor sees what its own transaction does, ahead of it, at every level; what is taken back it does
/// not see.
#[test]
fn an_open_cursor_reads_its_own_transactions_writes() {
    for isolation in LEVELS {
        let db = in_memory();
        let table = db.create_table("t").unwrap();
        db.update(|tx| (0..40u8).try_for_each(|n| tx.put(&table, [n], "old")))
            .unwrap();
        let tx = begin(&db, isolation);
        let mut cursor = tx.scan(&table, ..).unwrap();
        let mut next = || cursor.next_row().unwrap().map(|(k, v)| (k[0], v.to_vec()));
        assert_eq!(next(), Some((0, b"old".to_vec())));
        tx.update(&table, [1], "new").unwrap();
        tx.delete(&table, [2]).unwrap();
        tx.insert(&table, [3, 0], "between").unwrap();
        assert_eq!(next(), Some((1, b"new".to_vec())), "{isolation:?}");
        assert_eq!(next(), Some((3, b"old".to_vec())), "{isolation:?}");
        assert_eq!(next(), Some((3, b"between".to_vec())), "{isolation:?}");
        let before = tx.savepoint().unwrap();
        tx.delete_range(&table, [4]..).unwrap();
        tx.insert(&table, [5, 1], "tried").unwrap();
        tx.rollback_to(&before).unwrap();
        // Behind the cursor: not seen any more.
        tx.put(&table, [0], "late").unwrap();
        let rest: Vec<u8> = std::iter::from_fn(next).map(|(key, _)| key).collect();
        assert_eq!(rest, (4..40).collect::<Vec<u8>>(), "{isolation:?}");
    }
}
