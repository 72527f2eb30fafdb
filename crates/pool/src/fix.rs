//! Fixing a page: hold it where it is, wait for who holds it, or bring it in.
//!
//! # Protocol
//! The table says where the page is. *In a frame*: hold it as wanted; if somebody else holds it, spin
//! a moment, then park; if the frame has another page by now, the entry is about to go: look again.
//! *Loading*: park until it is there ([`MissMode::OneLoads`], or claimed by a reader who is done), or take
//! part ([`MissMode::Optimistic`]). *Absent*: reserve it, and bring it in (`page_in.rs`).
//!
//! # Failure
//! Every wait is bounded by the patience of the call, whatever it waits for and however often.
//!
//! # Source
//! Nb-GCLOCK, `fixEntry`.

use crate::error::PoolError;
use crate::evict::FrameSource;
use crate::frame::FrameRef;
use crate::frame_word::{BlockedBy, Change, FrameWord, Hold, Wake, Word};
use crate::guard::OptimisticGuard;
use crate::options::MissMode;
use crate::pool::Pool;
use crate::table::{Entry, Reserve, Ticket};
use crate::trace::PageUse;
use longshore_base::PageId;
use longshore_base::parking::{Parked, Patience};
use longshore_base::sync::{hint, thread};

/// How a page is to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Optimistic,
    Shared,
    Exclusive,
}

impl Access {
    fn blocked_by(self) -> BlockedBy {
        match self {
            Access::Optimistic | Access::Shared => BlockedBy::Exclusive,
            Access::Exclusive => BlockedBy::Anybody,
        }
    }
}

/// Whether a use of a page counts for its staying in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Counts,
    InPassing,
}

/// What to do about a latch that somebody holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Latch {
    Wait,
    Try,
}

/// Where the bytes of an absent page come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    FromDisk,
    Zeroed,
}

/// What is wanted of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) access: Access,
    pub(crate) reason: Use,
    latch: Latch,
    pub(crate) content: Content,
    pub(crate) frames: FrameSource,
}

impl Request {
    #[inline]
    pub(crate) fn new(access: Access, reason: Use) -> Request {
        Request {
            access,
            reason,
            latch: Latch::Wait,
            content: Content::FromDisk,
            frames: FrameSource::Any,
        }
    }

    pub(crate) fn without_wait(self) -> Request {
        Request {
            latch: Latch::Try,
            ..self
        }
    }

    pub(crate) fn with_free_frame(self) -> Request {
        Request {
            frames: FrameSource::FreeOnly,
            ..self
        }
    }

    pub(crate) fn zeroed(self) -> Request {
        Request {
            content: Content::Zeroed,
            ..self
        }
    }

    /// What a trace says of it.
    pub(crate) fn kind(&self) -> PageUse {
        match (self.content, self.access) {
            (Content::Zeroed, _) => PageUse::Create,
            (Content::FromDisk, Access::Exclusive) => PageUse::Write,
            (Content::FromDisk, Access::Optimistic | Access::Shared) => PageUse::Read,
        }
    }
}

/// A frame that is held as requested, and its word.
pub(crate) type Fixed<'a> = (FrameRef<'a>, Word);

/// How an attempt to hold a resident page ended.
enum Attempt {
    Held(Word),
    Blocked,
    /// The table entry is about to go (T3).
    Stale,
}

/// Looks at a held latch before the thread parks.
const SPINS: u32 = if cfg!(loom) { 0 } else { 100 };
/// Yields before a thread that spins on a stale entry looks at the clock.
const YIELDS: u32 = 256;

impl Pool {
    /// Pins a page that is in the pool and free to be pinned: the whole of a hit.
    #[inline]
    pub(crate) fn pin_resident(&self, page: PageId) -> Option<FrameRef<'_>> {
        let frame = self.find_resident(page)?;
        match frame.header.word.try_pin(self.weight_cap) {
            Hold::Held(_) if frame.header.page() == page => {
                self.note_hit(frame, page, PageUse::Read);
                Some(frame)
            }
            Hold::Held(_) => {
                self.wake(frame, frame.header.word.unpin());
                None
            }
            Hold::Blocked | Hold::Dead => None,
        }
    }

    /// Takes a page exclusively that is in the pool and free to be taken: the whole of a hit.
    #[inline]
    pub(crate) fn take_resident(&self, page: PageId) -> Option<FrameRef<'_>> {
        let frame = self.find_resident(page)?;
        match frame.header.word.try_exclusive(self.weight_cap) {
            Hold::Held(_) if frame.header.page() == page => {
                self.note_hit(frame, page, PageUse::Write);
                Some(frame)
            }
            Hold::Held(_) => {
                let wake = frame.header.word.release_exclusive(Change::Unchanged);
                self.wake(frame, wake);
                None
            }
            Hold::Blocked | Hold::Dead => None,
        }
    }

    /// Reads a page that is in the pool and latched by nobody, and counts the use.
    #[cold]
    pub(crate) fn read_and_touch(&self, page: PageId) -> Option<OptimisticGuard<'_>> {
        let frame = self.find_resident(page)?;
        let request = Request::new(Access::Optimistic, Use::Counts);
        match self.try_hold(frame, page, request) {
            Attempt::Held(word) => Some(OptimisticGuard::new(self, frame, page, word)),
            Attempt::Blocked | Attempt::Stale => None,
        }
    }

    #[inline(always)]
    fn find_resident(&self, page: PageId) -> Option<FrameRef<'_>> {
        match self.table.lookup(page) {
            Entry::Frame(id) if self.poison.get().is_none() => {
                Some(self.frames.get_and_prefetch(id))
            }
            _ => None,
        }
    }

    /// Holds a page as requested, waiting where it must.
    #[cold]
    pub(crate) fn fix(&self, page: PageId, request: Request) -> Result<Fixed<'_>, PoolError> {
        match self.try_fix(page, request)? {
            Some(fixed) => Ok(fixed),
            None => unreachable!("only a request without wait is refused"),
        }
    }

    /// Holds a page exclusively if it is in the pool.
    pub(crate) fn fix_resident(&self, page: PageId) -> Result<Option<FrameRef<'_>>, PoolError> {
        let request = Request::new(Access::Exclusive, Use::InPassing);
        let mut patience = self.patience();
        let mut yields = 0;
        while let Entry::Frame(id) = self.table.lookup(page) {
            let frame = self.frames.get(id);
            match self.try_hold(frame, page, request) {
                Attempt::Held(_) => return Ok(Some(frame)),
                Attempt::Blocked => self.wait_for_latch(frame, request, &mut patience)?,
                Attempt::Stale => self.look_again(page, &mut yields, &mut patience)?,
            }
        }
        Ok(None)
    }

    /// Holds a page as requested; `None` if the request is not to wait for a latch, and had to.
    #[cold]
    #[inline(never)]
    pub(crate) fn try_fix(
        &self,
        page: PageId,
        request: Request,
    ) -> Result<Option<Fixed<'_>>, PoolError> {
        let mut patience = self.patience();
        let mut yields = 0;
        loop {
            self.check_poison()?;
            match self.table.lookup(page) {
                Entry::Frame(id) => {
                    let frame = self.frames.get(id);
                    match self.try_hold(frame, page, request) {
                        Attempt::Held(word) => return Ok(Some((frame, word))),
                        Attempt::Blocked if request.latch == Latch::Try => return Ok(None),
                        Attempt::Blocked => self.wait_for_latch(frame, request, &mut patience)?,
                        Attempt::Stale => self.look_again(page, &mut yields, &mut patience)?,
                    }
                }
                Entry::Loading(ticket) => {
                    if self.options.miss == MissMode::OneLoads || ticket.is_claimed() {
                        self.wait_for_load(page, ticket, &mut patience)?;
                    } else if let Some(fixed) = self.bring_in(page, ticket, request)? {
                        return Ok(Some(fixed));
                    }
                }
                Entry::Absent => {
                    let ticket = self.new_ticket();
                    match self.reserve_page(page, ticket)? {
                        Reserve::Won => {
                            if let Some(fixed) = self.bring_in(page, ticket, request)? {
                                return Ok(Some(fixed));
                            }
                        }
                        Reserve::Found(_) => {}
                        Reserve::Crowded(neighbours) => {
                            self.make_way(neighbours, &mut patience)?;
                        }
                    }
                }
            }
        }
    }

    #[inline]
    fn try_hold(&self, frame: FrameRef<'_>, page: PageId, request: Request) -> Attempt {
        let cap = self.cap_of(request.reason);
        let attempt = match request.access {
            Access::Optimistic => self.try_read(frame, page, cap),
            Access::Shared => {
                let hold = frame.header.word.try_pin(cap);
                self.judge(frame, page, hold, |word| word.unpin())
            }
            Access::Exclusive => {
                let hold = frame.header.word.try_exclusive(cap);
                let release = |word: &FrameWord| word.release_exclusive(Change::Unchanged);
                self.judge(frame, page, hold, release)
            }
        };
        if let Attempt::Held(_) = attempt
            && request.reason == Use::Counts
        {
            self.note_hit(frame, page, request.kind());
        }
        attempt
    }

    fn try_read(&self, frame: FrameRef<'_>, page: PageId, cap: u8) -> Attempt {
        let word = frame.header.word.load();
        if !word.holds_page() || frame.header.page() != page {
            return Attempt::Stale;
        }
        if word.is_exclusive() {
            return Attempt::Blocked;
        }
        if word.wants_touch(cap) && frame.header.word.touch(word, cap) {
            self.counters.rescues.add(1);
        }
        Attempt::Held(word)
    }

    /// Tells whether what we hold, or are kept from, is the page; a frame that has another by now is
    /// let go.
    #[inline]
    fn judge(
        &self,
        frame: FrameRef<'_>,
        page: PageId,
        hold: Hold,
        release: impl Fn(&FrameWord) -> Wake,
    ) -> Attempt {
        let is_ours = frame.header.page() == page;
        match hold {
            Hold::Held(word) if is_ours => Attempt::Held(word),
            Hold::Held(_) => {
                self.wake(frame, release(&frame.header.word));
                Attempt::Stale
            }
            Hold::Blocked if is_ours => Attempt::Blocked,
            Hold::Blocked | Hold::Dead => Attempt::Stale,
        }
    }

    fn wait_for_latch(
        &self,
        frame: FrameRef<'_>,
        request: Request,
        patience: &mut Patience,
    ) -> Result<(), PoolError> {
        let blocked_by = request.access.blocked_by();
        for _ in 0..SPINS {
            if !frame.header.word.is_blocked(blocked_by) {
                return Ok(());
            }
            hint::spin_loop();
        }
        self.counters.latch_waits.add(1);
        self.park_for_latch(frame, blocked_by, patience)
    }

    /// Parks until the latch may be free, once.
    pub(crate) fn park_for_latch(
        &self,
        frame: FrameRef<'_>,
        blocked_by: BlockedBy,
        patience: &mut Patience,
    ) -> Result<(), PoolError> {
        let now = self.env.now();
        let Some(slice) = patience.slice(now) else {
            return Err(self.busy(frame.header.page(), patience));
        };
        let key = u64::from(frame.id.get());
        let must_wait = || frame.header.word.mark_waiting(blocked_by);
        if self.latch_lot.park(key, slice, must_wait) == Parked::TimedOut {
            patience.slept(slice);
        }
        self.count_wait(now);
        Ok(())
    }

    fn wait_for_load(
        &self,
        page: PageId,
        ticket: Ticket,
        patience: &mut Patience,
    ) -> Result<(), PoolError> {
        let now = self.env.now();
        let Some(slice) = patience.slice(now) else {
            return Err(self.busy(page, patience));
        };
        self.counters.load_waits.add(1);
        let must_wait = || self.table.lookup(page) == Entry::Loading(ticket);
        if self.load_lot.park(page.get(), slice, must_wait) == Parked::TimedOut {
            patience.slept(slice);
        }
        self.count_wait(now);
        Ok(())
    }

    /// Gives way to the thread that is taking an evicted frame out of the table (T3).
    fn look_again(
        &self,
        page: PageId,
        yields: &mut u32,
        patience: &mut Patience,
    ) -> Result<(), PoolError> {
        *yields += 1;
        if yields.is_multiple_of(YIELDS) && patience.slice(self.env.now()).is_none() {
            return Err(self.busy(page, patience));
        }
        thread::yield_now();
        Ok(())
    }

    fn busy(&self, page: PageId, patience: &Patience) -> PoolError {
        PoolError::Busy {
            page,
            waited: patience.waited(self.env.now()),
        }
    }
}
