//! SIEVE: a FIFO queue with a hand that goes from the oldest page to the youngest, passes over those used since it came
//! by last, and takes the first that was not. Nothing moves: what survives stays where it is, among pages of its age.
//!
//! Weakness: made for the web. A scan longer than the pool is kept off well, but a loop or a page used twice in short
//! order is kept for a whole round of the hand, and what was hot once may stay long.
//! Memory: 27 bytes a frame.
//!
//! The queue is a linked list; the hand is a node of it. Where the hand's page leaves, it steps on to the next younger
//! one; past the youngest it starts again at the oldest.
//!
//! # Source
//! Y. Zhang, J. Yang, Y. Yue, Y. Vigfusson, K. V. Rashmi: SIEVE is Simpler than LRU: an Efficient Turn-Key Eviction
//! Algorithm for Web Caches. NSDI 2024, section 3.

use longshore_base::PageId;

use super::queues::Queues;
use crate::catalogue::{About, Listed};
use crate::inspect::Inspector;
use crate::lists::ask;
use crate::nodes::NodeId;
use crate::policy::{Frame, Gone, Incoming, Nodes, Placement, Policy, Take, Taker};
use crate::spec::Values;

const ALL: u8 = 0;

/// See the head of the file.
pub(crate) struct Sieve {
    /// One, the oldest in front; with each page, whether it was used since the hand came by.
    pages: Queues<bool, 1>,
    /// Where the search goes on; `NIL`: at the oldest.
    hand: NodeId,
}

impl Listed for Sieve {
    const ABOUT: About = About {
        name: "sieve",
        source: "Zhang et al. 2024",
        weakness: "what is used twice in short order is kept for a whole round; loops defeat it",
        memory: Queues::<bool, 1>::MEMORY,
        parameters: &[],
    };

    fn new(capacity: u32, _values: &Values<'_>) -> Sieve {
        Sieve {
            pages: Queues::new(capacity),
            hand: NodeId::NIL,
        }
    }
}

impl Sieve {
    /// The next younger page, `NIL` behind the youngest.
    fn younger(&self, id: NodeId) -> NodeId {
        let next = self.pages[ALL].next(&self.pages.nodes, id);
        match Some(next) == self.pages[ALL].front() {
            true => NodeId::NIL,
            false => next,
        }
    }

    /// Where the hand stands.
    fn at_hand(&self) -> Option<NodeId> {
        match self.hand {
            NodeId::NIL => self.pages[ALL].front(),
            hand => Some(hand),
        }
    }
}

impl Policy for Sieve {
    #[inline]
    fn on_hit(&mut self, frame: Frame) {
        self.pages.nodes[NodeId::of(frame)].state = true;
    }

    /// Two sweeps at most: the first clears all references, the second offers everything.
    fn evict(&mut self, _incoming: Incoming, take: Taker<'_>) -> Option<Frame> {
        for _ in 0..2 * self.pages[ALL].len() {
            let id = self.at_hand()?;
            if !std::mem::take(&mut self.pages.nodes[id].state) {
                match ask(&self.pages.nodes, id, take) {
                    Take::Taken => {
                        let frame = id.frame()?;
                        self.hand = id;
                        self.on_remove(frame, Gone::Invalidated);
                        return Some(frame);
                    }
                    Take::Busy | Take::Dirty => {}
                    Take::Enough => return None,
                }
            }
            self.hand = self.younger(id);
        }
        None
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, _at: Placement) {
        self.pages.admit(frame, page, false, ALL);
    }

    fn on_remove(&mut self, frame: Frame, _why: Gone) {
        let id = NodeId::of(frame);
        if self.hand == id {
            self.hand = self.younger(id);
        }
        self.pages.vacate(frame);
    }

    fn set_capacity(&mut self, frames: u32) {
        self.pages.nodes.reserve(frames);
    }

    fn bytes(&self) -> usize {
        self.pages.nodes.bytes()
    }

    fn nodes(&self) -> Nodes {
        self.pages.nodes.addresses()
    }

    fn likely_victims(&self, limit: usize, out: &mut Vec<Frame>) {
        let Some(start) = self.at_hand() else { return };
        let round = std::iter::successors(Some(start), |&id| {
            let next = self.pages[ALL].next(&self.pages.nodes, id);
            (next != start).then_some(next)
        });
        let unused = round.filter(|&id| !self.pages.nodes[id].state);
        out.extend(unused.filter_map(NodeId::frame).take(limit));
    }

    fn inspect(&self, out: &mut dyn Inspector) {
        self.pages
            .show([(ALL, "queue")], |&used| u32::from(used), out);
        if let Some(hand) = self.at_hand() {
            out.counter("hand", self.pages.nodes[hand].page().get());
        }
    }

    fn check(&self) -> Result<(), String> {
        self.pages.check(1)?;
        let hand = self.hand;
        let mut queue = self.pages[ALL].iter(&self.pages.nodes);
        match hand == NodeId::NIL || queue.any(|id| id == hand) {
            true => Ok(()),
            false => Err("the hand is not in the queue".to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policies::testing::Bench;

    #[test]
    fn order_step_by_step() {
        let mut bench = Bench::new("sieve", 4);
        assert_eq!(bench.use_pages([1, 2, 3, 4]), "queue: 1 2 3 4 | hand=1");
        assert_eq!(bench.use_pages([1, 3]), "queue: 1:1 2 3:1 4 | hand=1");
        assert_eq!(bench.likely(9), [2, 4]);
        assert_eq!(
            bench.use_page(5),
            "queue: 1 3:1 4 5 | hand=3",
            "1 is passed and stays in place, 2 leaves"
        );
        assert_eq!(bench.use_page(6), "queue: 1 3 5 6 | hand=5");
        assert_eq!(bench.use_pages([5, 6]), "queue: 1 3 5:1 6:1 | hand=5");
        assert_eq!(
            bench.use_page(7),
            "queue: 3 5 6 7 | hand=3",
            "past the youngest it starts again at the oldest"
        );
        bench.pin(3);
        assert_eq!(
            bench.use_page(8),
            "queue: 3 6 7 8 | hand=6",
            "the pinned are passed"
        );
        assert_eq!(
            bench.remove(6),
            "queue: 3 7 8 | hand=7",
            "the hand steps on"
        );
        assert_eq!(bench.use_page(9), "queue: 3 7 8 9 | hand=7");
    }
}
