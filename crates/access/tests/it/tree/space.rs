//! Pages come, go, come back, and are known again after a restart.

use super::support::{STORE, World, key};
use longshore_access::{PageSet, Tree};
use longshore_base::{PageSize, StoreId};

fn fill(world: &World, tree: &Tree, rows: u32) {
    for k in 0..rows {
        world.put(tree, &mut world.begin(), &key(k), &[1; 100]);
    }
}

fn empty(world: &World, tree: &Tree, rows: u32) {
    for k in 0..rows {
        world.delete(tree, &mut world.begin(), &key(k));
    }
    for k in (0..rows).step_by(3) {
        tree.purge(&world.access, &mut world.begin(), &key(k))
            .unwrap();
    }
}

#[test]
fn freed_pages_are_used_again() {
    let world = World::new(PageSize::MIN, 400);
    let tree = world.create(STORE);
    fill(&world, &tree, 3_000);
    let pages = world.access.pool().file_pages();
    for _ in 0..5 {
        empty(&world, &tree, 3_000);
        fill(&world, &tree, 3_000);
    }
    world.verify(&[tree]);
    let grown = world.access.pool().file_pages();
    assert!(
        grown <= pages + pages / 4,
        "{pages} pages have become {grown}"
    );
}

#[test]
fn end_of_file_is_given_back() {
    let world = World::new(PageSize::MIN, 400);
    let tree = world.create(STORE);
    fill(&world, &tree, 3_000);
    let before = world.access.pool().file_pages();
    empty(&world, &tree, 3_000);
    let cut = world.access.truncate_end().unwrap();
    assert_eq!(world.access.pool().file_pages(), before - cut);
    world.verify(&[tree]);
    assert_eq!(world.access.truncate_end().unwrap(), 0);
    fill(&world, &tree, 3_000);
    world.verify(&[tree]);
}

#[test]
fn attaching_learns_what_is_in_use() {
    let world = World::new(PageSize::MIN, 400);
    let tree = world.create(STORE);
    fill(&world, &tree, 1_000);
    world.access.attach().unwrap();
    let other = world.create(StoreId::new(30));
    fill(&world, &other, 1_000);
    world.verify(&[tree, other]);
}

#[test]
fn leaked_and_unmarked_pages_are_named() {
    let world = World::new(PageSize::MIN, 400);
    let tree = world.create(STORE);
    fill(&world, &tree, 100);
    let mut pages = PageSet::new();
    tree.verify(&world.access, &mut pages).unwrap();
    let some = pages.iter().next().unwrap();
    pages.remove(some);
    let report = world.access.verify_space(&pages).unwrap();
    assert_eq!((report.leaked, report.unmarked.len()), (vec![some], 0));
    pages.insert(some);
    let beyond = longshore_base::PageId::new(100_000);
    pages.insert(beyond);
    let report = world.access.verify_space(&pages).unwrap();
    assert_eq!((report.leaked.len(), report.unmarked), (0, vec![beyond]));
}

/// More pages than one map page describes: the second map page is made, used, and dropped again.
#[test]
fn file_spans_several_map_pages() {
    use_several_map_pages();
}

pub fn use_several_map_pages() {
    let world = World::new(PageSize::MIN, 2_000);
    let tree = world.create(STORE);
    let span = 8 * (4096 - 32);
    // Two rows fill a page.
    let rows = (0..span as u32 * 2 + 1_000).map(|k| {
        let mut key = format!("{k:07}").into_bytes();
        key.resize(500, b'z');
        Ok::<_, longshore_access::AccessError>((key, longshore_access::RowFlags::NONE, [1; 900]))
    });
    tree.bulk_load(&world.access, &mut world.begin(), rows)
        .unwrap();
    let small = world.create(StoreId::new(31));
    world.verify(&[tree, small]);
    world.access.attach().unwrap();
    tree.free_step(&world.access, &mut world.begin(), usize::MAX)
        .unwrap();
    assert!(small.root.get() > span);
    small
        .free_step(&world.access, &mut world.begin(), usize::MAX)
        .unwrap();
    assert!(world.access.truncate_end().unwrap() > span / 2);
    assert!(world.access.pool().file_pages() < 100);
    let again = world.create(StoreId::new(32));
    fill(&world, &again, 500);
    world.verify(&[again]);
}
