//! Bulk loads and the freeing of whole trees.

use super::support::{STORE, World, key, long_key};
use longshore_access::{AccessError, Freeing, RowFlags, Tree};
use longshore_base::PageSize;

type Row = Result<(Vec<u8>, RowFlags, Vec<u8>), AccessError>;

fn rows(numbers: std::ops::Range<u32>, key: fn(u32) -> Vec<u8>) -> impl Iterator<Item = Row> {
    numbers.map(move |k| Ok((key(k), RowFlags::NONE, vec![k as u8; 50])))
}

fn count(world: &World, tree: &Tree) -> u64 {
    world.verify(&[*tree])[0].rows
}

#[test]
fn load_fills_pages_and_keeps_every_row() {
    for (key, n) in [(key as fn(u32) -> Vec<u8>, 4_000), (long_key, 700)] {
        let world = World::new(PageSize::MIN, 400);
        let tree = world.create(STORE);
        let loaded = tree
            .bulk_load(&world.access, &mut world.begin(), rows(0..n, key))
            .unwrap();
        assert_eq!(loaded.rows, u64::from(n));
        let report = world.verify(&[tree]).remove(0);
        assert_eq!((report.rows, report.foster_children), (u64::from(n), 0));
        let expected: Vec<_> = (0..n).map(|k| (key(k), vec![k as u8; 50])).collect();
        assert_eq!(world.scan(&tree, &[], usize::MAX), expected);
        // Rows go in between afterwards.
        for k in 0..n {
            let mut key = key(k);
            key.push(0);
            world.put(&tree, &mut world.begin(), &key, b"between");
        }
        assert_eq!(count(&world, &tree), 2 * u64::from(n));
    }
}

#[test]
fn load_goes_on_behind_rows_that_are_there() {
    let world = World::new(PageSize::MIN, 400);
    let tree = world.create(STORE);
    for k in 0..130 {
        world.put(
            &tree,
            &mut world.begin(),
            &key(k),
            &vec![0; (k as usize * 53) % 700],
        );
    }
    let mut cx = world.begin();
    tree.bulk_load(&world.access, &mut cx, rows(0..0, key))
        .unwrap();
    tree.bulk_load(&world.access, &mut cx, rows(200..1_000, key))
        .unwrap();
    tree.bulk_load(&world.access, &mut cx, rows(1_000..1_001, key))
        .unwrap();
    assert_eq!(count(&world, &tree), 130 + 800 + 1);
}

#[test]
fn load_goes_on_whatever_state_the_last_leaf_is_in() {
    // Fuller than a load leaves it, just split, with a child that its parent does not know yet.
    for there in 1..=80 {
        let world = World::new(PageSize::MIN, 100);
        let tree = world.create(STORE);
        for k in 0..there {
            world.put(&tree, &mut world.begin(), &key(k), &[k as u8; 50]);
        }
        tree.bulk_load(&world.access, &mut world.begin(), rows(there..200, key))
            .unwrap();
        assert_eq!(count(&world, &tree), 200, "behind {there} rows");
        let expected: Vec<_> = (0..200).map(|k| (key(k), vec![k as u8; 50])).collect();
        assert_eq!(world.scan(&tree, &[], usize::MAX), expected, "{there}");
    }
}

#[test]
fn load_refuses_rows_out_of_order_and_leaves_a_sound_tree() {
    let world = World::new(PageSize::MIN, 400);
    let tree = world.create(STORE);
    let mut cx = world.begin();
    let wrong = rows(0..500, key).chain(rows(499..500, key));
    let refused = tree.bulk_load(&world.access, &mut cx, wrong).unwrap_err();
    assert!(
        matches!(refused, AccessError::NotAscending { row: 500 }),
        "{refused}"
    );
    world.verify(&[tree]);
    tree.bulk_load(&world.access, &mut cx, rows(500..600, key))
        .unwrap();
    // Below the last leaf, and the last of its rows.
    for first in [3, 599] {
        let refused = tree
            .bulk_load(&world.access, &mut cx, rows(first..first + 2, key))
            .unwrap_err();
        assert!(
            matches!(refused, AccessError::NotAscending { row: 0 }),
            "{refused}"
        );
    }
}

#[test]
fn dropped_tree_gives_every_page_back() {
    let world = World::new(PageSize::MIN, 400);
    let kept = world.create(STORE);
    world.put(&kept, &mut world.begin(), b"k", b"v");
    let tree = world.create(longshore_base::StoreId::new(20));
    for k in (0..1_500).rev() {
        world.put(&tree, &mut world.begin(), &long_key(k * 7 % 1_500), b"v");
    }
    assert!(world.verify(&[kept, tree])[1].levels >= 4);
    let mut cx = world.begin();
    let mut steps = 0;
    while tree.free_step(&world.access, &mut cx, 10).unwrap() == Freeing::Underway {
        steps += 1;
    }
    assert!(steps > 10);
    // Asked again after a crash, it has nothing left to do.
    assert_eq!(
        tree.free_step(&world.access, &mut cx, 10).unwrap(),
        Freeing::Done
    );
    world.verify(&[kept]);
    assert!(world.access.truncate_end().unwrap() > 400);
    assert!(world.access.pool().file_pages() <= 64);
    for k in 0..300 {
        world.put(&kept, &mut world.begin(), &long_key(k), b"v");
    }
    world.verify(&[kept]);
}
