//! Counters that do not become the contention they count.
//!
//! # Protocol
//! A [`Counter`] has one cache line per stripe; a thread adds to the stripe of its own number.
//! Thread numbers are handed out from zero and given back when the thread ends, so up to
//! [`STRIPES`] threads at a time never share a line.
//!
//! # Invariants
//! I1. The sum is exact: a stripe is changed by an atomic addition, which stays in the owner's cache
//! while nobody else counts there.

use crossbeam_utils::CachePadded;
use std::cell::Cell;
use std::collections::BTreeSet;
// The standard library's also under the model checker: counting is not part of any protocol.
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Stripes of a counter.
pub const STRIPES: usize = if cfg!(loom) { 1 } else { 16 };

/// A count that many threads raise and few read.
#[derive(Debug, Default)]
pub struct Counter {
    stripes: [CachePadded<AtomicU64>; STRIPES],
}

impl Counter {
    /// A counter at zero.
    pub fn new() -> Counter {
        Counter::default()
    }

    /// Raises the count by `n`.
    #[inline]
    pub fn add(&self, n: u64) {
        // Relaxed: a count orders nothing.
        self.stripes[thread_number() % STRIPES].fetch_add(n, Ordering::Relaxed);
    }

    /// The sum of all additions that this thread can know of.
    pub fn get(&self) -> u64 {
        // Relaxed: a count orders nothing.
        self.stripes
            .iter()
            .map(|stripe| stripe.load(Ordering::Relaxed))
            .sum()
    }
}

/// A small number that no other living thread has; the numbers of ended threads are used again.
#[inline]
pub fn thread_number() -> usize {
    NUMBER.with(|number| match number.get() {
        UNKNOWN => assign(number),
        known => known,
    })
}

/// What [`thread_number`] said to this thread before; `usize::MAX`, which is nobody's, if it was not asked yet.
#[inline(always)]
pub fn thread_number_if_known() -> usize {
    NUMBER.get()
}

const UNKNOWN: usize = usize::MAX;

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(UNKNOWN) };
    static LEASE: Lease = Lease(take_number());
}

/// Gives the thread's number back when the thread ends.
struct Lease(usize);

impl Drop for Lease {
    fn drop(&mut self) {
        let mut numbers = NUMBERS
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        numbers.free.insert(self.0);
    }
}

struct Numbers {
    next: usize,
    free: BTreeSet<usize>,
}

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers {
    next: 0,
    free: BTreeSet::new(),
});

#[cold]
#[inline(never)]
fn assign(number: &Cell<usize>) -> usize {
    // While the thread is ending its lease may be gone; any stripe will do then.
    let mine = LEASE.try_with(|lease| lease.0).unwrap_or(0);
    number.set(mine);
    mine
}

fn take_number() -> usize {
    let mut numbers = NUMBERS
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    match numbers.free.pop_first() {
        Some(number) => number,
        None => {
            numbers.next += 1;
            numbers.next - 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn additions_of_many_threads_add_up() {
        let counter = Arc::new(Counter::new());
        let threads: Vec<_> = (0..40)
            .map(|_| {
                let counter = Arc::clone(&counter);
                std::thread::spawn(move || (0..1000).for_each(|_| counter.add(2)))
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(counter.get(), 80_000);
    }

    #[test]
    fn a_number_is_known_once_it_was_asked_for() {
        let numbers = || {
            (
                thread_number_if_known(),
                thread_number(),
                thread_number_if_known(),
            )
        };
        let (before, number, after) = std::thread::spawn(numbers).join().unwrap();
        assert_eq!((before, after), (usize::MAX, number));
    }

    #[test]
    fn numbers_of_ended_threads_are_used_again() {
        let numbers: BTreeSet<usize> = (0..200)
            .map(|_| std::thread::spawn(thread_number).join().unwrap())
            .collect();
        assert!(
            numbers.len() < 150,
            "{} numbers for threads that ran in turn",
            numbers.len()
        );
    }
}
