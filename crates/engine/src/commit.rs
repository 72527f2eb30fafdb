//! What a commit gives back: a promise to wait for, or to poll.

use crate::engine::Engine;
use crate::error::Result;
use longshore_txn::Commit;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A commit on its way to the durability that was asked for.
///
/// Others see the changes already; whoever builds on them is answered no sooner than this commit is
/// safe. Wait with [`CommitHandle::wait`], ask with [`CommitHandle::is_done`], or `.await` it: it is a
/// future that needs no particular runtime. Dropping it does not undo the commit.
///
/// ```
/// use longshore::{Database, Durability};
/// # fn main() -> longshore::Result<()> {
/// let db = Database::in_memory()?;
/// let table = db.create_table("events")?;
/// let tx = db.begin()?;
/// tx.put(&table, b"1", b"started")?;
/// let commit = tx.commit_with(Durability::Sync)?;
/// // ... prepare the answer meanwhile ...
/// commit.wait()?;
/// # Ok(()) }
/// ```
#[must_use = "the commit is not known to be durable before this was waited for"]
pub struct CommitHandle {
    engine: Arc<Engine>,
    commit: Commit,
}

impl CommitHandle {
    pub(crate) fn new(engine: Arc<Engine>, commit: Commit) -> CommitHandle {
        CommitHandle { engine, commit }
    }

    /// Waits until the commit is as durable as was asked.
    ///
    /// # Errors
    /// [`crate::Error::Poisoned`] when the log failed: whether the commit survives is known only
    /// after the database was reopened.
    pub fn wait(self) -> Result<()> {
        self.engine.note(self.commit.handle.wait())
    }

    /// Whether waiting would return at once.
    pub fn is_done(&self) -> bool {
        self.commit.handle.is_done()
    }
}

impl Future for CommitHandle {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.commit.handle)
            .poll(context)
            .map(|outcome| self.engine.note(outcome))
    }
}

impl fmt::Debug for CommitHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommitHandle(done: {})", self.is_done())
    }
}
