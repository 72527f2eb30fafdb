//! The pool's size: what the memory allowed comes to, growing, shrinking, and the file's length.
//!
//! # Protocol
//! Frames are numbered; the pool uses those below its *limit*. Growing raises the limit. Shrinking lowers
//! it, so the hand passes the tail by and whoever frees a tail frame retires it; then the pages that
//! still sit there are evicted, and the memory of the tail is given back. The page table grows with the
//! file; its memory is taken from the frames, as is what a replacement policy may come to keep of so many, and the queues
//! of all threads that may come to have one.
//!
//! What sits in the tail leaves whether it is hot or not: which pages these are is chance, as in an eviction by RANDOM.
//! They are not moved below the limit, though the pool could do that: claim a clean page as a victim, copy it into a frame
//! that the policy gives up, exchange its entry in the table. But a policy knows a page by its frame, and one that
//! moves is removed and comes in as after a miss (`Gone::Relocated`). Its place in the order, and with it what made it hot,
//! is lost; it would be where a page is that was read anew, and a read is all that was saved, once in a resize. To
//! take its place along, every policy would have to rename a node in its lists.
//! What a policy allocated for frames that are no more it keeps until the pool is opened anew.
//!
//! # Failure
//! If pages of the tail stay held for too long, the size is the new one all the same, the call says
//! so, and `maintain` retires them as they come free.

use crate::cleaner::{Cleaner, Intent};
use crate::double_write::BATCH_MAX;
use crate::error::PoolError;
use crate::frame::{FrameId, HEADER_BYTES};
use crate::frame_word::State;
use crate::guard::ExclusiveGuard;
use crate::options::{PageTableKind, PoolOptions};
use crate::pool::Pool;
use longshore_base::sync::atomic::Ordering;
use longshore_base::{PageId, PageSize};

/// Frames below which a pool cannot work: a split of several levels, and the reserve.
const FRAMES_MIN: usize = if cfg!(loom) { 1 } else { 16 };
const BATCH_MIN: usize = if cfg!(loom) { 1 } else { 4 };

/// What an amount of memory comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) frames: u32,
    pub(crate) batch_pages: usize,
}

/// Memory that a frame takes.
pub(crate) fn frame_bytes(page_size: PageSize) -> usize {
    page_size.bytes() + HEADER_BYTES
}

impl Budget {
    /// Divides the memory allowed between frames, what the replacement policy keeps of them, the page table for a file of
    /// `pages` pages, and the cleaner.
    pub(crate) fn of(options: &PoolOptions, pages: u64) -> Result<Budget, PoolError> {
        let (bytes_max, page_bytes) = (options.bytes_max, options.page_size.bytes());
        // An eighth of what is for pages, however much a policy takes besides.
        let for_policy = options.replacement.bytes_max(FRAMES_MIN as u32);
        let for_pages = bytes_max.saturating_sub(for_policy) / page_bytes;
        let batch_pages = (for_pages / 8).clamp(BATCH_MIN, BATCH_MAX);
        let frames = frames_for(options, bytes_max, pages, batch_pages);
        if frames < FRAMES_MIN {
            return Err(PoolError::TooSmall {
                given: bytes_max,
                page_bytes,
                minimum: minimum(options, BATCH_MIN),
            });
        }
        Ok(Budget {
            frames: frames as u32,
            batch_pages,
        })
    }
}

/// The least memory with which a pool over an empty file works.
fn minimum(options: &PoolOptions, batch_pages: usize) -> usize {
    let buffer = (batch_pages + 1) * options.page_size.bytes();
    bytes_of(options, FRAMES_MIN) + buffer + table_bytes(options.table, 0)
}

fn frames_for(options: &PoolOptions, bytes_max: usize, pages: u64, batch_pages: usize) -> usize {
    let buffer = (batch_pages + 1) * options.page_size.bytes();
    let left = bytes_max.saturating_sub(buffer);
    // However long the file, half of the memory is for frames: then the hash table is the one to take.
    let left = left - table_bytes(options.table, pages).min(left / 2);
    let (mut fit, mut too_many) = (0, FrameId::LIMIT as usize);
    while fit + 1 < too_many {
        let middle = fit.midpoint(too_many);
        match bytes_of(options, middle) <= left {
            true => fit = middle,
            false => too_many = middle,
        }
    }
    fit
}

/// Memory of so many frames with all that is kept of each.
fn bytes_of(options: &PoolOptions, frames: usize) -> usize {
    frames * (frame_bytes(options.page_size) + table_bytes_per_frame(options.table))
        + options.replacement.bytes_max(frames as u32)
}

fn table_bytes(table: PageTableKind, pages: u64) -> usize {
    match table {
        PageTableKind::Translation => crate::table::translation_bytes(pages),
        PageTableKind::Hash => 0,
    }
}

fn table_bytes_per_frame(table: PageTableKind) -> usize {
    match table {
        PageTableKind::Translation => 0,
        // Up to twice the slots asked for, by rounding to a power of two.
        PageTableKind::Hash => 64,
    }
}

impl Pool {
    /// Changes the memory of the pool while it is in use.
    ///
    /// # Errors
    /// [`PoolError::TooSmall`], [`PoolError::TooLarge`] or [`PoolError::Memory`], and nothing has changed;
    /// [`PoolError::Exhausted`] if pages in frames beyond the new size stay in use: they go as they come
    /// free. Those of writing, as for [`Pool::maintain`], likewise.
    pub fn resize(&self, bytes_max: usize) -> Result<(), PoolError> {
        self.check_poison()?;
        let _resizing = self.resizing.lock();
        let frames = self.frames_for(bytes_max);
        if frames < FRAMES_MIN {
            return Err(PoolError::TooSmall {
                given: bytes_max,
                page_bytes: self.options.page_size.bytes(),
                minimum: minimum(&self.options, self.batch_pages),
            });
        }
        if frames > self.table.frames_max() as usize {
            return Err(PoolError::TooLarge {
                frames,
                maximum: self.table.frames_max() as usize,
            });
        }
        // Relaxed: guarded by `resizing`.
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
        self.set_frames(frames as u32)?;
        self.wait_for_tail()
    }

    fn frames_for(&self, bytes_max: usize) -> usize {
        let pages = self.data.pages();
        frames_for(&self.options, bytes_max, pages, self.batch_pages)
    }

    /// Sets the number of frames, and leaves it to `settle_tail` to evict what lies beyond.
    fn set_frames(&self, frames: u32) -> Result<(), PoolError> {
        self.frames.reach(frames).map_err(PoolError::memory)?;
        self.set_limit(frames);
        // Release: pairs with Acquire in `settle_tail`, which then sees the limit.
        self.tail_unsettled.store(true, Ordering::Release);
        Ok(())
    }

    fn set_limit(&self, frames: u32) {
        self.free.set_limit(frames);
        if let Some(live) = &self.live {
            live.set_capacity(&self.frames, frames.saturating_sub(self.reserve.size()));
        }
    }

    fn wait_for_tail(&self) -> Result<(), PoolError> {
        let mut patience = self.patience();
        loop {
            let mut cleaner = self.cleaner.lock();
            self.settle_tail(&mut cleaner)?;
            drop(cleaner);
            // Acquire: pairs with the Release stores of `true`; whoever left frames unsettled did so before.
            if !self.tail_unsettled.load(Ordering::Acquire) {
                return Ok(());
            }
            self.wait_for_frame(&mut patience, || true)?;
        }
    }

    /// Brings the frames in line with the limit: those beyond it are evicted and retired as far as nobody
    /// holds them, those below it are in use.
    pub(crate) fn settle_tail(&self, cleaner: &mut Cleaner) -> Result<(), PoolError> {
        // Acquire: pairs with Release in `set_frames`.
        if !self.tail_unsettled.load(Ordering::Acquire) {
            return Ok(());
        }
        self.tail_unsettled.store(false, Ordering::Relaxed);
        let (limit, end) = (self.free.limit(), self.free.fresh());
        self.use_again_below(limit.min(end));
        for id in self.reserve.drain_from(limit) {
            self.give_frame(id);
        }
        self.free.purge(&self.frames);
        let tail: Vec<FrameId> = (limit..end.max(limit)).map(FrameId::new).collect();
        let dirty: Vec<FrameId> = tail
            .iter()
            .copied()
            .filter(|id| self.evict_from_tail(*id))
            .collect();
        let written = self.write_frames(cleaner, &dirty, Intent::Evict);
        let is_retired =
            |id: &FrameId| self.frames.get(*id).header.word.load().state() == State::Retired;
        if tail.iter().all(is_retired) {
            let end = end.max(self.ahead.fall_back(limit));
            self.frames.forget(limit, end.max(limit));
        } else {
            // Release: as in `set_frames`.
            self.tail_unsettled.store(true, Ordering::Release);
        }
        written.map(|_| ())
    }

    /// Puts frames below the limit that were retired once back into use.
    fn use_again_below(&self, end: u32) {
        for id in (0..end).map(FrameId::new) {
            if self.frames.get(id).header.word.use_again() {
                self.give_frame(id);
            }
        }
    }

    /// Evicts a page that nobody holds, whatever its weight. True if it must be written first.
    fn evict_from_tail(&self, id: FrameId) -> bool {
        let frame = self.frames.get(id).header;
        loop {
            let word = frame.word.load();
            if !word.is_sweepable() {
                return false;
            }
            if word.weight() > 0 {
                let _ = frame.word.age(word);
            } else if word.is_dirty() {
                return true;
            } else if frame.word.try_evict(word) {
                self.forget_evicted(frame.page(), id);
                return false;
            }
        }
    }

    /// The file's length in pages.
    pub fn file_pages(&self) -> u64 {
        self.data.pages()
    }

    /// Makes sure that the file has space for `pages` pages: a full disk is an error here, not later.
    ///
    /// # Errors
    /// [`PoolError::Disk`] of kind `Full`, and nothing has changed.
    pub fn grow(&self, pages: u64) -> Result<(), PoolError> {
        self.check_poison()?;
        if pages > crate::table::PAGES_MAX {
            let page = PageId::new(pages - 1);
            return Err(PoolError::NoSuchPage { page });
        }
        self.data.grow(pages)?;
        self.pay_for_table();
        Ok(())
    }

    /// Takes the memory of a grown page table from the frames.
    fn pay_for_table(&self) {
        let Some(_resizing) = self.resizing.try_lock() else {
            // Whoever is resizing takes the file's length into account, or the next to grow it does.
            return;
        };
        // Relaxed: guarded by `resizing`.
        let frames = self.frames_for(self.bytes_max.load(Ordering::Relaxed));
        let frames = frames.max(FRAMES_MIN) as u32;
        if frames < self.free.limit() {
            self.set_limit(frames);
            // Release: as in `set_frames`.
            self.tail_unsettled.store(true, Ordering::Release);
            self.bell.ring();
        }
    }

    /// Cuts the file to `pages` pages; pages beyond are forgotten, dirty or not. The caller makes sure
    /// that nobody uses them.
    ///
    /// # Errors
    /// [`PoolError::Busy`] if one of them stays latched; those of writing, as for [`Pool::maintain`].
    pub fn truncate(&self, pages: u64) -> Result<(), PoolError> {
        self.check_poison()?;
        let end = PageId::new(pages);
        // Held to the end, so that no copy of such a page is on its way.
        let mut cleaner = self.cleaner.lock();
        self.settle_home(&mut cleaner)?;
        for id in (0..self.free.fresh()).map(FrameId::new) {
            let frame = self.frames.get(id).header;
            let page = frame.page();
            if frame.word.load().holds_page()
                && page >= end
                && let Some(frame) = self.fix_resident(page)?
            {
                ExclusiveGuard::new(self, frame).discard();
            }
        }
        self.data.truncate(pages)?;
        longshore_base::crash_point("pool.truncated");
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::frame::Frames;
    use crate::replacement::{Live, Replacement};
    use longshore_base::{Environment, SystemEnvironment};
    use std::sync::Arc;

    /// All choices of the page table, the page size and the replacement.
    fn all_options() -> impl Iterator<Item = PoolOptions> {
        let tables = [PageTableKind::Translation, PageTableKind::Hash];
        let sizes = [4096, 8192, 65536];
        let choices = tables
            .into_iter()
            .flat_map(move |table| sizes.map(|size| (table, size)));
        choices.flat_map(|(table, size)| {
            Replacement::all().map(move |replacement| PoolOptions {
                page_size: PageSize::new(size).unwrap(),
                table,
                replacement,
                ..PoolOptions::default()
            })
        })
    }

    #[test]
    fn stated_minimum_is_enough_and_one_byte_less_is_not() {
        for mut options in all_options() {
            let least = minimum(&options, BATCH_MIN);
            options.bytes_max = least;
            assert!(Budget::of(&options, 0).is_ok());
            options.bytes_max = least - 1;
            let error = Budget::of(&options, 0).unwrap_err();
            assert!(error.to_string().contains(&least.to_string()), "{error}");
        }
    }

    #[test]
    fn all_parts_stay_within_the_memory_allowed() {
        let frames = Frames::new(1, PageSize::DEFAULT).unwrap();
        let env: Arc<dyn Environment> = Arc::new(SystemEnvironment::new());
        for mut options in all_options() {
            for (bytes, pages) in [(1 << 20, 0), (64 << 20, 1 << 20), (256 << 20, 1 << 24)] {
                options.bytes_max = bytes;
                let Ok(budget) = Budget::of(&options, pages) else {
                    continue;
                };
                let size = options.page_size;
                let buffer = (budget.batch_pages + 1) * size.bytes();
                let table = table_bytes(options.table, pages).min((bytes - buffer) / 2);
                let all = bytes_of(&options, budget.frames as usize) + buffer + table;
                let one_more = bytes_of(&options, budget.frames as usize + 1) + buffer + table;
                let whose = &options.replacement;
                assert!(
                    all <= bytes && one_more > bytes,
                    "{whose}: {all} of {bytes}"
                );
                let live = Live::new(&options, &frames, budget.frames, &env).unwrap();
                let (held, allowed) = (
                    live.map_or(0, |live| live.bytes()),
                    whose.bytes_max(budget.frames),
                );
                assert!(held <= allowed, "{whose}: {held} of {allowed}");
            }
        }
    }
}
