//! The last steps of a transaction that stays, and the answer to it.

use super::manager::Core;
use super::work::Work;
use crate::error::Result;
use crate::lock::Dependency;
use crate::record::COMMIT;
use longshore_base::{Durability, Lsn, crash_point};
use longshore_log::{DurableHandle, Level};
use smallvec::SmallVec;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

/// A commit whose answer is on its way.
#[must_use = "the answer is not known before `handle` was waited for"]
#[derive(Debug)]
pub struct Commit {
    /// Where the commit record is: the place in the serial order. `None` if nothing was changed.
    pub lsn: Option<Lsn>,
    /// Tells when the commit may be answered.
    pub handle: CommitHandle,
}

/// Tells when a commit is as durable as was asked, and so is every commit that it has seen.
///
/// Wait with [`CommitHandle::wait`], or `.await` it.
#[must_use = "the answer is not known before this was waited for"]
pub struct CommitHandle {
    /// Its own record, and the newest record that it depends on unless its own implies it.
    parts: SmallVec<[DurableHandle; 1]>,
}

impl CommitHandle {
    /// Waits until the commit may be answered.
    ///
    /// # Errors
    /// [`TxnError::Log`](crate::TxnError::Log) when the log failed: whether the commit lasts is known
    /// after reopening.
    pub fn wait(&self) -> Result<()> {
        for part in &self.parts {
            part.wait()?;
        }
        crash_point("commit.durable");
        Ok(())
    }

    /// Whether waiting would return at once.
    pub fn is_done(&self) -> bool {
        self.parts.iter().all(DurableHandle::is_done)
    }
}

impl Future for CommitHandle {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        while let Some(part) = self.parts.last_mut() {
            match Pin::new(part).poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) => drop(self.parts.pop()),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl std::fmt::Debug for CommitHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CommitHandle(done: {})", self.is_done())
    }
}

impl Work {
    /// Gives the transaction its place among all. All locks are held.
    pub(super) fn place_commit(&mut self, core: &Core, level: Level) -> Result<Option<Lsn>> {
        // Not to keep versions for itself.
        self.close_snapshots(core);
        if self.last_lsn() == Lsn::ZERO {
            return Ok(None);
        }
        core.versions.begin_commit(self.slot, level);
        let placed = self.log_commit(core);
        if placed.is_err() {
            core.versions.give_up_commit(self.slot);
        }
        placed
    }

    /// Appends the commit record if anything was changed. All locks are held.
    pub(super) fn log_commit(&mut self, core: &Core) -> Result<Option<Lsn>> {
        match &mut self.cx {
            Some(cx) if cx.last != Lsn::ZERO => {
                let lsn = core
                    .log
                    .append(&mut cx.claim, COMMIT, cx.txn, cx.last, &[])?;
                crash_point("commit.logged");
                Ok(Some(lsn))
            }
            _ => Ok(None),
        }
    }

    /// Ends all locks, telling those who come after what they depend on, and gives back the slot.
    pub(super) fn release(&mut self, core: &Core, commit: Dependency) {
        if let Some(ended) = &self.ended {
            // Release: pairs with the Acquire in value readers.
            ended.store(true, Ordering::Release);
        }
        self.close_snapshots(core);
        core.locks.release_all(&mut self.owner, commit);
        self.drop_images(core);
        self.cx = None;
        core.slots.give_back(self.slot);
    }
}

/// What follows the commit record `lsn`.
pub(super) fn finish(core: &Core, work: &mut Work, lsn: Option<Lsn>, level: Level) -> Commit {
    let own = lsn.map_or(Dependency::NONE, |lsn| Dependency::new(lsn, level));
    let seen = work.owner.dependency();
    if let Some(lsn) = lsn {
        work.keep_images(core, lsn, level);
    }
    work.release(core, own);
    crash_point("commit.released");
    if lsn.is_some() {
        core.counters.committed.add(1);
        core.ghosts.add(&mut work.ghosts);
    }
    let handle = handle(core, own, seen);
    Commit { lsn, handle }
}

/// Waits for `own`, and for `seen` unless `own` implies it.
pub(super) fn handle(core: &Core, own: Dependency, seen: Dependency) -> CommitHandle {
    let implied = seen.is_none()
        || seen.lsn() <= own.lsn() && seen.level() <= own.level()
        || core.log.is_durable(seen.lsn());
    let seen = if implied { Dependency::NONE } else { seen };
    CommitHandle {
        parts: [own, seen]
            .into_iter()
            .filter(|part| !part.is_none())
            .map(|part| core.log.durable(part.lsn(), part.level()))
            .collect(),
    }
}
