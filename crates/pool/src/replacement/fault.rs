//! Frames under a policy: for a page that is missed, and what is done ahead of need.
//!
//! # Protocol
//! A fault asks the list of free frames, then the policy; what it gets is known to the policy as the page's in the same
//! critical section. If dirty frames were in the way and nothing better was found near, they are written together with
//! others that the policy would offer soon, and the policy is asked again; threads that use the reserve may take
//! its frames then; else the thread sleeps a little, until its patience ends.
//!
//! # Failure
//! A victim that cannot be written stays, dirty. The page of a fault that fails is known to the policy's history only.

use super::Live;
use super::keeper::Arrival;
use crate::cleaner::{Cleaner, Intent, Maintained};
use crate::error::PoolError;
use crate::evict::FrameSource;
use crate::frame::FrameId;
use crate::pool::Pool;
use longshore_base::PageId;
use longshore_policy::{Placement, Take};

/// Dirty frames that a fault passes in search of a clean one.
const DIRTY_PASSED_MAX: usize = 16;

/// A page that is missed, on its way to a frame.
struct Fault {
    page: PageId,
    arrival: Arrival,
    /// What the policy decided when it was told.
    at: Option<Placement>,
}

/// What the policy chose.
#[derive(Default)]
struct Choice {
    /// Ours.
    victim: Option<FrameId>,
    /// Offered before it, but dirty.
    dirty: Vec<FrameId>,
}

impl Pool {
    /// Takes a frame for `page`, which the policy knows to be there from now on.
    ///
    /// `None` only if the frame is not to be waited for.
    pub(crate) fn take_tracked_frame(
        &self,
        live: &Live,
        page: PageId,
        source: FrameSource,
    ) -> Result<Option<FrameId>, PoolError> {
        let arrival = match source {
            FrameSource::Any => Arrival::Wanted,
            FrameSource::FreeOnly => Arrival::Ahead,
        };
        let mut fault = Fault {
            page,
            arrival,
            at: None,
        };
        let taken = self.find_frame(live, &mut fault, source)?;
        if !self.uses_reserve() {
            self.refill_reserve(live);
        }
        Ok(taken)
    }

    fn find_frame(
        &self,
        live: &Live,
        fault: &mut Fault,
        source: FrameSource,
    ) -> Result<Option<FrameId>, PoolError> {
        if self.wants_memory() {
            self.bell.ring();
        }
        let mut patience = self.patience();
        loop {
            if let Some(id) = self.free.take(&self.frames) {
                self.admit(live, fault, id);
                return Ok(Some(id));
            }
            let choice = self.replace(live, fault);
            if !choice.dirty.is_empty() {
                self.bell.ring();
            }
            if choice.victim.is_some() || source == FrameSource::FreeOnly {
                return Ok(choice.victim);
            }
            if !choice.dirty.is_empty() && self.clean_victims_now(live, choice.dirty)? {
                continue;
            }
            if let Some(id) = self.reserve.take() {
                self.counters.reserve_taken.add(1);
                self.admit(live, fault, id);
                return Ok(Some(id));
            }
            self.wait_for_frame(&mut patience, || self.free.len() == 0)?;
        }
    }

    /// Tells the policy that the page of a fault comes into `id`, a free frame of ours.
    fn admit(&self, live: &Live, fault: &mut Fault, id: FrameId) {
        let mut held = live.lock_for_miss(self, fault.page);
        let at = *fault.at.get_or_insert_with(|| held.miss(fault.page));
        held.insert(&self.frames, id, (fault.page, at), fault.arrival);
    }

    /// Has the policy replace a page by that of a fault.
    fn replace(&self, live: &Live, fault: &mut Fault) -> Choice {
        let mut choice = Choice::default();
        let mut held = live.lock_for_miss(self, fault.page);
        let at = *fault.at.get_or_insert_with(|| held.miss(fault.page));
        let incoming = (fault.page, at);
        choice.victim = held.evict(&self.frames, Some(incoming), &mut |id, page| {
            self.claim(id, page, &mut choice.dirty)
        });
        if let Some(id) = choice.victim {
            held.insert(&self.frames, id, incoming, fault.arrival);
            return choice;
        }
        drop(held);
        if choice.dirty.is_empty()
            && let Some(id) = self.evict_elsewhere(live, fault.page, &mut choice.dirty)
        {
            self.admit(live, fault, id);
            choice.victim = Some(id);
        }
        choice
    }

    /// Takes a frame from another part, where the page's own has none.
    fn evict_elsewhere(
        &self,
        live: &Live,
        page: PageId,
        dirty: &mut Vec<FrameId>,
    ) -> Option<FrameId> {
        let own = live.part_of(page);
        let others = live.parts.iter().filter(|part| !std::ptr::eq(*part, own));
        { others }.find_map(|part| self.evict_from(part, dirty))
    }

    fn evict_from(&self, part: &super::Part, dirty: &mut Vec<FrameId>) -> Option<FrameId> {
        let claim = &mut |id, page| self.claim(id, page, dirty);
        part.lock().evict(&self.frames, None, claim)
    }

    /// Answers the policy's offer of a frame: claims it if it can be had at once.
    fn claim(&self, id: FrameId, page: PageId, dirty: &mut Vec<FrameId>) -> Take {
        let frame = self.frames.get(id).header;
        let word = frame.word.load();
        // Frames beyond the size of a pool that shrinks are `settle_tail`'s.
        if !word.is_sweepable() || id.get() >= self.free.limit() {
            return Take::Busy;
        }
        if word.is_dirty() {
            dirty.push(id);
            return match dirty.len() {
                DIRTY_PASSED_MAX.. => Take::Enough,
                _ => Take::Dirty,
            };
        }
        if !frame.word.try_evict(word) {
            self.counters.exchanges_failed.add(1);
            return Take::Busy;
        }
        self.table.remove(page, id);
        self.counters.evictions.add(1);
        Take::Taken
    }

    /// Writes dirty frames that are in the way, and others that soon would be, unless somebody else is writing.
    /// True if some are clean now.
    fn clean_victims_now(&self, live: &Live, dirty: Vec<FrameId>) -> Result<bool, PoolError> {
        let Some(mut cleaner) = self.cleaner.try_lock() else {
            return Ok(false);
        };
        let mut victims = dirty;
        victims.extend(self.dirty_victims(live, self.batch_pages));
        victims.truncate(self.batch_pages);
        self.counters.write_batches_inline.add(1);
        let progress = self.write_frames(&mut cleaner, &victims, Intent::Keep)?;
        self.frames_given();
        Ok(progress.written > 0)
    }

    /// The dirty ones among the frames that would be offered next.
    fn dirty_victims(&self, live: &Live, limit: usize) -> Vec<FrameId> {
        let share = limit.div_ceil(live.parts.len());
        let parts = live.parts.iter();
        parts
            .flat_map(|part| part.lock().likely_victims(share))
            .filter(|id| {
                let word = self.frames.get(*id).header.word.load();
                word.is_sweepable() && word.is_dirty()
            })
            .collect()
    }

    /// A round of maintenance: cleans up to `budget` of the pages that would be offered next.
    pub(crate) fn clean_ahead(
        &self,
        live: &Live,
        cleaner: &mut Cleaner,
        budget: usize,
    ) -> Result<Maintained, PoolError> {
        let mut done = Maintained::default();
        let mut victims = self.dirty_victims(live, self.free_target().max(self.batch_pages));
        done.more = victims.len() > budget;
        victims.truncate(budget);
        done.written = self.write_frames(cleaner, &victims, Intent::Keep)?.written;
        if done.written > 0 {
            self.frames_given();
        }
        self.refill_reserve(live);
        Ok(done)
    }

    /// Evicts pages until the reserve has its frames again, as far as clean ones are to be had.
    fn refill_reserve(&self, live: &Live) {
        while self.reserve.is_short() {
            let freed = self.free.take(&self.frames).or_else(|| {
                let mut parts = live.parts.iter();
                parts.find_map(|part| self.evict_from(part, &mut Vec::new()))
            });
            match freed {
                Some(id) => self.give_frame(id),
                None => return,
            }
        }
    }

    /// Verifies that the replacement policy is sound and knows the pages that are in the pool, and no others.
    ///
    /// For tests: nobody may use the pool meanwhile.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn verify_replacement(&self) -> Result<(), String> {
        let Some(live) = &self.live else {
            return Ok(());
        };
        let mut tracked = 0;
        for part in &live.parts {
            tracked += part.lock().verify(&self.frames)?;
        }
        let ids = (0..self.free.fresh()).map(FrameId::new);
        let words = ids.map(|id| self.frames.get(id).header.word.load());
        let resident = words.filter(|word| word.holds_page()).count();
        match tracked == resident {
            true => Ok(()),
            false => Err(format!("R1: {tracked} pages known, {resident} in the pool")),
        }
    }
}
