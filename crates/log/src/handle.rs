//! A promise of durability, to wait for or to poll.

use crate::group::Goal;
use crate::{Level, Log, LogError};
use longshore_base::Lsn;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Tells when a record has reached the durability asked for: ask, wait, or await it.
///
/// Dropping it changes nothing for the record.
///
/// As a future it blocks nobody while a thread runs [`Log::run_flusher`]. Without one, the poll that
/// finds nobody flushing does the flush itself.
#[derive(Clone)]
#[must_use = "a record is only known to be durable when the handle says so"]
pub struct DurableHandle {
    log: Arc<Log>,
    lsn: Lsn,
    level: Level,
}

impl DurableHandle {
    pub(crate) fn new(log: Arc<Log>, lsn: Lsn, level: Level) -> DurableHandle {
        DurableHandle { log, lsn, level }
    }

    /// The record it is about.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// Whether the record is as durable as was asked for. Never waits, never flushes.
    pub fn is_done(&self) -> bool {
        self.goal()
            .is_none_or(|goal| self.log.flusher.group.is_reached(goal))
    }

    /// Waits for it, flushing if nobody else does.
    ///
    /// # Errors
    /// [`LogError::Poisoned`] if the log failed before.
    pub fn wait(&self) -> Result<(), LogError> {
        self.log.flush(self.lsn, self.level)
    }

    fn goal(&self) -> Option<Goal> {
        self.level.goal(self.lsn)
    }
}

impl Future for DurableHandle {
    type Output = Result<(), LogError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(goal) = self.goal() else {
            return Poll::Ready(Ok(()));
        };
        match self.log.check_within(self.lsn) {
            Ok(()) => self.log.flusher.poll_for(goal, cx),
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl fmt::Debug for DurableHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DurableHandle({:?}, {:?})", self.lsn, self.level)
    }
}
