//! Simplified 2Q: new pages stand in a FIFO queue, A1; those used there again move to an LRU queue, Am. A1 gives the
//! victim while it has more than its share of frames, Am otherwise.
//!
//! Weakness: two uses in short order, as a scan of records makes them, count as two; and what is used again only after
//! it left A1 is new again. The full version, `2q`, answers both.
//! Memory: 24 bytes a frame.
//! Parameters: `in`, the frames that A1 may hold before it gives victims, 25 %.
//!
//! # Source
//! T. Johnson, D. Shasha: 2Q: A Low Overhead High Performance Buffer Management Replacement Algorithm. VLDB 1994,
//! section 3.1.

use longshore_base::PageId;

use crate::catalogue::{About, Listed, Parameter, Unit};
use crate::inspect::Inspector;
use crate::lists::{List, Offered, offer_in_turn};
use crate::nodes::{NodeId, NodeTable};
use crate::policy::{Frame, Gone, Nodes, Placement, Policy, Take};
use crate::spec::{Values, share};

/// See the head of the file.
pub(crate) struct TwoQueueSimple {
    /// With each frame, whether it is in Am.
    nodes: NodeTable<bool>,
    /// A1: used once, the oldest in front.
    once: List,
    /// Am: used more than once, the one not used for longest in front.
    main: List,
    /// As a percentage, and in frames.
    once_share: f64,
    once_len: usize,
}

impl Listed for TwoQueueSimple {
    const ABOUT: About = About {
        name: "2q-simple",
        source: "Johnson, Shasha 1994",
        weakness: "two uses in short order make a page hot; no history",
        memory: "24 B",
        parameters: &[Parameter {
            name: "in",
            meaning: "frames that pages used once may hold before they are victims first",
            unit: Unit::Percent,
            default: 25.0,
            min: 0.0,
            max: 100.0,
        }],
    };

    fn new(capacity: u32, values: &Values<'_>) -> TwoQueueSimple {
        let once_share = values.percent("in");
        TwoQueueSimple {
            nodes: NodeTable::new(capacity),
            once: List::new(),
            main: List::new(),
            once_share,
            once_len: share(once_share, capacity),
        }
    }
}

impl TwoQueueSimple {
    /// The queues in the order in which they give victims.
    fn victims(&self) -> [&List; 2] {
        match self.once.len() > self.once_len {
            true => [&self.once, &self.main],
            false => [&self.main, &self.once],
        }
    }
}

impl Policy for TwoQueueSimple {
    #[inline]
    fn on_hit(&mut self, frame: Frame) {
        let id = NodeId::of(frame);
        if std::mem::replace(&mut self.nodes[id].state, true) {
            self.main.move_to_back(&mut self.nodes, id);
        } else {
            self.once.remove(&mut self.nodes, id);
            self.main.push_back(&mut self.nodes, id);
        }
    }

    fn on_miss(&mut self, _page: PageId) -> Placement {
        Placement::ONLY
    }

    fn evict(
        &mut self,
        _incoming: Option<(PageId, Placement)>,
        take: &mut dyn FnMut(Frame, PageId) -> Take,
    ) -> Option<Frame> {
        match offer_in_turn(self.victims(), &self.nodes, take) {
            Offered::Taken(victim) => {
                let frame = victim.frame()?;
                self.on_remove(frame, Gone::Invalidated);
                Some(frame)
            }
            Offered::Declined | Offered::Enough => None,
        }
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, _at: Placement) {
        let id = self.nodes.occupy(frame, page, false);
        self.once.push_back(&mut self.nodes, id);
    }

    fn on_remove(&mut self, frame: Frame, _why: Gone) {
        let id = NodeId::of(frame);
        match self.nodes[id].state {
            true => self.main.remove(&mut self.nodes, id),
            false => self.once.remove(&mut self.nodes, id),
        }
        self.nodes.vacate(frame);
    }

    fn set_capacity(&mut self, frames: u32) {
        self.nodes.reserve(frames);
        self.once_len = share(self.once_share, frames);
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
        self.once.show(&self.nodes, out, "a1", |_, _| {});
        self.main.show(&self.nodes, out, "am", |_, _| {});
    }

    fn check(&self) -> Result<(), String> {
        self.once.check(&self.nodes)?;
        self.main.check(&self.nodes)?;
        self.nodes.check(self.once.len() + self.main.len())?;
        let is_main = |id| self.nodes[id].state;
        match self.once.iter(&self.nodes).any(is_main) || !self.main.iter(&self.nodes).all(is_main)
        {
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
        let mut bench = Bench::new("2q-simple:in=50%", 4);
        assert_eq!(bench.use_pages([1, 2, 3, 4]), "a1: 1 2 3 4 | am: -");
        assert_eq!(bench.use_pages([2, 1]), "a1: 3 4 | am: 2 1");
        assert_eq!(bench.use_page(2), "a1: 3 4 | am: 1 2");
        assert_eq!(
            bench.use_page(5),
            "a1: 3 4 5 | am: 2",
            "A1 has no more than its share"
        );
        assert_eq!(bench.likely(2), [3, 4]);
        bench.pin(3);
        assert_eq!(
            bench.use_page(6),
            "a1: 3 5 6 | am: 2",
            "it has more; the pinned keep their place"
        );
        assert_eq!(bench.use_page(4), "a1: 3 6 4 | am: 2", "4 is new again");
        assert_eq!(bench.use_page(3), "a1: 6 4 | am: 2 3");
        assert_eq!(bench.remove(3), "a1: 6 4 | am: 2");
        assert_eq!(bench.remove(6), "a1: 4 | am: 2");
    }
}
