//! Cursors from either end, while their own transaction changes the table, and after its end.

use crate::support::in_memory;
use longshore::{Cursor, Error};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

fn keys(cursor: Cursor) -> Vec<u8> {
    cursor.map(|row| row.unwrap().0[0]).collect()
}

#[test]
fn all_kinds_of_ranges() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    db.update(|tx| (0..10u8).try_for_each(|n| tx.put(&table, [n], [n])))
        .unwrap();
    let tx = db.begin().unwrap();
    assert_eq!(
        keys(tx.scan(&table, ..).unwrap()),
        (0..10).collect::<Vec<_>>()
    );
    assert_eq!(keys(tx.scan(&table, [3]..[5]).unwrap()), [3, 4]);
    assert_eq!(keys(tx.scan(&table, [3]..=[5]).unwrap()), [3, 4, 5]);
    assert_eq!(keys(tx.scan(&table, [8]..).unwrap()), [8, 9]);
    assert_eq!(keys(tx.scan(&table, ..[2]).unwrap()), [0, 1]);
    assert_eq!(keys(tx.scan(&table, ..=[2]).unwrap()), [0, 1, 2]);
    assert_eq!(keys(tx.scan(&table, [5]..[3]).unwrap()), []);
    assert_eq!(keys(tx.scan(&table, [3]..[5]).unwrap().reverse()), [4, 3]);
    assert_eq!(keys(tx.prefix(&table, [7]).unwrap()), [7]);
    assert_eq!(keys(tx.prefix(&table, []).unwrap()).len(), 10);
}

#[test]
fn deleting_behind_the_cursor_reaches_every_row() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    db.update(|tx| (0..3000u32).try_for_each(|n| tx.put(&table, n.to_be_bytes(), [1; 20])))
        .unwrap();
    let deleted = db
        .update(|tx| {
            let mut deleted = 0;
            for row in tx.scan(&table, ..)? {
                deleted += u32::from(tx.delete(&table, row?.0)?);
            }
            Ok(deleted)
        })
        .unwrap();
    assert_eq!(deleted, 3000);
    assert_eq!(crate::support::rows(&db, &table), []);
}

#[test]
fn rows_written_ahead_of_the_cursor_are_seen() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    let tx = db.begin().unwrap();
    tx.put(&table, [1], "one").unwrap();
    let mut cursor = tx.scan(&table, ..).unwrap();
    assert_eq!(cursor.next().unwrap().unwrap().0, [1]);
    tx.put(&table, [2], "two").unwrap();
    assert_eq!(cursor.next_row().unwrap(), Some((&[2][..], &b"two"[..])));
    assert_eq!(cursor.next_row().unwrap(), None);
    tx.put(&table, [3], "three").unwrap();
    assert_eq!(cursor.next_row().unwrap(), Some((&[3][..], &b"three"[..])));
}

#[test]
fn cursor_outlives_its_transaction_but_not_its_use() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    let tx = db.begin().unwrap();
    tx.put(&table, "k", "v").unwrap();
    let mut cursor = tx.scan(&table, ..).unwrap();
    tx.commit().unwrap();
    assert!(matches!(cursor.next(), Some(Err(Error::TransactionEnded))));
    let fresh = db.begin().unwrap().scan(&table, ..).unwrap();
    assert!(matches!(fresh.last(), Some(Err(Error::TransactionEnded))));
}

#[derive(Clone, Debug)]
enum Move {
    Front,
    Back,
    Put(u16),
    Delete(u16),
}

fn moves() -> impl Strategy<Value = Move> {
    prop_oneof![
        10 => Just(Move::Front),
        10 => Just(Move::Back),
        1 => (0u16..600).prop_map(Move::Put),
        1 => (0u16..600).prop_map(Move::Delete),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// The model: what both ends have not yet passed, in the map as it is now.
    #[test]
    fn both_ends_meet_in_the_middle(
        filled in proptest::collection::btree_set(0u16..600, 0..400),
        moves in proptest::collection::vec(moves(), 0..500),
    ) {
        let db = in_memory();
        let table = db.create_table("t").unwrap();
        let tx = db.begin().unwrap();
        let mut model = BTreeMap::new();
        for key in filled {
            tx.put(&table, key.to_be_bytes(), [7; 100]).unwrap();
            model.insert(key, ());
        }
        let mut cursor = tx.scan(&table, ..).unwrap();
        let (mut low, mut high) = (0, u16::MAX);
        for step in moves {
            match step {
                Move::Front => {
                    let expected = model.range(low..high.max(low)).next().map(|(key, ())| *key);
                    let found = cursor.next().map(|row| row.unwrap().0);
                    prop_assert_eq!(&found, &expected.map(|key| key.to_be_bytes().to_vec()));
                    low = expected.map_or(low, |key| key + 1);
                }
                Move::Back => {
                    let expected = model.range(low..high.max(low)).next_back().map(|(key, ())| *key);
                    let found = cursor.next_back().map(|row| row.unwrap().0);
                    prop_assert_eq!(&found, &expected.map(|key| key.to_be_bytes().to_vec()));
                    high = expected.unwrap_or(high);
                }
                Move::Put(key) => {
                    tx.put(&table, key.to_be_bytes(), [8; 100]).unwrap();
                    model.insert(key, ());
                }
                Move::Delete(key) => {
                    let was_there = tx.delete(&table, key.to_be_bytes()).unwrap();
                    prop_assert_eq!(was_there, model.remove(&key).is_some());
                }
            }
        }
        let rest: VecDeque<_> = cursor.map(|row| row.unwrap().0).collect();
        prop_assert_eq!(rest.len(), model.range(low..high.max(low)).count());
    }
}
