//! What the hands of GCLOCK and of S3-FIFO's main queue have in common: they pass over a page as often as it has weight.

use super::queues::{Queued, Queues};
use crate::lists::{Offered, ask};
use crate::policy::{Take, Taker};

/// What a hand must know of a node.
pub(crate) trait Weighted {
    /// Sweeps still to be survived.
    fn weight(&self) -> u32;

    /// One less; it is not zero.
    fn lower(&mut self);

    /// The last call of [`sweep`] that offered it in vain.
    fn declined_in(&mut self) -> &mut u32;
}

/// Turns `ring`, a queue of residents, until one is taken, which is then its front; or until a sweep lowers no weight and
/// finds nothing to offer. Every step but those of the last two sweeps is paid for by a hit.
///
/// `call` differs from that of the calls before, so that each node is offered once only, however often the hand comes by.
pub(crate) fn sweep<S: Weighted + Queued, const N: usize>(
    queues: &mut Queues<S, N>,
    ring: u8,
    call: u32,
    take: Taker<'_>,
) -> Offered {
    let mut idle = 0;
    while idle < queues[ring].len()
        && let Some(id) = queues[ring].front()
    {
        let state = &mut queues.nodes[id].state;
        if state.weight() > 0 {
            state.lower();
            idle = 0;
        } else if *state.declined_in() == call {
            idle += 1;
        } else {
            match ask(&queues.nodes, id, take) {
                Take::Taken => return Offered::Taken(id),
                Take::Busy | Take::Dirty => *queues.nodes[id].state.declined_in() = call,
                Take::Enough => return Offered::Enough,
            }
            idle = 0;
        }
        queues.rotate(ring);
    }
    Offered::Declined
}
