//! 2Q, the full version: new pages stand in a FIFO queue, A1in, where uses count for nothing; those that leave it are
//! remembered in A1out, and a page that is missed while it is remembered comes to an LRU queue, Am.
//!
//! Weakness: a page must be missed twice before it is kept; how long A1in and A1out should be depends on the load, and
//! they do not adapt.
//! Memory: 27 bytes a frame, and 48 for each of up to `out` pages.
//! Parameters: `in`, the frames of A1in above which it gives the victims, 25 % (20 % in some), and `out`, the pages of
//! A1out, 50 %: the paper's.
//!
//! A page found in A1out leaves it before room is made for the page; the paper does not say which comes first.
//!
//! # Source
//! T. Johnson, D. Shasha: 2Q: A Low Overhead High Performance Buffer Management Replacement Algorithm. VLDB 1994,
//! section 3.2.

use longshore_base::PageId;

use super::queues::{Queues, check_len, weightless};
use crate::catalogue::{About, Ghosts, Listed, Parameter, Unit};
use crate::inspect::Inspector;
use crate::nodes::NodeId;
use crate::policy::{Frame, Gone, Incoming, Nodes, Placement, Policy, Taker};
use crate::spec::{Values, share};

/// New pages, the oldest in front.
const A1IN: u8 = 0;
/// Pages missed again, the one not used for longest in front.
const AM: u8 = 1;
/// Ghosts, the oldest in front.
const A1OUT: u8 = 2;

/// See the head of the file.
pub(crate) struct TwoQueue {
    /// A1in, Am and A1out.
    queues: Queues<u8, 3>,
    /// Of A1in and A1out, as percentages.
    shares: (f64, f64),
    a1in_len: usize,
    a1out_max: usize,
}

impl Listed for TwoQueue {
    const ABOUT: About = About {
        name: "2q",
        source: "Johnson, Shasha 1994, section 3.2",
        weakness: "a page must be missed twice to be kept; its queues do not adapt",
        memory: Queues::<u8, 3>::MEMORY.and_ghosts(Ghosts::Parameter("out")),
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
            queues: Queues::new(capacity),
            shares: (values.percent("in"), values.percent("out")),
            a1in_len: 0,
            a1out_max: 0,
        };
        policy.set_capacity(capacity);
        policy
    }
}

impl TwoQueue {
    /// The queues in the order in which they give victims.
    fn victims(&self) -> [u8; 2] {
        match self.queues[A1IN].len() > self.a1in_len {
            true => [A1IN, AM],
            false => [AM, A1IN],
        }
    }
}

impl Policy for TwoQueue {
    #[inline]
    fn on_hit(&mut self, frame: Frame) {
        let id = NodeId::of(frame);
        if self.queues.nodes[id].state == AM {
            self.queues.move_to(id, AM);
        }
    }

    /// In A1in uses do nothing, in Am they put it at the end.
    fn is_settled(&self, _frame: Frame) -> bool {
        true
    }

    /// The placement is the number of a queue.
    fn on_miss(&mut self, page: PageId) -> Placement {
        let is_known = self.queues.forget(page);
        Placement::new(u32::from(if is_known { AM } else { A1IN }))
    }

    fn evict(&mut self, _incoming: Incoming, take: Taker<'_>) -> Option<Frame> {
        let frame = self.queues.offer(self.victims(), take).taken()?;
        let (page, queue) = self.queues.vacate(frame);
        if queue == A1IN {
            self.queues.remember(page, A1OUT, A1OUT, self.a1out_max);
        }
        Some(frame)
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, at: Placement) {
        self.queues.admit(frame, page, A1IN, at.get() as u8);
    }

    fn on_remove(&mut self, frame: Frame, _why: Gone) {
        self.queues.vacate(frame);
    }

    fn forget_ghost(&mut self, page: PageId) {
        self.queues.forget(page);
    }

    fn set_capacity(&mut self, frames: u32) {
        self.queues.nodes.reserve(frames);
        self.a1in_len = share(self.shares.0, frames);
        self.a1out_max = share(self.shares.1, frames);
        self.queues.trim(A1OUT, self.a1out_max);
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
        let names = [(A1IN, "a1in"), (AM, "am"), (A1OUT, "a1out")];
        self.queues.show(names, weightless, out);
    }

    fn check(&self) -> Result<(), String> {
        check_len("pages in A1out", self.queues[A1OUT].len(), self.a1out_max)?;
        self.queues.check(A1OUT)
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
