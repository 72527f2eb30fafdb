//! Boundaries that are locked stay where they are.

use super::support::{STORE, World, key};
use longshore_access::{Boundaries, Boundary, LeafRead, Patience};
use longshore_base::{PageSize, StoreId};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Locked(Mutex<BTreeSet<Vec<u8>>>);

impl Boundaries for Locked {
    fn may_remove(&self, _: StoreId, key: &[u8]) -> bool {
        !self.0.lock().unwrap().contains(key)
    }
}

fn boundaries(world: &World, tree: &longshore_access::Tree) -> BTreeSet<Vec<u8>> {
    let mut all = BTreeSet::new();
    let mut at = Vec::new();
    loop {
        let leaf: LeafRead<'_> = tree
            .read_leaf_patiently(&world.access, &at, &mut Patience::new())
            .unwrap();
        let mut boundary = Vec::new();
        for slot in 0..leaf.count() {
            leaf.boundary_into(slot, &mut boundary);
            all.insert(boundary.clone());
        }
        if leaf.boundary_into(leaf.count(), &mut boundary) == Boundary::Supremum {
            return all;
        }
        all.insert(boundary.clone());
        at = boundary;
    }
}

/// Whatever splits, purges and merges do: a locked boundary is there before and after, and splits
/// add none.
#[test]
fn locked_boundaries_outlive_purges_and_merges() {
    let locks = Arc::new(Locked::default());
    let world = World::with_boundaries(PageSize::MIN, 400, locks.clone());
    let tree = world.create(STORE);
    for k in 0..1_000 {
        world.put(&tree, &mut world.begin(), &key(k), &[1; 100]);
    }
    let rows: BTreeSet<_> = (0..1_000).map(key).collect();
    assert_eq!(boundaries(&world, &tree), rows, "fences are keys of rows");
    for k in (0..1_000).step_by(50) {
        locks.0.lock().unwrap().insert(key(k));
    }
    for k in 0..1_000 {
        world.delete(&tree, &mut world.begin(), &key(k));
    }
    for k in 0..1_000 {
        tree.purge(&world.access, &mut world.begin(), &key(k))
            .unwrap();
    }
    let left = boundaries(&world, &tree);
    assert!(left.is_superset(&locks.0.lock().unwrap()));
    assert!(
        left.len() < 60,
        "{} boundaries are left of a thousand",
        left.len()
    );
    locks.0.lock().unwrap().clear();
    for _ in 0..3 {
        for k in 0..1_000 {
            tree.purge(&world.access, &mut world.begin(), &key(k))
                .unwrap();
        }
    }
    assert!(boundaries(&world, &tree).is_empty());
    assert_eq!(world.verify(&[tree])[0].leaves, 1);
}
