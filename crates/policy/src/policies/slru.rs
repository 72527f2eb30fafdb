//! SLRU: an LRU queue in two segments. A page comes in on trial; if it is used there it becomes protected; when too many
//! are protected, the one not used for longest is on trial again. Those on trial leave first.
//!
//! Weakness: what is used twice in short order is protected; what was protected long ago and is not used any more leaves
//! only as others take its place; a loop longer than the pool never hits.
//! Memory: 24 bytes a frame.
//! Parameters: `protected`, the frames that may be protected, 80 %. The paper leaves it open.
//!
//! # Source
//! R. Karedla, J. S. Love, B. G. Wherry: Caching Strategies to Improve Disk System Performance. IEEE Computer 27(3),
//! 1994.

use longshore_base::PageId;

use super::segments::{Segment, Segments};
use crate::catalogue::{About, Listed, Parameter, Unit};
use crate::inspect::Inspector;
use crate::lists::{Offered, offer_in_turn};
use crate::nodes::{NodeId, NodeTable};
use crate::policy::{Frame, Gone, Nodes, Placement, Policy, Take};
use crate::spec::{Values, share};

/// See the head of the file.
pub(crate) struct Slru {
    nodes: NodeTable<Segment>,
    segments: Segments,
    /// As a percentage.
    protected: f64,
}

impl Listed for Slru {
    const ABOUT: About = About {
        name: "slru",
        source: "Karedla, Love, Wherry 1994",
        weakness: "two uses in short order protect a page; a loop longer than the pool never hits",
        memory: "24 B",
        parameters: &[Parameter {
            name: "protected",
            meaning: "frames for pages used again",
            unit: Unit::Percent,
            default: 80.0,
            min: 0.0,
            max: 100.0,
        }],
    };

    fn new(capacity: u32, values: &Values<'_>) -> Slru {
        let mut policy = Slru {
            nodes: NodeTable::new(capacity),
            segments: Segments::new(),
            protected: values.percent("protected"),
        };
        policy.set_capacity(capacity);
        policy
    }
}

impl Policy for Slru {
    #[inline]
    fn on_hit(&mut self, frame: Frame) {
        self.segments.hit(&mut self.nodes, NodeId::of(frame));
    }

    fn on_miss(&mut self, _page: PageId) -> Placement {
        Placement::ONLY
    }

    fn evict(
        &mut self,
        _incoming: Option<(PageId, Placement)>,
        take: &mut dyn FnMut(Frame, PageId) -> Take,
    ) -> Option<Frame> {
        let lists = [&self.segments.probation, &self.segments.protected];
        match offer_in_turn(lists, &self.nodes, take) {
            Offered::Taken(victim) => {
                let frame = victim.frame()?;
                self.on_remove(frame, Gone::Invalidated);
                Some(frame)
            }
            Offered::Declined | Offered::Enough => None,
        }
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, _at: Placement) {
        let id = self.nodes.occupy(frame, page, Segment::Probation);
        self.segments.admit(&mut self.nodes, id);
    }

    fn on_remove(&mut self, frame: Frame, _why: Gone) {
        self.segments.remove(&mut self.nodes, NodeId::of(frame));
        self.nodes.vacate(frame);
    }

    fn set_capacity(&mut self, frames: u32) {
        self.nodes.reserve(frames);
        let max = share(self.protected, frames);
        self.segments.set_protected_max(&mut self.nodes, max);
    }

    fn nodes(&self) -> Nodes {
        self.nodes.addresses()
    }

    fn likely_victims(&self, limit: usize, out: &mut Vec<Frame>) {
        self.segments.probation.guess(&self.nodes, limit, out);
        self.segments.protected.guess(&self.nodes, limit, out);
    }

    fn inspect(&self, out: &mut dyn Inspector) {
        self.segments.show(&self.nodes, out);
    }

    fn check(&self) -> Result<(), String> {
        self.segments.check(&self.nodes)?;
        self.nodes.check(self.segments.len())
    }
}

#[cfg(test)]
mod tests {
    use crate::policies::testing::Bench;

    #[test]
    fn order_step_by_step() {
        let mut bench = Bench::new("slru:protected=50%", 4);
        assert_eq!(
            bench.use_pages([1, 2, 3, 4]),
            "probation: 1 2 3 4 | protected: -"
        );
        assert_eq!(bench.use_pages([2, 1]), "probation: 3 4 | protected: 2 1");
        assert_eq!(bench.use_page(2), "probation: 3 4 | protected: 1 2");
        assert_eq!(
            bench.use_page(4),
            "probation: 3 1 | protected: 2 4",
            "two are protected; 1 is on trial again"
        );
        assert_eq!(bench.use_page(5), "probation: 1 5 | protected: 2 4");
        assert_eq!(bench.likely(3), [1, 5, 2]);
        bench.pin(1);
        assert_eq!(
            bench.use_page(6),
            "probation: 1 6 | protected: 2 4",
            "the pinned keep their place"
        );
        bench.policy.set_capacity(2);
        assert_eq!(bench.dump(), "probation: 1 6 2 | protected: 4");
        assert_eq!(bench.remove(4), "probation: 1 6 2 | protected: -");
    }
}
