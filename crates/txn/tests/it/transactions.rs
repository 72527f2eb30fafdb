//! One transaction after the other: what each call does, and what is left of it.

use crate::scans;
use crate::world::{World, WorldOptions};
use longshore_log::Level;
use longshore_txn::{CommitLevel, Direction, Escalation, LockError, TxnError};
use std::io::Read;
use std::ops::Bound;
use std::time::Duration;

fn commit(txn: longshore_txn::Transaction) {
    txn.commit(Level::None).unwrap().handle.wait().unwrap();
}

#[test]
fn a_commit_lasts_and_a_rollback_leaves_nothing() {
    let world = World::new();
    let [table, _] = world.tables;
    let mut txn = world.begin();
    txn.insert(table, b"a", b"1").unwrap();
    txn.put(table, b"b", b"2").unwrap();
    assert_eq!(txn.get(table, b"a").unwrap().unwrap(), b"1");
    commit(txn);

    let mut txn = world.begin();
    txn.put(table, b"a", b"changed").unwrap();
    assert!(txn.delete(table, b"b").unwrap());
    txn.insert(table, b"c", b"new").unwrap();
    txn.rollback().unwrap();

    assert_eq!(world.manager.get(table, b"a").unwrap().unwrap(), b"1");
    assert_eq!(world.manager.get(table, b"b").unwrap().unwrap(), b"2");
    assert_eq!(world.manager.get(table, b"c").unwrap(), None);
    assert_eq!(world.manager.active(), 0);
    assert_eq!(world.manager.oldest_first_lsn(), None);
}

#[test]
fn a_dropped_transaction_is_rolled_back() {
    let world = World::new();
    let [table, _] = world.tables;
    let mut txn = world.begin();
    txn.insert(table, b"a", b"1").unwrap();
    assert!(world.manager.oldest_first_lsn().is_some());
    drop(txn);
    assert_eq!(world.manager.get(table, b"a").unwrap(), None);
    assert_eq!(world.manager.oldest_first_lsn(), None);
    assert_eq!(world.manager.stats().rolled_back, 1);
}

#[test]
fn rows_are_inserted_updated_and_deleted_as_asked() {
    let world = World::new();
    let [table, _] = world.tables;
    let mut txn = world.begin();
    assert!(!txn.update(table, b"a", b"0").unwrap());
    assert!(!txn.delete(table, b"a").unwrap());
    txn.insert(table, b"a", b"1").unwrap();
    assert!(matches!(
        txn.insert(table, b"a", b"2"),
        Err(TxnError::KeyExists)
    ));
    assert_eq!(
        txn.get(table, b"a").unwrap().unwrap(),
        b"1",
        "the transaction goes on"
    );
    assert!(txn.update(table, b"a", b"3").unwrap());
    assert_eq!(txn.get_for_update(table, b"a").unwrap().unwrap(), b"3");
    assert!(txn.delete(table, b"a").unwrap());
    assert!(!txn.contains(table, b"a").unwrap());
    // The key's ghost becomes a row again.
    txn.insert(table, b"a", b"4").unwrap();
    commit(txn);
    assert_eq!(world.manager.get(table, b"a").unwrap().unwrap(), b"4");
}

#[test]
fn savepoints_nest_and_those_gone_back_behind_are_gone() {
    let world = World::new();
    let [table, _] = world.tables;
    let mut txn = world.begin();
    let empty = txn.savepoint();
    txn.insert(table, b"a", b"1").unwrap();
    let one = txn.savepoint();
    txn.put(table, b"a", b"2").unwrap();
    txn.insert(table, b"b", b"2").unwrap();
    let two = txn.savepoint();
    txn.delete(table, b"a").unwrap();

    txn.rollback_to(&two).unwrap();
    assert_eq!(txn.get(table, b"a").unwrap().unwrap(), b"2");
    txn.delete(table, b"b").unwrap();
    txn.rollback_to(&one).unwrap();
    assert_eq!(txn.get(table, b"a").unwrap().unwrap(), b"1");
    assert_eq!(txn.get(table, b"b").unwrap(), None);
    assert!(matches!(
        txn.rollback_to(&two),
        Err(TxnError::SavepointGone)
    ));
    // A savepoint can be gone back to again.
    txn.insert(table, b"c", b"3").unwrap();
    txn.rollback_to(&one).unwrap();
    assert_eq!(txn.get(table, b"c").unwrap(), None);

    let mut other = world.begin();
    assert!(matches!(
        other.rollback_to(&one),
        Err(TxnError::SavepointGone)
    ));
    drop(other);

    txn.rollback_to(&empty).unwrap();
    txn.insert(table, b"d", b"4").unwrap();
    commit(txn);
    assert_eq!(world.rows(table).len(), 1);
    assert_eq!(world.manager.get(table, b"d").unwrap().unwrap(), b"4");
}

/// Undo finds rows that splits have moved since, and goes through its own CLRs only once.
#[test]
fn a_partial_rollback_across_splits_and_then_a_whole_one() {
    let world = World::new();
    let [table, _] = world.tables;
    let key = |n: u32| n.to_be_bytes();
    let mut txn = world.begin();
    for n in 0..200 {
        txn.insert(table, &key(n * 2), &[7; 100]).unwrap();
    }
    commit(txn);
    let before = world.rows(table);

    let mut txn = world.begin();
    for n in 0..100 {
        txn.put(table, &key(n * 2), &[8; 300]).unwrap();
    }
    let save = txn.savepoint();
    for n in 0..400 {
        txn.put(table, &key(n), &[9; 200]).unwrap();
    }
    txn.delete_range(table, Bound::Unbounded, Bound::Excluded(&key(100)))
        .unwrap();
    txn.rollback_to(&save).unwrap();
    let rows = scans::all(&mut txn, table);
    assert_eq!(rows.len(), 200);
    assert_eq!(rows[&key(10).to_vec()], [8; 300]);
    for n in 0..50 {
        txn.delete(table, &key(n * 2)).unwrap();
    }
    txn.rollback().unwrap();
    assert_eq!(world.rows(table), before);
    world.verify();
}

#[test]
fn scans_go_both_ways_and_stop_where_told() {
    let world = World::new();
    let [table, _] = world.tables;
    let key = |n: u32| n.to_be_bytes().to_vec();
    let mut txn = world.begin();
    for n in 0..500 {
        txn.insert(table, &key(n * 2), &n.to_be_bytes()).unwrap();
    }
    for n in (0..500).step_by(5) {
        txn.delete(table, &key(n * 2)).unwrap();
    }
    let model: Vec<u32> = (0..500).filter(|n| n % 5 != 0).map(|n| n * 2).collect();
    let bounds = |n: u32| {
        let key = n.to_be_bytes();
        [Bound::Included(key), Bound::Excluded(key)]
    };
    let mut cases = Vec::new();
    for low in [0, 1, 2, 10, 11, 500, 998, 999, 2000] {
        for high in [0, 1, 2, 10, 11, 500, 511, 998, 999, 2000] {
            for low in bounds(low) {
                cases.extend(bounds(high).map(|high| (low, high)));
            }
        }
    }
    cases.push((Bound::Unbounded, Bound::Unbounded));
    for (low, high) in cases {
        let expected: Vec<u32> = model
            .iter()
            .copied()
            .filter(|n| {
                let key = n.to_be_bytes();
                (match low {
                    Bound::Included(low) => key >= low,
                    Bound::Excluded(low) => key > low,
                    Bound::Unbounded => true,
                }) && (match high {
                    Bound::Included(high) => key <= high,
                    Bound::Excluded(high) => key < high,
                    Bound::Unbounded => true,
                })
            })
            .collect();
        let (low, high) = (
            low.as_ref().map(|k| k.as_slice()),
            high.as_ref().map(|k| k.as_slice()),
        );
        for rows_max in [usize::MAX, 7] {
            for direction in [Direction::Forward, Direction::Reverse] {
                let rows = scans::range(&mut txn, table, low, high, direction, rows_max).unwrap();
                let mut keys: Vec<u32> = rows
                    .iter()
                    .map(|(key, _)| u32::from_be_bytes(key.as_slice().try_into().unwrap()))
                    .collect();
                if direction == Direction::Reverse {
                    keys.reverse();
                }
                assert_eq!(keys, expected, "{low:?} {high:?} {direction:?}");
            }
        }
    }
    commit(txn);
}

#[test]
fn a_deleted_range_is_gone_and_its_pages_come_back() {
    let world = World::new();
    let [table, _] = world.tables;
    let key = |n: u32| n.to_be_bytes();
    let mut txn = world.begin();
    for n in 0..2000 {
        txn.insert(table, &key(n), &[1; 60]).unwrap();
    }
    commit(txn);
    let mut txn = world.begin();
    let (low, high) = (key(100), key(1900));
    let deleted = txn
        .delete_range(table, Bound::Included(&low), Bound::Excluded(&high))
        .unwrap();
    assert_eq!(deleted, 1800);
    commit(txn);
    assert_eq!(world.rows(table).len(), 200);
    let mut purged = 0;
    loop {
        let done = world.manager.purge(1000).unwrap();
        purged += done;
        if done == 0 {
            break;
        }
    }
    assert!(purged > 10, "{purged}");
    world.verify();
    assert_eq!(world.rows(table).len(), 200);
}

#[test]
fn large_values_are_written_read_streamed_replaced_and_freed() {
    let world = World::new();
    let [table, _] = world.tables;
    let large: Vec<u8> = (0..100_000u32).map(|n| (n % 251) as u8).collect();
    let mut txn = world.begin();
    txn.insert(table, b"whole", &large).unwrap();
    let len = txn
        .put_stream(table, b"streamed", &mut large.as_slice())
        .unwrap();
    assert_eq!(len, 100_000);
    assert_eq!(
        txn.put_stream(table, b"short", &mut &b"abc"[..]).unwrap(),
        3
    );
    assert!(matches!(
        txn.insert(table, b"whole", &large),
        Err(TxnError::KeyExists)
    ));
    commit(txn);
    for key in [&b"whole"[..], b"streamed"] {
        assert_eq!(world.manager.get(table, key).unwrap().unwrap(), large);
    }
    assert_eq!(world.manager.get(table, b"short").unwrap().unwrap(), b"abc");
    let free = |world: &World| {
        while world.manager.purge(1000).unwrap() > 0 {}
    };
    free(&world);
    assert!(world.rows(world.garbage).is_empty());
    assert_eq!(world.rows(table)[&b"streamed".to_vec()], large);

    let mut txn = world.begin();
    let mut reader = txn.open_value(table, b"streamed").unwrap().unwrap();
    assert_eq!(reader.remaining(), 100_000);
    let mut read = Vec::new();
    reader.read_to_end(&mut read).unwrap();
    assert_eq!(read, large);
    let mut late = txn.open_value(table, b"whole").unwrap().unwrap();
    late.read_exact(&mut [0; 10]).unwrap();
    txn.put(table, b"streamed", b"now short").unwrap();
    assert!(txn.delete(table, b"whole").unwrap());
    commit(txn);
    assert!(
        late.read(&mut [0; 10]).is_err(),
        "its transaction has ended"
    );
    assert_eq!(world.rows(world.garbage).len(), 2);
    free(&world);
    assert!(world.rows(world.garbage).is_empty());
    assert_eq!(
        world.manager.get(table, b"streamed").unwrap().unwrap(),
        b"now short"
    );
}

#[test]
fn a_large_value_that_is_rolled_back_or_fails_is_freed() {
    let world = World::new();
    let [table, _] = world.tables;
    let large = vec![5; 50_000];
    let mut txn = world.begin();
    txn.insert(table, b"a", &large).unwrap();
    // While the transaction is open its chains are announced, and nobody takes them for garbage.
    assert_eq!(world.manager.purge(1000).unwrap(), 0);
    txn.rollback().unwrap();
    assert_eq!(world.rows(world.garbage).len(), 1);
    assert!(world.manager.purge(1000).unwrap() > 0);
    assert!(world.rows(world.garbage).is_empty());

    struct Broken(usize);
    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0 += 1;
            match self.0 {
                1..6 => Ok(buffer.len()),
                _ => Err(std::io::Error::other("the line is dead")),
            }
        }
    }
    let mut txn = world.begin();
    txn.insert(table, b"kept", b"1").unwrap();
    let error = txn.put_stream(table, b"b", &mut Broken(0)).unwrap_err();
    assert!(error.to_string().contains("the line is dead"), "{error}");
    commit(txn);
    assert!(world.manager.purge(1000).unwrap() > 0);
    assert!(world.rows(world.garbage).is_empty());
    assert_eq!(world.rows(table).len(), 1);
}

#[test]
fn trees_come_with_a_commit_and_go_with_one() {
    let world = World::new();
    let store = longshore_base::StoreId::new(99);
    let mut txn = world.begin();
    let tree = txn.create_tree(store).unwrap();
    for n in 0..500u32 {
        txn.insert(tree, &n.to_be_bytes(), &[3; 50]).unwrap();
    }
    commit(txn);
    while world.manager.purge(1000).unwrap() > 0 {}
    assert_eq!(world.rows(tree).len(), 500);

    let mut txn = world.begin();
    txn.drop_tree(tree).unwrap();
    txn.rollback().unwrap();
    while world.manager.purge(1000).unwrap() > 0 {}
    assert_eq!(world.rows(tree).len(), 500);

    let mut txn = world.begin();
    txn.drop_tree(tree).unwrap();
    commit(txn);
    while world.manager.purge(1000).unwrap() > 0 {}
    assert!(tree.read_leaf(&world.access, b"").is_err());

    let mut txn = world.begin();
    let lost = txn.create_tree(longshore_base::StoreId::new(100)).unwrap();
    txn.rollback().unwrap();
    while world.manager.purge(1000).unwrap() > 0 {}
    assert!(lost.read_leaf(&world.access, b"").is_err());
    assert!(world.rows(world.garbage).is_empty());
}

#[test]
fn a_time_out_rolls_back_at_once_and_says_so_afterwards() {
    let world = World::with(WorldOptions {
        lock_wait: Duration::ZERO,
        ..WorldOptions::default()
    });
    let [table, _] = world.tables;
    let mut holder = world.begin();
    holder.put(table, b"a", b"1").unwrap();
    let mut txn = world.begin();
    txn.put(table, b"b", b"2").unwrap();
    let error = txn.put(table, b"a", b"2").unwrap_err();
    assert!(error.is_retryable() && error.ends_transaction(), "{error}");
    // Its own lock is free again.
    holder.put(table, b"b", b"1").unwrap();
    let ended = txn.get(table, b"c").unwrap_err();
    assert!(matches!(ended, TxnError::Ended { .. }) && ended.is_retryable());
    assert!(ended.to_string().contains("is in the way"), "{ended}");
    assert!(matches!(
        txn.commit(CommitLevel::None),
        Err(TxnError::Ended { .. })
    ));
    commit(holder);
    assert_eq!(world.manager.get(table, b"b").unwrap().unwrap(), b"1");
}

#[test]
fn too_many_transactions_is_an_error_that_names_the_option() {
    let world = World::with(WorldOptions {
        transactions_max: 2,
        ..WorldOptions::default()
    });
    let one = world.begin();
    let _two = world.begin();
    let error = world.manager.begin().unwrap_err();
    assert!(error.to_string().contains("transactions_max"), "{error}");
    drop(one);
    world.begin();
}

#[test]
fn a_full_lock_table_fails_the_statement_and_the_rest_can_be_kept_or_undone() {
    let world = World::with(WorldOptions {
        lock_bytes_max: 32 << 10,
        transactions_max: 8,
        ..WorldOptions::default()
    });
    let [table, _] = world.tables;
    let locks = world.manager.locks();
    locks.set_escalation(table.store, Some(Escalation::Never));
    let mut txn = world.begin();
    let error = (0u32..)
        .find_map(|n| txn.insert(table, &n.to_be_bytes(), b"x").err())
        .unwrap();
    assert!(error.to_string().contains("lock_bytes_max"), "{error}");
    assert!(!error.is_retryable());
    txn.rollback().unwrap();
    // A scan locks the ghosts that it comes by, and there are as many as locks were.
    while world.manager.purge(1000).unwrap() > 0 {}
    assert!(world.rows(table).is_empty());
}

/// The same without the exemption: the locks on rows become one on the table.
#[test]
fn a_transaction_larger_than_the_lock_table_goes_on_with_the_whole_table() {
    let world = World::with(WorldOptions {
        lock_bytes_max: 64 << 10,
        transactions_max: 8,
        ..WorldOptions::default()
    });
    let [table, _] = world.tables;
    let mut txn = world.begin();
    for n in 0..5_000u32 {
        txn.insert(table, &n.to_be_bytes(), b"x").unwrap();
    }
    assert_eq!(world.manager.locks().stats().escalations, 1);
    txn.rollback().unwrap();
    // The scan of the ghosts too.
    assert!(world.rows(table).is_empty());
    assert_eq!(world.manager.locks().stats().escalations, 2);
    assert!(world.manager.locks().holds(10).is_empty());
}

#[test]
fn a_cancelled_transaction_is_rolled_back_at_its_next_statement() {
    let world = World::new();
    let [table, _] = world.tables;
    let mut txn = world.begin();
    txn.insert(table, b"k", b"v").unwrap();
    assert!(world.manager.locks().cancel(txn.id()));
    let error = txn.get(table, b"k").unwrap_err();
    assert!(
        matches!(error, TxnError::Lock(LockError::Cancelled)),
        "{error}"
    );
    assert!(!error.is_retryable() && error.ends_transaction());
    assert!(matches!(
        txn.get(table, b"k").unwrap_err(),
        TxnError::Ended { .. }
    ));
    assert!(!world.manager.locks().cancel(txn.id()), "it has ended");
    assert!(world.rows(table).is_empty());
}

/// It used to wait for the writer, as a serializable transaction does.
#[test]
fn a_single_read_does_not_wait_for_a_change_under_way() {
    let world = World::new();
    let table = world.tables[0];
    let mut first = world.begin();
    first.put(table, b"k", b"before").unwrap();
    first.commit(Level::None).unwrap().handle.wait().unwrap();
    let mut writer = world.begin();
    writer.put(table, b"k", b"after").unwrap();
    let reads = world.manager.stats().read_blocked;
    assert_eq!(world.manager.get(table, b"k").unwrap().unwrap(), b"before");
    assert_eq!(world.manager.stats().read_blocked, reads + 1);
    writer.commit(Level::None).unwrap().handle.wait().unwrap();
    assert_eq!(world.manager.get(table, b"k").unwrap().unwrap(), b"after");
}
