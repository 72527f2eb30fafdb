//! Simplified 2Q: new pages stand in a FIFO queue, A1; those used there again move to an LRU queue, Am. A1 gives the
//! victim while it has more than its share of frames, Am otherwise.
//!
//! Weakness: two uses in short order, as a scan of records makes them, count as two; and what is used again only after
//! it left A1 is new again. The full version, `2q`, answers both.
//! Memory: 27 bytes a frame.
//! Parameters: `in`, the frames that A1 may hold before it gives victims, 25 %.
//!
//! # Source
//! T. Johnson, D. Shasha: 2Q: A Low Overhead High Performance Buffer Management Replacement Algorithm. VLDB 1994,
//! section 3.1.

use longshore_base::PageId;

use super::queues::{Queues, weightless};
use crate::catalogue::{About, Listed, Parameter, Unit};
use crate::inspect::Inspector;
use crate::nodes::NodeId;
use crate::policy::{Frame, Gone, Incoming, Nodes, Placement, Policy, Taker};
use crate::spec::{Values, share};

/// Used once, the oldest in front.
const A1: u8 = 0;
/// Used more than once, the one not used for longest in front.
const AM: u8 = 1;

/// See the head of the file.
pub(crate) struct TwoQueueSimple {
    /// A1 and Am.
    queues: Queues<u8, 2>,
    /// Of A1, as a percentage, and in frames.
    share: f64,
    a1_len: usize,
}

impl Listed for TwoQueueSimple {
    const ABOUT: About = About {
        name: "2q-simple",
        source: "Johnson, Shasha 1994",
        weakness: "two uses in short order make a page hot; no history",
        memory: Queues::<u8, 2>::MEMORY,
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
        let mut policy = TwoQueueSimple {
            queues: Queues::new(capacity),
            share: values.percent("in"),
            a1_len: 0,
        };
        policy.set_capacity(capacity);
        policy
    }
}

impl TwoQueueSimple {
    /// The queues in the order in which they give victims.
    fn victims(&self) -> [u8; 2] {
        match self.queues[A1].len() > self.a1_len {
            true => [A1, AM],
            false => [AM, A1],
        }
    }
}

impl Policy for TwoQueueSimple {
    #[inline]
    fn on_hit(&mut self, frame: Frame) {
        self.queues.move_to(NodeId::of(frame), AM);
    }

    /// It is at the end of Am.
    fn is_settled(&self, _frame: Frame) -> bool {
        true
    }

    fn evict(&mut self, _incoming: Incoming, take: Taker<'_>) -> Option<Frame> {
        let frame = self.queues.offer(self.victims(), take).taken()?;
        self.queues.vacate(frame);
        Some(frame)
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, _at: Placement) {
        self.queues.admit(frame, page, A1, A1);
    }

    fn on_remove(&mut self, frame: Frame, _why: Gone) {
        self.queues.vacate(frame);
    }

    fn set_capacity(&mut self, frames: u32) {
        self.queues.nodes.reserve(frames);
        self.a1_len = share(self.share, frames);
    }

    fn bytes(&self) -> usize {
        self.queues.nodes.bytes()
    }

    fn nodes(&self) -> Nodes {
        self.queues.nodes.addresses()
    }

    fn likely_victims(&self, limit: usize, out: &mut Vec<Frame>) {
        self.queues.guess(self.victims(), weightless, limit, out);
    }

    fn inspect(&self, out: &mut dyn Inspector) {
        self.queues.show([(A1, "a1"), (AM, "am")], weightless, out);
    }

    fn check(&self) -> Result<(), String> {
        self.queues.check(2)
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
