//! CAR: ARC with clocks in the place of its LRU lists, so that a hit sets a bit and moves nothing.
//!
//! Weakness: two uses in short order make a page one that is used often; loops longer than the pool defeat it, for the
//! ghosts reach no further than c pages of a class.
//! Memory: 27 bytes a frame, and 48 for each ghost: as many as frames, and up to twice as many while few of these
//! are in use.
//! Parameters: none.
//!
//! In the paper the target moves after a frame was made free. So a page that is missed stays a ghost until it is in.
//! If all frames of the clock that should give the victim are declined, the other gives it.
//! The target is a real number, as in the paper; what is shown of it is rounded down. With whole numbers, as in Caffeine's
//! simulator, hit ratios differ by 0.2 points at most (0.4 on the smallest trace).
//!
//! # Source
//! S. Bansal, D. S. Modha: CAR: Clock with Adaptive Replacement. FAST 2004, figure 2.

use longshore_base::PageId;

use super::adaptive::{Adaptive, State, T1, T2};
use crate::catalogue::{About, Listed};
use crate::inspect::Inspector;
use crate::lists::ask;
use crate::nodes::NodeId;
use crate::policy::{Frame, Gone, Incoming, Nodes, Placement, Policy, Take, Taker};
use crate::spec::Values;

/// See the head of the file.
pub(crate) struct Car {
    /// The hands point to the fronts.
    pages: Adaptive,
    /// Counts calls of `evict`.
    call: u32,
}

impl Listed for Car {
    const ABOUT: About = About {
        name: "car",
        source: "Bansal, Modha 2004",
        weakness: "two uses in short order make a page hot; long loops defeat it",
        memory: Adaptive::MEMORY,
        parameters: &[],
    };

    fn new(capacity: u32, _values: &Values<'_>) -> Car {
        Car {
            pages: Adaptive::new(capacity),
            call: 0,
        }
    }
}

impl Car {
    /// T1 has as many frames as it should have, or more.
    fn is_t1_full(&self) -> bool {
        self.pages.t1_len() >= self.pages.target().max(1.0)
    }
}

/// Which clock turns next, in one call of `evict`.
#[derive(Default)]
struct Turns {
    /// Frames of T1 and of T2 offered in vain.
    declined: [usize; 2],
    /// All of T2 was declined once: T1 is turned to its end then, lest T2 be turned again for each page that comes over.
    t2_was_done: bool,
}

impl Turns {
    fn next(&mut self, car: &Car) -> Option<u8> {
        let done = |clock: u8| self.declined[usize::from(clock)] == car.pages.queues[clock].len();
        match (done(T1), done(T2)) {
            (true, true) => None,
            (true, false) => Some(T2),
            (false, true) => {
                self.t2_was_done = true;
                Some(T1)
            }
            (false, false) if car.is_t1_full() || self.t2_was_done => Some(T1),
            (false, false) => Some(T2),
        }
    }
}

impl Policy for Car {
    #[inline]
    fn on_hit(&mut self, frame: Frame) {
        self.pages.queues.nodes[NodeId::of(frame)].state.used = true;
    }

    fn on_miss(&mut self, page: PageId) -> Placement {
        self.pages.origin(page)
    }

    /// A page of T1 is passed once, one of T2 twice: what was used loses its mark and comes last in T2.
    fn evict(&mut self, _incoming: Incoming, take: Taker<'_>) -> Option<Frame> {
        self.call = self.call.wrapping_add(1);
        let mut turns = Turns::default();
        loop {
            let clock = turns.next(self)?;
            let id = self.pages.queues[clock].front()?;
            let state = &mut self.pages.queues.nodes[id].state;
            if std::mem::take(&mut state.used) {
                self.pages.promote(id);
                continue;
            }
            if state.declined_in != self.call {
                match ask(&self.pages.queues.nodes, id, take) {
                    Take::Taken => {
                        let frame = id.frame()?;
                        self.pages.leave(frame);
                        return Some(frame);
                    }
                    Take::Busy | Take::Dirty => {
                        self.pages.queues.nodes[id].state.declined_in = self.call;
                        turns.declined[usize::from(clock)] += 1;
                    }
                    Take::Enough => return None,
                }
            }
            self.pages.queues.rotate(clock);
        }
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, at: Placement) {
        self.pages.learn(page);
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
        let order = match self.is_t1_full() {
            true => [T1, T2],
            false => [T2, T1],
        };
        let queues = &self.pages.queues;
        queues.guess(order, State::weight, limit, out);
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
        let mut bench = Bench::new("car", 4);
        assert_eq!(
            bench.use_pages([1, 2, 3, 4, 1, 1]),
            "t1: 1:1 2 3 4 | t2: - | b1: - | b2: - | p=0",
            "a hit sets a bit"
        );
        assert_eq!(bench.likely(9), [2, 3, 4]);
        assert_eq!(
            bench.use_page(5),
            "t1: 3 4 5 | t2: 1 | b1: (2) | b2: - | p=0",
            "what was used goes over to T2 and loses its bit"
        );
        assert_eq!(
            bench.use_page(2),
            "t1: 4 5 | t2: 1 2 | b1: (3) | b2: - | p=1",
            "the target moves after the victim is chosen"
        );
        assert_eq!(
            bench.use_page(3),
            "t1: 5 | t2: 1 2 3 | b1: (4) | b2: - | p=2"
        );
        assert_eq!(
            bench.use_pages([1, 6]),
            "t1: 5 6 | t2: 3 1 | b1: (4) | b2: (2) | p=2",
            "T1 is shorter than its target; 1 gets another round"
        );
        bench.pin(5);
        assert_eq!(
            bench.use_page(7),
            "t1: 5 7 | t2: 3 1 | b1: (4) (6) | b2: (2) | p=2",
            "the pinned are passed"
        );
        assert_eq!(
            bench.use_page(2),
            "t1: 5 | t2: 3 1 2 | b1: (4) (6) (7) | b2: - | p=0"
        );
        bench.use_pages([3, 5]);
        bench.pin(1);
        assert_eq!(
            bench.use_page(8),
            "t1: 8 | t2: 5 3 1 | b1: (4) (6) (7) | b2: (2) | p=0",
            "5 goes over to T2; 3 gets another round; 1 is pinned"
        );
        assert_eq!(
            bench.remove(5),
            "t1: 8 | t2: 3 1 | b1: (4) (6) (7) | b2: (2) | p=0"
        );
    }

    #[test]
    fn the_target_moves_after_the_victim_is_chosen() {
        let mut bench = Bench::new("car", 4);
        assert_eq!(
            bench.use_pages([1, 2, 3, 4, 1, 5, 2, 3, 1, 6]),
            "t1: 5 6 | t2: 3 1 | b1: (4) | b2: (2) | p=2"
        );
        assert_eq!(
            bench.use_page(4),
            "t1: 6 | t2: 3 1 4 | b1: (5) | b2: (2) | p=3"
        );
    }
}
