//! Rollback through the tree, by key.

use super::support::{STORE, World, key};
use longshore_base::{Lsn, PageSize};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

#[test]
fn each_operation_is_undone() {
    let world = World::new(PageSize::MIN, 64);
    let tree = world.create(STORE);
    let mut first = world.begin();
    world.put(&tree, &mut first, b"a", b"one");
    world.put(&tree, &mut first, b"b", b"two");

    let mut cx = world.begin();
    world.put(&tree, &mut cx, b"a", b"another, and longer");
    assert!(world.delete(&tree, &mut cx, b"b"));
    world.put(&tree, &mut cx, b"b", b"revived");
    assert!(world.delete(&tree, &mut cx, b"b"));
    world.put(&tree, &mut cx, b"c", b"new");
    assert!(world.delete(&tree, &mut cx, b"c"));
    world.put(&tree, &mut cx, b"c", b"again");
    let undo_bytes = cx.undo_bytes;
    assert!(cx.claim.remaining() >= undo_bytes, "undo is paid for");

    world.roll_back(&mut cx, Lsn::ZERO).unwrap();
    assert_eq!(cx.undo_bytes, 0);
    assert_eq!(world.get(&tree, b"a").unwrap(), b"one");
    assert_eq!(world.get(&tree, b"b").unwrap(), b"two");
    assert_eq!(world.get(&tree, b"c"), None);
    let report = world.verify(&[tree]).remove(0);
    assert_eq!((report.rows, report.ghosts), (2, 1));
}

/// Undo rebuilds the old value from the row as it is: it must be the one that the record left.
#[test]
fn undo_refuses_a_row_that_somebody_else_has_changed() {
    let world = World::new(PageSize::MIN, 64);
    let tree = world.create(STORE);
    world.put(&tree, &mut world.begin(), b"k", b"before, and after");
    for meddled in [&b"before, and later"[..], b"before", b""] {
        let mut cx = world.begin();
        world.put(&tree, &mut cx, b"k", b"before, but after");
        world.put(&tree, &mut world.begin(), b"k", meddled);
        let error = world.roll_back(&mut cx, Lsn::ZERO).unwrap_err();
        assert!(error.to_string().contains("another value"), "{error}");
        assert_eq!(world.get(&tree, b"k").unwrap(), meddled);
        world.put(&tree, &mut world.begin(), b"k", b"before, and after");
    }
}

/// The log has of an update only what differs, and of its undo too.
#[test]
fn an_update_logs_the_bytes_that_it_changes() {
    let world = World::new(PageSize::MIN, 64);
    let tree = world.create(STORE);
    let mut value = vec![1; 600];
    world.put(&tree, &mut world.begin(), b"k", &value);
    value[300..310].fill(2);
    let mut cx = world.begin();
    let start = world.log.tail();
    world.put(&tree, &mut cx, b"k", &value);
    assert!(world.log.tail() <= start.plus(100), "ten bytes changed");
    world.roll_back(&mut cx, Lsn::ZERO).unwrap();
    assert!(
        world.log.tail() <= start.plus(200),
        "ten bytes changed back"
    );
    assert_eq!(world.get(&tree, b"k").unwrap(), [1; 600]);
}

/// Rows shrink, others take the space and split the leaf, then the rows must grow back.
#[test]
fn undo_splits_when_the_old_value_no_longer_fits() {
    let world = World::new(PageSize::MIN, 128);
    let tree = world.create(STORE);
    let mut first = world.begin();
    for k in 0..20 {
        world.put(&tree, &mut first, &key(k * 100), &[7; 800]);
    }
    let mut cx = world.begin();
    for k in 0..20 {
        world.put(&tree, &mut cx, &key(k * 100), b"");
    }
    let mut other = world.begin();
    for k in 0..2_000 {
        if k % 100 != 0 {
            world.put(&tree, &mut other, &key(k), &[9; 20]);
        }
    }
    world.roll_back(&mut cx, Lsn::ZERO).unwrap();
    for k in 0..20 {
        assert_eq!(world.get(&tree, &key(k * 100)).unwrap(), [7; 800]);
    }
    assert_eq!(world.verify(&[tree])[0].rows, 2_000);
}

/// Random transactions, each rolled back to a random savepoint, against a copy of the map.
#[test]
fn random_rollbacks_restore_the_model() {
    let world = World::new(PageSize::MIN, 128);
    let tree = world.create(STORE);
    let mut rng = SmallRng::seed_from_u64(11);
    let mut model = std::collections::BTreeMap::new();
    for _ in 0..300 {
        let mut cx = world.begin();
        let mut saved = (Lsn::ZERO, model.clone());
        for _ in 0..rng.random_range(1..60) {
            let key = key(rng.random_range(0..400));
            match rng.random_range(0..10) {
                0..6 => {
                    // Values that begin and end alike, so that updates keep much of them.
                    let (byte, len) = (rng.random(), rng.random_range(0..500));
                    let mut value = vec![1; len];
                    value[len / 3..len - len / 3].fill(byte);
                    world.put(&tree, &mut cx, &key, &value);
                    model.insert(key, value);
                }
                6..9 => {
                    let was_there = world.delete(&tree, &mut cx, &key);
                    assert_eq!(was_there, model.remove(&key).is_some());
                }
                _ => saved = (cx.last, model.clone()),
            }
        }
        if rng.random_bool(0.6) {
            // Twice: what is undone already is not undone again.
            world.roll_back(&mut cx, saved.0).unwrap();
            world.roll_back(&mut cx, saved.0).unwrap();
            model = saved.1;
        }
        // No transaction is open now, so that ghosts may go.
        tree.purge(
            &world.access,
            &mut world.begin(),
            &key(rng.random_range(0..400)),
        )
        .unwrap();
    }
    world.verify(&[tree]);
    let rows: Vec<_> = model.into_iter().collect();
    assert_eq!(world.scan(&tree, &[], usize::MAX), rows);
}
