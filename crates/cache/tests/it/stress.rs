//! Many threads on a cache too small for them.

use longshore_cache::{Cache, CacheBuilder};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::thread;

const KEYS: u32 = 64;
const THREADS: u64 = 8;

/// A value that tells the key it belongs to, and costs 1 to 4.
type Value = (u32, u32);

fn cost(value: Value) -> u64 {
    u64::from(value.1 % 4) + 1
}

fn call(cache: &Cache<u32, Value>, random: &mut SmallRng) {
    let key = random.random_range(0..KEYS);
    let value = (key, random.random());
    let found = match random.random_range(0..10) {
        0 | 1 => {
            cache.insert(key, value);
            None
        }
        2 => cache.remove(&key),
        3 | 4 => cache.get_or_load(&key, || Ok::<_, ()>(value)).ok(),
        5 => cache.get_or_load(&key, || Err(())).ok(),
        _ => cache.get(&key),
    };
    assert!(
        found.is_none_or(|found| found.0 == key),
        "{found:?} under {key}"
    );
}

fn stress(seed: u64, capacity: u64) {
    println!("seed {seed}, capacity {capacity}");
    let builder = CacheBuilder::new(capacity);
    let cache = builder.weigher(|_, value| cost(*value)).build();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let cache = &cache;
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(seed * THREADS + thread);
                (0..20_000).for_each(|_| call(cache, &mut random));
            });
        }
    });
    let stats = cache.stats();
    let there: Vec<Value> = (0..KEYS).filter_map(|key| cache.get(&key)).collect();
    assert_eq!(there.len() as u64, stats.entries, "C1, S2");
    let left = stats.replaced + stats.evictions + stats.removed;
    assert_eq!(stats.entries, stats.inserts - left, "C1");
    assert!(stats.probation <= stats.entries, "S2");
    let costs = there.iter().map(|value| cost(*value)).sum::<u64>();
    assert_eq!(costs, stats.cost, "C1");
    assert!(costs <= capacity, "C2");
}

#[test]
fn threads_leave_a_cache_whose_sums_are_right() {
    for (seed, capacity) in [1, 2, 4, 5, 20, 40, 100].into_iter().enumerate() {
        stress(seed as u64, capacity);
    }
}

/// What was removed is not seen again, though loaders of an older value are at work.
#[test]
fn no_thread_reads_what_is_older_than_a_removal() {
    let cache = Cache::new(8);
    let newest = [const { std::sync::atomic::AtomicU64::new(0) }; 4];
    let order = std::sync::atomic::Ordering::SeqCst;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (cache, newest) = (&cache, &newest);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(thread);
                for _ in 0..20_000 {
                    let key = random.random_range(0..4_usize);
                    if random.random_ratio(1, 8) {
                        newest[key].fetch_add(1, order);
                        cache.remove(&key);
                    } else if thread < 4 {
                        // Loads what is true now. Whoever changes it later removes it after that.
                        let _ = cache.get_or_load(&key, || Ok::<_, ()>(newest[key].load(order)));
                    }
                }
            });
        }
    });
    for (key, newest) in newest.iter().enumerate() {
        let kept = cache.get(&key);
        assert!(kept.is_none_or(|kept| kept == newest.load(order)));
    }
}
