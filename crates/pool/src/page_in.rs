//! Bringing a page in.
//!
//! # Protocol
//! 1. Reserve the page in the table. Who loses looks again: waits for the winner
//!    ([`MissMode::OneLoads`]), or takes part under the winner's ticket ([`MissMode::Optimistic`]).
//! 2. Read the page from disk into a buffer of the thread, and check it.
//! 3. Where others took part, claim what they all want. Who comes second looks again, and waits.
//! 4. Take a frame (`evict.rs`, or `replacement/fault.rs`), copy the page in. The frame is Resident now,
//!    latched by us, and in no table.
//! 5. Publish it in the table. Whoever comes from now on meets the latch.
//! 6. Let go of the latch as far as the caller wants, and wake who waits for the page.
//!
//! # Failure
//! A failed read, a missing frame or a panic leaves no trace: the reservation is cancelled when it is
//! dropped, waiters are woken and try for themselves. Under optimistic misses, that makes the other
//! readers under the same ticket start again.
//!
//! # Source
//! Nb-GCLOCK, `addEntry` and the optimistic I/O of its Fig. 6. We differ: the page is reserved before a
//! frame is taken, and by one of several readers, so racing misses evict nothing needlessly; content is there before the frame is seen;
//! tickets keep a slow reader from publishing what has been changed, written and evicted since.
//!
//! [`MissMode::OneLoads`]: crate::MissMode::OneLoads
//! [`MissMode::Optimistic`]: crate::MissMode::Optimistic

use crate::data_file::{IoBuffer, copy_from_bytes};
use crate::error::PoolError;
use crate::evict::OwnedFrame;
use crate::fix::{Access, Content, Fixed, Request, Use};
use crate::frame::FrameRef;
use crate::frame_word::{Change, Wake, Word};
use crate::options::MissMode;
use crate::page_bytes::PageMut;
use crate::pool::Pool;
use crate::table::{PAGES_MAX, Reserve, Ticket};
use longshore_base::PageId;
use longshore_base::sync::atomic::Ordering;

impl Pool {
    /// Brings a page in if a frame is free and nobody else is at it.
    #[cold]
    pub(crate) fn load_ahead(&self, page: PageId) -> Result<(), PoolError> {
        self.check_poison()?;
        let ticket = self.new_ticket();
        if self.reserve_page(page, ticket)? == Reserve::Won {
            let request = Request::new(Access::Optimistic, Use::InPassing).with_free_frame();
            self.bring_in(page, ticket, request)?;
        }
        Ok(())
    }

    pub(crate) fn reserve_page(&self, page: PageId, ticket: Ticket) -> Result<Reserve, PoolError> {
        if page.get() >= PAGES_MAX {
            return Err(PoolError::NoSuchPage { page });
        }
        self.table.reserve(page, ticket)
    }

    pub(crate) fn new_ticket(&self) -> Ticket {
        // Relaxed: only distinct numbers matter.
        Ticket::new(self.tickets.fetch_add(1, Ordering::Relaxed))
    }

    /// Brings a page in under a ticket; `None` if somebody else was faster, or ended the ticket.
    pub(crate) fn bring_in(
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
        if self.options.miss == MissMode::Optimistic && !reservation.claim() {
            self.counters.loads_lost.add(1);
            return Ok(None);
        }
        let Some(mut owned) = self.take_frame(page, request.frames)? else {
            return Ok(None);
        };
        self.fill(&mut owned, page, content.as_deref());
        if let Some(buffer) = content {
            buffer.give_back();
        }
        let frame = self.frames.get(owned.id());
        let published = self.table.publish(page, reservation.ticket, frame.id);
        assert!(published, "T1: {page:?} was brought in by another");
        owned.keep();
        let word = self.settle_hold(frame, request.access);
        reservation.close();
        if request.reason == Use::Counts {
            self.trace_use(page, request.kind());
        }
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
    fn fill(&self, owned: &mut OwnedFrame<'_>, page: PageId, content: Option<&[u8]>) {
        let frame = self.frames.get(owned.id());
        frame.header.word.begin_load();
        frame.header.set_page(page);
        let mut bytes = PageMut::new(frame.words);
        // Without content it is for `fix_new`, which zeroes whatever it gets.
        if let Some(content) = content {
            copy_from_bytes(content, &mut bytes);
        }
        // The paper's sweep lowers a weight and then tests it, ours tests first: its first weight of 1 is our 0.
        frame.header.word.publish(0);
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

    pub(crate) fn wake(&self, frame: FrameRef<'_>, wake: Wake) {
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
    /// Ends the part that others have in it; false if one of them was faster.
    fn claim(&mut self) -> bool {
        match self.pool.table.claim(self.page, self.ticket) {
            Some(claimed) => self.ticket = claimed,
            None => self.is_open = false,
        }
        self.is_open
    }

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
