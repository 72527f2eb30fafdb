//! CLOCK: pages stand in a ring; the hand passes over those used since it came by last, and takes the first that was not.
//!
//! Weakness: like LRU it lets one scan flush the pool; it sees whether a page was used, not how often.
//! Memory: 27 bytes a frame.
//!
//! A page comes in unreferenced, right behind the hand: its first use brought it in, and counts for nothing more. The
//! ring is linked, so that the order does not depend on which frame a page happens to get.
//!
//! # Source
//! F. J. Corbató: A Paging Experiment with the Multics System. MIT Project MAC, 1968.

use super::one_queue::{ALL, Pages, Rule};
use crate::catalogue::About;
use crate::lists::{Offered, ask};
use crate::nodes::NodeId;
use crate::policy::{Take, Taker};
use crate::spec::Values;

/// See the head of the file.
pub(crate) struct Clock;

impl Rule for Clock {
    /// Whether it was used since the hand came by.
    type State = bool;

    const ABOUT: About = About {
        name: "clock",
        source: "Corbató 1968",
        weakness: "a scan flushes it; knows whether a page was used, not how often",
        memory: Pages::<bool>::MEMORY,
        parameters: &[],
    };

    const QUEUE: &'static str = "ring";

    fn new(_values: &Values<'_>) -> Clock {
        Clock
    }

    #[inline]
    fn hit(&mut self, ring: &mut Pages<bool>, id: NodeId) {
        ring.nodes[id].state = true;
    }

    /// Two sweeps at most: the first clears all references, the second offers everything. The hand points to the front.
    fn offer(&mut self, ring: &mut Pages<bool>, take: Taker<'_>) -> Offered {
        for _ in 0..2 * ring[ALL].len() {
            let Some(id) = ring[ALL].front() else { break };
            if !std::mem::take(&mut ring.nodes[id].state) {
                match ask(&ring.nodes, id, take) {
                    Take::Taken => return Offered::Taken(id),
                    Take::Busy | Take::Dirty => {}
                    Take::Enough => return Offered::Enough,
                }
            }
            ring.rotate(ALL);
        }
        Offered::Declined
    }

    fn weight(used: &bool) -> u32 {
        u32::from(*used)
    }
}

#[cfg(test)]
mod tests {
    use crate::policies::testing::Bench;

    #[test]
    fn order_step_by_step() {
        let mut bench = Bench::new("clock", 3);
        assert_eq!(bench.use_pages([1, 2, 3]), "ring: 1 2 3");
        assert_eq!(bench.use_pages([1, 1]), "ring: 1:1 2 3");
        assert_eq!(bench.likely(9), [2, 3]);
        assert_eq!(bench.use_page(4), "ring: 3 1 4", "1 is passed, 2 leaves");
        assert_eq!(bench.use_pages([3, 1, 4]), "ring: 3:1 1:1 4:1");
        assert_eq!(bench.use_page(5), "ring: 1 4 5", "all used: as FIFO");
        bench.pin(1);
        assert_eq!(bench.use_page(6), "ring: 5 1 6", "the pinned are passed");
        assert_eq!(bench.remove(5), "ring: 1 6");
        assert_eq!(bench.use_page(7), "ring: 1 6 7");
    }
}
