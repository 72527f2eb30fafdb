//! Does the database act like a map? Random operations against a `BTreeMap`, with rollbacks,
//! savepoints, checkpoints, clean reopening, and crashes in between.

use crate::support::{assert_sound, crash, open, sim};
use longshore::{Database, Table, Transaction};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Op {
    Insert(Vec<u8>, Vec<u8>),
    Put(Vec<u8>, Vec<u8>),
    Modify(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
    Get(Vec<u8>),
    Scan(Bound<Vec<u8>>, Bound<Vec<u8>>, bool),
    Prefix(Vec<u8>),
}

#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<Op>),
    Rollback(Vec<Op>),
    /// The second part is undone by a savepoint.
    Savepoint(Vec<Op>, Vec<Op>, Vec<Op>),
    Checkpoint,
    Maintain,
    Reopen,
    Crash(u64),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (0u16..300).prop_map(|n| n.to_be_bytes().to_vec()),
        1 => proptest::collection::vec(0u8..3, 0..6),
        1 => (0u8..4, 100usize..700).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let len = prop_oneof![6 => 0usize..60, 2 => 200usize..900, 1 => 1500usize..9000];
    (any::<u8>(), len).prop_map(|(byte, len)| vec![byte; len])
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        key().prop_map(Bound::Included),
        key().prop_map(Bound::Excluded),
        Just(Bound::Unbounded)
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (key(), value()).prop_map(|(k, v)| Op::Insert(k, v)),
        6 => (key(), value()).prop_map(|(k, v)| Op::Put(k, v)),
        3 => (key(), value()).prop_map(|(k, v)| Op::Modify(k, v)),
        3 => key().prop_map(Op::Delete),
        1 => (key(), key()).prop_map(|(a, b)| Op::DeleteRange(a, b)),
        2 => key().prop_map(Op::Get),
        2 => (bound(), bound(), any::<bool>()).prop_map(|(a, b, r)| Op::Scan(a, b, r)),
        1 => key().prop_map(Op::Prefix),
    ]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    proptest::collection::vec(op(), 0..30)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => ops().prop_map(Step::Commit),
        2 => ops().prop_map(Step::Rollback),
        2 => (ops(), ops(), ops()).prop_map(|(a, b, c)| Step::Savepoint(a, b, c)),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Maintain),
        1 => Just(Step::Reopen),
        1 => any::<u64>().prop_map(Step::Crash),
    ]
}

fn run(tx: &Transaction, table: &Table, model: &mut Model, ops: &[Op]) {
    for op in ops {
        apply(tx, table, model, op);
    }
}

fn apply(tx: &Transaction, table: &Table, model: &mut Model, op: &Op) {
    match op {
        Op::Insert(key, value) => {
            let outcome = tx.insert(table, key, value);
            assert_eq!(outcome.is_err(), model.contains_key(key), "{outcome:?}");
            model.entry(key.clone()).or_insert_with(|| value.clone());
        }
        Op::Put(key, value) => {
            tx.put(table, key, value).unwrap();
            model.insert(key.clone(), value.clone());
        }
        Op::Modify(key, tail) => {
            // Half of what was there stays.
            let change = |value: &mut Vec<u8>| {
                value.truncate(value.len() / 2);
                value.extend_from_slice(tail);
                Ok(())
            };
            let done = tx.modify(table, key, change).unwrap();
            assert_eq!(done, model.contains_key(key));
            model.entry(key.clone()).and_modify(|value| {
                value.truncate(value.len() / 2);
                value.extend_from_slice(tail);
            });
        }
        Op::Delete(key) => {
            let was_there = model.remove(key).is_some();
            assert_eq!(tx.delete(table, key).unwrap(), was_there);
        }
        Op::DeleteRange(low, high) => {
            let before = model.len();
            model.retain(|key, _| !(low <= key && key < high));
            let removed = tx.delete_range(table, low..high).unwrap();
            assert_eq!(removed as usize, before - model.len());
        }
        Op::Get(key) => {
            assert_eq!(tx.get(table, key).unwrap(), model.get(key).cloned());
            assert_eq!(tx.contains(table, key).unwrap(), model.contains_key(key));
        }
        Op::Scan(low, high, reverse) => scan(tx, table, model, low, high, *reverse),
        Op::Prefix(prefix) => {
            let found: Vec<_> = tx
                .prefix(table, prefix)
                .unwrap()
                .map(Result::unwrap)
                .collect();
            let expected: Vec<_> = model
                .iter()
                .filter(|(key, _)| key.starts_with(prefix))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            assert_eq!(found, expected);
        }
    }
}

fn scan(
    tx: &Transaction,
    table: &Table,
    model: &Model,
    low: &Bound<Vec<u8>>,
    high: &Bound<Vec<u8>>,
    reverse: bool,
) {
    let within = |key: &Vec<u8>| {
        let above = match low {
            Bound::Included(low) => key >= low,
            Bound::Excluded(low) => key > low,
            Bound::Unbounded => true,
        };
        let below = match high {
            Bound::Included(high) => key <= high,
            Bound::Excluded(high) => key < high,
            Bound::Unbounded => true,
        };
        above && below
    };
    let mut expected: Vec<_> = model
        .iter()
        .filter(|(key, _)| within(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let mut cursor = tx.scan(table, (low.clone(), high.clone())).unwrap();
    if reverse {
        expected.reverse();
        cursor = cursor.reverse();
    }
    let found: Vec<_> = cursor.map(Result::unwrap).collect();
    assert_eq!(found, expected);
}

fn play(db: &Database, table: &Table, model: &mut Model, step: &Step) {
    match step {
        Step::Commit(ops) => {
            let tx = db.begin().unwrap();
            run(&tx, table, model, ops);
            tx.commit().unwrap();
        }
        Step::Rollback(ops) => {
            let tx = db.begin().unwrap();
            run(&tx, table, &mut model.clone(), ops);
            tx.rollback().unwrap();
        }
        Step::Savepoint(before, undone, after) => {
            let tx = db.begin().unwrap();
            run(&tx, table, model, before);
            let savepoint = tx.savepoint().unwrap();
            run(&tx, table, &mut model.clone(), undone);
            tx.rollback_to(&savepoint).unwrap();
            run(&tx, table, model, after);
            tx.commit().unwrap();
        }
        Step::Checkpoint => db.checkpoint().unwrap(),
        Step::Maintain => {
            db.maintain().unwrap();
        }
        Step::Reopen | Step::Crash(_) => unreachable!("done by the caller"),
    }
    for (key, value) in model.iter().take(5) {
        assert_eq!(db.get(table, key).unwrap().as_ref(), Some(value));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn database_acts_like_a_map(steps in proptest::collection::vec(step(), 1..25)) {
        let mut disk = Arc::new(sim(1));
        let mut db = open(&disk, 1).unwrap();
        let mut table = db.create_table("map").unwrap();
        let mut model = Model::new();
        for step in &steps {
            match step {
                Step::Reopen => {
                    db.close().unwrap();
                    drop(db);
                }
                Step::Crash(seed) => {
                    disk.crash_now();
                    drop(db);
                    disk = crash(&disk, *seed);
                }
                step => {
                    play(&db, &table, &mut model, step);
                    continue;
                }
            }
            db = open(&disk, 1).unwrap();
            table = db.table("map").unwrap();
        }
        let rows = crate::support::rows(&db, &table);
        prop_assert_eq!(rows, model.into_iter().collect::<Vec<_>>());
        assert_sound(&db);
    }
}
