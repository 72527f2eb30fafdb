//! ARC: LRU lists of pages used once and of pages used more often, each with ghosts; whichever list's ghosts come back
//! gets more frames.
//!
//! Weakness: two uses in short order make a page one that is used often; every hit moves a node; loops longer than the
//! pool defeat it, for the ghosts reach no further than c pages of a class.
//! Memory: 27 bytes a frame, and 48 for each ghost: as many as frames, and up to twice as many while few of these
//! are in use.
//! Parameters: none.
//!
//! The target is a real number, as in the paper; what is shown of it is rounded down. If all frames of the list that
//! should give the victim are declined, the other gives it.
//! With whole numbers, as in Caffeine's simulator, hit ratios differ by 0.2 points at most (0.5 on the smallest trace).
//!
//! # Source
//! N. Megiddo, D. S. Modha: ARC: A Self-Tuning, Low Overhead Replacement Cache. FAST 2003, figure 4.

use longshore_base::PageId;

use super::adaptive::{Adaptive, FROM_B2, NEW, State, T1, T2};
use crate::catalogue::{About, Listed};
use crate::inspect::Inspector;
use crate::nodes::NodeId;
use crate::policy::{Frame, Gone, Incoming, Nodes, Placement, Policy, Taker};
use crate::spec::Values;

/// See the head of the file.
pub(crate) struct Arc {
    pages: Adaptive,
}

impl Listed for Arc {
    const ABOUT: About = About {
        name: "arc",
        source: "Megiddo, Modha 2003",
        weakness: "two uses in short order make a page hot; every hit moves a node; long loops defeat it",
        memory: Adaptive::MEMORY,
        parameters: &[],
    };

    fn new(capacity: u32, _values: &Values<'_>) -> Arc {
        Arc {
            pages: Adaptive::new(capacity),
        }
    }
}

impl Arc {
    /// T1 and T2, that which gives the victim first: REPLACE of the paper.
    fn victims(&self, at: Placement) -> [u8; 2] {
        let (len, target) = (self.pages.t1_len(), self.pages.target());
        match len > target || (at == FROM_B2 && len == target) {
            true => [T1, T2],
            false => [T2, T1],
        }
    }
}

impl Policy for Arc {
    #[inline]
    fn on_hit(&mut self, frame: Frame) {
        self.pages.promote(NodeId::of(frame));
    }

    /// It is in T2, at the end.
    fn is_settled(&self, _frame: Frame) -> bool {
        true
    }

    fn on_miss(&mut self, page: PageId) -> Placement {
        let origin = self.pages.origin(page);
        self.pages.learn(page);
        origin
    }

    fn evict(&mut self, incoming: Incoming, take: Taker<'_>) -> Option<Frame> {
        let at = incoming.map_or(NEW, |(_, at)| at);
        let frame = self.pages.queues.offer(self.victims(at), take).taken()?;
        self.pages.leave(frame);
        Some(frame)
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, at: Placement) {
        self.pages.insert(frame, page, at);
    }

    fn on_remove(&mut self, frame: Frame, _why: Gone) {
        self.pages.queues.vacate(frame);
    }

    fn forget_ghost(&mut self, page: PageId) {
        self.pages.queues.forget(page);
    }

    fn set_capacity(&mut self, frames: u32) {
        self.pages.set_capacity(frames);
    }

    fn bytes(&self) -> usize {
        self.pages.queues.nodes.bytes()
    }

    fn nodes(&self) -> Nodes {
        self.pages.queues.nodes.addresses()
    }

    fn likely_victims(&self, limit: usize, out: &mut Vec<Frame>) {
        let queues = &self.pages.queues;
        queues.guess(self.victims(NEW), State::weight, limit, out);
    }

    fn inspect(&self, out: &mut dyn Inspector) {
        self.pages.inspect(out);
    }

    fn check(&self) -> Result<(), String> {
        self.pages.check()
    }
}

#[cfg(test)]
mod tests {
    use crate::policies::testing::Bench;

    #[test]
    fn order_step_by_step() {
        let mut bench = Bench::new("arc", 4);
        assert_eq!(
            bench.use_pages([1, 2, 3, 4, 2, 1]),
            "t1: 3 4 | t2: 2 1 | b1: - | b2: - | p=0"
        );
        assert_eq!(bench.likely(9), [3, 4, 2, 1]);
        assert_eq!(
            bench.use_page(5),
            "t1: 4 5 | t2: 2 1 | b1: (3) | b2: - | p=0",
            "T1 is longer than its target"
        );
        assert_eq!(
            bench.use_page(3),
            "t1: 5 | t2: 2 1 3 | b1: (4) | b2: - | p=1",
            "3 was remembered: one frame more for T1, which still is longer than that"
        );
        assert_eq!(
            bench.use_page(6),
            "t1: 5 6 | t2: 1 3 | b1: (4) | b2: (2) | p=1",
            "T1 is as long as its target"
        );
        assert_eq!(
            bench.use_page(2),
            "t1: 6 | t2: 1 3 2 | b1: (4) (5) | b2: - | p=0",
            "from B2: the target goes back"
        );
        bench.pin(6);
        assert_eq!(
            bench.use_page(7),
            "t1: 6 7 | t2: 3 2 | b1: (4) (5) | b2: (1) | p=0",
            "the pinned keep their place, the other list gives the victim"
        );
        assert_eq!(
            bench.use_page(8),
            "t1: 6 8 | t2: 3 2 | b1: (5) (7) | b2: (1) | p=0",
            "T1 and B1 have no more than four pages: 4 is forgotten"
        );
        assert_eq!(
            bench.remove(6),
            "t1: 8 | t2: 3 2 | b1: (5) (7) | b2: (1) | p=0"
        );
        bench.policy.forget_ghost(longshore_base::PageId::new(5));
        assert_eq!(
            bench.use_page(8),
            "t1: - | t2: 3 2 8 | b1: (7) | b2: (1) | p=0"
        );
    }

    #[test]
    fn a_short_list_of_ghosts_moves_the_target_further() {
        let mut bench = Bench::new("arc", 4);
        assert_eq!(
            bench.use_pages([1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 7, 8, 9]),
            "t1: 7 8 9 | t2: 5 | b1: (6) | b2: (2) (3) (4) | p=2",
            "eight pages are known at most"
        );
        assert_eq!(
            bench.use_page(6),
            "t1: 7 8 9 | t2: 6 | b1: - | b2: (2) (3) (4) (5) | p=4",
            "three ghosts to one: three frames more, but no more than there are"
        );
        assert_eq!(
            bench.use_page(5),
            "t1: 8 9 | t2: 6 5 | b1: (7) | b2: (2) (3) (4) | p=3",
            "T1 has its share, and gives the victim because 5 comes from B2"
        );
    }

    #[test]
    fn ghosts_and_target_are_cut_when_the_pool_shrinks() {
        let mut bench = Bench::new("arc", 4);
        bench.use_pages([1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 7, 8, 9, 6]);
        bench.policy.set_capacity(3);
        assert_eq!(
            bench.dump(),
            "t1: 7 8 9 | t2: 6 | b1: - | b2: (4) (5) | p=3"
        );
    }
}
