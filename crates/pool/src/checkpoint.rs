//! What a checkpoint needs of the pool: the oldest unwritten change, and everything on disk.
//!
//! # Protocol
//! A checkpoint takes `begin`, the log's tail; asks [`Pool::oldest_dirty`]; syncs the data file
//! ([`Pool::sync_data`]); and may then forget the log below the answer. A change whose record lies below
//! `begin` is then either on disk, or on a page that counted as dirty, or on a page that was latched
//! exclusively when we came to it (records are appended under the latch, and stamped before it is
//! released); so we wait that latch out. A page that is cleaned while we look was written before
//! `sync_data` began.

use crate::cleaner::Intent;
use crate::error::PoolError;
use crate::frame::FrameId;
use crate::frame_word::{BlockedBy, Word};
use crate::pool::Pool;
use longshore_base::parking::Patience;
use longshore_base::{Lsn, crash_point};
use std::collections::BTreeSet;
use std::time::Duration;

impl Pool {
    /// The least `rec_lsn` of all dirty pages, or `begin` if that is less.
    ///
    /// Waits for every exclusive latch that it meets; the caller must not hold any.
    pub fn oldest_dirty(&self, begin: Lsn) -> Lsn {
        let mut oldest = begin;
        for id in 0..self.free.fresh() {
            let id = FrameId::new(id);
            self.wait_out_holder(id);
            let frame = self.frames.get(id).header;
            let word = frame.word.load();
            if word.holds_page() && word.is_dirty() {
                oldest = oldest.min(frame.rec_lsn());
            }
        }
        oldest
    }

    /// Waits until the exclusive holder of now, if there is one, is gone.
    fn wait_out_holder(&self, id: FrameId) {
        let frame = self.frames.get(id);
        let is_held = |word: Word| word.holds_page() && word.is_exclusive();
        let first = frame.header.word.load();
        let mut now = first;
        while is_held(now) && now.version() == first.version() {
            // Patience without end: latches are held for moments, and no answer would be a wrong one.
            let mut patience = Patience::new(Duration::MAX);
            let _ = self.park_for_latch(frame, BlockedBy::Exclusive, &mut patience);
            now = frame.header.word.load();
        }
    }

    /// Writes every page that is dirty now.
    ///
    /// # Errors
    /// Those of writing, as for [`Pool::maintain`]; [`PoolError::Busy`] if a dirty page stays latched for too
    /// long.
    pub fn flush_all(&self) -> Result<(), PoolError> {
        self.flush_older_than(Lsn::new(u64::MAX), usize::MAX)?;
        Ok(())
    }

    /// Writes up to `budget` of the pages whose first unwritten change is before `lsn`, in the order of
    /// their numbers; how many it wrote. So a checkpoint gets on though a page is never evicted.
    ///
    /// # Errors
    /// As for [`Pool::flush_all`].
    pub fn flush_older_than(&self, lsn: Lsn, budget: usize) -> Result<usize, PoolError> {
        let mut pending = self.dirty_before(lsn);
        pending.truncate(budget);
        let mut patience = self.patience();
        let mut written = 0;
        loop {
            written += self.write_in_turns(&mut pending)?;
            let Some(id) = pending.first() else {
                return Ok(written);
            };
            let frame = self.frames.get(*id);
            self.park_for_latch(frame, BlockedBy::Exclusive, &mut patience)?;
        }
    }

    /// Writes frames batch by batch, letting others to the cleaner in between; `pending` keeps those that
    /// are dirty still because they were latched.
    fn write_in_turns(&self, pending: &mut Vec<FrameId>) -> Result<usize, PoolError> {
        let mut left = Vec::new();
        let mut written = 0;
        for batch in pending.chunks(self.batch_pages) {
            let mut cleaner = self.cleaner.lock();
            written += self
                .write_frames(&mut cleaner, batch, Intent::Keep)?
                .written;
            let done: BTreeSet<FrameId> = cleaner.written().collect();
            let is_left = |id: &FrameId| !done.contains(id) && self.is_dirty(*id);
            left.extend(batch.iter().copied().filter(is_left));
        }
        *pending = left;
        Ok(written)
    }

    /// The frames of pages whose first unwritten change is before `lsn`, in the order of the pages.
    fn dirty_before(&self, lsn: Lsn) -> Vec<FrameId> {
        let everything = lsn.get() == u64::MAX;
        let mut frames: Vec<FrameId> = (0..self.free.fresh())
            .map(FrameId::new)
            .filter(|id| self.is_dirty(*id))
            .filter(|id| everything || self.frames.get(*id).header.rec_lsn() < lsn)
            .collect();
        frames.sort_by_key(|id| self.frames.get(*id).header.page());
        frames
    }

    fn is_dirty(&self, id: FrameId) -> bool {
        let word = self.frames.get(id).header.word.load();
        word.holds_page() && word.is_dirty()
    }

    /// Syncs the data file: what was written is safe.
    ///
    /// # Errors
    /// [`PoolError::Disk`], and the pool is poisoned from then on: it is unknown what is on disk.
    pub fn sync_data(&self) -> Result<(), PoolError> {
        self.check_poison()?;
        let batches = self.cleaner.lock().batches();
        self.sync_home()?;
        crash_point("pool.data.synced");
        self.cleaner.lock().home_was_synced(batches);
        Ok(())
    }
}
