//! Young pages: those whose hits need not be told, because the policy heard of them a moment ago.
//!
//! A page that lies near the top of a list by last use gains next to nothing by being put on top. So a page is *young* from
//! the hit that the policy was told of until the pages used since are a given share of the pool, and its hits are not
//! noted. Only the policy knows whether a hit would do no more than that (`Policy::is_settled`): a counter wants each.
//!
//! # Protocol
//! Time goes in *epochs*: one ends when hits told and pages brought in are an eighth of the share. Who tells the policy of
//! hits, under its lock, marks the frames of settled pages as young for eight epochs more. A hit compares the mark, which
//! lies in the frame's header, with the epoch: it stores nothing. A page that comes in is not young; its first hit is told.
//!
//! All of it is hints: a mark or an epoch seen late has a hit told too many, or one left out too many.
//!
//! # Source
//! InnoDB leaves a page in its place that is within the first quarter of its list of young pages. We differ: age is
//! counted for each policy alike, and by the form that tells it of hits, so that the policy stays as its paper has it.

use crate::frame::{Frame, FrameId, Frames};
use crossbeam_utils::CachePadded;
use longshore_base::sync::atomic::{AtomicU32, Ordering};

/// Epochs for which a page is young.
const EPOCHS: u32 = 8;
/// The shortest epoch: with less, hits would be told later than pages grow old, as they wait in queues.
const LEN_MIN: u64 = 32;

/// The age of pages, by uses of others.
#[derive(Default)]
pub(crate) struct Young {
    /// The epoch; wraps. In cache lines of its own, as each hit reads it.
    epoch: CachePadded<AtomicU32>,
    /// Uses until the next one. Guarded by the policy's lock, as is the rest.
    left: AtomicU32,
    /// Uses in an epoch; 0 where no page is ever young.
    len: AtomicU32,
}

impl Young {
    /// Pages are young until uses of others are so many percent of `frames`. By the holder of the policy's lock.
    pub(super) fn set_share(&self, percent: u32, frames: u32) {
        let len = u64::from(frames) * u64::from(percent) / u64::from(100 * EPOCHS);
        let len = if len < LEN_MIN { 0 } else { len };
        // Relaxed, here and below: guarded by the lock, or a hint.
        self.len.store(len as u32, Ordering::Relaxed);
        self.left.store(len as u32, Ordering::Relaxed);
        // No page is young that was: it might be for ever, were there no epochs any more.
        self.advance(EPOCHS);
    }

    /// Whether the page in this frame is young.
    #[inline(always)]
    pub(crate) fn is(&self, header: &Frame) -> bool {
        // Relaxed: a hint.
        let until = header.young_until.load(Ordering::Relaxed);
        (self.epoch.load(Ordering::Relaxed).wrapping_sub(until) as i32) < 0
    }

    /// The policy was told of these frames' hits, and says which of the first 64 are settled, by bits from the lowest. By
    /// the holder of its lock.
    #[inline(always)]
    pub(super) fn told(&self, frames: &Frames, told: &[u32], settled: u64) {
        if self.len.load(Ordering::Relaxed) > 0 {
            self.mark(frames, told, settled);
        }
    }

    #[inline(never)]
    fn mark(&self, frames: &Frames, told: &[u32], settled: u64) {
        let until = self.epoch.load(Ordering::Relaxed).wrapping_add(EPOCHS);
        for (at, frame) in told.iter().enumerate() {
            if settled >> at & 1 != 0 {
                let header = frames.header(FrameId::new(*frame));
                header.young_until.store(until, Ordering::Relaxed);
            }
        }
        self.pass(told.len() as u32);
    }

    /// A page comes into a frame. By the holder of the policy's lock.
    pub(super) fn came_in(&self, header: &Frame) {
        // Relaxed: see `set_share`.
        let epoch = self.epoch.load(Ordering::Relaxed);
        header.young_until.store(epoch, Ordering::Relaxed);
        self.pass(1);
    }

    /// So many pages were used.
    fn pass(&self, uses: u32) {
        // Relaxed: see `set_share`.
        let len = self.len.load(Ordering::Relaxed);
        if len == 0 {
            return;
        }
        let left = self.left.load(Ordering::Relaxed);
        if uses < left {
            self.left.store(left - uses, Ordering::Relaxed);
            return;
        }
        self.left.store(len, Ordering::Relaxed);
        self.advance(1);
    }

    fn advance(&self, epochs: u32) {
        // Relaxed: see `set_share`.
        let epoch = self.epoch.load(Ordering::Relaxed);
        let next = epoch.wrapping_add(epochs);
        self.epoch.store(next, Ordering::Relaxed);
    }
}
