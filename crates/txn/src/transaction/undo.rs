//! Taking back: a statement, back to a savepoint, a whole transaction, or one that a crash cut off.
//!
//! # Protocol
//! Read the record at `last`; undo it by key and log a CLR that names the record before it; go on there.
//! A CLR met on the way names where to go on, so nothing is undone twice, whatever interrupts it.
//!
//! # Failure
//! Log space was claimed with each change. A pool without a free frame, or a latch that is not to be had
//! in time, is tried again; any other error leaves the rest to the next restart.

use super::manager::Core;
use super::purge::{Hint, note_ghost};
use super::work::Work;
use crate::error::{Result, TxnError};
use crate::lock::Dependency;
use crate::record::END;
use longshore_access::record::{CLR, ROW, RowRecord};
use longshore_access::{Access, AccessError, LogContext, RowOp, Tree};
use longshore_base::{Lsn, TxnId, crash_point};
use longshore_log::{Log, LogError, Record};

/// Attempts at one undo step while the pool has no frame or a page is busy.
const ATTEMPTS: usize = 100;

impl Work {
    /// Undoes all records after `stop`.
    pub(super) fn undo_to(&mut self, core: &Core, stop: Lsn) -> Result<()> {
        match &mut self.cx {
            Some(cx) => undo(core, cx, stop, &mut self.ghosts),
            None => Ok(()),
        }
    }

    /// Undoes everything, and ends the transaction.
    pub(super) fn roll_back(&mut self, core: &Core) -> Result<()> {
        if let Some(cx) = &mut self.cx
            && cx.last != Lsn::ZERO
        {
            undo_all(core, cx, &mut self.ghosts)?;
        }
        self.release(core, Dependency::NONE);
        // Inserts that were undone are ghosts; rows whose deletion was undone cost a look in vain.
        core.ghosts.add(&mut self.ghosts);
        core.counters.rolled_back.add(1);
        Ok(())
    }
}

impl Core {
    /// Undoes a transaction of the last run whose last record is `last`.
    pub(super) fn undo_loser(&self, txn: TxnId, last: Lsn) -> Result<()> {
        let mut cx = LogContext::new(txn, self.log.claim_reserve());
        cx.last = last;
        let mut hints = Vec::new();
        undo_all(self, &mut cx, &mut hints)?;
        self.ghosts.add(&mut hints);
        crash_point("restart.loser");
        Ok(())
    }
}

/// Undoes all records of `cx`, and says so in the log.
pub(super) fn undo_all(core: &Core, cx: &mut LogContext, ghosts: &mut Vec<Hint>) -> Result<()> {
    undo(core, cx, Lsn::ZERO, ghosts)?;
    log_end(core, cx)
}

/// Undoes the records of `cx` after `stop`.
fn undo(core: &Core, cx: &mut LogContext, stop: Lsn, ghosts: &mut Vec<Hint>) -> Result<()> {
    let mut next = cx.last;
    while next > stop {
        let record = core.log.read(next)?;
        next = undo_record(&core.access, cx, &record, ghosts)?;
        crash_point("abort.clr");
    }
    Ok(())
}

/// Undoes one record; returns the next to undo.
fn undo_record(
    access: &Access,
    cx: &mut LogContext,
    record: &Record,
    ghosts: &mut Vec<Hint>,
) -> Result<Lsn> {
    match record.kind {
        ROW => {
            let row = RowRecord::decode(&record.body).map_err(|why| unreadable(record, &why))?;
            let tree = Tree::of_record(&row);
            persist(|| tree.undo(access, cx, &row, record.prev))?;
            if row.op == RowOp::Insert {
                note_ghost(ghosts, tree, row.key);
            }
            Ok(record.prev)
        }
        CLR => {
            let (undo_next, _) =
                RowRecord::decode_clr(&record.body).map_err(|why| unreadable(record, &why))?;
            Ok(undo_next)
        }
        _ => Ok(record.prev),
    }
}

/// Tries again while the pool has no frame or a page is busy.
fn persist<T>(
    mut step: impl FnMut() -> std::result::Result<T, AccessError>,
) -> std::result::Result<T, AccessError> {
    for _ in 0..ATTEMPTS {
        match step() {
            Err(AccessError::Pool(error)) if error.is_retryable() => std::thread::yield_now(),
            outcome => return outcome,
        }
    }
    step()
}

/// Says in the log that nothing of the transaction is left.
fn log_end(core: &Core, cx: &mut LogContext) -> Result<()> {
    if cx.claim.remaining() < Log::record_bytes(0) {
        cx.claim = core.log.claim_reserve();
    }
    cx.last = core.log.append(&mut cx.claim, END, cx.txn, cx.last, &[])?;
    crash_point("abort.end");
    Ok(())
}

#[cold]
pub(super) fn unreadable(record: &Record, why: &dyn std::fmt::Display) -> TxnError {
    LogError::Damaged {
        segment: String::from("(read for undo)"),
        offset: record.lsn.get(),
        lsn: record.lsn,
        reason: format!("a record of kind {} cannot be read: {why}", record.kind),
    }
    .into()
}
