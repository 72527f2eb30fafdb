//! How much memory older images may take.
//!
//! # Protocol
//! Arenas charge what they grow by, before they do; the table of kept versions charges what a commit has
//! put there, afterwards, for a commit cannot be refused. So that this stays within the limit, the budget
//! is called *tight* when an eighth of it is left, and writers look at that before they change a row:
//! what happens then is the policy's to say (`mod.rs`).

use crossbeam_utils::CachePadded;
use longshore_base::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use longshore_base::sync::{Condvar, Mutex};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Budget {
    bytes_max: usize,
    /// Touched when arenas grow, and by commits that keep versions.
    used: CachePadded<AtomicUsize>,
    /// Read by all writers, changed seldom; a hint.
    is_tight: AtomicBool,
    waiting: AtomicUsize,
    /// Guards nothing; those who wait for memory wait here.
    turn: Mutex<()>,
    freed: Condvar,
}

impl Budget {
    pub fn new(bytes_max: usize) -> Budget {
        Budget {
            bytes_max,
            used: CachePadded::default(),
            is_tight: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            turn: Mutex::new(()),
            freed: Condvar::new(),
        }
    }

    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub fn used(&self) -> usize {
        // Relaxed: a count.
        self.used.load(Ordering::Relaxed)
    }

    /// Whether little is left.
    #[inline]
    pub fn is_tight(&self) -> bool {
        // Relaxed: a hint; who misses it comes by again with the next row.
        self.is_tight.load(Ordering::Relaxed)
    }

    /// Charges `bytes` if they are there.
    pub fn try_charge(&self, bytes: usize) -> bool {
        // Relaxed: a count; nothing is published through it.
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > self.bytes_max {
            self.refund(bytes);
            return false;
        }
        self.judge(before + bytes);
        true
    }

    /// Charges `bytes` that are taken already.
    pub fn charge(&self, bytes: usize) {
        // Relaxed: a count; nothing is published through it.
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        self.judge(before + bytes);
    }

    pub fn refund(&self, bytes: usize) {
        // Relaxed: a count; nothing is published through it.
        let before = self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.judge(before - bytes);
        // Relaxed: who waits looks again after a moment, whoever missed whom.
        if self.waiting.load(Ordering::Relaxed) > 0 {
            let _turn = self.turn.lock();
            self.freed.notify_all();
        }
    }

    fn judge(&self, used: usize) {
        let is_tight = used > self.bytes_max - self.bytes_max / 8;
        // Relaxed: see `is_tight`.
        if self.is_tight.load(Ordering::Relaxed) != is_tight {
            self.is_tight.store(is_tight, Ordering::Relaxed);
        }
    }

    /// Waits until somebody gives memory back, for at most `limit`.
    pub fn wait(&self, limit: Duration) {
        // Relaxed: see `refund`.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let turn = self.turn.lock();
        drop(self.freed.wait_timeout(turn, limit));
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn little_left_is_tight_until_it_is_given_back() {
        let budget = Budget::new(800);
        assert!(budget.try_charge(700) && !budget.is_tight());
        assert!(!budget.try_charge(101));
        budget.charge(1);
        assert!(budget.is_tight());
        budget.refund(1);
        assert!(!budget.is_tight());
        assert_eq!(budget.used(), 700);
    }
}
