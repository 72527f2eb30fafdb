//! One tree against a `BTreeMap`, on random operations.

use super::support::{STORE, World, key, long_key};
use longshore_base::PageSize;
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::ops::Bound;

#[derive(Clone, Debug)]
enum Step {
    Put(u32, u16),
    Delete(u32),
    Get(u32),
    Scan(u32, u8),
    ScanBack(Option<u32>, u8),
    Purge(u32),
}

fn step(keys: u32) -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..keys, 0u16..400).prop_map(|(k, len)| Step::Put(k, len)),
        4 => (0..keys).prop_map(Step::Delete),
        1 => (0..keys).prop_map(Step::Get),
        1 => (0..keys, 0u8..50).prop_map(|(k, n)| Step::Scan(k, n)),
        1 => (proptest::option::of(0..keys), 0u8..50).prop_map(|(k, n)| Step::ScanBack(k, n)),
        1 => (0..keys).prop_map(Step::Purge),
    ]
}

struct Pair {
    world: World,
    tree: longshore_access::Tree,
    model: BTreeMap<Vec<u8>, Vec<u8>>,
    key: fn(u32) -> Vec<u8>,
}

impl Pair {
    fn new(frames: usize, key: fn(u32) -> Vec<u8>) -> Pair {
        let world = World::new(PageSize::MIN, frames);
        let tree = world.create(STORE);
        Pair {
            world,
            tree,
            model: BTreeMap::new(),
            key,
        }
    }

    fn apply(&mut self, step: &Step) {
        let (world, tree, model) = (&self.world, &self.tree, &mut self.model);
        match *step {
            Step::Put(k, len) => {
                let (key, value) = ((self.key)(k), vec![k as u8; len as usize]);
                world.put(tree, &mut world.begin(), &key, &value);
                model.insert(key, value);
            }
            Step::Delete(k) => {
                let key = (self.key)(k);
                let was_there = world.delete(tree, &mut world.begin(), &key);
                assert_eq!(was_there, model.remove(&key).is_some());
            }
            Step::Get(k) => {
                let key = (self.key)(k);
                assert_eq!(world.get(tree, &key).as_ref(), model.get(&key));
            }
            Step::Scan(k, limit) => {
                let from = (self.key)(k);
                let rows = model.range(from.clone()..).take(limit as usize);
                let rows: Vec<_> = rows.map(|(k, v)| (k.clone(), v.clone())).collect();
                assert_eq!(world.scan(tree, &from, limit as usize), rows);
            }
            Step::ScanBack(k, limit) => {
                let bound = k.map(self.key);
                let upper = bound.clone().map_or(Bound::Unbounded, Bound::Excluded);
                let rows = model
                    .range((Bound::Unbounded, upper))
                    .rev()
                    .take(limit as usize);
                let rows: Vec<_> = rows.map(|(k, v)| (k.clone(), v.clone())).collect();
                assert_eq!(
                    world.scan_back(tree, bound.as_deref(), limit as usize),
                    rows
                );
            }
            Step::Purge(k) => {
                tree.purge(&world.access, &mut world.begin(), &(self.key)(k))
                    .unwrap();
            }
        }
    }

    fn check(&self) -> longshore_access::TreeReport {
        let report = self.world.verify(&[self.tree]).remove(0);
        assert_eq!(report.rows, self.model.len() as u64);
        let rows: Vec<_> = self
            .model
            .iter()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        assert_eq!(self.world.scan(&self.tree, &[], usize::MAX), rows);
        report
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn tree_acts_like_a_map(steps in proptest::collection::vec(step(300), 1..500)) {
        let mut pair = Pair::new(256, key);
        steps.iter().for_each(|step| pair.apply(step));
        pair.check();
    }

    #[test]
    fn deep_tree_acts_like_a_map(steps in proptest::collection::vec(step(120), 1..400)) {
        let mut pair = Pair::new(256, long_key);
        steps.iter().for_each(|step| pair.apply(step));
        pair.check();
    }
}

/// Many rows through few frames, then all of them deleted: the tree is back to its root.
#[test]
fn tree_grows_and_shrinks_through_a_tiny_pool() {
    let mut rng = SmallRng::seed_from_u64(42);
    let mut pair = Pair::new(64, long_key);
    for _ in 0..6_000 {
        let len = rng.random_range(0..300);
        pair.apply(&Step::Put(rng.random_range(0..3_000), len));
    }
    let report = pair.check();
    assert!(report.levels >= 5, "{report:?}");
    for k in 0..3_000 {
        pair.apply(&Step::Delete(k));
        if k % 7 == 0 {
            pair.apply(&Step::Purge(rng.random_range(0..3_000)));
        }
    }
    for _ in 0..4 {
        (0..3_000).for_each(|k| pair.apply(&Step::Purge(k)));
    }
    let report = pair.check();
    assert_eq!((report.levels, report.leaves, report.ghosts), (1, 1, 0));
}

/// Every order of arrival ends in the same rows.
#[test]
fn ascending_and_descending_inserts_fill_pages() {
    for descending in [false, true] {
        let mut pair = Pair::new(1024, key);
        for k in 0..5_000 {
            let k = if descending { 4_999 - k } else { k };
            pair.apply(&Step::Put(k, 60));
        }
        let report = pair.check();
        let fill = report.leaf_bytes_used * 100 / (report.leaves * 4096);
        assert!(fill > 85, "{fill} % full, descending: {descending}");
    }
}

/// A leaf that was full to the last byte was split before its first row: what went to the right page
/// needed a few bytes more there, because its first key, kept whole as a fence, was padded anew. The
/// record was in the log by then.
#[test]
fn leaves_full_to_the_last_byte_are_split() {
    for len in 0..120 {
        let mut pair = Pair::new(256, key);
        for k in (0..150).rev() {
            pair.apply(&Step::Put(k, len + (k % 9) as u16));
        }
        for k in 150..300 {
            pair.apply(&Step::Put((k * 71) % 300, len));
        }
        pair.check();
    }
}

/// Keys and values of the greatest size that is allowed, in every page size.
#[test]
fn greatest_rows_fit_every_page_size() {
    for bytes in [4096, 8192, 65536] {
        let world = World::new(PageSize::new(bytes).unwrap(), 256);
        let tree = world.create(STORE);
        let limits = world.access.limits();
        let mut model = BTreeMap::new();
        for k in [5u32, 1, 9, 3, 7, 2, 8, 4, 6, 0, 11, 10] {
            let mut key = k.to_be_bytes().to_vec();
            key.resize(limits.key_max(), k as u8);
            let value = vec![k as u8; limits.inline_max(key.len())];
            world.put(&tree, &mut world.begin(), &key, &value);
            model.insert(key, value);
        }
        world.verify(&[tree]);
        let rows: Vec<_> = model.into_iter().collect();
        assert_eq!(world.scan(&tree, &[], usize::MAX), rows);
    }
}

#[test]
fn too_long_rows_are_refused_with_the_limit() {
    let world = World::new(PageSize::MIN, 64);
    let tree = world.create(STORE);
    let long = vec![1; 1025];
    let refused = tree
        .make_room(&world.access, &mut world.begin(), &long, 0)
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the key has 1025 bytes; with pages of this size a key may have at most 1024"
    );
    let mut leaf = tree.write_leaf(&world.access, &long).unwrap();
    let value = vec![0; 4000];
    let refused = leaf.insert(
        &mut world.begin(),
        &[1],
        longshore_access::RowFlags::NONE,
        &value,
    );
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("at most 1024 fit")
    );
}
