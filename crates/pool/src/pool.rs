//! The pool: its parts, its making, and the calls by which pages are fixed.
//!
//! # Protocol
//! A hit: page table, frame word, use, frame word again. Everything else is in the files that the
//! calls lead to: `fix.rs` (waits and misses), `evict.rs` (frames), `cleaner.rs` (writes),
//! `checkpoint.rs`, `resize.rs`.
//!
//! # Order
//! The mutexes of the pool, in the order in which they may be taken: `resizing`, `cleaner`, then any one of
//! the stripes of a parking lot, `reserve`, or the replacement policy's lock. Latches are the caller's to order; under a latch the pool
//! only tries `cleaner`, and the wait for a frame is bounded. A miss under a latch may read, and may write
//! other pages and wait for the log to do so; it never waits for a page that the caller holds.

use crate::ahead::Ahead;
use crate::bell::WorkBell;
use crate::cleaner::Cleaner;
use crate::data_file::DataFile;
use crate::error::PoolError;
use crate::fix::{Access, Request, Use};
use crate::frame::{FrameId, Frames};
use crate::free_list::FreeList;
use crate::guard::{ExclusiveGuard, OptimisticGuard, SharedGuard};
use crate::options::PoolOptions;
use crate::replacement::Live;
use crate::reserve::Reserve;
use crate::resize::Budget;
use crate::stats::{Counters, PoolStats};
use crate::table::{Entry, PageTable};
use crate::trace::PageUse;
use longshore_base::hand::ClockHand;
use longshore_base::parking::{ParkingLot, Patience};
use longshore_base::sync::Mutex;
use longshore_base::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use longshore_base::{Durability, Environment, PageId};
use longshore_disk::DiskFile;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Pages of one data file, in memory. Shared by all threads; has no threads of its own.
pub struct Pool {
    // What a hit reads comes first; after the making of the pool none of it is written.
    pub(crate) table: PageTable,
    pub(crate) frames: Frames,
    pub(crate) poison: OnceLock<Arc<str>>,
    /// The greatest weight that a hit gives a frame; 0 where another policy than Nb-GCLOCK counts the hits.
    pub(crate) weight_cap: u8,
    /// What is told of hits instead; `None` for Nb-GCLOCK.
    pub(crate) live: Option<Box<Live>>,
    /// Whether hits are told to `live`, or to whoever traces uses.
    pub(crate) has_listener: bool,
    pub(crate) options: PoolOptions,
    pub(crate) counters: Counters,

    pub(crate) free: FreeList,
    pub(crate) ahead: Ahead,
    pub(crate) hand: ClockHand,
    pub(crate) reserve: Reserve,
    pub(crate) tickets: AtomicU64,
    /// Threads parked until a latch is free, by frame.
    pub(crate) latch_lot: ParkingLot,
    /// Threads parked until a page is brought in, by page; and under [`crate::evict::FRAMES_KEY`] those
    /// who wait for a free frame.
    pub(crate) load_lot: ParkingLot,

    pub(crate) bytes_max: AtomicUsize,
    /// Serializes changes of the size.
    pub(crate) resizing: Mutex<()>,
    /// Whether frames beyond the size are still in use, or frames below it may lie idle.
    pub(crate) tail_unsettled: AtomicBool,
    /// At most one batch of writes at a time.
    pub(crate) cleaner: Mutex<Cleaner>,
    pub(crate) batch_pages: usize,
    pub(crate) bell: WorkBell,

    pub(crate) data: DataFile,
    pub(crate) log: Arc<dyn Durability>,
    pub(crate) env: Arc<dyn Environment>,
}

impl Pool {
    /// Makes a pool over a data file.
    ///
    /// Without a `double_write` file pages are written home only, whatever the options say.
    ///
    /// # Errors
    /// [`PoolError::TooSmall`], which names the minimum; [`PoolError::Memory`]; [`PoolError::Disk`] when
    /// there is no space for the double-write area.
    ///
    /// # Panics
    /// If `weight_max` is not from 1 to 15.
    pub fn new(
        options: PoolOptions,
        data: Arc<dyn DiskFile>,
        double_write: Option<Arc<dyn DiskFile>>,
        log: Arc<dyn Durability>,
        env: Arc<dyn Environment>,
    ) -> Result<Arc<Pool>, PoolError> {
        let weights = 1..=crate::frame_word::WEIGHT_MAX;
        assert!(weights.contains(&options.weight_max), "weight_max: 1 to 15");
        let data = DataFile::new(data, options.page_size)?;
        let budget = Budget::of(&options, data.pages())?;
        let cleaner = Cleaner::new(&options, budget.batch_pages, double_write)?;
        let frames = Frames::new(budget.frames, options.page_size).map_err(PoolError::memory)?;
        let reserve = Reserve::new(budget.frames);
        let size = budget.frames - reserve.size();
        let live = Live::new(&options, &frames, size, &env).map_err(PoolError::memory)?;
        let pool = Pool {
            table: PageTable::new(options.table, budget.frames)?,
            frames,
            poison: OnceLock::new(),
            weight_cap: match live {
                None => options.weight_max,
                Some(_) => 0,
            },
            has_listener: live.is_some() || options.trace.is_some(),
            live,
            counters: Counters::default(),
            free: FreeList::new(budget.frames),
            ahead: Ahead::default(),
            hand: ClockHand::new(options.hand),
            reserve,
            tickets: AtomicU64::new(0),
            latch_lot: ParkingLot::new(),
            load_lot: ParkingLot::new(),
            bytes_max: AtomicUsize::new(options.bytes_max),
            resizing: Mutex::new(()),
            tail_unsettled: AtomicBool::new(false),
            cleaner: Mutex::new(cleaner),
            batch_pages: budget.batch_pages,
            bell: WorkBell::new(),
            data,
            log,
            env,
            options,
        };
        pool.fill_reserve();
        if let Some(trace) = &pool.options.trace {
            trace.begins(pool.options.page_size);
        }
        Ok(Arc::new(pool))
    }

    /// Reads a page without a latch. On a hit nothing is stored to shared memory, unless the page's
    /// weight is below its cap.
    ///
    /// # Errors
    /// Those of a miss: [`PoolError::Damaged`], [`PoolError::Disk`], [`PoolError::Exhausted`],
    /// [`PoolError::Busy`], [`PoolError::NoSuchPage`]; and [`PoolError::Poisoned`].
    #[inline]
    pub fn read(&self, page: PageId) -> Result<OptimisticGuard<'_>, PoolError> {
        self.read_for(page, Use::Counts)
    }

    /// Like [`Pool::read`], but does not count as a use of a page that is there: its weight stays as it is, so
    /// that a long scan does not push out what others use often.
    ///
    /// # Errors
    /// As for [`Pool::read`].
    #[inline]
    pub fn read_scan(&self, page: PageId) -> Result<OptimisticGuard<'_>, PoolError> {
        if self.has_listener {
            self.trace_use(page, PageUse::Read);
        }
        self.read_for(page, Use::InPassing)
    }

    /// Like [`Pool::read`], but only of a page that is in the pool and latched by nobody: waits for
    /// nothing. For guesses, where the page may be any by now, or none.
    #[inline]
    pub fn read_resident(&self, page: PageId) -> Option<OptimisticGuard<'_>> {
        self.counters.count_fix();
        self.read_hit(page, Use::Counts)
            .or_else(|| self.read_and_touch(page))
    }

    #[inline(always)]
    fn read_for(&self, page: PageId, reason: Use) -> Result<OptimisticGuard<'_>, PoolError> {
        self.counters.count_fix();
        match self.read_hit(page, reason) {
            Some(guard) => Ok(guard),
            None => self.read_slow(page, reason),
        }
    }

    /// Reads a page that is there, and that weighs enough already.
    #[inline(always)]
    fn read_hit(&self, page: PageId, reason: Use) -> Option<OptimisticGuard<'_>> {
        let Entry::Frame(id) = self.table.lookup(page) else {
            return None;
        };
        let frame = self.frames.get_and_prefetch(id);
        let word = frame.header.word.load();
        let is_there = word.is_quiet() && frame.header.page() == page;
        let is_heavy = word.weight() >= self.cap_of(reason);
        let is_hit = is_there && is_heavy && self.poison.get().is_none();
        if is_hit && reason == Use::Counts {
            self.note_hit(frame, page, PageUse::Read);
        }
        is_hit.then(|| OptimisticGuard::new(self, frame, page, word))
    }

    /// The weight up to which a use counts.
    #[inline(always)]
    pub(crate) fn cap_of(&self, reason: Use) -> u8 {
        match reason {
            Use::Counts => self.weight_cap,
            Use::InPassing => 0,
        }
    }

    #[cold]
    #[inline(never)]
    fn read_slow(&self, page: PageId, reason: Use) -> Result<OptimisticGuard<'_>, PoolError> {
        let (frame, word) = self.fix(page, Request::new(Access::Optimistic, reason))?;
        Ok(OptimisticGuard::new(self, frame, page, word))
    }

    /// Holds a page shared.
    ///
    /// # Errors
    /// As for [`Pool::read`]; [`PoolError::Busy`] also if the latch was not to be had in time.
    #[inline]
    pub fn fix_shared(&self, page: PageId) -> Result<SharedGuard<'_>, PoolError> {
        self.counters.count_fix();
        if let Some(frame) = self.pin_resident(page) {
            return Ok(SharedGuard::new(self, frame));
        }
        let request = Request::new(Access::Shared, Use::Counts);
        let (frame, _) = self.fix(page, request)?;
        Ok(SharedGuard::new(self, frame))
    }

    /// Holds a page exclusively.
    ///
    /// # Errors
    /// As for [`Pool::fix_shared`].
    #[inline]
    pub fn fix_exclusive(&self, page: PageId) -> Result<ExclusiveGuard<'_>, PoolError> {
        self.counters.count_fix();
        if let Some(frame) = self.take_resident(page) {
            return Ok(ExclusiveGuard::new(self, frame));
        }
        let request = Request::new(Access::Exclusive, Use::Counts);
        let (frame, _) = self.fix(page, request)?;
        Ok(ExclusiveGuard::new(self, frame))
    }

    /// Holds a page exclusively, or says `None` instead of waiting for its latch. (For a page that is
    /// being read from disk it waits all the same.)
    ///
    /// # Errors
    /// As for [`Pool::read`].
    pub fn try_fix_exclusive(&self, page: PageId) -> Result<Option<ExclusiveGuard<'_>>, PoolError> {
        self.counters.count_fix();
        if let Some(frame) = self.take_resident(page) {
            return Ok(Some(ExclusiveGuard::new(self, frame)));
        }
        let request = Request::new(Access::Exclusive, Use::Counts).without_wait();
        let fixed = self.try_fix(page, request)?;
        Ok(fixed.map(|(frame, _)| ExclusiveGuard::new(self, frame)))
    }

    /// Holds a page exclusively whose content is of no interest: nothing is read, all its bytes are zero.
    ///
    /// The caller fills and stamps it, or nothing of it may last.
    ///
    /// # Errors
    /// As for [`Pool::fix_exclusive`], but never [`PoolError::Damaged`].
    pub fn fix_new(&self, page: PageId) -> Result<ExclusiveGuard<'_>, PoolError> {
        self.counters.count_fix();
        let request = Request::new(Access::Exclusive, Use::Counts).zeroed();
        let (frame, _) = self.fix(page, request)?;
        let mut guard = ExclusiveGuard::new(self, frame);
        let len = guard.page().len();
        guard.page_mut().fill(0, len, 0);
        Ok(guard)
    }

    /// Brings a page in ahead of its use, if a frame is to be had at once and nobody else is at it.
    ///
    /// Reads on the caller's thread. Errors are left to whoever will use the page.
    pub fn prefetch(&self, page: PageId) {
        if self.table.lookup(page) == Entry::Absent {
            let _ = self.load_ahead(page);
        }
    }

    /// Whether the pool refuses all work until reopened.
    pub fn is_poisoned(&self) -> bool {
        self.poison.get().is_some()
    }

    /// The options that the pool was made with.
    pub fn options(&self) -> &PoolOptions {
        &self.options
    }

    /// What happened since the pool was made, and its size now.
    pub fn stats(&self) -> PoolStats {
        let frames = self.free.limit() as u64;
        let frame_bytes = crate::resize::frame_bytes(self.options.page_size) as u64;
        let table_bytes = self.table.bytes(self.data.pages()) as u64;
        let replacement_bytes = self.options.replacement.bytes_max(frames as u32) as u64;
        let buffer_bytes = (self.batch_pages + 1) * self.options.page_size.bytes();
        PoolStats {
            frames,
            frames_free: self.free.len() as u64,
            bytes: frames * frame_bytes + table_bytes + replacement_bytes + buffer_bytes as u64,
            table_bytes,
            replacement_bytes,
            replacement: self
                .live
                .as_ref()
                .map_or_else(Default::default, |live| live.stats()),
            ..self.counters.snapshot()
        }
    }

    /// Refuses all work from now on: it is not known any more what is on disk, or in a page.
    pub(crate) fn poison(&self, cause: String) {
        // The first cause is the one that counts.
        let _ = self.poison.set(cause.into());
    }

    pub(crate) fn check_poison(&self) -> Result<(), PoolError> {
        match self.poison.get() {
            None => Ok(()),
            Some(cause) => Err(PoolError::Poisoned {
                cause: Arc::clone(cause),
            }),
        }
    }

    pub(crate) fn patience(&self) -> Patience {
        Patience::new(self.options.wait)
    }

    pub(crate) fn count_wait(&self, from: Duration) {
        let waited = self.env.now().saturating_sub(from);
        self.counters.wait_us.add(waited.as_micros() as u64);
    }

    #[cold]
    pub(crate) fn wake_latch_waiters(&self, frame: FrameId) {
        self.latch_lot.unpark(u64::from(frame.get()));
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("options", &self.options)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
