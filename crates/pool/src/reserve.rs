//! Frames kept back for threads that must not fail: those that roll back.
//!
//! # Protocol
//! A few free frames lie here instead of in the free list; whoever gives a frame back fills the reserve
//! first. A thread that holds a [`UsingReserve`] may take them when it finds no other frame.

use crate::frame::FrameId;
use crate::pool::Pool;
use longshore_base::sync::Mutex;
use longshore_base::sync::atomic::{AtomicUsize, Ordering};
use std::cell::Cell;
use std::marker::PhantomData;

impl Pool {
    /// Lets this thread use the frames in reserve, until the guard is dropped: for rolling back, which must
    /// not fail because the pool is full.
    pub fn use_reserve(&self) -> UsingReserve {
        USES_RESERVE.set(USES_RESERVE.get() + 1);
        UsingReserve(PhantomData)
    }

    /// Whether this thread rolls back, and may use what is kept for that.
    pub fn uses_reserve(&self) -> bool {
        USES_RESERVE.get() > 0
    }

    /// Puts the first free frames into the reserve.
    pub(crate) fn fill_reserve(&self) {
        while self.reserve.is_short() {
            match self.free.take(&self.frames) {
                Some(id) => self.give_frame(id),
                None => return,
            }
        }
    }
}

thread_local! {
    static USES_RESERVE: Cell<u32> = const { Cell::new(0) };
}

/// While it lives, its thread may use the frames in reserve (of any pool).
#[must_use = "the reserve may be used until this is dropped"]
#[derive(Debug)]
pub struct UsingReserve(PhantomData<*const ()>);

impl Drop for UsingReserve {
    fn drop(&mut self) {
        USES_RESERVE.set(USES_RESERVE.get() - 1);
    }
}

/// A few free frames for threads that must not fail.
pub(crate) struct Reserve {
    frames: Mutex<Vec<FrameId>>,
    /// Frames that are missing; a hint that spares the mutex.
    missing: AtomicUsize,
    /// Frames when none is missing.
    size: usize,
}

impl Reserve {
    /// A reserve, empty as yet, for a pool of `frames` frames.
    pub(crate) fn new(frames: u32) -> Reserve {
        let size = if cfg!(loom) {
            0
        } else {
            (frames as usize / 16).clamp(2, 8)
        };
        Reserve {
            frames: Mutex::new(Vec::with_capacity(size)),
            missing: AtomicUsize::new(size),
            size,
        }
    }

    /// Frames when none is missing.
    pub(crate) fn size(&self) -> u32 {
        self.size as u32
    }

    /// Takes a frame, if this thread may.
    pub(crate) fn take(&self) -> Option<FrameId> {
        if USES_RESERVE.get() == 0 {
            return None;
        }
        let mut frames = self.frames.lock();
        let taken = frames.pop()?;
        // Relaxed: ordered by the mutex where it counts.
        self.missing.fetch_add(1, Ordering::Relaxed);
        Some(taken)
    }

    /// Takes a free frame in, if one is missing.
    pub(crate) fn give(&self, id: FrameId) -> bool {
        if !self.is_short() {
            return false;
        }
        let mut frames = self.frames.lock();
        let is_short = self.is_short();
        if is_short {
            frames.push(id);
            // Relaxed: ordered by the mutex.
            self.missing.fetch_sub(1, Ordering::Relaxed);
        }
        is_short
    }

    /// Whether frames are missing.
    pub(crate) fn is_short(&self) -> bool {
        // Relaxed: a hint; decided under the mutex.
        self.missing.load(Ordering::Relaxed) > 0
    }

    /// Takes the frames out that lie beyond the size of the pool.
    pub(crate) fn drain_from(&self, limit: u32) -> Vec<FrameId> {
        let mut frames = self.frames.lock();
        let (beyond, kept) = frames.drain(..).partition(|id| id.get() >= limit);
        *frames = kept;
        let beyond: Vec<FrameId> = beyond;
        // Relaxed: ordered by the mutex.
        self.missing.fetch_add(beyond.len(), Ordering::Relaxed);
        beyond
    }
}
