//! FIFO: the page that came first leaves first, however often it was used.
//!
//! Weakness: blind to use; with some traces more frames even mean more misses (Belady's anomaly).
//! Memory: 24 bytes a frame.
//!
//! # Source
//! L. A. Belady: A Study of Replacement Algorithms for a Virtual-Storage Computer. IBM Systems Journal 5(2), 1966.

use longshore_base::PageId;

use crate::catalogue::{About, Listed};
use crate::inspect::Inspector;
use crate::lists::{List, Offered};
use crate::nodes::{NodeId, NodeTable};
use crate::policy::{Frame, Gone, Nodes, Placement, Policy, Take};
use crate::spec::Values;

/// See the head of the file.
pub(crate) struct Fifo {
    nodes: NodeTable<()>,
    /// All residents, the oldest in front.
    queue: List,
}

impl Listed for Fifo {
    const ABOUT: About = About {
        name: "fifo",
        source: "Belady 1966",
        weakness: "blind to use",
        memory: "24 B",
        parameters: &[],
    };

    fn new(capacity: u32, _values: &Values<'_>) -> Fifo {
        Fifo {
            nodes: NodeTable::new(capacity),
            queue: List::new(),
        }
    }
}

impl Policy for Fifo {
    #[inline]
    fn on_hit(&mut self, _frame: Frame) {}

    fn on_miss(&mut self, _page: PageId) -> Placement {
        Placement::ONLY
    }

    fn evict(
        &mut self,
        _incoming: Option<(PageId, Placement)>,
        take: &mut dyn FnMut(Frame, PageId) -> Take,
    ) -> Option<Frame> {
        match self.queue.offer(&self.nodes, take) {
            Offered::Taken(victim) => {
                let frame = victim.frame()?;
                self.on_remove(frame, Gone::Invalidated);
                Some(frame)
            }
            Offered::Declined | Offered::Enough => None,
        }
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, _at: Placement) {
        let id = self.nodes.occupy(frame, page, ());
        self.queue.push_back(&mut self.nodes, id);
    }

    fn on_remove(&mut self, frame: Frame, _why: Gone) {
        self.queue.remove(&mut self.nodes, NodeId::of(frame));
        self.nodes.vacate(frame);
    }

    fn set_capacity(&mut self, frames: u32) {
        self.nodes.reserve(frames);
    }

    fn nodes(&self) -> Nodes {
        self.nodes.addresses()
    }

    fn likely_victims(&self, limit: usize, out: &mut Vec<Frame>) {
        self.queue.guess(&self.nodes, limit, out);
    }

    fn inspect(&self, out: &mut dyn Inspector) {
        self.queue.show(&self.nodes, out, "queue", |_, _| {});
    }

    fn check(&self) -> Result<(), String> {
        self.queue.check(&self.nodes)?;
        self.nodes.check(self.queue.len())
    }
}

#[cfg(test)]
mod tests {
    use crate::policies::testing::Bench;

    #[test]
    fn order_step_by_step() {
        let mut bench = Bench::new("fifo", 3);
        assert_eq!(bench.use_pages([1, 2, 3]), "queue: 1 2 3");
        assert_eq!(bench.use_page(1), "queue: 1 2 3", "a hit changes nothing");
        assert_eq!(bench.use_page(4), "queue: 2 3 4");
        bench.pin(2);
        assert_eq!(
            bench.use_page(5),
            "queue: 2 4 5",
            "the pinned keep their place"
        );
        assert_eq!(bench.likely(2), [2, 4]);
        assert_eq!(bench.remove(4), "queue: 2 5");
        assert_eq!(bench.use_page(4), "queue: 2 5 4");
    }
}
