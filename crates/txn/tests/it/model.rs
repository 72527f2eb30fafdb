//! One transaction at a time against a map: random statements, savepoints and endings, which shrink.

use crate::scans;
use crate::world::{World, WorldOptions};
use longshore_log::Level;
use longshore_txn::{Direction, TxnError};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;

#[derive(Clone, Debug)]
enum Op {
    Get(u8),
    Insert(u8, usize),
    Put(u8, usize),
    Update(u8, usize),
    Modify(u8, usize, usize),
    CompareAndSet(u8, bool, usize),
    GetMany(Vec<u8>),
    Delete(u8),
    DeleteRange(u8, u8),
    Scan(u8, u8, bool, usize),
    Savepoint,
    RollbackTo(usize),
    Release(usize),
    Commit,
    Rollback,
    Purge,
}

fn op() -> impl Strategy<Value = Op> {
    // Now and then a value that needs a chain.
    let len = prop_oneof![9 => 0..600usize, 1 => 5_000..12_000usize];
    let key = any::<u8>();
    prop_oneof![
        3 => key.prop_map(Op::Get),
        4 => (key, len.clone()).prop_map(|(k, n)| Op::Insert(k, n)),
        6 => (key, len.clone()).prop_map(|(k, n)| Op::Put(k, n)),
        2 => (key, len.clone()).prop_map(|(k, n)| Op::Update(k, n)),
        4 => (key, 0..600usize, len.clone()).prop_map(|(k, kept, n)| Op::Modify(k, kept, n)),
        3 => (key, any::<bool>(), len).prop_map(|(k, e, n)| Op::CompareAndSet(k, e, n)),
        1 => prop::collection::vec(key, 0..8).prop_map(Op::GetMany),
        4 => key.prop_map(Op::Delete),
        1 => (key, key).prop_map(|(a, b)| Op::DeleteRange(a, b)),
        2 => (key, key, any::<bool>(), 1..30usize).prop_map(|(a, b, r, n)| Op::Scan(a, b, r, n)),
        2 => Just(Op::Savepoint),
        1 => any::<usize>().prop_map(Op::RollbackTo),
        1 => any::<usize>().prop_map(Op::Release),
        2 => Just(Op::Commit),
        1 => Just(Op::Rollback),
        1 => Just(Op::Purge),
    ]
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn a_table_acts_like_a_map_with_undo(ops in prop::collection::vec(op(), 1..120)) {
        play(&ops);
    }
}

fn play(ops: &[Op]) {
    let world = World::with(WorldOptions {
        pool_bytes: 1 << 20,
        ..WorldOptions::default()
    });
    let [tree, _] = world.tables;
    let mut committed = Map::new();
    let mut now = committed.clone();
    let mut saves = Vec::new();
    let mut txn = world.begin();
    for (n, op) in ops.iter().enumerate() {
        // They begin and end alike, so that updates keep much of them.
        let value = |len: usize| {
            let mut value = vec![7; len];
            value[len / 3..len - len / 3].fill(n as u8);
            value
        };
        match *op {
            Op::Get(k) => assert_eq!(txn.get(tree, &[k]).unwrap(), now.get(&vec![k]).cloned()),
            Op::Insert(k, len) => match txn.insert(tree, &[k], &value(len)) {
                Ok(()) => assert!(now.insert(vec![k], value(len)).is_none()),
                Err(TxnError::KeyExists) => assert!(now.contains_key(&vec![k])),
                Err(error) => panic!("{error}"),
            },
            Op::Put(k, len) => {
                txn.put(tree, &[k], &value(len)).unwrap();
                now.insert(vec![k], value(len));
            }
            Op::Update(k, len) => {
                let done = txn.update(tree, &[k], &value(len)).unwrap();
                assert_eq!(done, now.contains_key(&vec![k]));
                now.entry(vec![k]).and_modify(|old| *old = value(len));
            }
            Op::Modify(k, kept, len) => {
                let mut found_value = Vec::new();
                let found = txn.find_to_change(tree, &[k], &mut found_value).unwrap();
                assert_eq!(found.as_ref().map(|_| &found_value), now.get(&vec![k]));
                if let Some(found) = found {
                    // Of some of them all is kept.
                    let new = match kept < found_value.len() {
                        true => [&found_value[..kept], &value(len)].concat(),
                        false => found_value,
                    };
                    // Now and then the row is taken out in between.
                    let is_gone = len % 7 == 0 && txn.delete(tree, &[k]).unwrap();
                    let done = txn.change_found(&found, &[k], &new).unwrap();
                    assert_eq!(done, !is_gone);
                    match done {
                        true => now.insert(vec![k], new),
                        false => now.remove(&vec![k]),
                    };
                }
            }
            Op::CompareAndSet(k, as_it_is, len) => {
                let old = now.get(&vec![k]).cloned();
                let expected = old.clone().filter(|_| as_it_is);
                // A length of zero stands for no row.
                let new = (len > 0).then(|| value(len));
                let done = txn
                    .compare_and_set(tree, &[k], expected.as_deref(), new.as_deref())
                    .unwrap();
                assert_eq!(done, old == expected);
                match new {
                    Some(new) if done => drop(now.insert(vec![k], new)),
                    None if done => drop(now.remove(&vec![k])),
                    _ => {}
                }
            }
            Op::GetMany(ref keys) => {
                let keys: Vec<[u8; 1]> = keys.iter().map(|k| [*k]).collect();
                let asked: Vec<&[u8]> = keys.iter().map(|k| &k[..]).collect();
                let expected: Vec<_> = keys.iter().map(|k| now.get(&k[..]).cloned()).collect();
                assert_eq!(txn.get_many(tree, &asked).unwrap(), expected);
            }
            Op::Delete(k) => {
                assert_eq!(
                    txn.delete(tree, &[k]).unwrap(),
                    now.remove(&vec![k]).is_some()
                );
            }
            Op::DeleteRange(a, b) => {
                let (low, high) = (Bound::Included(&[a][..]), Bound::Excluded(&[b][..]));
                let before = now.len();
                now.retain(|key, _| !(a..b).contains(&key[0]));
                let count = txn.delete_range(tree, low, high).unwrap();
                assert_eq!(count as usize, before - now.len());
            }
            Op::Scan(a, b, reverse, rows_max) => {
                let (low, high) = (Bound::Included(&[a][..]), Bound::Included(&[b][..]));
                let direction = [Direction::Forward, Direction::Reverse][usize::from(reverse)];
                let rows = scans::range(&mut txn, tree, low, high, direction, rows_max).unwrap();
                let in_range = now.iter().filter(|(key, _)| (a..=b).contains(&key[0]));
                let mut expected: Vec<_> = in_range.map(|(k, v)| (k.clone(), v.clone())).collect();
                if reverse {
                    expected.reverse();
                }
                assert_eq!(rows, expected);
            }
            Op::Savepoint => saves.push((txn.savepoint(), now.clone())),
            Op::RollbackTo(at) if !saves.is_empty() => {
                let at = at % saves.len();
                saves.truncate(at + 1);
                txn.rollback_to(&saves[at].0).unwrap();
                now.clone_from(&saves[at].1);
            }
            Op::Release(at) if !saves.is_empty() => {
                let at = at % saves.len();
                txn.release_savepoint(&saves[at].0).unwrap();
                for (gone, _) in saves.drain(at..) {
                    let refused = txn.rollback_to(&gone);
                    assert!(matches!(refused, Err(TxnError::SavepointGone)));
                }
            }
            Op::RollbackTo(_) | Op::Release(_) => {}
            Op::Commit => {
                let next = world.manager.begin().unwrap();
                let commit = std::mem::replace(&mut txn, next)
                    .commit(Level::None)
                    .unwrap();
                commit.handle.wait().unwrap();
                committed.clone_from(&now);
                saves.clear();
            }
            Op::Rollback => {
                let next = world.manager.begin().unwrap();
                std::mem::replace(&mut txn, next).rollback().unwrap();
                now.clone_from(&committed);
                saves.clear();
            }
            Op::Purge => {
                world.manager.purge(50).unwrap();
            }
        }
    }
    drop(txn);
    assert_eq!(world.rows(tree), committed);
    while world.manager.purge(1000).unwrap() > 0 {}
    assert!(world.rows(world.garbage).is_empty());
    assert_eq!(world.rows(tree), committed);
    world.verify();
}
