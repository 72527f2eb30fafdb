//! 2Q, the full version: new pages stand in a FIFO queue, A1in, where uses count for nothing; those that leave it are
//! remembered in A1out, and a page that is missed while it is remembered comes to an LRU queue, Am.
//!
//! Weakness: a page must be missed twice before it is kept; how long A1in and A1out should be depends on the load, and
//! they do not adapt.
//! Memory: 24 bytes a frame, and 24 bytes and a place in the directory (about 18) for each of up to `out` pages.
//! Parameters: `in`, the frames of A1in above which it gives the victims, 25 % (20 % in some), and `out`, the pages of
//! A1out, 50 %: the paper's.
//!
//! A page found in A1out leaves it before room is made for the page; the paper does not say which comes first.
//!
//! # Source
//! T. Johnson, D. Shasha: 2Q: A Low Overhead High Performance Buffer Management Replacement Algorithm. VLDB 1994,
//! section 3.2.

use longshore_base::PageId;

use crate::catalogue::{About, Listed, Parameter, Unit};
use crate::inspect::Inspector;
use crate::lists::{List, Offered, offer_in_turn};
use crate::nodes::{NodeId, NodeTable};
use crate::policy::{Frame, Gone, Nodes, Placement, Policy, Take};
use crate::spec::{Values, share};

/// See the head of the file.
pub(crate) struct TwoQueue {
    /// With each frame, whether it is in Am.
    nodes: NodeTable<bool>,
    /// A1in: new pages, the oldest in front.
    incoming: List,
    /// A1out: ghosts, the oldest in front.
    outgone: List,
    /// Am: the one not used for longest in front.
    main: List,
    /// As percentages.
    shares: (f64, f64),
    incoming_len: usize,
    outgone_max: usize,
}

const INCOMING: Placement = Placement::new(0);
const MAIN: Placement = Placement::new(1);

impl Listed for TwoQueue {
    const ABOUT: About = About {
        name: "2q",
        source: "Johnson, Shasha 1994, section 3.2",
        weakness: "a page must be missed twice to be kept; its queues do not adapt",
        memory: "24 B + 21 B",
        parameters: &[
            Parameter {
                name: "in",
                meaning: "frames that new pages may hold before they are victims first",
                unit: Unit::Percent,
                default: 25.0,
                min: 0.0,
                max: 100.0,
            },
            Parameter {
                name: "out",
                meaning: "pages remembered that left when they were new",
                unit: Unit::Percent,
                default: 50.0,
                min: 0.0,
                max: 1000.0,
            },
        ],
    };

    fn new(capacity: u32, values: &Values<'_>) -> TwoQueue {
        let mut policy = TwoQueue {
            nodes: NodeTable::new(capacity),
            incoming: List::new(),
            outgone: List::new(),
            main: List::new(),
            shares: (values.percent("in"), values.percent("out")),
            incoming_len: 0,
            outgone_max: 0,
        };
        policy.set_capacity(capacity);
        policy
    }
}

impl TwoQueue {
    /// The queues in the order in which they give victims.
    fn victims(&self) -> [&List; 2] {
        match self.incoming.len() > self.incoming_len {
            true => [&self.incoming, &self.main],
            false => [&self.main, &self.incoming],
        }
    }

    fn leave(&mut self, frame: Frame) {
        let id = NodeId::of(frame);
        let (page, is_main) = (self.nodes[id].page(), self.nodes[id].state);
        self.on_remove(frame, Gone::Invalidated);
        if !is_main {
            let ghost = self.nodes.remember(page, false);
            self.outgone.push_back(&mut self.nodes, ghost);
            self.outgone.trim(&mut self.nodes, self.outgone_max);
        }
    }
}

impl Policy for TwoQueue {
    #[inline]
    fn on_hit(&mut self, frame: Frame) {
        let id = NodeId::of(frame);
        if self.nodes[id].state {
            self.main.move_to_back(&mut self.nodes, id);
        }
    }

    fn on_miss(&mut self, page: PageId) -> Placement {
        match self.nodes.ghost(page) {
            Some(_) => {
                self.forget_ghost(page);
                MAIN
            }
            None => INCOMING,
        }
    }

    fn evict(
        &mut self,
        _incoming: Option<(PageId, Placement)>,
        take: &mut dyn FnMut(Frame, PageId) -> Take,
    ) -> Option<Frame> {
        match offer_in_turn(self.victims(), &self.nodes, take) {
            Offered::Taken(victim) => {
                let frame = victim.frame()?;
                self.leave(frame);
                Some(frame)
            }
            Offered::Declined | Offered::Enough => None,
        }
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, at: Placement) {
        let id = self.nodes.occupy(frame, page, at == MAIN);
        match at == MAIN {
            true => self.main.push_back(&mut self.nodes, id),
            false => self.incoming.push_back(&mut self.nodes, id),
        }
    }

    fn on_remove(&mut self, frame: Frame, _why: Gone) {
        let id = NodeId::of(frame);
        match self.nodes[id].state {
            true => self.main.remove(&mut self.nodes, id),
            false => self.incoming.remove(&mut self.nodes, id),
        }
        self.nodes.vacate(frame);
    }

    fn forget_ghost(&mut self, page: PageId) {
        if let Some(ghost) = self.nodes.ghost(page) {
            self.outgone.remove(&mut self.nodes, ghost);
            self.nodes.forget(ghost);
        }
    }

    fn set_capacity(&mut self, frames: u32) {
        self.nodes.reserve(frames);
        self.incoming_len = share(self.shares.0, frames);
        self.outgone_max = share(self.shares.1, frames);
        self.outgone.trim(&mut self.nodes, self.outgone_max);
    }

    fn nodes(&self) -> Nodes {
        self.nodes.addresses()
    }

    fn likely_victims(&self, limit: usize, out: &mut Vec<Frame>) {
        for list in self.victims() {
            list.guess(&self.nodes, limit, out);
        }
    }

    fn inspect(&self, out: &mut dyn Inspector) {
        self.incoming.show(&self.nodes, out, "a1in", |_, _| {});
        self.main.show(&self.nodes, out, "am", |_, _| {});
        self.outgone.show(&self.nodes, out, "a1out", |_, _| {});
    }

    fn check(&self) -> Result<(), String> {
        for list in [&self.incoming, &self.main, &self.outgone] {
            list.check(&self.nodes)?;
        }
        let residents = self.incoming.len() + self.main.len();
        self.nodes.check(residents + self.outgone.len())?;
        if self.outgone.len() > self.outgone_max || self.nodes.ghosts() != self.outgone.len() {
            return Err(format!("{} ghosts", self.nodes.ghosts()));
        }
        let is_main = |id| self.nodes[id].state;
        let strayed = self.incoming.iter(&self.nodes).any(is_main)
            || !self.main.iter(&self.nodes).all(is_main);
        match strayed {
            true => Err("a page stands in the other's queue".to_string()),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policies::testing::Bench;

    #[test]
    fn order_step_by_step() {
        let mut bench = Bench::new("2q:in=50%,out=50%", 4);
        assert_eq!(
            bench.use_pages([1, 2, 3, 4, 1]),
            "a1in: 1 2 3 4 | am: - | a1out: -",
            "a use in A1in counts for nothing"
        );
        assert_eq!(bench.use_page(5), "a1in: 2 3 4 5 | am: - | a1out: (1)");
        assert_eq!(bench.use_page(1), "a1in: 3 4 5 | am: 1 | a1out: (2)");
        assert_eq!(bench.use_page(2), "a1in: 4 5 | am: 1 2 | a1out: (3)");
        assert_eq!(bench.use_page(1), "a1in: 4 5 | am: 2 1 | a1out: (3)");
        assert_eq!(
            bench.use_page(6),
            "a1in: 4 5 6 | am: 1 | a1out: (3)",
            "A1in had no more than its share; what leaves Am is not remembered"
        );
        assert_eq!(bench.likely(2), [4, 5]);
        bench.pin(4);
        assert_eq!(
            bench.use_page(7),
            "a1in: 4 6 7 | am: 1 | a1out: (3) (5)",
            "the pinned keep their place"
        );
        assert_eq!(
            bench.use_page(8),
            "a1in: 4 7 8 | am: 1 | a1out: (5) (6)",
            "3 is forgotten"
        );
        assert_eq!(bench.remove(4), "a1in: 7 8 | am: 1 | a1out: (5) (6)");
        bench.policy.forget_ghost(longshore_base::PageId::new(5));
        assert_eq!(bench.dump(), "a1in: 7 8 | am: 1 | a1out: (6)");
    }
}
