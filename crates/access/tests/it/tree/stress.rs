//! Many threads in one tree.

use super::support::{STORE, World, key};
use longshore_access::Slot;
use longshore_base::PageSize;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::thread;

const THREADS: u32 = 8;

/// Each thread owns the keys that are its number modulo eight, so that neighbours in every leaf
/// belong to different threads, and knows exactly which of its rows are there.
#[test]
fn threads_find_their_own_rows_in_shared_leaves() {
    let world = World::new(PageSize::MIN, 600);
    let tree = world.create(STORE);
    let models: Vec<BTreeMap<Vec<u8>, Vec<u8>>> = thread::scope(|scope| {
        let work = |thread: u32| {
            let world = &world;
            move || {
                let mut rng = SmallRng::seed_from_u64(u64::from(thread));
                let mut model = BTreeMap::new();
                for _ in 0..12_000 {
                    let number = rng.random_range(0..2_000) * THREADS + thread;
                    let key = key(number);
                    match rng.random_range(0..10) {
                        0..5 => {
                            let value = vec![thread as u8; rng.random_range(0..200)];
                            world.put(&tree, &mut world.begin(), &key, &value);
                            model.insert(key, value);
                        }
                        5..8 => {
                            let was_there = world.delete(&tree, &mut world.begin(), &key);
                            assert_eq!(was_there, model.remove(&key).is_some());
                        }
                        8 => {
                            // Purges take others' rows and neighbours along.
                            tree.purge(&world.access, &mut world.begin(), &key).unwrap();
                        }
                        _ => assert_eq!(world.get(&tree, &key).as_ref(), model.get(&key)),
                    }
                }
                model
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|t| scope.spawn(work(t))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    world.verify(&[tree]);
    let all: BTreeMap<_, _> = models.into_iter().flatten().collect();
    let rows: Vec<_> = all.into_iter().collect();
    assert_eq!(world.scan(&tree, &[], usize::MAX), rows);
}

/// Cursors in both directions run while writers split and merge under them: rows that are there all
/// the time are seen by every scan, in order and once.
#[test]
fn cursors_see_every_lasting_row_while_the_tree_changes() {
    let world = World::new(PageSize::MIN, 600);
    let tree = world.create(STORE);
    for number in (0..2_000).step_by(2) {
        world.put(&tree, &mut world.begin(), &key(number), b"lasting");
    }
    let done = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let mut rows = world.scan(&tree, &[], usize::MAX);
                    rows.retain(|(_, value)| value == b"lasting");
                    assert_eq!(rows.len(), 1_000);
                    assert!(rows.is_sorted_by(|a, b| a.0 < b.0));
                    let mut rows = world.scan_back(&tree, None, usize::MAX);
                    rows.retain(|(_, value)| value == b"lasting");
                    assert_eq!(rows.len(), 1_000);
                    assert!(rows.is_sorted_by(|a, b| a.0 > b.0));
                }
            });
        }
        let mut rng = SmallRng::seed_from_u64(3);
        for _ in 0..15_000 {
            let key = key(rng.random_range(0..1_000) * 2 + 1);
            match rng.random_range(0..5) {
                0..2 => {
                    world.put(&tree, &mut world.begin(), &key, &[1; 150]);
                }
                2..4 => {
                    world.delete(&tree, &mut world.begin(), &key);
                }
                _ => {
                    tree.purge(&world.access, &mut world.begin(), &key).unwrap();
                }
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    world.verify(&[tree]);
}

/// All threads hammer one leaf: everybody gets through, and no increment is lost.
#[test]
fn one_hot_row_is_updated_by_all() {
    let world = World::new(PageSize::MIN, 64);
    let tree = world.create(STORE);
    world.put(&tree, &mut world.begin(), b"counter", &0u64.to_le_bytes());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut cx = world.begin();
                let mut value = Vec::new();
                for _ in 0..3_000 {
                    let mut leaf = tree.write_leaf(&world.access, b"counter").unwrap();
                    let Slot::Present(slot) = leaf.find(b"counter") else {
                        panic!("gone")
                    };
                    leaf.value_into(slot, &mut value);
                    let next = u64::from_le_bytes(value[..].try_into().unwrap()) + 1;
                    let flags = longshore_access::RowFlags::NONE;
                    leaf.update(&mut cx, b"counter", flags, &next.to_le_bytes())
                        .unwrap();
                }
            });
        }
    });
    let value = world.get(&tree, b"counter").unwrap();
    assert_eq!(value, (u64::from(THREADS) * 3_000).to_le_bytes());
}
