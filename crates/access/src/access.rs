//! The door of this crate: what trees and chains share.

use crate::error::AccessError;
use crate::node::Limits;
use crate::space::Space;
use longshore_base::{Lsn, PageSize, StoreId, TxnId};
use longshore_log::{Claim, Log};
use longshore_pool::Pool;
use std::fmt;
use std::sync::Arc;

/// Asked before a key that bounds a gap disappears from a tree.
///
/// The lock manager implements it. Both a ghost and the upper fence of a leaf name the gap below
/// them; while somebody holds or awaits a lock on such a name, it must stay where it is.
pub trait Boundaries: Send + Sync {
    /// Whether nobody holds or awaits a lock on `key`. Called under page latches: must not wait.
    fn may_remove(&self, store: StoreId, key: &[u8]) -> bool;
}

/// Boundaries for trees that nobody locks: every one may go.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unlocked;

impl Boundaries for Unlocked {
    fn may_remove(&self, _: StoreId, _: &[u8]) -> bool {
        true
    }
}

/// On whose behalf something is logged, and with which space in the log.
#[derive(Debug)]
pub struct LogContext {
    /// The transaction; [`TxnId::SYSTEM`] for nobody.
    pub txn: TxnId,
    /// The transaction's last record: each row operation chains itself to it and becomes it.
    pub last: Lsn,
    /// Log space for records still to come.
    pub claim: Claim,
    /// Bytes of `claim` set aside to undo what this context has logged.
    pub undo_bytes: u64,
    /// Old values on their way into records; kept for its capacity.
    pub(crate) scratch: Vec<u8>,
}

impl LogContext {
    /// A context that has logged nothing yet.
    pub fn new(txn: TxnId, claim: Claim) -> LogContext {
        LogContext {
            txn,
            last: Lsn::ZERO,
            claim,
            undo_bytes: 0,
            scratch: Vec::new(),
        }
    }

    /// Sees that `forward` bytes can be logged now and `undo` bytes later, whatever happens.
    #[inline]
    pub(crate) fn reserve(&mut self, forward: u64, undo: u64) -> Result<(), AccessError> {
        let needed = forward + self.undo_bytes + undo;
        if self.claim.remaining() >= needed {
            return Ok(());
        }
        self.grow_claim(needed)
    }

    /// Claims ahead, in proportion to what the context has claimed so far: claiming touches memory that
    /// all threads share.
    #[cold]
    fn grow_claim(&mut self, needed: u64) -> Result<(), AccessError> {
        let ahead = (needed / 4).clamp(CLAIM_AHEAD_MIN, CLAIM_AHEAD_MAX);
        if self.claim.ensure(needed + ahead).is_err() {
            self.claim.ensure(needed)?;
        }
        Ok(())
    }
}

/// Least and greatest number of bytes that are claimed ahead.
const CLAIM_AHEAD_MIN: u64 = 1 << 10;
const CLAIM_AHEAD_MAX: u64 = 64 << 10;

/// Everything that trees and chains stand on: pages, log, space, and who may be asked about locks.
pub struct Access {
    pub(crate) pool: Arc<Pool>,
    pub(crate) log: Arc<Log>,
    pub(crate) boundaries: Arc<dyn Boundaries>,
    pub(crate) space: Space,
    pub(crate) page_size: PageSize,
}

impl Access {
    /// Ties the parts together; call [`Access::format`] or [`Access::attach`] next.
    pub fn new(pool: Arc<Pool>, log: Arc<Log>, boundaries: Arc<dyn Boundaries>) -> Arc<Access> {
        let page_size = pool.options().page_size;
        Arc::new(Access {
            pool,
            log,
            boundaries,
            space: Space::default(),
            page_size,
        })
    }

    /// Size of every page.
    pub fn page_size(&self) -> PageSize {
        self.page_size
    }

    /// The pool below.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The log beside.
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// The greatest keys and values that pages of this size take.
    pub fn limits(&self) -> Limits {
        Limits::new(self.page_size)
    }

    /// Refuses rows that no leaf could ever hold.
    #[inline]
    pub(crate) fn check_row(&self, key_len: usize, value_len: usize) -> Result<(), AccessError> {
        let limits = self.limits();
        if key_len > limits.key_max() {
            return Err(AccessError::KeyTooLong {
                len: key_len,
                max: limits.key_max(),
            });
        }
        let max = limits.inline_max(key_len);
        if value_len > max {
            return Err(AccessError::ValueTooLong {
                len: value_len,
                max,
            });
        }
        Ok(())
    }

    /// A context for work of nobody, with room for `bytes` of records.
    ///
    /// # Errors
    /// [`AccessError::Log`] when the log has no space left.
    pub fn system_context(&self, bytes: u64) -> Result<LogContext, AccessError> {
        Ok(LogContext::new(TxnId::SYSTEM, self.log.claim(bytes)?))
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("page_size", &self.page_size)
            .finish_non_exhaustive()
    }
}
