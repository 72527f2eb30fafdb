//! The cleaner: writes dirty pages, in sorted batches, so that their frames can be reused.
//!
//! # Protocol of a batch
//! 1. *Settle* the batch before: home pages that could not be written are written again; the data
//!    file is synced, because the double-write area is about to be reused.
//! 2. *Copy* each page, without a latch, validated by the frame's version. A victim becomes Evicting first.
//! 3. Wait until the log is durable to the greatest `page_lsn` among the copies (write-ahead rule).
//! 4. Seal the copies, write them to the double-write area, sync it.
//! 5. Write them home, runs of neighbours in one call.
//! 6. Mark each frame clean, or free it, if its version is still the one copied.
//!
//! # Invariants
//! C1. No byte of a page is written before the log is durable to the copy's `page_lsn`.
//! C2. Between step 4 and the next batch's step 1 the area holds a whole copy of every page that is
//!     being written home.
//! C3. A page that changed after its copy was made stays dirty (W5).
//! C4. A page leaves the table only after its last copy was written home, so a miss reads that copy.
//! C5. At most one batch is under way (the mutex around [`Cleaner`]).
//!
//! # Failure
//! When the log or a write fails, the pages stay dirty and resident. A page half written home is
//! written again before the area is reused. After a failed sync it is unknown what is on disk: the
//! pool is poisoned.

use crate::data_file::{IoBuffer, copy_to_bytes};
use crate::double_write::DoubleWriteArea;
use crate::error::PoolError;
use crate::frame::{FrameId, FrameRef};
use crate::frame_word::{Word, Written};
use crate::options::{DoubleWrite, PoolOptions};
use crate::page_bytes::PageRef;
use crate::pool::Pool;
use longshore_base::page::seal;
use longshore_base::{Lsn, PageId, crash_point};
use longshore_disk::{DiskError, DiskFile};
use std::sync::Arc;
use std::time::Duration;

/// What a round of [`Pool::maintain`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Maintained {
    /// Pages written.
    pub written: usize,
    /// Frames freed.
    pub freed: usize,
    /// Whether there is more to do.
    pub more: bool,
}

/// Why pages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// To reuse their frames.
    Evict,
    /// To have them on disk.
    Keep,
}

/// What a batch did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) written: usize,
    pub(crate) freed: usize,
}

/// The state of the writer of batches.
pub(crate) struct Cleaner {
    area: Option<DoubleWriteArea>,
    page_bytes: usize,
    /// The area's header, then the copies in order of page. Made for the first batch.
    buffer: Option<IoBuffer>,
    buffer_bytes: usize,
    copies: Vec<Copied>,
    home: Home,
    /// Counts batches.
    batches: u64,
}

#[derive(Clone, Copy, Debug)]
struct Copied {
    page: PageId,
    frame: FrameId,
    word: Word,
    lsn: Lsn,
}

/// How far the last batch got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// Every page is safe at home: the area may be reused.
    Safe,
    /// Written, not synced.
    Written,
    /// From this copy on, home may be torn.
    Unfinished(usize),
}

impl Cleaner {
    /// A cleaner for batches of up to `batch_pages` pages. Makes sure that the area has its space.
    pub(crate) fn new(
        options: &PoolOptions,
        batch_pages: usize,
        file: Option<Arc<dyn DiskFile>>,
    ) -> Result<Cleaner, DiskError> {
        let page_bytes = options.page_size.bytes();
        let buffer_bytes = (batch_pages + 1) * page_bytes;
        let area = match (options.double_write, file) {
            (DoubleWrite::On, Some(file)) => Some(DoubleWriteArea::new(file, page_bytes)),
            _ => None,
        };
        if let Some(area) = &area {
            area.reach(buffer_bytes as u64)?;
        }
        Ok(Cleaner {
            area,
            page_bytes,
            buffer: None,
            buffer_bytes,
            copies: Vec::with_capacity(batch_pages),
            home: Home::Safe,
            batches: 0,
        })
    }

    pub(crate) fn area(&self) -> Option<&DoubleWriteArea> {
        self.area.as_ref()
    }

    /// The frames whose pages were written by the last batch.
    pub(crate) fn written(&self) -> impl Iterator<Item = FrameId> {
        self.copies.iter().map(|copy| copy.frame)
    }

    pub(crate) fn batches(&self) -> u64 {
        self.batches
    }

    /// Notes that the data file was synced after batch number `batches` was written.
    pub(crate) fn home_was_synced(&mut self, batches: u64) {
        if self.batches == batches && self.home == Home::Written {
            self.home = Home::Safe;
        }
    }

    /// The bytes of the copy number `index`.
    fn slot(&mut self, index: usize) -> &mut [u8] {
        let start = (index + 1) * self.page_bytes;
        let buffer = self
            .buffer
            .get_or_insert_with(|| IoBuffer::new(self.buffer_bytes));
        &mut buffer[start..start + self.page_bytes]
    }

    /// The bytes of the copies `from..to`.
    fn slots(&self, from: usize, to: usize) -> &[u8] {
        let buffer = self.buffer.as_ref().expect("a batch was copied");
        &buffer[(from + 1) * self.page_bytes..(to + 1) * self.page_bytes]
    }
}

/// Tries to copy a page that is being changed.
const COPY_TRIES: u32 = 4;

impl Pool {
    /// Runs one round of the cleaner: frees frames ahead of need, writing up to `budget` pages, and brings
    /// in the memory of those that will be used for the first time. Under a policy other than Nb-GCLOCK frames are
    /// not freed; the pages that would leave next are written.
    ///
    /// # Errors
    /// Those of writing: [`PoolError::LogLost`], [`PoolError::Disk`], [`PoolError::Poisoned`]. Nothing is lost;
    /// the pages stay dirty.
    pub fn maintain(&self, budget: usize) -> Result<Maintained, PoolError> {
        self.check_poison()?;
        self.bring_memory_in();
        let mut cleaner = self.cleaner.lock();
        self.settle_tail(&mut cleaner)?;
        match &self.live {
            Some(live) => self.clean_ahead(live, &mut cleaner, budget),
            None => self.free_ahead(&mut cleaner, budget),
        }
    }

    /// A round of maintenance with Nb-GCLOCK: frees frames.
    fn free_ahead(&self, cleaner: &mut Cleaner, budget: usize) -> Result<Maintained, PoolError> {
        let mut done = Maintained::default();
        let target = self.free_target();
        while self.free.len() < target && done.written < budget {
            let sweep = self.sweep(target - self.free.len());
            let mut freed = sweep.victims.len();
            self.give_frames(&sweep.victims);
            if !sweep.dirty.is_empty() {
                let left = budget - done.written;
                let dirty = &sweep.dirty[..sweep.dirty.len().min(left)];
                let progress = self.write_frames(cleaner, dirty, Intent::Evict)?;
                done.written += progress.written;
                freed += progress.freed;
            }
            done.freed += freed;
            if freed == 0 {
                break;
            }
            self.frames_given();
        }
        self.fill_reserve();
        done.more = self.free.len() < target;
        Ok(done)
    }

    /// Waits until a miss finds free frames, or those that have memory, getting scarce, for at most `limit`;
    /// true if they are.
    pub fn wait_for_work(&self, limit: Duration) -> bool {
        self.bell.wait(limit)
    }

    /// Writes the pages in these frames, batch by batch in the order of their numbers.
    pub(crate) fn write_frames(
        &self,
        cleaner: &mut Cleaner,
        frames: &[FrameId],
        intent: Intent,
    ) -> Result<Progress, PoolError> {
        let mut pages: Vec<(PageId, FrameId)> = frames
            .iter()
            .map(|id| (self.frames.get(*id).header.page(), *id))
            .collect();
        pages.sort_unstable();
        pages.dedup();
        let mut progress = Progress::default();
        for batch in pages.chunks(self.batch_pages) {
            let done = self.write_batch(cleaner, batch, intent)?;
            progress.written += done.written;
            progress.freed += done.freed;
        }
        if progress.freed > 0 {
            self.frames_given();
        }
        Ok(progress)
    }

    fn write_batch(
        &self,
        cleaner: &mut Cleaner,
        pages: &[(PageId, FrameId)],
        intent: Intent,
    ) -> Result<Progress, PoolError> {
        self.check_poison()?;
        self.settle_home(cleaner)?;
        self.copy_batch(cleaner, pages, intent);
        if cleaner.copies.is_empty() {
            return Ok(Progress::default());
        }
        let written = self.write_copies(cleaner);
        if let Err(error) = written {
            for copy in &cleaner.copies {
                self.frames.get(copy.frame).header.word.cancel_evict();
            }
            return Err(error);
        }
        crash_point("cleaner.home.written");
        let progress = self.mark_written(cleaner, intent);
        crash_point("cleaner.marked_clean");
        Ok(progress)
    }

    /// Step 1: makes the area reusable.
    pub(crate) fn settle_home(&self, cleaner: &mut Cleaner) -> Result<(), PoolError> {
        if let Home::Unfinished(from) = cleaner.home {
            self.write_home(cleaner, from)?;
            crash_point("cleaner.home.finished");
        }
        if cleaner.home == Home::Written {
            self.sync_home()?;
            cleaner.home = Home::Safe;
            crash_point("cleaner.home.synced");
        }
        Ok(())
    }

    /// Step 2: copies what can be copied.
    fn copy_batch(&self, cleaner: &mut Cleaner, pages: &[(PageId, FrameId)], intent: Intent) {
        cleaner.copies.clear();
        for (_, id) in pages {
            let frame = self.frames.get(*id);
            let word = frame.header.word.load();
            if intent == Intent::Evict && !frame.header.word.begin_evict(word) {
                self.counters.exchanges_failed.add(1);
                continue;
            }
            let index = cleaner.copies.len();
            match self.copy_page(frame, cleaner.slot(index)) {
                Some(copied) => cleaner.copies.push(copied),
                None => frame.header.word.cancel_evict(),
            }
        }
    }

    /// Copies a dirty page as it was at one moment; `None` if it is not dirty, or busy.
    fn copy_page(&self, frame: FrameRef<'_>, bytes: &mut [u8]) -> Option<Copied> {
        for _ in 0..COPY_TRIES {
            let word = frame.header.word.load();
            if !word.is_readable() || !word.is_dirty() {
                return None;
            }
            let page = frame.header.page();
            let content = PageRef::new(frame.words);
            copy_to_bytes(content, bytes);
            let lsn = content.page_lsn();
            if frame.header.word.is_unchanged(word) {
                return Some(Copied {
                    page,
                    frame: frame.id,
                    word,
                    lsn,
                });
            }
        }
        None
    }

    /// Steps 3 to 5.
    fn write_copies(&self, cleaner: &mut Cleaner) -> Result<(), PoolError> {
        let lsn = cleaner.copies.iter().map(|copy| copy.lsn).max();
        self.log.make_durable(lsn.unwrap_or(Lsn::ZERO))?;
        crash_point("cleaner.log.durable");
        for index in 0..cleaner.copies.len() {
            let page = cleaner.copies[index].page;
            seal(page, cleaner.slot(index));
        }
        self.counters.write_batches.add(1);
        cleaner.batches += 1;
        self.write_area(cleaner)?;
        self.write_home(cleaner, 0)
    }

    /// Step 4.
    fn write_area(&self, cleaner: &mut Cleaner) -> Result<(), PoolError> {
        let Some(area) = &cleaner.area else {
            return Ok(());
        };
        let buffer = cleaner.buffer.as_mut().expect("a batch was copied");
        let pages: Vec<PageId> = cleaner.copies.iter().map(|copy| copy.page).collect();
        area.write(&pages, buffer)?;
        crash_point("cleaner.double_write.written");
        self.counters.syncs.add(1);
        if let Err(error) = area.sync() {
            self.poison(error.to_string());
            return Err(error.into());
        }
        crash_point("cleaner.double_write.synced");
        Ok(())
    }

    /// Step 5, for the copies from number `from` on.
    fn write_home(&self, cleaner: &mut Cleaner, from: usize) -> Result<(), PoolError> {
        let is_guarded = cleaner.area.is_some();
        let mut start = from;
        while start < cleaner.copies.len() {
            if is_guarded {
                cleaner.home = Home::Unfinished(start);
            }
            let end = run_end(&cleaner.copies, start);
            let first = cleaner.copies[start].page;
            self.data.write_run(first, cleaner.slots(start, end))?;
            crash_point("cleaner.home.run");
            start = end;
        }
        if is_guarded {
            cleaner.home = Home::Written;
        }
        Ok(())
    }

    /// Step 6.
    fn mark_written(&self, cleaner: &Cleaner, intent: Intent) -> Progress {
        let mut progress = Progress::default();
        for copy in &cleaner.copies {
            let word = &self.frames.get(copy.frame).header.word;
            let written = match intent {
                Intent::Evict => word.finish_evict(copy.word),
                Intent::Keep => word.mark_clean(copy.word),
            };
            match written {
                Written::Freed => {
                    self.forget_evicted(copy.page, copy.frame);
                    progress.freed += 1;
                }
                Written::Clean if intent == Intent::Evict => self.counters.rescues.add(1),
                Written::Clean => {}
                Written::Changed => {
                    // It may still be on its way out, changed by somebody who rescued it.
                    self.counters.page_writes_stale.add(1);
                }
            }
            progress.written += 1;
        }
        self.counters.page_writes.add(progress.written as u64);
        progress
    }

    /// Syncs the data file; a failure poisons the pool.
    pub(crate) fn sync_home(&self) -> Result<(), PoolError> {
        self.counters.syncs.add(1);
        self.data.sync().map_err(|error| {
            self.poison(error.to_string());
            PoolError::Disk(error)
        })
    }
}

/// The end of the run of neighbours that starts at `start`.
fn run_end(copies: &[Copied], start: usize) -> usize {
    let follows = |pair: &[Copied]| pair[1].page.get() == pair[0].page.get() + 1;
    let more = copies[start..].windows(2).take_while(|pair| follows(pair));
    start + 1 + more.count()
}
