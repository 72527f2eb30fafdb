//! Every interleaving of the cache's protocol, with two or three threads.
//!
//! Run by `RUSTFLAGS="--cfg loom" cargo test -p longshore-cache --test loom --release`.
//!
//! The hash table and the queue of free slots are libraries', and each of their calls is one step here; slots,
//! the hand, the cost and the parking of waiters are explored.

#![cfg(loom)]

use longshore_cache::{Cache, CacheBuilder};
use loom::sync::Arc;
use loom::thread;
use std::hash::{BuildHasherDefault, DefaultHasher};

type Fixed = BuildHasherDefault<DefaultHasher>;
type Tested = Cache<u8, u8, Fixed>;

/// Runs `body` on a cache, in every order of its threads.
fn model(capacity: u64, body: impl Fn(Arc<Tested>) + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || {
        let builder = CacheBuilder::new(capacity).weight_max(1);
        let cache = Arc::new(builder.hasher(Fixed::default()).build());
        body(Arc::clone(&cache));
        verify(&cache);
    });
}

/// The sums are those of what is there, and within the capacity.
fn verify(cache: &Tested) {
    let there = (0..8).filter(|key| cache.get(key).is_some()).count() as u64;
    let stats = cache.stats();
    assert_eq!((stats.entries, stats.cost), (there, there), "C1, S2");
    assert!(stats.probation <= there, "S2");
    assert!(stats.cost <= cache.capacity(), "C2");
}

fn spawn<R: 'static>(
    cache: &Arc<Tested>,
    body: impl FnOnce(&Tested) -> R + 'static,
) -> thread::JoinHandle<R> {
    let cache = Arc::clone(cache);
    thread::spawn(move || body(&cache))
}

#[test]
fn two_ask_and_one_loads() {
    model(2, |cache| {
        let other = spawn(&cache, |cache| cache.get_or_load(&1, || Ok::<_, ()>(10)));
        let ours = cache.get_or_load(&1, || Ok::<_, ()>(20));
        assert_eq!(other.join().unwrap(), ours);
        assert_eq!(cache.stats().loads, 1);
    });
}

#[test]
fn a_waiter_is_woken_by_a_loader_that_fails() {
    model(2, |cache| {
        let other = spawn(&cache, |cache| cache.get_or_load(&1, || Err(())));
        assert_eq!(cache.get_or_load(&1, || Ok::<_, ()>(20)), Ok(20));
        assert!(matches!(other.join().unwrap(), Ok(20) | Err(())));
        assert_eq!(cache.get(&1), Some(20));
    });
}

#[test]
fn what_is_loaded_never_replaces_what_is_put() {
    model(2, |cache| {
        let other = spawn(&cache, |cache| cache.get_or_load(&1, || Ok::<_, ()>(10)));
        cache.insert(1, 20);
        assert!(matches!(other.join().unwrap(), Ok(10 | 20)));
        assert_eq!(cache.get(&1), Some(20));
    });
}

#[test]
fn what_is_loaded_before_a_removal_is_gone_after_it() {
    use loom::sync::atomic::{AtomicU8, Ordering::SeqCst};
    model(2, |cache| {
        let truth = Arc::new(AtomicU8::new(1));
        let read = Arc::clone(&truth);
        let other = spawn(&cache, move |cache| {
            cache.get_or_load(&1, || Ok::<_, ()>(read.load(SeqCst)))
        });
        truth.store(2, SeqCst);
        cache.remove(&1);
        other.join().unwrap().unwrap();
        assert!(matches!(cache.get(&1), None | Some(2)));
    });
}

#[test]
fn two_put_at_once_and_stay_within_the_capacity() {
    model(1, |cache| {
        let other = spawn(&cache, |cache| cache.insert(1, 10));
        cache.insert(2, 20);
        other.join().unwrap();
    });
}

#[test]
fn one_entry_is_replaced_evicted_and_removed_at_once() {
    model(1, |cache| {
        cache.insert(1, 10);
        let replacer = spawn(&cache, |cache| cache.insert(1, 11));
        let evictor = spawn(&cache, |cache| cache.insert(2, 20));
        cache.remove(&1);
        replacer.join().unwrap();
        evictor.join().unwrap();
    });
}

#[test]
fn a_hit_races_with_eviction_and_the_slot_used_again() {
    model(1, |cache| {
        cache.insert(1, 10);
        let other = spawn(&cache, |cache| cache.insert(2, 20));
        assert!(matches!(cache.get(&1), None | Some(10)));
        other.join().unwrap();
    });
}
