//! What the hands of GCLOCK and of S3-FIFO's main queue have in common: they pass over a page as often as it has weight.

use longshore_base::PageId;

use crate::lists::{List, Offered};
use crate::nodes::NodeTable;
use crate::policy::{Frame, Take};

/// What a hand must know of a node.
pub(crate) trait Weighted {
    /// Sweeps still to be survived.
    fn weight(&self) -> u32;

    /// One less; it is not zero.
    fn lower(&mut self);

    /// The last call of [`sweep`] that offered it in vain.
    fn declined_in(&mut self) -> &mut u32;
}

/// Turns `ring`, whose nodes are resident, until one is taken, which is then its front; or until a sweep lowers no
/// weight and finds nothing to offer. Every step but those of the last two sweeps is paid for by a hit.
///
/// `call` differs from that of the calls before, so that each node is offered once only, however often the hand comes by.
pub(crate) fn sweep<S: Weighted, const L: usize>(
    ring: &mut List,
    nodes: &mut NodeTable<S, L>,
    call: u32,
    take: &mut dyn FnMut(Frame, PageId) -> Take,
) -> Offered {
    let mut idle = 0;
    while idle < ring.len()
        && let Some(id) = ring.front()
        && let Some(frame) = id.frame()
    {
        let page = nodes[id].page();
        let state = &mut nodes[id].state;
        if state.weight() > 0 {
            state.lower();
            idle = 0;
        } else if *state.declined_in() == call {
            idle += 1;
        } else {
            match take(frame, page) {
                Take::Taken => return Offered::Taken(id),
                Take::Busy | Take::Dirty => *state.declined_in() = call,
                Take::Enough => return Offered::Enough,
            }
            idle = 0;
        }
        ring.rotate(nodes);
    }
    Offered::Declined
}
