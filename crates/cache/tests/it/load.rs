//! Get or load: one loads, the others wait.

use longshore_cache::{Cache, Insertion};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

const THREADS: usize = 8;

/// Runs `ask` in many threads, the first of which is at its loader when the others come.
fn together<R: Send>(ask: impl Fn(&dyn Fn()) -> R + Sync) -> Vec<R> {
    let come = Barrier::new(THREADS);
    let is_first = AtomicUsize::new(0);
    let loading = || {
        if is_first.fetch_add(1, SeqCst) == 0 {
            come.wait();
            thread::sleep(Duration::from_millis(20));
        }
    };
    thread::scope(|scope| {
        let first = scope.spawn(|| ask(&loading));
        while is_first.load(SeqCst) == 0 {
            thread::yield_now();
        }
        let others: Vec<_> = (1..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    come.wait();
                    ask(&loading)
                })
            })
            .collect();
        let all = std::iter::once(first).chain(others);
        all.map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn one_loads_and_all_have_its_value() {
    let cache = Cache::new(10);
    let loads = AtomicUsize::new(0);
    let answers = together(|loading| {
        cache.get_or_load(&1, || {
            loading();
            Ok::<_, ()>(loads.fetch_add(1, SeqCst))
        })
    });
    assert_eq!(answers, [Ok(0); THREADS]);
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.misses), (1, 1));
    assert_eq!(stats.hits, THREADS as u64 - 1);
}

#[test]
fn an_error_is_its_callers_and_a_waiter_tries() {
    let cache = Cache::new(10);
    let loads = AtomicUsize::new(0);
    let answers = together(|loading| {
        cache.get_or_load(&1, || {
            loading();
            match loads.fetch_add(1, SeqCst) {
                0 => Err("no such thing"),
                nth => Ok(nth),
            }
        })
    });
    assert_eq!(answers[0], Err("no such thing"));
    assert_eq!(answers[1..], [Ok(1); THREADS - 1]);
    assert_eq!(cache.stats().misses, 2);
}

#[test]
fn a_panic_is_its_callers_and_a_waiter_tries() {
    let cache = Cache::new(10);
    let loads = AtomicUsize::new(0);
    let answers = together(|loading| {
        let load = || {
            loading();
            match loads.fetch_add(1, SeqCst) {
                0 => panic!("a loader that fails on purpose"),
                nth => Ok::<_, ()>(nth),
            }
        };
        catch_unwind(AssertUnwindSafe(|| cache.get_or_load(&1, load)))
    });
    assert!(answers[0].is_err());
    assert!(answers[1..].iter().all(|it| matches!(it, Ok(Ok(1)))));
}

#[test]
fn what_is_put_while_another_loads_stays() {
    let cache = Cache::new(10);
    let load = || {
        assert_eq!(cache.insert(1, "put"), Insertion::New);
        Ok::<_, ()>("loaded")
    };
    assert_eq!(cache.get_or_load(&1, load), Ok("loaded"));
    assert_eq!(cache.get(&1), Some("put"));
    let stats = cache.stats();
    assert_eq!(
        (stats.loads_overtaken, stats.entries, stats.cost),
        (1, 1, 1)
    );
}

#[test]
fn what_is_loaded_while_the_key_is_removed_is_not_kept() {
    let cache = Cache::new(10);
    let load = || {
        assert_eq!(cache.remove(&1), None);
        Ok::<_, ()>("old")
    };
    assert_eq!(cache.get_or_load(&1, load), Ok("old"));
    assert_eq!(cache.get(&1), None);
    assert_eq!((cache.stats().entries, cache.stats().cost), (0, 0));
}

#[test]
fn a_loader_may_ask_for_other_keys() {
    let cache = Cache::new(10);
    let load = || Ok::<_, ()>(cache.get_or_load(&2, || Ok::<_, ()>(20))? + 1);
    assert_eq!(cache.get_or_load(&1, load), Ok(21));
    assert_eq!(cache.get(&2), Some(20));
}
