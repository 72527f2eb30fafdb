//! The log alone makes the same trees again.

use super::support::{STORE, World, access_on, key, redo_all};
use longshore_access::{Access, AccessError, Freeing, PageSet, RowFlags, Tree, Unlocked};
use longshore_base::{Lsn, PageId, PageSize, StoreId, crash_point};
use longshore_disk::MemoryDisk;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// A life with everything in it: splits, merges, adoption, root growth and shrinking, undo, loads,
/// dropped trees, truncation. Returns the trees that are left.
fn live(world: &World) -> Vec<Tree> {
    let mut rng = SmallRng::seed_from_u64(5);
    let tree = world.create(STORE);
    let dropped = world.create(StoreId::new(17));
    let loaded = world.create(StoreId::new(18));
    for _ in 0..6_000 {
        let key = key(rng.random_range(0..1_500));
        let mut cx = world.begin();
        match rng.random_range(0..10) {
            0..5 => {
                world.put(&tree, &mut cx, &key, &vec![3; rng.random_range(0..300)]);
            }
            5..8 => {
                world.delete(&tree, &mut cx, &key);
            }
            8 => {
                tree.purge(&world.access, &mut cx, &key).unwrap();
            }
            _ => {
                world.put(&dropped, &mut cx, &key, &[1; 200]);
                world.roll_back(&mut cx, Lsn::ZERO).unwrap();
            }
        }
    }
    let rows = (0..3_000u32).map(|k| Ok::<_, AccessError>((key(k), RowFlags::NONE, b"loaded")));
    loaded
        .bulk_load(&world.access, &mut world.begin(), rows)
        .unwrap();
    for k in 0..1_500 {
        world.delete(&tree, &mut world.begin(), &key(k));
    }
    for k in 0..1_500 {
        tree.purge(&world.access, &mut world.begin(), &key(k))
            .unwrap();
    }
    let mut cx = world.begin();
    let freeing = dropped.free_step(&world.access, &mut cx, usize::MAX);
    assert_eq!(freeing.unwrap(), Freeing::Done);
    world.access.truncate_end().unwrap();
    for k in 0..500 {
        world.put(&tree, &mut world.begin(), &key(k), &[4; 30]);
    }
    vec![tree, loaded]
}

fn lsns(access: &Access, pages: &PageSet) -> BTreeMap<PageId, Lsn> {
    let lsn = |page| access.pool().fix_shared(page).unwrap().page().page_lsn();
    pages.iter().map(|page| (page, lsn(page))).collect()
}

#[test]
fn redo_makes_the_same_trees_again() {
    let original = World::new(PageSize::MIN, 600);
    let trees = live(&original);
    let reports = original.verify(&trees);
    for times in [1, 2] {
        let log = Arc::clone(&original.log);
        let disk = MemoryDisk::new();
        let access = access_on(&disk, &log, PageSize::MIN, 200, Arc::new(Unlocked)).unwrap();
        for _ in 0..times {
            redo_all(&access, &log).unwrap();
        }
        access.attach().unwrap();
        let again = World::on(access, log);
        assert_eq!(again.verify(&trees), reports, "redone {times} times");
        for tree in &trees {
            let mut pages = PageSet::new();
            tree.verify(&original.access, &mut pages).unwrap();
            assert_eq!(lsns(&again.access, &pages), lsns(&original.access, &pages));
            let rows = original.scan(tree, &[], usize::MAX);
            assert_eq!(again.scan(tree, &[], usize::MAX), rows);
        }
        // And life goes on, which the log of the original then tells of as well.
        for tree in trees.iter().filter(|_| times == 2) {
            for k in 0..1_000 {
                again.put(tree, &mut again.begin(), &key(k), &[5; 300]);
            }
        }
        again.verify(&trees);
    }
}

/// Every place named in this crate's mini-transactions and row operations is passed.
#[test]
fn every_crash_point_is_reached() {
    let seen = Rc::new(RefCell::new(BTreeSet::new()));
    let noted = Rc::clone(&seen);
    let installed = crash_point::install(move |name| {
        noted.borrow_mut().insert(name);
    });
    let world = World::new(PageSize::MIN, 600);
    live(&world);
    super::space::use_several_map_pages();
    drop(installed);
    let smo = [
        "adopt",
        "bulk_load",
        "create",
        "format",
        "free",
        "merge",
        "purge",
        "root_growth",
        "root_shrink",
        "split",
    ];
    let mut expected = BTreeSet::new();
    for area in smo {
        for step in ["latched", "logged", "applied"] {
            expected.insert(format!("{area}.{step}"));
        }
    }
    for name in [
        "allocate.grown",
        "allocate.map_applied",
        "allocate.map_latched",
        "allocate.map_logged",
        "row.applied",
        "row.logged",
        "truncate.cut",
        "truncate.logged",
        "truncate.map_applied",
        "truncate.map_latched",
        "truncate.map_logged",
        "undo.applied",
        "undo.logged",
    ] {
        expected.insert(name.to_owned());
    }
    let areas: BTreeSet<&str> = expected
        .iter()
        .map(|name| name.split('.').next().unwrap())
        .collect();
    let ours = |name: &&str| areas.contains(name.split('.').next().unwrap());
    let seen: BTreeSet<String> = seen
        .borrow()
        .iter()
        .copied()
        .filter(ours)
        .map(str::to_owned)
        .collect();
    assert_eq!(seen, expected);
}
