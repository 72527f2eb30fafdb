//! LFU: the page used least often since it came in leaves; of those used equally often the one that has been so for
//! longest.
//!
//! Weakness: it never forgets: what was hot once stays, and a new page leaves before it can be used again. A page that
//! leaves is counted from the start when it comes back (in-cache LFU).
//! Memory: 24 bytes a frame, and 28 for each count that some page has: 52 at most.
//!
//! # Source
//! Well known; as a list of lists, one for each count: K. Shah, A. Mitra, D. Matani: An O(1) Algorithm for Implementing
//! the LFU Cache Eviction Scheme, 2010.

use longshore_base::PageId;

use super::ranks::{Ranks, Standing};
use crate::catalogue::{About, Listed};
use crate::inspect::Inspector;
use crate::lists::{Offered, offer_in_turn};
use crate::nodes::{NodeId, NodeTable};
use crate::policy::{Frame, Gone, Nodes, Placement, Policy, Take};
use crate::spec::Values;

/// See the head of the file.
pub(crate) struct Lfu {
    nodes: NodeTable<Standing>,
    /// By how often they were used.
    ranks: Ranks,
}

impl Listed for Lfu {
    const ABOUT: About = About {
        name: "lfu",
        source: "Shah, Mitra, Matani 2010",
        weakness: "what was hot once stays; new pages leave before they are used again",
        memory: "24-52 B",
        parameters: &[],
    };

    fn new(capacity: u32, _values: &Values<'_>) -> Lfu {
        Lfu {
            nodes: NodeTable::new(capacity),
            ranks: Ranks::new(),
        }
    }
}

impl Policy for Lfu {
    #[inline]
    fn on_hit(&mut self, frame: Frame) {
        let id = NodeId::of(frame);
        let uses = self.ranks.key(&self.nodes, id) + 1;
        self.ranks.raise(&mut self.nodes, id, uses);
    }

    fn on_miss(&mut self, _page: PageId) -> Placement {
        Placement::ONLY
    }

    fn evict(
        &mut self,
        _incoming: Option<(PageId, Placement)>,
        take: &mut dyn FnMut(Frame, PageId) -> Take,
    ) -> Option<Frame> {
        match offer_in_turn(self.ranks.lists(), &self.nodes, take) {
            Offered::Taken(victim) => {
                let frame = victim.frame()?;
                self.on_remove(frame, Gone::Invalidated);
                Some(frame)
            }
            Offered::Declined | Offered::Enough => None,
        }
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, _at: Placement) {
        let id = self.nodes.occupy(frame, page, Standing::used_once());
        self.ranks.insert(&mut self.nodes, id, 1);
    }

    fn on_remove(&mut self, frame: Frame, _why: Gone) {
        self.ranks.remove(&mut self.nodes, NodeId::of(frame));
        self.nodes.vacate(frame);
    }

    fn set_capacity(&mut self, frames: u32) {
        self.nodes.reserve(frames);
    }

    fn nodes(&self) -> Nodes {
        self.nodes.addresses()
    }

    fn likely_victims(&self, limit: usize, out: &mut Vec<Frame>) {
        self.ranks.guess(&self.nodes, limit, out);
    }

    fn inspect(&self, out: &mut dyn Inspector) {
        self.ranks.show(&self.nodes, out);
    }

    fn check(&self) -> Result<(), String> {
        self.ranks.check(&self.nodes)
    }
}

#[cfg(test)]
mod tests {
    use crate::policies::testing::Bench;

    #[test]
    fn order_step_by_step() {
        let mut bench = Bench::new("lfu", 4);
        assert_eq!(bench.use_pages([1, 2, 3, 4]), "pages: 1:1 2:1 3:1 4:1");
        assert_eq!(bench.use_page(2), "pages: 1:1 3:1 4:1 2:2");
        assert_eq!(bench.use_pages([2, 2]), "pages: 1:1 3:1 4:1 2:4");
        assert_eq!(bench.use_pages([1, 3]), "pages: 4:1 1:2 3:2 2:4");
        assert_eq!(bench.use_page(5), "pages: 5:1 1:2 3:2 2:4");
        assert_eq!(bench.likely(2), [5, 1]);
        bench.pin(5);
        assert_eq!(
            bench.use_page(6),
            "pages: 5:1 6:1 3:2 2:4",
            "5 is pinned; 1 has been used twice for longest"
        );
        assert_eq!(bench.use_pages([6, 6, 6]), "pages: 5:1 3:2 2:4 6:4");
        assert_eq!(bench.remove(3), "pages: 5:1 2:4 6:4");
        assert_eq!(bench.use_page(3), "pages: 5:1 3:1 2:4 6:4", "counted anew");
    }
}
