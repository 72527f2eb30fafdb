//! Counters that do not become the contention they count.
//!
//! # Protocol
//! A [`Counter`] has one cache line per stripe. Thread numbers are handed out from zero and given back when the thread ends.
//! A thread of one of the first [`STRIPES`] numbers has a stripe to itself, and adds by a load and a store;
//! the others share as many more, and add by an atomic addition.
//!
//! # Invariants
//! I1. The sum is exact: a stripe of one owner is stored to by nobody else, and the next owner of a number has it through
//! a lock that the former one held after its last addition.

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
    own: [CachePadded<AtomicU64>; STRIPES],
    shared: [CachePadded<AtomicU64>; STRIPES],
}

impl Counter {
    /// A counter at zero.
    pub fn new() -> Counter {
        Counter::default()
    }

    /// Raises the count by `n`.
    #[inline]
    pub fn add(&self, n: u64) {
        // Relaxed, here and below: a count orders nothing.
        match self.own.get(thread_number_if_known()) {
            Some(own) => own.store(own.load(Ordering::Relaxed) + n, Ordering::Relaxed),
            None => self.add_first_or_shared(n),
        }
    }

    #[cold]
    fn add_first_or_shared(&self, n: u64) {
        let number = thread_number();
        match self.own.get(number) {
            Some(_) => self.add(n),
            None => {
                self.shared[number % STRIPES].fetch_add(n, Ordering::Relaxed);
            }
        }
    }

    /// The sum of all additions that this thread can know of.
    pub fn get(&self) -> u64 {
        let stripes = self.own.iter().chain(&self.shared);
        stripes.map(|stripe| stripe.load(Ordering::Relaxed)).sum()
    }
}

/// A small number that no other living thread has; the numbers of ended threads are used again. (A thread that is
/// ending and has given its number back has a larger one, as all such have.)
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

/// Greater than the number of any thread, so that no stripe is owned by it.
const ENDING: usize = 1 << 24;

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(UNKNOWN) };
    static LEASE: Lease = Lease(take_number());
}

/// Gives the thread's number back when the thread ends. What the thread counts after that, it counts as one of many.
struct Lease(usize);

impl Drop for Lease {
    fn drop(&mut self) {
        let mut numbers = NUMBERS
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        numbers.free.insert(self.0);
        NUMBER.set(ENDING);
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
    let mine = LEASE.try_with(|lease| lease.0).unwrap_or(ENDING);
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
