//! CLOCK: pages stand in a ring; the hand passes over those used since it came by last, and takes the first that was not.
//!
//! Weakness: like LRU it lets one scan flush the pool; it sees whether a page was used, not how often.
//! Memory: 24 bytes a frame.
//!
//! A page comes in unreferenced, right behind the hand: its first use brought it in, and counts for nothing more. The
//! ring is linked, so that the order does not depend on which frame a page happens to get.
//!
//! # Source
//! F. J. Corbató: A Paging Experiment with the Multics System. MIT Project MAC, 1968.

use longshore_base::PageId;

use crate::catalogue::{About, Listed};
use crate::inspect::Inspector;
use crate::lists::List;
use crate::nodes::{NodeId, NodeTable};
use crate::policy::{Frame, Gone, Nodes, Placement, Policy, Take};
use crate::spec::Values;

/// See the head of the file.
pub(crate) struct Clock {
    /// With each frame, whether it was used since the hand came by.
    nodes: NodeTable<bool>,
    /// The hand points to the front.
    ring: List,
}

impl Listed for Clock {
    const ABOUT: About = About {
        name: "clock",
        source: "Corbató 1968",
        weakness: "a scan flushes it; knows whether a page was used, not how often",
        memory: "24 B",
        parameters: &[],
    };

    fn new(capacity: u32, _values: &Values<'_>) -> Clock {
        Clock {
            nodes: NodeTable::new(capacity),
            ring: List::new(),
        }
    }
}

impl Policy for Clock {
    #[inline]
    fn on_hit(&mut self, frame: Frame) {
        self.nodes[NodeId::of(frame)].state = true;
    }

    fn on_miss(&mut self, _page: PageId) -> Placement {
        Placement::ONLY
    }

    /// Two sweeps at most: the first clears all references, the second offers everything.
    fn evict(
        &mut self,
        _incoming: Option<(PageId, Placement)>,
        take: &mut dyn FnMut(Frame, PageId) -> Take,
    ) -> Option<Frame> {
        for _ in 0..2 * self.ring.len() {
            let id = self.ring.front()?;
            if std::mem::take(&mut self.nodes[id].state) {
                self.ring.rotate(&self.nodes);
                continue;
            }
            let frame = id.frame()?;
            match take(frame, self.nodes[id].page()) {
                Take::Taken => {
                    self.on_remove(frame, Gone::Invalidated);
                    return Some(frame);
                }
                Take::Busy | Take::Dirty => self.ring.rotate(&self.nodes),
                Take::Enough => return None,
            }
        }
        None
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, _at: Placement) {
        let id = self.nodes.occupy(frame, page, false);
        self.ring.push_back(&mut self.nodes, id);
    }

    fn on_remove(&mut self, frame: Frame, _why: Gone) {
        self.ring.remove(&mut self.nodes, NodeId::of(frame));
        self.nodes.vacate(frame);
    }

    fn set_capacity(&mut self, frames: u32) {
        self.nodes.reserve(frames);
    }

    fn nodes(&self) -> Nodes {
        self.nodes.addresses()
    }

    fn likely_victims(&self, limit: usize, out: &mut Vec<Frame>) {
        let ring = self.ring.iter(&self.nodes);
        let unused = ring.filter(|&id| !self.nodes[id].state);
        out.extend(unused.filter_map(NodeId::frame).take(limit));
    }

    fn inspect(&self, out: &mut dyn Inspector) {
        self.ring.show(&self.nodes, out, "ring", |&used, entry| {
            entry.weight = u32::from(used);
        });
    }

    fn check(&self) -> Result<(), String> {
        self.ring.check(&self.nodes)?;
        self.nodes.check(self.ring.len())
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
