//! SLRU: an LRU queue in two segments. A page comes in on trial; if it is used there it becomes protected; when too many
//! are protected, the one not used for longest is on trial again. Those on trial leave first.
//!
//! Weakness: what is used twice in short order is protected; what was protected long ago and is not used any more leaves
//! only as others take its place; a loop longer than the pool never hits.
//! Memory: 27 bytes a frame.
//! Parameters: `protected`, the frames that may be protected, 80 %. The paper leaves it open.
//!
//! # Source
//! R. Karedla, J. S. Love, B. G. Wherry: Caching Strategies to Improve Disk System Performance. IEEE Computer 27(3),
//! 1994.

use longshore_base::PageId;

use super::queues::{Queues, check_len, weightless};
use super::segments::{PROBATION, PROTECTED, demote, protect};
use crate::catalogue::{About, Listed, Parameter, Unit};
use crate::inspect::Inspector;
use crate::nodes::NodeId;
use crate::policy::{Frame, Gone, Incoming, Nodes, Placement, Policy, Taker};
use crate::spec::{Values, share};

/// See the head of the file.
pub(crate) struct Slru {
    /// The two segments.
    queues: Queues<u8, 2>,
    /// As a percentage, and in frames.
    share: f64,
    protected_max: usize,
}

/// Those on trial leave first.
const VICTIMS: [u8; 2] = [PROBATION, PROTECTED];

impl Listed for Slru {
    const ABOUT: About = About {
        name: "slru",
        source: "Karedla, Love, Wherry 1994",
        weakness: "two uses in short order protect a page; a loop longer than the pool never hits",
        memory: Queues::<u8, 2>::MEMORY,
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
            queues: Queues::new(capacity),
            share: values.percent("protected"),
            protected_max: 0,
        };
        policy.set_capacity(capacity);
        policy
    }
}

impl Policy for Slru {
    #[inline]
    fn on_hit(&mut self, frame: Frame) {
        protect(&mut self.queues, NodeId::of(frame), self.protected_max);
    }

    /// It is at the end of the protected segment.
    fn is_settled(&self, _frame: Frame) -> bool {
        true
    }

    fn evict(&mut self, _incoming: Incoming, take: Taker<'_>) -> Option<Frame> {
        let frame = self.queues.offer(VICTIMS, take).taken()?;
        self.queues.vacate(frame);
        Some(frame)
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, _at: Placement) {
        self.queues.admit(frame, page, PROBATION, PROBATION);
    }

    fn on_remove(&mut self, frame: Frame, _why: Gone) {
        self.queues.vacate(frame);
    }

    fn set_capacity(&mut self, frames: u32) {
        self.queues.nodes.reserve(frames);
        self.protected_max = share(self.share, frames);
        demote(&mut self.queues, self.protected_max);
    }

    fn bytes(&self) -> usize {
        self.queues.nodes.bytes()
    }

    fn nodes(&self) -> Nodes {
        self.queues.nodes.addresses()
    }

    fn likely_victims(&self, limit: usize, out: &mut Vec<Frame>) {
        self.queues.guess(VICTIMS, weightless, limit, out);
    }

    fn inspect(&self, out: &mut dyn Inspector) {
        let names = [(PROBATION, "probation"), (PROTECTED, "protected")];
        self.queues.show(names, weightless, out);
    }

    fn check(&self) -> Result<(), String> {
        check_len(
            "protected",
            self.queues[PROTECTED].len(),
            self.protected_max,
        )?;
        self.queues.check(2)
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
