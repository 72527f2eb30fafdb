//! What the lock manager counts.

use super::manager::LockManager;
use longshore_base::metrics::Counter;
use std::time::Duration;

/// Counts since the lock manager was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockStats {
    /// Locks granted; a transaction's are added when it ends.
    pub acquired: u64,
    /// Requests that had to wait.
    pub blocked: u64,
    /// Times that one who was called for a lock found that somebody had it again.
    pub came_in_vain: u64,
    /// Latches of buckets that were not free at the first attempt (failed compare-and-swap).
    pub latches_contended: u64,
    /// Waits that ended because the transaction was chosen as a deadlock's victim.
    pub deadlocks: u64,
    /// Waits that ended because the time was up.
    pub timeouts: u64,
    /// Waits that another thread has cancelled.
    pub cancelled: u64,
    /// Requests for tables and the database that went through a queue; other intents leave no trace.
    pub intents_queued: u64,
    /// Times that locks on rows were traded for one on their table.
    pub escalations: u64,
    /// Times that others were in the way of that.
    pub escalations_refused: u64,
    /// Time spent waiting, over all threads.
    pub wait_time: Duration,
    /// Bytes of memory in use.
    pub bytes_used: usize,
    /// Bytes of memory allowed.
    pub bytes_max: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub acquired: Counter,
    pub blocked: Counter,
    pub came_in_vain: Counter,
    pub latches_contended: Counter,
    pub deadlocks: Counter,
    pub timeouts: Counter,
    pub cancelled: Counter,
    pub intents_queued: Counter,
    pub escalations: Counter,
    pub escalations_refused: Counter,
    pub wait_nanos: Counter,
}

impl LockManager {
    /// The counters.
    pub fn stats(&self) -> LockStats {
        let counters = self.counters();
        LockStats {
            acquired: counters.acquired.get(),
            blocked: counters.blocked.get(),
            came_in_vain: counters.came_in_vain.get(),
            latches_contended: counters.latches_contended.get(),
            deadlocks: counters.deadlocks.get(),
            timeouts: counters.timeouts.get(),
            cancelled: counters.cancelled.get(),
            intents_queued: counters.intents_queued.get(),
            escalations: counters.escalations.get(),
            escalations_refused: counters.escalations_refused.get(),
            wait_time: Duration::from_nanos(counters.wait_nanos.get()),
            bytes_used: self.bytes_used(),
            bytes_max: self.bytes_max(),
        }
    }
}
