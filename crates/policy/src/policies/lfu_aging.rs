//! LFU with dynamic aging: a page's priority is how often it was used plus the age of the pool when it was used last; the
//! age is the priority of the last victim. So what was hot once is overtaken as the pool ages, with no sweeps to halve
//! counts.
//!
//! Weakness: after a change of the hot set the old pages stay until the age has grown by their counts.
//! Memory: 24 bytes a frame, and 28 for each priority that some page has: 52 at most.
//!
//! The reference rows called LFUDA follow another rule: their simulator adds the least priority to that of the page which
//! is hit, instead of setting it to uses and age, so that old pages gain most. By that rule, written down apart, its
//! rows come out to all four digits; ours differ by up to 22 points (OLTP, 1,000 pages: 61 % misses, not 84 %).
//!
//! A hit is not quite O(1): the page passes the ranks between its old priority and its new one, as many as the age grew
//! since its last use, at most as many as there are priorities; a few in practice.
//!
//! # Source
//! M. Arlitt, L. Cherkasova, J. Dilley, R. Friedrich, T. Jin: Evaluating Content Management Techniques for Web Proxy
//! Caches. SIGMETRICS Performance Evaluation Review 27(4), 2000 (LFU-DA).

use longshore_base::PageId;

use super::ranks::{Ranks, Standing};
use crate::catalogue::{About, Listed};
use crate::inspect::Inspector;
use crate::lists::{Offered, offer_in_turn};
use crate::nodes::{NodeId, NodeTable};
use crate::policy::{Frame, Gone, Nodes, Placement, Policy, Take};
use crate::spec::Values;

/// See the head of the file.
pub(crate) struct LfuAging {
    nodes: NodeTable<Standing>,
    /// By priority.
    ranks: Ranks,
    age: u64,
}

impl Listed for LfuAging {
    const ABOUT: About = About {
        name: "lfu-aging",
        source: "Arlitt et al. 2000",
        weakness: "the old hot set stays until the pool has aged by its counts",
        memory: "24-52 B",
        parameters: &[],
    };

    fn new(capacity: u32, _values: &Values<'_>) -> LfuAging {
        LfuAging {
            nodes: NodeTable::new(capacity),
            ranks: Ranks::new(),
            age: 0,
        }
    }
}

impl Policy for LfuAging {
    #[inline]
    fn on_hit(&mut self, frame: Frame) {
        let id = NodeId::of(frame);
        let standing = &mut self.nodes[id].state;
        standing.uses = standing.uses.saturating_add(1);
        let priority = self.age + u64::from(standing.uses);
        self.ranks.raise(&mut self.nodes, id, priority);
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
                // Where pages are declined the victim has a greater priority; those that stay must not be passed.
                self.age = self.ranks.lowest_key().unwrap_or(self.age);
                self.on_remove(frame, Gone::Invalidated);
                Some(frame)
            }
            Offered::Declined | Offered::Enough => None,
        }
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, _at: Placement) {
        let id = self.nodes.occupy(frame, page, Standing::used_once());
        self.ranks.insert(&mut self.nodes, id, self.age + 1);
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
        out.counter("age", self.age);
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
        let mut bench = Bench::new("lfu-aging", 3);
        assert_eq!(
            bench.use_pages([1, 1, 1, 1, 2, 2, 3]),
            "pages: 3:1 2:2 1:4 | age=0"
        );
        assert_eq!(bench.use_page(4), "pages: 2:2 4:2 1:4 | age=1");
        assert_eq!(
            bench.use_page(5),
            "pages: 4:2 5:3 1:4 | age=2",
            "what is new ranks above what is old"
        );
        assert_eq!(bench.use_page(4), "pages: 5:3 1:4 4:4 | age=2");
        assert_eq!(bench.likely(2), [5, 1]);
        bench.pin(5);
        assert_eq!(
            bench.use_page(6),
            "pages: 5:3 4:4 6:4 | age=3",
            "1 leaves, but 5 stays: no older than it"
        );
        assert_eq!(bench.remove(4), "pages: 5:3 6:4 | age=3");
        assert_eq!(bench.use_page(5), "pages: 6:4 5:5 | age=3");
    }
}
