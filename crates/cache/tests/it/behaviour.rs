//! One call at a time: what each answers.

use longshore_cache::{Cache, CacheBuilder, Insertion};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

fn by_length(capacity: u64) -> Cache<u32, String> {
    CacheBuilder::new(capacity)
        .weigher(|_, text: &String| text.len() as u64)
        .build()
}

#[test]
fn a_value_put_is_found_until_it_is_removed() {
    let cache = Cache::new(10);
    assert_eq!(cache.get("a"), None);
    assert_eq!(cache.insert("a".to_string(), 1), Insertion::New);
    assert_eq!(cache.get("a"), Some(1));
    assert_eq!(cache.insert("a".to_string(), 2), Insertion::Replaced);
    assert_eq!(cache.read("a", |value| value + 1), Some(3));
    assert_eq!(cache.remove("a"), Some(2));
    assert_eq!(cache.remove("a"), None);
    assert_eq!(cache.get("a"), None);
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses), (2, 2));
    assert_eq!((stats.inserts, stats.replaced, stats.removed), (2, 1, 1));
    assert_eq!((stats.entries, stats.cost), (0, 0));
    assert_eq!(stats.hit_ratio(), 0.5);
}

#[test]
fn a_heavy_entry_makes_as_many_leave_as_must() {
    let cache = by_length(10);
    (0..10).for_each(|key| assert_eq!(cache.insert(key, "x".into()), Insertion::New));
    assert_eq!(cache.stats().cost, 10);
    assert_eq!(cache.insert(10, "heavy!".into()), Insertion::New);
    let stats = cache.stats();
    assert_eq!((stats.cost, stats.entries, stats.evictions), (10, 5, 6));
    assert_eq!(cache.get(&10).as_deref(), Some("heavy!"));
}

#[test]
fn what_is_too_heavy_is_refused_and_its_forerunner_gone() {
    let cache = by_length(4);
    cache.insert(1, "1234".into());
    assert_eq!(cache.insert(1, "12345".into()), Insertion::TooHeavy);
    assert_eq!(cache.get(&1), None);
    let loaded: Result<_, ()> = cache.get_or_load(&1, || Ok("12345".into()));
    assert_eq!(loaded.as_deref(), Ok("12345"));
    let stats = cache.stats();
    assert_eq!((stats.too_heavy, stats.entries, stats.cost), (2, 0, 0));
}

#[test]
fn a_cache_of_no_capacity_keeps_nothing_and_loads() {
    let cache = Cache::new(0);
    assert_eq!(cache.insert(1, 1), Insertion::TooHeavy);
    assert_eq!(cache.get(&1), None);
    assert_eq!(cache.get_or_load(&1, || Ok::<_, ()>(2)), Ok(2));
    assert_eq!(cache.get(&1), None);
}

#[test]
fn an_entry_costs_one_at_least() {
    let cache = by_length(3);
    (0..10).for_each(|key| assert_eq!(cache.insert(key, String::new()), Insertion::New));
    assert_eq!((cache.stats().cost, cache.stats().entries), (3, 3));
}

#[test]
fn capacities_and_costs_beyond_reason_do_no_harm() {
    let cache: Cache<u32, u64> = CacheBuilder::new(u64::MAX)
        .weigher(|_, cost| *cost)
        .weight_max(200)
        .build();
    assert_eq!(cache.insert(1, u64::MAX), Insertion::TooHeavy);
    assert_eq!(cache.insert(1, cache.capacity()), Insertion::New);
    assert_eq!(cache.insert(2, cache.capacity()), Insertion::New);
    assert_eq!((cache.get(&1), cache.stats().entries), (None, 1));
}

#[test]
fn a_replaced_value_keeps_the_weight_of_its_key() {
    let cache = CacheBuilder::new(2).weight_max(3).build();
    cache.insert(1, 'a');
    (0..3).for_each(|_| assert_eq!(cache.get(&1), Some('a')));
    cache.insert(1, 'b');
    (10..13).for_each(|key| assert_eq!(cache.insert(key, 'x'), Insertion::New));
    assert_eq!(cache.get(&1), Some('b'));
}

/// Counts those of its kind that live.
#[derive(Debug)]
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Alive {
        count.fetch_add(1, SeqCst);
        Alive(Arc::clone(count))
    }
}

impl Clone for Alive {
    fn clone(&self) -> Alive {
        Alive::new(&self.0)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[test]
fn every_value_is_dropped_once_and_few_are_kept_back() {
    let count = Arc::new(AtomicUsize::new(0));
    let cache = Cache::new(100);
    for round in 0..10_000 {
        cache.insert(round % 300, Alive::new(&count));
        let alive = count.load(SeqCst);
        assert!(alive <= 100 + 200, "{alive} values alive in round {round}");
    }
    drop(cache);
    assert_eq!(count.load(SeqCst), 0);
}

#[test]
#[should_panic(expected = "no weight")]
fn a_panic_of_the_weigher_is_the_callers() {
    let cache: Cache<u32, u32> = CacheBuilder::new(1)
        .weigher(|_, _| panic!("no weight"))
        .build();
    cache.insert(1, 1);
}
