//! Fixing a page: hold it where it is, wait for who holds it, or bring it in.
//!
//! # Protocol of a miss
//! 1. Reserve the page in the table. Who loses looks again: waits for the winner
//!    ([`MissMode::OneLoads`]), or takes part under the winner's ticket ([`MissMode::Optimistic`]).
//! 2. Read the page from disk into a buffer of the thread, and check it.
//! 3. Take a frame (`evict.rs`), copy the page in. The frame is Resident now, latched by us, and in
//!    no table.
//! 4. Publish it in the table, if the ticket still stands. Whoever comes from now on meets the latch.
//! 5. Let go of the latch as far as the caller wants, and wake who waits for the page.
//!
//! # Failure
//! A failed read, a missing frame or a panic leaves no trace: the reservation is cancelled when it is
//! dropped, waiters are woken and try for themselves. Under optimistic misses, that makes the other
//! readers under the same ticket start again.
//!
//! # Source
//! Nb-GCLOCK, `fixEntry` and `addEntry`. We differ: the page is reserved before a frame is taken, so
//! racing misses evict nothing needlessly; content is there before the frame is seen; tickets keep a
//! slow reader from publishing what has been changed, written and evicted since.

use crate::data_file::{IoBuffer, copy_from_bytes};
use crate::error::PoolError;
use crate::evict::{FrameSource, OwnedFrame};
use crate::frame::FrameRef;
use crate::frame_word::{BlockedBy, Change, FrameWord, Hold, Wake, Word};
use crate::options::MissMode;
use crate::page_bytes::PageMut;
use crate::parking::{Parked, Patience};
use crate::pool::Pool;
use crate::table::{Entry, PAGES_MAX, Reserve, Ticket};
use longshore_base::PageId;
use longshore_base::sync::atomic::Ordering;
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

/// What to do about a latch that somebody holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Latch {
    Wait,
    Try,
}

/// Where the bytes of an absent page come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    FromDisk,
    Zeroed,
}

/// What is wanted of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    access: Access,
    /// The weight up to which this use counts; 0 for a use that shall not count.
    cap: u8,
    latch: Latch,
    content: Content,
    frames: FrameSource,
}

impl Request {
    #[inline]
    pub(crate) fn new(access: Access, cap: u8) -> Request {
        Request {
            access,
            cap,
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

    pub(crate) fn zeroed(self) -> Request {
        Request {
            content: Content::Zeroed,
            ..self
        }
    }
}

/// A frame that is held as requested, and its word.
type Fixed<'a> = (FrameRef<'a>, Word);

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
    /// Holds a page as requested, waiting where it must.
    #[inline]
    pub(crate) fn fix(&self, page: PageId, request: Request) -> Result<Fixed<'_>, PoolError> {
        match self.try_fix(page, request)? {
            Some(fixed) => Ok(fixed),
            None => unreachable!("only a request without wait is refused"),
        }
    }

    /// Holds a page as requested; `None` if the request is not to wait for a latch, and had to.
    #[inline]
    pub(crate) fn try_fix(
        &self,
        page: PageId,
        request: Request,
    ) -> Result<Option<Fixed<'_>>, PoolError> {
        self.check_poison()?;
        if let Entry::Frame(id) = self.table.lookup(page) {
            let frame = self.frames.get_and_prefetch(id);
            if let Attempt::Held(word) = self.try_hold(frame, page, request) {
                return Ok(Some((frame, word)));
            }
        }
        self.fix_slow(page, request)
    }

    /// Holds a page exclusively if it is in the pool.
    pub(crate) fn fix_resident(&self, page: PageId) -> Result<Option<FrameRef<'_>>, PoolError> {
        let request = Request::new(Access::Exclusive, 0);
        let mut patience = self.patience();
        let mut yields = 0;
        while let Entry::Frame(id) = self.table.lookup(page) {
            let frame = self.frames.get(id);
            match self.try_hold(frame, page, request) {
                Attempt::Held(_) => return Ok(Some(frame)),
                Attempt::Blocked => self.wait_for_latch(frame, request, &mut patience)?,
                Attempt::Stale => self.look_again(page, &mut yields, &patience)?,
            }
        }
        Ok(None)
    }

    /// Brings a page in if a frame is free and nobody else is at it.
    #[cold]
    pub(crate) fn load_ahead(&self, page: PageId) -> Result<(), PoolError> {
        self.check_poison()?;
        let ticket = self.new_ticket();
        if self.reserve_page(page, ticket)? == Reserve::Won {
            let request = Request {
                frames: FrameSource::FreeOnly,
                ..Request::new(Access::Optimistic, 0)
            };
            self.bring_in(page, ticket, request)?;
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn fix_slow(&self, page: PageId, request: Request) -> Result<Option<Fixed<'_>>, PoolError> {
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
                        Attempt::Stale => self.look_again(page, &mut yields, &patience)?,
                    }
                }
                Entry::Loading(ticket) => match self.options.miss {
                    MissMode::OneLoads => self.wait_for_load(page, ticket, &mut patience)?,
                    MissMode::Optimistic => {
                        if let Some(fixed) = self.bring_in(page, ticket, request)? {
                            return Ok(Some(fixed));
                        }
                    }
                },
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

    fn reserve_page(&self, page: PageId, ticket: Ticket) -> Result<Reserve, PoolError> {
        if page.get() >= PAGES_MAX {
            return Err(PoolError::NoSuchPage { page });
        }
        self.table.reserve(page, ticket)
    }

    fn new_ticket(&self) -> Ticket {
        // Relaxed: only distinct numbers matter.
        Ticket::new(self.tickets.fetch_add(1, Ordering::Relaxed))
    }

    #[inline]
    fn try_hold(&self, frame: FrameRef<'_>, page: PageId, request: Request) -> Attempt {
        match request.access {
            Access::Optimistic => self.try_read(frame, page, request.cap),
            Access::Shared => {
                let hold = frame.header.word.try_pin(request.cap);
                self.judge(frame, page, hold, |word| word.unpin())
            }
            Access::Exclusive => {
                let hold = frame.header.word.try_exclusive(request.cap);
                let release = |word: &FrameWord| word.release_exclusive(Change::Unchanged);
                self.judge(frame, page, hold, release)
            }
        }
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
        patience: &Patience,
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

    /// Brings a page in under a ticket; `None` if somebody else was faster, or ended the ticket.
    fn bring_in(
        &self,
        page: PageId,
        ticket: Ticket,
        request: Request,
    ) -> Result<Option<Fixed<'_>>, PoolError> {
        self.counters.misses.add(1);
        let mut reservation = Reservation {
            pool: self,
            page,
            ticket,
            is_open: true,
        };
        let content = match self.read_content(page, request.content) {
            Ok(content) => content,
            // Somebody else brought the page in, and may be writing it while we read: no error of ours.
            Err(_) if !self.table.cancel(page, ticket) => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(mut owned) = self.take_frame(request.frames)? else {
            return Ok(None);
        };
        self.fill(&mut owned, page, content.as_deref(), request);
        if let Some(buffer) = content {
            buffer.give_back();
        }
        let frame = self.frames.get(owned.id());
        if !self.table.publish(page, ticket, frame.id) {
            self.counters.loads_lost.add(1);
            self.wake(frame, frame.header.word.discard());
            return Ok(None);
        }
        owned.keep();
        let word = self.settle_hold(frame, request.access);
        reservation.close();
        Ok(Some((frame, word)))
    }

    fn read_content(&self, page: PageId, content: Content) -> Result<Option<IoBuffer>, PoolError> {
        if content == Content::Zeroed {
            self.counters.pages_new.add(1);
            return Ok(None);
        }
        let mut buffer = IoBuffer::take(self.options.page_size.bytes());
        self.counters.page_reads.add(1);
        self.data.read(page, &mut buffer)?;
        Ok(Some(buffer))
    }

    /// Puts a page into a frame of ours; it is Resident then, and latched by us.
    fn fill(
        &self,
        owned: &mut OwnedFrame<'_>,
        page: PageId,
        content: Option<&[u8]>,
        request: Request,
    ) {
        let frame = self.frames.get(owned.id());
        frame.header.word.begin_load();
        frame.header.set_page(page);
        let mut bytes = PageMut::new(frame.words);
        // Without content it is for `fix_new`, which zeroes whatever it gets.
        if let Some(content) = content {
            copy_from_bytes(content, &mut bytes);
        }
        frame.header.word.publish(request.cap.min(1));
    }

    /// Turns the loader's latch into what the caller wants.
    fn settle_hold(&self, frame: FrameRef<'_>, access: Access) -> Word {
        let word = &frame.header.word;
        let (wake, after) = match access {
            Access::Exclusive => (Wake::Nobody, word.load()),
            Access::Shared => (word.downgrade(Change::Unchanged), word.load()),
            Access::Optimistic => word.release_loaded(),
        };
        self.wake(frame, wake);
        after
    }

    fn wake(&self, frame: FrameRef<'_>, wake: Wake) {
        if wake == Wake::Waiters {
            self.wake_latch_waiters(frame.id);
        }
    }
}

/// The right to bring a page in. Ends it, and wakes who waits for it, when dropped.
struct Reservation<'a> {
    pool: &'a Pool,
    page: PageId,
    ticket: Ticket,
    is_open: bool,
}

impl Reservation<'_> {
    /// The page is there.
    fn close(&mut self) {
        self.is_open = false;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.pool.table.cancel(self.page, self.ticket);
        }
        self.pool.load_lot.unpark(self.page.get());
    }
}
