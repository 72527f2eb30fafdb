//! Who is to be woken, once the waker has let go of all it had.
//!
//! Whoever is woken may run at once, in the waker's place, and wants the latch of the bucket. So nobody
//! is woken under a latch, nor by a transaction that still has locks that others will want. What a
//! sleeper is woken for is in its slot before (`OwnerSlot::tell`); to be woken for nothing does no harm,
//! should the slot have gone to another wait meanwhile.

use super::manager::LockManager;
use super::queue::{OwnerIndex, Turn};
use smallvec::SmallVec;

/// Owners that have been told something and are not awake yet.
#[must_use]
#[derive(Default)]
pub(super) struct Wakes(SmallVec<[OwnerIndex; 6]>);

impl LockManager {
    /// Tells `owner`, whose request waits in a bucket of which the caller has the latch, that it is its
    /// turn, and takes note that it is to be woken.
    #[cold]
    pub(super) fn tell(&self, owner: OwnerIndex, turn: Turn, wakes: &mut Wakes) {
        let slot = self.slot(owner);
        slot.tell(turn);
        match wakes.0.len() < wakes.0.inline_size() {
            true => wakes.0.push(owner),
            // No memory is spent on them that nobody has accounted for.
            false => slot.wake(),
        }
    }

    /// Wakes them all. The caller has no latch.
    #[inline]
    pub(super) fn wake(&self, wakes: Wakes) {
        for owner in wakes.0 {
            self.slot(owner).wake();
        }
    }
}
