//! What a transaction has at hand while it works: its locks, its log space, its buffers.

use super::capture::CaptureRoom;
use super::manager::Core;
use super::purge::Hint;
use super::slots::Taken;
use super::snapshot::Reads;
use super::time_limit::TimeLimit;
use crate::error::Result;
use crate::lock::{LockName, Mode, Owner, TableMode};
use crate::version::{ImageBuffer, Snapshot};
use longshore_access::{LeafHint, LogContext};
use longshore_base::{Lsn, StoreId, TxnId};
use longshore_log::{Claim, Log};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Log space that the first change claims ahead.
const CLAIM_MIN: u64 = 2 << 10;
/// Log space that a transaction claims ahead at most.
const CLAIM_MAX: u64 = 64 << 10;

/// A transaction's own.
pub(crate) struct Work {
    pub(super) owner: Owner,
    pub(super) slot: usize,
    /// From the first change on.
    pub(super) cx: Option<LogContext>,
    /// Log space claimed ahead the next time.
    claim_ahead: u64,
    pub(super) lock_wait: Duration,
    pub(super) time_limit: Option<TimeLimit>,
    pub(super) leaf_hint: LeafHint,
    /// Where it has left ghosts, for purging.
    pub(super) ghosts: Vec<Hint>,
    pub(super) key_buffer: Vec<u8>,
    pub(super) value_buffer: Vec<u8>,
    pub(super) names: Vec<(LockName, Mode)>,
    pub(super) reads: Reads,
    /// Snapshots of statements that take several calls.
    pub(super) statements: Vec<Option<Snapshot>>,
    /// A row as the last read by snapshot found it, where the page did not have it.
    pub(super) image: ImageBuffer,
    pub(super) capture_room: CaptureRoom,
    /// A statement has failed, or was taken back: rows were captured and locked that it has not changed.
    pub(super) locks_more_than_it_changed: bool,
    /// Shared with open value readers; set when the transaction ends.
    pub(super) ended: Option<Arc<AtomicBool>>,
}

impl Work {
    pub fn new(core: &Core, taken: Taken) -> Work {
        Work {
            owner: core.locks.register(taken.index, taken.txn),
            slot: taken.index,
            cx: None,
            claim_ahead: CLAIM_MIN,
            lock_wait: core.options.lock_wait,
            time_limit: None,
            leaf_hint: LeafHint::NONE,
            ghosts: Vec::new(),
            key_buffer: Vec::new(),
            value_buffer: Vec::new(),
            names: Vec::new(),
            reads: Reads::Locked,
            statements: Vec::new(),
            image: ImageBuffer::default(),
            capture_room: CaptureRoom::NONE,
            locks_more_than_it_changed: false,
            ended: None,
        }
    }

    pub fn txn(&self) -> TxnId {
        self.owner.txn()
    }

    pub fn locks_held(&self) -> usize {
        self.owner.locks_held()
    }

    /// The transaction's last record; zero before the first.
    #[inline]
    pub fn last_lsn(&self) -> Lsn {
        self.cx.as_ref().map_or(Lsn::ZERO, |cx| cx.last)
    }

    #[inline]
    pub fn lock(&mut self, core: &Core, name: LockName, mode: Mode) -> Result<()> {
        let wait = self.wait(core)?;
        let locked = core.locks.lock(&mut self.owner, name, mode, wait);
        locked.map_err(|error| self.lock_failed(error))
    }

    pub fn lock_table(&mut self, core: &Core, store: StoreId, mode: TableMode) -> Result<()> {
        let wait = self.wait(core)?;
        let locked = core.locks.lock_table(&mut self.owner, store, mode, wait);
        locked.map_err(|error| self.lock_failed(error))
    }

    pub fn lock_database(&mut self, core: &Core, mode: TableMode) -> Result<()> {
        let wait = self.wait(core)?;
        let locked = core.locks.lock_database(&mut self.owner, mode, wait);
        locked.map_err(|error| self.lock_failed(error))
    }

    /// Locks `key` to change it.
    #[inline]
    pub fn lock_to_change(&mut self, core: &Core, name: LockName, key: &[u8]) -> Result<()> {
        self.lock(core, name, Mode::WRITE)?;
        self.check_conflict(core, name, key)
    }

    /// The transaction's log context, with space claimed ahead.
    #[inline]
    pub fn context(&mut self, core: &Core) -> Result<&mut LogContext> {
        if self.cx.is_none() {
            self.begin_writing(core)?;
        }
        let cx = self.cx.as_mut().expect("it was just made");
        if cx.claim.remaining() < cx.undo_bytes + CLAIM_MIN / 2 {
            self.claim_ahead = (self.claim_ahead * 2).min(CLAIM_MAX);
            // A refusal is no error yet: the change itself may need less.
            let _ = cx.claim.ensure(cx.undo_bytes + self.claim_ahead);
        }
        Ok(cx)
    }

    /// Lets the log be recycled up to its end, if this transaction has no record in it: a long value
    /// would fill it otherwise, as its own links belong to nobody.
    pub fn let_log_go(&self, core: &Core) {
        if self.cx.is_some() && self.last_lsn() == Lsn::ZERO {
            // A1: all records of this transaction are still to come.
            core.slots.publish_first(self.slot, core.log.tail());
        }
    }

    #[cold]
    fn begin_writing(&mut self, core: &Core) -> Result<()> {
        // Before the first record (A1): nothing of this transaction can lie below this position.
        core.slots.publish_first(self.slot, core.log.tail());
        match self.claim(core) {
            Ok(claim) => {
                let mut cx = LogContext::new(self.owner.txn(), claim);
                // COMMIT, or END after a rollback; the claim keeps it as it keeps undo.
                cx.undo_bytes = LAST_RECORD;
                self.cx = Some(cx);
                Ok(())
            }
            Err(error) => {
                core.slots.publish_first(self.slot, Lsn::ZERO);
                Err(error)
            }
        }
    }

    fn claim(&self, core: &Core) -> Result<Claim> {
        let ahead = core.log.claim_to_begin(CLAIM_MIN);
        Ok(ahead.or_else(|_| core.log.claim_to_begin(LAST_RECORD))?)
    }
}

/// Log space for the record that ends a transaction.
pub(super) const LAST_RECORD: u64 = Log::record_bytes(0);
