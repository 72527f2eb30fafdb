//! Giving the free end of the file back to the file system.
//!
//! # Protocol
//! Nobody grows the file meanwhile; what threads hold in reserve goes back first. The memory side is cut
//! before the file, so that no page behind the cut is given out. The log is made durable before the file is
//! cut: the records that freed those pages must not be lost after the pages are.

use super::{FreeMap, MapPlace, Space};
use crate::access::Access;
use crate::action::PageAction;
use crate::error::AccessError;
use crate::mtr::{MiniTransaction, Steps};
use longshore_base::{PageId, crash_point};
use longshore_log::Level;

const DROP_MAP: Steps = Steps::new(
    "truncate.map_latched",
    "truncate.map_logged",
    "truncate.map_applied",
);

/// What was cut off the memory side.
struct Cut {
    /// Pages before.
    pages: u64,
    /// Pages left.
    end: u64,
    /// Map pages behind the cut.
    maps: Vec<PageId>,
}

impl Access {
    /// How many pages [`Access::truncate_end`] would cut off about now, for whoever weighs whether it is
    /// worth it. What threads hold in reserve goes back first.
    pub fn free_at_end(&self) -> u64 {
        self.space.drain_stripes();
        let free = self.space.free.lock();
        let end = free.end();
        (free.pages() - end).min(free.free().saturating_sub(FreeMap::kept(end)))
    }

    /// Cuts the free pages at the end of the file off. Returns how many pages that were.
    ///
    /// # Errors
    /// When the log or the file fails; nothing is lost, and the pages are free or gone.
    pub fn truncate_end(&self) -> Result<u64, AccessError> {
        let _growing = self.space.growing.lock();
        self.space.drain_stripes();
        let cut = self.space.cut(MapPlace::span(self.page_size));
        let before = self.pool.file_pages();
        if before <= cut.end {
            return Ok(0);
        }
        match self.cut_file(&cut) {
            Ok(()) => Ok(before - cut.end),
            Err(error) => {
                self.begin_spans(cut.end, cut.pages)?;
                self.space.put_back_cut(&cut);
                Err(error)
            }
        }
    }

    fn cut_file(&self, cut: &Cut) -> Result<(), AccessError> {
        for map in &cut.maps {
            let mut cx = self.system_context(0)?;
            let mut mtr = MiniTransaction::begin(self);
            mtr.change(self.pool.fix_exclusive(*map)?, PageAction::FreePage);
            mtr.commit(&mut cx, &DROP_MAP)?;
        }
        self.log.flush_all(Level::Sync)?;
        crash_point("truncate.logged");
        self.pool.truncate(cut.end)?;
        crash_point("truncate.cut");
        Ok(())
    }
}

impl Space {
    /// Cuts the free end off the memory side: from now on nobody gets a page there.
    fn cut(&self, span: u64) -> Cut {
        let mut free = self.free.lock();
        let pages = free.pages();
        let mut maps = Vec::new();
        loop {
            let end = free.end();
            let last = end.saturating_sub(1);
            if last > 1 && last % span == 1 {
                // A map page at the end describes nothing any more.
                free.give_back(PageId::new(last));
                maps.push(PageId::new(last));
            } else {
                // What is kept for undo stays, but for pages that a map page given back described.
                let short = FreeMap::kept(end).saturating_sub(free.free() - (pages - end));
                let first_behind = maps.last().map_or(pages, |map| map.get());
                let end = (end + short).min(first_behind);
                free.shrink(end);
                return Cut { pages, end, maps };
            }
        }
    }

    fn put_back_cut(&self, cut: &Cut) {
        let mut free = self.free.lock();
        free.grow(cut.pages);
        for map in &cut.maps {
            assert!(
                free.take(*map),
                "space S5: {map:?} was given out while it was cut off"
            );
        }
    }
}
