//! Checkpoints: where a restart may begin to read the log.
//!
//! # Protocol
//! A checkpoint stops nobody. Its steps, in this order:
//!
//! | step | why there |
//! |---|---|
//! | write dirty pages | so that `redo_lsn` moves |
//! | `begin` := end of the log | whatever starts later is after it |
//! | `first` := oldest first record of an active transaction | undo may need the log from there |
//! | `redo` := oldest change that a page on disk may lack, at most `begin` | redo starts there |
//! | sync the data file | pages counted as clean are on disk now |
//! | log a checkpoint record, sync the log | commits that made transactions "not active" are safe |
//! | write the control file, both slots | from here on, restart uses it |
//! | recycle the log below `scan = min(redo, first)` | nobody needs it any more |
//! | cut the free end off the data file, if it is long | it has just been written and synced |
//!
//! # Invariants
//! I1. The log is kept from the `scan_lsn` of either slot of the control file on.
//! I2. A transaction that is not in `first` has its commit or its end in the log below the checkpoint
//! record, and so on disk before the control file says so.
//! I3. `redo_lsn` and `scan_lsn` never go back: all that lay before them was given up when they were
//! written, and nothing needs it again.
//!
//! # Failure
//! A crash or an error at any step leaves the control file as it was, and the log with it. A failed
//! sync poisons the database.

use crate::control::{Control, State};
use crate::engine::Engine;
use crate::error::Result;
use longshore_base::{Lsn, TxnId, crash_point};
use longshore_log::Level;

/// Kind of the log record of a checkpoint: two words, `redo_lsn` and `scan_lsn`.
pub(crate) const CHECKPOINT: u8 = 64;

/// Least number of free pages at the end of the data file for which it is cut off. More than the 16 pages
/// that the file grows by at least, and the 15 free ones that it may have before, or room just made would be
/// cut off again.
const TRUNCATE_PAGES_MIN: u64 = 36;
/// Least share of the data file, as a divisor, for which its free end is cut off. More than the file
/// grows by at a time, which is an eighth.
const TRUNCATE_SHARE: u64 = 5;

impl Engine {
    /// Takes a checkpoint; one at a time.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        self.checkpoint_unless(|| false).map(|_| ())
    }

    /// Takes a checkpoint when its turn has come, unless there is no need any more; tells whether it has.
    pub(crate) fn checkpoint_unless(&self, is_needless: impl Fn() -> bool) -> Result<bool> {
        if is_needless() {
            return Ok(false);
        }
        let _one = self.checkpointing.lock();
        if is_needless() {
            return Ok(false);
        }
        // Looked at under the lock: once the database is closed, others may have opened it.
        self.condition.check()?;
        self.note(self.checkpoint_as(State::InUse))?;
        self.note(self.truncate())?;
        Ok(true)
    }

    /// The checkpoint that ends the use of a database: nothing is active, nothing dirty. Where transactions are
    /// prepared, the next opening has to find them, as after a crash.
    pub(crate) fn checkpoint_clean(&self) -> Result<()> {
        let _one = self.checkpointing.lock();
        self.condition.check_poison()?;
        self.note(self.truncate())?;
        let state = match self.manager.prepared().is_empty() {
            true => State::Clean,
            false => State::InUse,
        };
        self.note(self.checkpoint_as(state))
    }

    /// Gives the free end of the data file back to the file system, where that is worth it.
    ///
    /// The control file says how long the data file is at least, so it is told first.
    fn truncate(&self) -> Result<()> {
        let free = self.access.free_at_end();
        if free < TRUNCATE_PAGES_MIN.max(self.pool.file_pages() / TRUNCATE_SHARE) {
            return Ok(());
        }
        self.control.update(|control| control.pages = 0)?;
        crash_point("truncate.begun");
        self.access.truncate_end()?;
        let pages = self.pool.file_pages();
        self.pool.sync_data()?;
        self.control.update(|control| control.pages = pages)?;
        self.counters.truncations.add(1);
        Ok(())
    }

    /// Whether enough log was written since the last checkpoint.
    pub(crate) fn is_checkpoint_due(&self) -> bool {
        let since = self.control.get().end_lsn;
        self.log.tail().get().saturating_sub(since.get()) >= self.options.checkpoint_bytes()
    }

    fn checkpoint_as(&self, state: State) -> Result<()> {
        crash_point("checkpoint.begun");
        self.pool.flush_all()?;
        let begin = self.log.tail();
        let last = self.control.get();
        let first = self.manager.oldest_first_lsn().unwrap_or(begin);
        // A transaction publishes a position a little before its first record, and may have missed the
        // checkpoint before this one (I3).
        let first = first.max(last.scan_lsn);
        let redo = self.pool.oldest_dirty(begin);
        debug_assert!(
            redo >= last.redo_lsn,
            "checkpoint I3: {redo} after {}",
            last.redo_lsn
        );
        let pages = self.pool.file_pages();
        self.pool.sync_data()?;
        crash_point("checkpoint.synced");
        let scan = redo.min(first);
        let record = self.log_checkpoint(redo, scan)?;
        crash_point("checkpoint.logged");
        // A clean log is read from the checkpoint itself, which is its last record.
        let (redo, scan) = match state {
            State::Clean => (record, record),
            State::InUse => (redo, scan),
        };
        self.control.write(Control {
            redo_lsn: redo,
            scan_lsn: scan,
            end_lsn: self.log.durable_lsn(),
            state,
            next_txn: self.manager.next_txn(),
            pages,
            ..self.control.get()
        })?;
        crash_point("checkpoint.control");
        self.log.truncate(scan)?;
        self.counters.checkpoints.add(1);
        Ok(())
    }

    fn log_checkpoint(&self, redo: Lsn, scan: Lsn) -> Result<Lsn> {
        let mut claim = self.log.claim_reserve();
        let body = [redo.get().to_le_bytes(), scan.get().to_le_bytes()];
        let body = [&body[0][..], &body[1][..]];
        let lsn = (self.log).append(&mut claim, CHECKPOINT, TxnId::SYSTEM, Lsn::ZERO, &body)?;
        self.log.flush(lsn, Level::Sync)?;
        Ok(lsn)
    }
}
