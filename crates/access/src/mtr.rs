//! Mini-transactions: the only way in which a page changes.
//!
//! # Protocol
//! 1. Reserve the page to be allocated, if any ([`Access::reserve_page`]); no latch is held yet.
//! 2. Latch the pages exclusively, in latch order, and look at them: decide everything now.
//! 3. [`change`](MiniTransaction::change), page by page. Nothing is written yet.
//! 4. [`commit`](MiniTransaction::commit): latch the map page, write **one** log record with all
//!    actions, apply them, stamp each page with the record's LSN, release all latches.
//!
//! The actions that are applied are those that are logged, by the same code that redo runs. Nobody
//! can see the pages between the record and the change, because they stay latched throughout.
//!
//! # Invariants
//! M1. An error leaves pages, space and log as they were: whatever can fail happens before the append
//!     or is the append.
//! M2. An action that is in the log fits its page: the tree has looked, under the same latch.
//! M3. A page is latched once; all actions of a record on it are applied, or none, so that its
//!     `page_lsn` alone says whether they have been.
//! M4. The dirty page's LSN is that of its newest record, and the page is not released before it is.
//! M5. A page that is begun and then not used has lost its content in memory. It must not reach the disk so
//!     before the record that freed it is durable; so it gets the LSN of the newest freeing.
//!
//! # Order
//! Parent, child, foster child, new page, map page. The new page may be latched at any time: nobody
//! else knows of it.

use crate::access::{Access, LogContext};
use crate::action::PageAction;
use crate::error::AccessError;
use crate::record::{self, SmoBody};
use crate::space::{MapPlace, Reserved};
use longshore_base::page::header;
use longshore_base::{Lsn, PageId, TxnId, crash_point};
use longshore_log::Log;
use longshore_pool::ExclusiveGuard;
use smallvec::SmallVec;

/// The crash points of one kind of mini-transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    latched: &'static str,
    logged: &'static str,
    applied: &'static str,
}

impl Steps {
    pub(crate) const fn new(
        latched: &'static str,
        logged: &'static str,
        applied: &'static str,
    ) -> Steps {
        Steps {
            latched,
            logged,
            applied,
        }
    }
}

/// A change of a few pages that happens as a whole or not at all.
#[must_use = "nothing happens before `commit`"]
pub(crate) struct MiniTransaction<'a, 'k> {
    access: &'a Access,
    pages: Guards<'a>,
    /// What to do, each to the page of that number.
    actions: SmallVec<[(usize, PageAction<'k>); 4]>,
    reserved: Option<Reserved<'a>>,
    freed: Option<PageId>,
    /// Number of the page whose former content is gone already.
    fresh: Option<usize>,
}

/// The latches that a mini-transaction held, in the order in which its pages were named.
pub(crate) type Guards<'a> = SmallVec<[ExclusiveGuard<'a>; 4]>;

impl<'a, 'k> MiniTransaction<'a, 'k> {
    pub(crate) fn begin(access: &'a Access) -> MiniTransaction<'a, 'k> {
        MiniTransaction {
            access,
            pages: SmallVec::new(),
            actions: SmallVec::new(),
            reserved: None,
            freed: None,
            fresh: None,
        }
    }

    /// Will do `action` to the page. The guard has been looked at under the same latch.
    pub(crate) fn change(&mut self, guard: ExclusiveGuard<'a>, action: PageAction<'k>) {
        debug_assert!(
            self.pages
                .iter()
                .all(|other| other.page_id() != guard.page_id()),
            "mtr M3: {:?} latched twice",
            guard.page_id()
        );
        self.pages.push(guard);
        self.also(action);
    }

    /// Will do one thing more to the page named last.
    pub(crate) fn also(&mut self, action: PageAction<'k>) {
        self.actions.push((self.pages.len() - 1, action));
    }

    /// Will use the reserved page, beginning with `action`, which must not need any former content.
    pub(crate) fn allocate(
        &mut self,
        reserved: Reserved<'a>,
        action: PageAction<'k>,
    ) -> Result<(), AccessError> {
        self.begin_page(reserved.page(), action)?;
        self.reserved = Some(reserved);
        Ok(())
    }

    /// Will begin a page that nobody uses with `action`. To be followed by [`commit`](Self::commit).
    pub(crate) fn begin_page(
        &mut self,
        page: PageId,
        action: PageAction<'k>,
    ) -> Result<(), AccessError> {
        assert!(action.resets_page(), "mtr: a new page needs content");
        let guard = self.access.pool.fix_new(page)?;
        self.fresh = Some(self.pages.len());
        self.change(guard, action);
        Ok(())
    }

    /// Will end the use of the page.
    pub(crate) fn free(&mut self, guard: ExclusiveGuard<'a>) {
        debug_assert!(self.freed.is_none(), "mtr: one page is freed at a time");
        self.freed = Some(guard.page_id());
        self.change(guard, PageAction::FreePage);
    }

    /// Makes it so. Hands back the latches, for callers that want to go on with a page.
    ///
    /// # Errors
    /// When the log takes no record or the map page cannot be had. Nothing has happened then.
    pub(crate) fn commit(
        mut self,
        cx: &mut LogContext,
        steps: &Steps,
    ) -> Result<Guards<'a>, AccessError> {
        let lsn = match self.log(cx, steps) {
            Ok(lsn) => lsn,
            Err(error) => {
                self.abandon();
                return Err(error);
            }
        };
        crash_point(steps.logged);
        for (index, action) in &self.actions {
            apply(&mut self.pages[*index], action, lsn);
        }
        self.pages.iter_mut().for_each(|guard| guard.stamp(lsn));
        crash_point(steps.applied);
        if let Some(reserved) = self.reserved {
            reserved.used();
        }
        if let Some(page) = self.freed {
            self.access.space.release(page);
        }
        Ok(self.pages)
    }

    fn log(&mut self, cx: &mut LogContext, steps: &Steps) -> Result<Lsn, AccessError> {
        self.note_use()?;
        crash_point(steps.latched);
        let lsn = self.write_record(cx)?;
        if self.freed.is_some() {
            self.access.space.note_freeing(lsn);
        }
        Ok(lsn)
    }

    /// A page that was begun is blank by now (M5).
    ///
    /// It gets the LSN without being stamped: nothing of it is in the log, so it must not hold back
    /// checkpoints, least of all to a position that was given up long ago.
    fn abandon(&mut self) {
        if let Some(index) = self.fresh {
            let lsn = self.access.space.last_freeing();
            self.pages[index].page_mut().set_u64(header::LSN, lsn.get());
        }
    }

    fn write_record(&self, cx: &mut LogContext) -> Result<Lsn, AccessError> {
        let mut body = SmoBody::new();
        for (index, action) in &self.actions {
            let guard = &self.pages[*index];
            body.push(guard.page_id(), guard.page().page_lsn(), action);
        }
        cx.reserve(Log::record_bytes(body.body_bytes()), 0)?;
        let log = &self.access.log;
        Ok(log.append(
            &mut cx.claim,
            record::SMO,
            TxnId::SYSTEM,
            Lsn::ZERO,
            &body.parts(),
        )?)
    }

    /// Adds the change of the map page, whose latch comes last.
    fn note_use(&mut self) -> Result<(), AccessError> {
        let (page, used) = match (&self.reserved, self.freed) {
            (Some(reserved), _) => (reserved.page(), true),
            (None, Some(page)) => (page, false),
            (None, None) => return Ok(()),
        };
        debug_assert!(self.reserved.is_none() || self.freed.is_none());
        let place = MapPlace::of(page, self.access.page_size);
        let guard = self.access.pool.fix_exclusive(place.map)?;
        self.change(
            guard,
            PageAction::SetMapBits {
                first: place.bit,
                count: 1,
                used,
            },
        );
        Ok(())
    }
}

/// Applies an action that is in the log already.
///
/// # Panics
/// When the page does not take it (M2): log and page would drift apart.
fn apply(guard: &mut ExclusiveGuard<'_>, action: &PageAction<'_>, lsn: Lsn) {
    let page = guard.page_id();
    if let Err(why) = action.apply(page, &mut guard.page_mut()) {
        panic!("mtr M2: {action} is in the log at {lsn:?}, but the page does not take it: {why}");
    }
}
