//! A map as model: random calls, with a cache that never evicts, and with one that does.

use longshore_cache::{Cache, CacheBuilder, Insertion};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Call {
    Get(u8),
    Insert(u8, u8),
    Remove(u8),
    Load(u8, u8),
}

fn call() -> impl Strategy<Value = Call> {
    let key = 0..24_u8;
    prop_oneof![
        key.clone().prop_map(Call::Get),
        (key.clone(), any::<u8>()).prop_map(|(key, value)| Call::Insert(key, value)),
        key.clone().prop_map(Call::Remove),
        (key, any::<u8>()).prop_map(|(key, value)| Call::Load(key, value)),
    ]
}

/// A value costs its lowest three bits.
fn cost(value: u8) -> u64 {
    u64::from(value & 7).max(1)
}

/// What the model says a key has is what the cache has; `may_miss` allows it to have nothing.
fn check(cache: &Cache<u8, u8>, calls: &[Call], may_miss: bool) {
    let mut model = BTreeMap::new();
    for call in calls {
        match *call {
            Call::Get(key) => {
                let found = cache.get(&key);
                assert!(found == model.get(&key).copied() || may_miss && found.is_none());
            }
            Call::Insert(key, value) => match cache.insert(key, value) {
                Insertion::TooHeavy => {
                    assert!(cost(value) > cache.capacity());
                    model.remove(&key);
                }
                Insertion::New => {
                    assert!(model.insert(key, value).is_none() || may_miss);
                    assert_eq!(cache.read(&key, |found| *found), Some(value));
                }
                Insertion::Replaced => assert!(model.insert(key, value).is_some()),
            },
            Call::Remove(key) => {
                let removed = cache.remove(&key);
                let expected = model.remove(&key);
                assert!(removed == expected || may_miss && removed.is_none());
            }
            Call::Load(key, value) => {
                let mut is_loaded = false;
                let found: Result<u8, ()> = cache.get_or_load(&key, || {
                    is_loaded = true;
                    Ok(value)
                });
                match is_loaded {
                    true => assert!(model.insert(key, value).is_none() || may_miss),
                    false => assert_eq!(found.ok(), model.get(&key).copied()),
                }
            }
        }
        let stats = cache.stats();
        assert!(stats.cost <= cache.capacity(), "C2");
        assert!(stats.entries <= stats.cost);
    }
    let there: Vec<u8> = (0..24).filter_map(|key| cache.get(&key)).collect();
    assert_eq!(there.len() as u64, cache.stats().entries);
    assert_eq!(
        there.iter().map(|value| cost(*value)).sum::<u64>(),
        cache.stats().cost
    );
}

fn cache(capacity: u64) -> Cache<u8, u8> {
    let builder = CacheBuilder::new(capacity);
    builder.weigher(|_, value| cost(*value)).build()
}

proptest! {
    #[test]
    fn a_cache_with_room_for_all_is_a_map(calls in prop::collection::vec(call(), 0..300)) {
        check(&cache(1000), &calls, false);
    }

    #[test]
    fn a_small_cache_forgets_and_never_lies(
        capacity in 0..40_u64,
        calls in prop::collection::vec(call(), 0..300),
    ) {
        check(&cache(capacity), &calls, true);
    }
}
