//! The two segments of a segmented LRU queue, which SLRU and the main part of W-TinyLFU are made of; in each the page
//! not used for longest is in front.

use super::queues::Queues;
use crate::nodes::NodeId;

/// Pages on trial.
pub(crate) const PROBATION: u8 = 0;
/// Pages used while on trial.
pub(crate) const PROTECTED: u8 = 1;

/// A page of one of the segments was used: it is protected. Those protected for longest are on trial again until there
/// are no more than `protected_max`.
#[inline]
pub(crate) fn protect<const N: usize>(
    queues: &mut Queues<u8, N>,
    id: NodeId,
    protected_max: usize,
) {
    queues.move_to(id, PROTECTED);
    demote(queues, protected_max);
}

/// At most so many pages are protected from now on.
pub(crate) fn demote<const N: usize>(queues: &mut Queues<u8, N>, protected_max: usize) {
    while queues[PROTECTED].len() > protected_max
        && let Some(id) = queues[PROTECTED].front()
    {
        queues.move_to(id, PROBATION);
    }
}
