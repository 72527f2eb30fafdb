//! The log alone makes the same pages again.

use super::support::{STORE, World, key, pool_on};
use longshore_access::{Access, PageSet, RowFlags, Tree, Unlocked, record};
use longshore_base::{Lsn, PageId, PageSize, SeededEnvironment};
use longshore_log::Log;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use std::sync::Arc;

/// A life with everything in it: splits, merges, adoption, root growth and shrinking, undo, loads,
/// dropped trees, truncation.
fn live(world: &World) -> Vec<Tree> {
    let mut rng = SmallRng::seed_from_u64(5);
    let tree = world.create(STORE);
    let dropped = world.create(longshore_base::StoreId::new(17));
    let loaded = world.create(longshore_base::StoreId::new(18));
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
    let rows = (0..3_000u32)
        .map(|k| Ok::<_, longshore_access::AccessError>((key(k), RowFlags::NONE, b"loaded")));
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
    dropped
        .free_step(&world.access, &mut cx, usize::MAX)
        .unwrap();
    world.access.truncate_end().unwrap();
    for k in 0..500 {
        world.put(&tree, &mut world.begin(), &key(k), &[4; 30]);
    }
    vec![tree, loaded]
}

/// Redoes the whole log on a pool whose data file is empty, skipping what precedes a page's last reset.
fn replay(log: &Arc<Log>, times: usize) -> Arc<Access> {
    let pool = pool_on(log, PageSize::MIN, 200);
    let access = Access::new(
        pool,
        Arc::clone(log),
        Arc::new(Unlocked),
        Arc::new(SeededEnvironment::new(1)),
    );
    let records: Vec<_> = log.scan(Lsn::ZERO).map(Result::unwrap).collect();
    let mut reset = HashMap::<PageId, Lsn>::new();
    for one in &records {
        for change in record::changes(one.kind, &one.body).unwrap() {
            if change.resets_page().unwrap() {
                reset.insert(change.page, one.lsn);
            }
        }
    }
    for _ in 0..times {
        for one in &records {
            let wanted = |page| reset.get(&page).is_none_or(|lsn| *lsn <= one.lsn);
            access.redo(one, wanted).unwrap();
        }
    }
    access
}

fn bytes_of(access: &Access, pages: &PageSet) -> Vec<(PageId, Vec<u8>)> {
    let mut out = Vec::new();
    for page in pages.iter() {
        let guard = access.pool().fix_shared(page).unwrap();
        let mut bytes = Vec::new();
        guard.page().append_to(0, guard.page().len(), &mut bytes);
        // The checksum is written on the way to disk, by whoever gets there.
        bytes[..4].fill(0);
        out.push((page, bytes));
    }
    out
}

#[test]
fn log_makes_the_same_trees_again() {
    let world = World::new(PageSize::MIN, 600);
    let trees = live(&world);
    world.verify(&trees);
    for times in [1, 2] {
        let access = replay(&world.log, times);
        access.attach().unwrap();
        let mut pages = PageSet::new();
        for tree in &trees {
            let mut original = PageSet::new();
            let report = tree.verify(&access, &mut pages).unwrap();
            assert_eq!(report, tree.verify(&world.access, &mut original).unwrap());
            for (page, lsn) in lsns(&access, &original) {
                assert_eq!(lsn, lsns(&world.access, &original)[&page], "{page:?}");
            }
        }
        let space = access.verify_space(&pages).unwrap();
        assert!(space.is_sound(), "{space:?}");
        assert_eq!(bytes_of(&access, &pages).len(), pages.len());
    }
}

fn lsns(access: &Access, pages: &PageSet) -> HashMap<PageId, Lsn> {
    pages
        .iter()
        .map(|page| {
            (
                page,
                access.pool().fix_shared(page).unwrap().page().page_lsn(),
            )
        })
        .collect()
}
