//! Undo after a crash: what had no commit is gone, wherever the crash fell, also into undo itself.

use crate::world::{World, WorldOptions};
use longshore_base::crash_point;
use longshore_disk::{SimDisk, SimOptions};
use longshore_log::Level;
use longshore_txn::{Transaction, TxnError};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> WorldOptions {
    WorldOptions {
        lock_wait: std::time::Duration::ZERO,
        pool_bytes: 1 << 20,
        ..WorldOptions::default()
    }
}

/// Random changes of a transaction to rows that no other open one touches, done to the model as well.
fn change(txn: &mut Transaction, world: &World, rng: &mut SmallRng, rows: &mut Rows) -> bool {
    let [table, _] = world.tables;
    let key = rng.random_range(0..400u32).to_be_bytes().to_vec();
    let value = vec![rng.random(); rng.random_range(0..400)];
    let outcome = match rng.random_range(0..10) {
        0..5 => txn
            .put(table, &key, &value)
            .map(|()| drop(rows.insert(key, value))),
        5..8 => txn.delete(table, &key).map(|_| drop(rows.remove(&key))),
        8 => {
            let large = vec![1; 10_000];
            txn.put(table, &key, &large)
                .map(|()| drop(rows.insert(key, large)))
        }
        _ => {
            let save = txn.savepoint();
            txn.put(table, &key, b"taken back")
                .and_then(|()| txn.rollback_to(&save))
        }
    };
    match outcome {
        Ok(()) => true,
        Err(error) if error.ends_transaction() => false,
        Err(error) => panic!("{error}"),
    }
}

/// Some committed transactions, and some that the crash finds open; the rows that must be there after.
fn work(world: &World, seed: u64) -> (Rows, Vec<Transaction>) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut committed = Rows::new();
    let mut open: Vec<Transaction> = Vec::new();
    for round in 0..20 {
        let mut txn = world.begin();
        let mut rows = committed.clone();
        let intact = (0..30).all(|_| change(&mut txn, world, &mut rng, &mut rows));
        match rng.random_range(0..4) {
            _ if !intact => {}
            0 if round > 5 => open.push(txn),
            1 => txn.rollback().unwrap(),
            _ => {
                let _ = txn.commit(Level::None).unwrap();
                committed = rows;
            }
        }
    }
    (committed, open)
}

#[test]
fn losers_are_undone_and_winners_stay() {
    let mut losers = 0;
    for seed in 0..12 {
        let disk = Arc::new(SimDisk::new(seed, SimOptions::default()));
        let world = World::on(disk.clone(), options());
        let (rows, open) = work(&world, seed);
        world.log.flush_all(Level::Sync).unwrap();
        let image = Arc::new(disk.crash_image(seed));
        disk.crash_now();
        drop(open);
        let (again, undone) = world.restart(image, options());
        losers += undone;
        assert_eq!(again.rows(again.tables[0]), rows, "seed {seed}");
        again.verify();
        assert_eq!(again.manager.active(), 0);
        while again.manager.purge(1000).unwrap() > 0 {}
        assert!(again.rows(again.garbage).is_empty());
        assert_eq!(again.rows(again.tables[0]), rows, "seed {seed}");
        again.verify();
    }
    assert!(losers > 10, "{losers}");
}

/// Crashes inside undo, as deep as it takes: each restart goes on where the last one stopped.
#[test]
fn a_crash_during_undo_is_harmless() {
    let mut interruptions = 0;
    for seed in 100..106 {
        let disk = Arc::new(SimDisk::new(seed, SimOptions::default()));
        let world = World::on(disk.clone(), options());
        let (rows, open) = work(&world, seed);
        world.log.flush_all(Level::Sync).unwrap();
        let mut image = Arc::new(disk.crash_image(seed));
        disk.crash_now();
        drop(open);
        for depth in 0..3 {
            let interrupted = Arc::clone(&image);
            let steps = Rc::new(RefCell::new(10 + 7 * depth));
            let installed = {
                let disk = Arc::clone(&interrupted);
                let steps = Rc::clone(&steps);
                crash_point::install(move |name| {
                    if name == "abort.clr" {
                        let mut left = steps.borrow_mut();
                        *left -= 1;
                        if *left == 0 {
                            disk.crash_now();
                        }
                    }
                })
            };
            let restarted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                drop(world.restart(interrupted.clone(), options()));
            }));
            drop(installed);
            // Whether the crash was met or undo ended before it, the next restart begins with what is left.
            interruptions += usize::from(restarted.is_err());
            image = Arc::new(interrupted.crash_image(seed + depth as u64));
        }
        let (again, _) = world.restart(image, options());
        assert_eq!(again.rows(again.tables[0]), rows, "seed {seed}");
        again.verify();
    }
    assert!(interruptions >= 3, "{interruptions}");
}

/// What was acknowledged with `Sync` is there after a crash that loses all that was not synced.
#[test]
fn acknowledged_commits_survive_and_others_vanish_whole() {
    for seed in 200..208 {
        let disk = Arc::new(SimDisk::new(seed, SimOptions::default()));
        let world = World::on(disk.clone(), options());
        let mut rng = SmallRng::seed_from_u64(seed);
        let (mut rows, mut states) = (Rows::new(), vec![Rows::new()]);
        let mut acknowledged = 0;
        for n in 1..=30 {
            let mut txn = world.begin();
            let mut next = rows.clone();
            for _ in 0..5 {
                change(&mut txn, &world, &mut rng, &mut next);
            }
            let level = [Level::None, Level::Sync][usize::from(rng.random_ratio(1, 5))];
            txn.commit(level).unwrap().handle.wait().unwrap();
            rows = next;
            states.push(rows.clone());
            if level == Level::Sync {
                acknowledged = n;
            }
        }
        let image = Arc::new(disk.crash_image(seed));
        let (again, _) = world.restart(image, options());
        let found = again.rows(again.tables[0]);
        let state = states.iter().rposition(|state| *state == found);
        assert!(
            state.is_some_and(|n| n >= acknowledged),
            "seed {seed}: {state:?} {acknowledged}"
        );
        again.verify();
    }
}

/// A loser's deleted row is a ghost that no lock keeps; undo of another one that needs room in the same
/// leaf must not purge it.
#[test]
fn undo_that_needs_room_leaves_the_ghosts_of_other_losers() {
    let disk = Arc::new(SimDisk::new(1, SimOptions::default()));
    let world = World::on(disk.clone(), options());
    let [table, _] = world.tables;
    let key = |n: u32| n.to_be_bytes();
    let mut txn = world.begin();
    for n in 0..8 {
        txn.insert(table, &key(n), &[1; 450]).unwrap();
    }
    let _ = txn.commit(Level::None).unwrap();
    let before = world.rows(table);
    // The older loser makes its row small, others fill the space, the younger deletes rows beside it.
    let mut shrinks = world.begin();
    shrinks.put(table, &key(0), b"").unwrap();
    let mut fills = world.begin();
    fills.put(table, b"\0\0\0\0filler", &[2; 400]).unwrap();
    let _ = fills.commit(Level::None).unwrap();
    let mut deletes = world.begin();
    deletes
        .delete_range(table, Bound::Included(&key(4)), Bound::Excluded(&key(8)))
        .unwrap();
    world.log.flush_all(Level::Sync).unwrap();
    let image = Arc::new(disk.crash_image(1));
    let (again, undone) = world.restart(image, options());
    assert_eq!(undone, 2);
    let mut rows = again.rows(table);
    assert!(rows.remove(b"\0\0\0\0filler".as_slice()).is_some());
    assert_eq!(rows, before);
    again.verify();
}

#[test]
fn every_named_point_of_this_crate_is_reached() {
    let seen = Rc::new(RefCell::new(BTreeSet::new()));
    let installed = {
        let seen = Rc::clone(&seen);
        crash_point::install(move |name| {
            seen.borrow_mut().insert(name);
        })
    };
    let disk = Arc::new(SimDisk::new(5, SimOptions::default()));
    let world = World::on(disk.clone(), options());
    let [table, _] = world.tables;
    let mut txn = world.begin();
    txn.put(table, b"large", &[1; 20_000]).unwrap();
    txn.create_tree(longshore_base::StoreId::new(50)).unwrap();
    txn.commit(Level::Sync).unwrap().handle.wait().unwrap();
    let mut txn = world.begin();
    txn.delete(table, b"large").unwrap();
    txn.rollback().unwrap();
    let mut txn = world.begin();
    txn.delete(table, b"large").unwrap();
    txn.commit(Level::Sync).unwrap().handle.wait().unwrap();
    world.manager.purge(100).unwrap();
    let mut loser = world.begin();
    loser.put(table, b"k", b"v").unwrap();
    world.log.flush_all(Level::Sync).unwrap();
    let image = Arc::new(disk.crash_image(5));
    let (_, undone) = world.restart(image, options());
    assert_eq!(undone, 1);
    drop(installed);
    for name in [
        "commit.logged",
        "commit.released",
        "commit.durable",
        "abort.clr",
        "abort.end",
        "restart.loser",
        "value.written",
        "garbage.announced",
        "garbage.freed",
        "tree.created",
    ] {
        assert!(seen.borrow().contains(name), "{name} was not reached");
    }
}

/// A rollback that the log does not let finish keeps its locks, and nobody sees what it left.
#[test]
fn a_rollback_that_cannot_finish_stops_everything() {
    let disk = Arc::new(SimDisk::new(3, SimOptions::default()));
    let world = World::on(disk.clone(), options());
    let [table, _] = world.tables;
    let mut txn = world.begin();
    txn.put(table, b"k", b"1").unwrap();
    disk.crash_now();
    world.log.flush_all(Level::Sync).unwrap_err();
    let error = txn.rollback().unwrap_err();
    assert!(matches!(error, TxnError::Failed { .. }), "{error}");
    assert!(world.manager.get(table, b"k").is_err());
    assert!(world.manager.begin().is_err());
    assert_eq!(
        world.manager.active(),
        1,
        "its slot keeps the log that restart needs"
    );
}
