//! What the lock manager counts, and the view of who waits for whom.

use super::manager::LockManager;
use super::mode::Mode;
use super::name::LockName;
use super::queue::OwnerIndex;
use longshore_base::TxnId;
use longshore_base::metrics::Counter;
use std::time::Duration;

/// Counts since the lock manager was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockStats {
    /// Locks granted; a transaction's are added when it ends.
    pub acquired: u64,
    /// Requests that had to wait.
    pub blocked: u64,
    /// Latches of buckets that were not free at the first attempt (failed compare-and-swap).
    pub latches_contended: u64,
    /// Waits that ended because the transaction was chosen as a deadlock's victim.
    pub deadlocks: u64,
    /// Waits that ended because the time was up.
    pub timeouts: u64,
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
    pub latches_contended: Counter,
    pub deadlocks: Counter,
    pub timeouts: Counter,
    pub wait_nanos: Counter,
}

/// One transaction that waits for a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockWait {
    /// Who waits.
    pub waiter: TxnId,
    /// What for.
    pub name: LockName,
    /// The mode asked for.
    pub wanted: Mode,
    /// For how long so far.
    pub waited: Duration,
    /// Whom for: holders in the way, and waiters ahead that are incompatible.
    pub waits_for: Vec<TxnId>,
}

impl LockManager {
    /// Who waits for whom, for how long. Each line is true of some moment during the call.
    pub fn waits(&self) -> Vec<LockWait> {
        (0..self.owners_max() as OwnerIndex)
            .filter_map(|index| self.wait_of(index))
            .collect()
    }

    fn wait_of(&self, index: OwnerIndex) -> Option<LockWait> {
        let wait = self.slot(index).waiting()?;
        let mut owners = Vec::new();
        let name = wait.name.hash();
        self.bucket(name)
            .latch()
            .0
            .waits_for(name, index, &mut owners);
        Some(LockWait {
            waiter: wait.txn,
            name: wait.name,
            wanted: wait.wanted,
            waited: self.now().saturating_sub(wait.since),
            waits_for: owners.into_iter().map(|o| self.slot(o).txn()).collect(),
        })
    }

    /// The counters.
    pub fn stats(&self) -> LockStats {
        let counters = self.counters();
        LockStats {
            acquired: counters.acquired.get(),
            blocked: counters.blocked.get(),
            latches_contended: counters.latches_contended.get(),
            deadlocks: counters.deadlocks.get(),
            timeouts: counters.timeouts.get(),
            wait_time: Duration::from_nanos(counters.wait_nanos.get()),
            bytes_used: self.bytes_used(),
            bytes_max: self.bytes_max(),
        }
    }
}
