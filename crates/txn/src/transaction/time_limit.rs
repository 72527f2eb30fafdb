//! How long a transaction may take, if that is limited.
//!
//! The clock is looked at when a statement begins, before each lock, and before the commit record; a wait
//! for a lock or for memory lasts no longer than what is left. What finds the time up fails with
//! [`TxnError::TimeLimit`], and the transaction is rolled back at once. Nobody watches a transaction that
//! does nothing: it keeps its locks until its next call, or until it is dropped.

use super::Transaction;
use super::manager::Core;
use super::work::Work;
use crate::error::{Result, TxnError};
use crate::lock::{LockError, Wait};
use std::time::Duration;

/// When a transaction's time is up.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeLimit {
    limit: Duration,
    /// By the environment's clock.
    ends_at: Duration,
}

impl Transaction {
    /// Ends it, rolled back, once `limit` has passed from now; see [`TxnError::TimeLimit`].
    pub fn set_time_limit(&mut self, limit: Duration) {
        let ends_at = self.door.core.locks.env().now().saturating_add(limit);
        self.work.time_limit = Some(TimeLimit { limit, ends_at });
    }

    /// How long it may wait for something now: as long as for a lock, within what is left of its time.
    pub fn patience(&self) -> Duration {
        self.work.patience(&self.door.core)
    }
}

impl Work {
    /// Fails once the time is up.
    #[inline]
    pub(super) fn check_time(&self, core: &Core) -> Result<()> {
        match self.time_limit {
            None => Ok(()),
            Some(limit) => limit.left(core).map(drop),
        }
    }

    /// How long a lock is waited for now; fails once the time is up.
    #[inline]
    pub(super) fn wait(&self, core: &Core) -> Result<Wait> {
        match self.time_limit {
            None => Ok(Wait::For(self.lock_wait)),
            Some(limit) => Ok(Wait::For(limit.left(core)?.min(self.lock_wait))),
        }
    }

    pub(super) fn patience(&self, core: &Core) -> Duration {
        match self.wait(core) {
            Ok(Wait::For(limit)) => limit,
            Ok(Wait::No) | Err(_) => Duration::ZERO,
        }
    }

    /// What a lock not had means: if it was waited for to the end of the transaction's time, that.
    #[cold]
    pub(super) fn lock_failed(&self, error: LockError) -> TxnError {
        match (error, self.time_limit) {
            (LockError::Timeout { waited, .. }, Some(limit)) if waited < self.lock_wait => {
                limit.is_up()
            }
            (error, _) => error.into(),
        }
    }
}

impl TimeLimit {
    /// What is left of the time.
    #[cold]
    fn left(&self, core: &Core) -> Result<Duration> {
        match self.ends_at.checked_sub(core.locks.env().now()) {
            None | Some(Duration::ZERO) => Err(self.is_up()),
            Some(left) => Ok(left),
        }
    }

    fn is_up(&self) -> TxnError {
        TxnError::TimeLimit { limit: self.limit }
    }
}
