//! Free frames: from the list, by sweeping for victims, from the reserve, or by waiting.
//!
//! # Protocol
//! `take_frame` asks the list of free frames; then the hand sweeps for clean victims, at most so
//! many steps that every weight would be down to zero. If it met only dirty ones, they are written in one
//! batch on the spot (`cleaner.rs`). Threads that use the reserve may take its frames now. If
//! everything is held, the thread sleeps and sweeps again, until its patience ends.
//!
//! An evicted frame is out of service first and out of the table second. Whoever finds the entry in
//! between sees a frame without page and looks again (T3); the frame is given to nobody before.
//!
//! # Failure
//! A victim that cannot be written stays, dirty. An [`OwnedFrame`] that is dropped is free again.
//!
//! # Source
//! Nb-GCLOCK, `ClockBuffer.swap`. We differ: the sweep is bounded and ends in an error, not in yielding
//! for ever; a dirty victim stays in the table until it is written.

use crate::cleaner::Intent;
use crate::error::PoolError;
use crate::frame::FrameId;
use crate::frame_word::{State, Word};
use crate::pool::Pool;
use longshore_base::PageId;
use longshore_base::hand::STRETCH_MAX;
use longshore_base::parking::{Parked, Patience};
use smallvec::SmallVec;
use std::time::Duration;

/// The key under which threads park that wait for a free frame; no page has this number.
pub(crate) const FRAMES_KEY: u64 = u64::MAX;
/// The longest sleep of a thread that waits for a frame: an unpinned page wakes nobody.
const FRAME_SLICE: Duration = Duration::from_millis(1);

/// Where a frame may come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameSource {
    /// From wherever there is one.
    Any,
    /// From the list of free frames only.
    FreeOnly,
}

/// A free frame that belongs to the holder of this, for a page.
pub(crate) struct OwnedFrame<'a> {
    pool: &'a Pool,
    page: PageId,
    id: Option<FrameId>,
}

impl OwnedFrame<'_> {
    pub(crate) fn id(&self) -> FrameId {
        self.id.expect("the frame was not given away")
    }

    /// The frame has a page now, and stays with it.
    pub(crate) fn keep(&mut self) {
        self.id = None;
    }
}

impl Drop for OwnedFrame<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            let word = &self.pool.frames.get(id).header.word;
            if word.load().state() == State::Loading {
                word.abandon_load();
            }
            self.pool.untrack(self.page, id);
            self.pool.give_frame(id);
        }
    }
}

/// What a sweep met.
#[derive(Default)]
pub(crate) struct Sweep {
    /// Frames that were clean victims, and are the caller's now.
    pub(crate) victims: SmallVec<[FrameId; STRETCH_MAX]>,
    /// Frames that would be victims if they were not dirty.
    pub(crate) dirty: Vec<FrameId>,
}

/// What the hand does at one frame.
enum Visit {
    Passed,
    Dirty,
    Evicted,
}

impl Pool {
    /// Takes a frame for a page.
    ///
    /// `None` only if it may come from nowhere but the list.
    pub(crate) fn take_frame(
        &self,
        page: PageId,
        source: FrameSource,
    ) -> Result<Option<OwnedFrame<'_>>, PoolError> {
        let own = |id| OwnedFrame {
            pool: self,
            page,
            id: Some(id),
        };
        if let Some(live) = &self.live {
            return Ok(self.take_tracked_frame(live, page, source)?.map(own));
        }
        if let Some(id) = self.free.take(&self.frames) {
            if self.free.len() < self.free_target() / 2 || self.wants_memory() {
                self.bell.ring();
            }
            return Ok(Some(own(id)));
        }
        self.bell.ring();
        if source == FrameSource::FreeOnly {
            return Ok(None);
        }
        self.take_frame_slow().map(own).map(Some)
    }

    #[cold]
    fn take_frame_slow(&self) -> Result<FrameId, PoolError> {
        let mut patience = self.patience();
        loop {
            if let Some(id) = self.free.take(&self.frames) {
                return Ok(id);
            }
            let sweep = self.sweep(1);
            if let [id, others @ ..] = &*sweep.victims {
                self.give_frames(others);
                return Ok(*id);
            }
            if !sweep.dirty.is_empty() && self.write_victims_now(&sweep.dirty)? {
                continue;
            }
            if let Some(id) = self.reserve.take() {
                self.counters.reserve_taken.add(1);
                return Ok(id);
            }
            self.wait_for_frame(&mut patience, || self.free.len() == 0)?;
        }
    }

    /// Sweeps until `want` clean victims are found, a batch of dirty ones is met, or every frame has been
    /// passed often enough to be one or the other.
    pub(crate) fn sweep(&self, want: usize) -> Sweep {
        let mut sweep = Sweep::default();
        let frames = self.free.limit().min(self.free.fresh());
        let steps_max = u64::from(frames) * (u64::from(self.options.weight_max) + 2);
        let mut steps = 0;
        while steps < steps_max
            && sweep.victims.len() < want
            && sweep.dirty.len() < self.batch_pages
        {
            for index in self.hand.advance(frames) {
                steps += 1;
                let id = FrameId::new(index);
                match self.visit(id) {
                    Visit::Passed => {}
                    Visit::Dirty => sweep.dirty.push(id),
                    Visit::Evicted => sweep.victims.push(id),
                }
            }
        }
        self.counters.sweep_steps.add(steps);
        sweep
    }

    fn visit(&self, id: FrameId) -> Visit {
        let frame = self.frames.get(id).header;
        let word = frame.word.load();
        if !word.is_sweepable() {
            return Visit::Passed;
        }
        if word.weight() > 0 {
            if !frame.word.age(word) {
                self.counters.exchanges_failed.add(1);
            }
            return Visit::Passed;
        }
        if word.is_dirty() {
            return Visit::Dirty;
        }
        if !frame.word.try_evict(word) {
            self.counters.exchanges_failed.add(1);
            return Visit::Passed;
        }
        self.remove_evicted(frame.page(), id);
        Visit::Evicted
    }

    /// Takes a page from the replacement policy and out of the table, whose frame we have just evicted.
    fn remove_evicted(&self, page: PageId, id: FrameId) {
        self.untrack(page, id);
        self.table.remove(page, id);
        self.counters.evictions.add(1);
    }

    /// Takes a page out of service, and gives its frame, evicted by us, to whoever needs one.
    pub(crate) fn forget_evicted(&self, page: PageId, id: FrameId) {
        self.remove_evicted(page, id);
        self.give_frame(id);
    }

    /// Gives a free frame of ours to whoever needs one: the reserve first.
    pub(crate) fn give_frame(&self, id: FrameId) {
        if id.get() < self.free.limit() && self.reserve.give(id) {
            return;
        }
        self.free.give(id, &self.frames);
    }

    /// Gives free frames of ours to whoever needs some: the reserve first.
    pub(crate) fn give_frames(&self, ids: &[FrameId]) {
        if self.reserve.is_short() {
            ids.iter().for_each(|id| self.give_frame(*id));
        } else {
            self.free.give_all(ids, &self.frames);
        }
    }

    /// Wakes those who wait for a frame.
    pub(crate) fn frames_given(&self) {
        self.load_lot.unpark(FRAMES_KEY);
    }

    /// Makes room in the table's slots for another page: one of these frames must lose its page.
    pub(crate) fn make_way(
        &self,
        neighbours: Vec<FrameId>,
        patience: &mut Patience,
    ) -> Result<(), PoolError> {
        for id in &neighbours {
            let frame = self.frames.get(*id).header;
            for _ in 0..=self.options.weight_max {
                if let Visit::Evicted = self.visit(*id) {
                    self.give_frame(*id);
                    return Ok(());
                }
                if frame.word.load().weight() == 0 {
                    break;
                }
            }
        }
        if self.write_victims_now(&neighbours)? {
            return Ok(());
        }
        self.wait_for_frame(patience, || true)
    }

    /// Frames that `maintain` tries to keep free.
    pub(crate) fn free_target(&self) -> usize {
        let frames = self.free.limit() as usize;
        (frames / 64).clamp(4.min(frames), 512)
    }

    /// Writes these victims, unless somebody else is writing others. True if that may have freed frames.
    fn write_victims_now(&self, dirty: &[FrameId]) -> Result<bool, PoolError> {
        let Some(mut cleaner) = self.cleaner.try_lock() else {
            return Ok(false);
        };
        self.counters.write_batches_inline.add(1);
        let progress = self.write_frames(&mut cleaner, dirty, Intent::Evict)?;
        Ok(progress.freed > 0)
    }

    /// Sleeps until frames may have come free.
    pub(crate) fn wait_for_frame(
        &self,
        patience: &mut Patience,
        must_wait: impl FnOnce() -> bool,
    ) -> Result<(), PoolError> {
        let now = self.env.now();
        let Some(slice) = patience.slice(now) else {
            return Err(self.exhausted(patience.waited(now)));
        };
        let slice = slice.min(FRAME_SLICE);
        self.counters.frame_waits.add(1);
        if cfg!(loom) {
            // The model checker has no time that could pass.
            longshore_base::sync::thread::yield_now();
            return Ok(());
        }
        if self.load_lot.park(FRAMES_KEY, slice, must_wait) == Parked::TimedOut {
            patience.slept(slice);
        }
        self.count_wait(now);
        Ok(())
    }

    fn exhausted(&self, waited: Duration) -> PoolError {
        let frames = self.free.limit();
        let words = || (0..frames.min(self.free.fresh())).map(|id| self.word_of(id));
        let is_held = |word: &Word| word.pins() > 0 || word.is_exclusive();
        PoolError::Exhausted {
            frames: frames as usize,
            pinned: words().filter(is_held).count(),
            dirty: words().filter(|word| word.is_dirty()).count(),
            waited,
        }
    }

    fn word_of(&self, id: u32) -> Word {
        self.frames.get(FrameId::new(id)).header.word.load()
    }
}
