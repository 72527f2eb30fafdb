//! S3-FIFO: new pages pass through a small FIFO queue; those used there go on to a main queue, where they leave FIFO but
//! stay another round for each use; those not used leave early, and are remembered: if they come back soon, they go
//! straight to the main queue.
//!
//! Weakness: a page whose second use comes after it passed the small queue and its ghosts misses every time; loops a
//! little larger than the pool defeat it.
//! Memory: 27 bytes a frame, and 48 for each of up to `ghosts` pages.
//! Parameters: `small` 10 %, `ghosts` 90 %, `move` 2, `cap` 3: the paper's.
//!
//! Variant: `move` is the number of uses in the small queue that let a page move on, 2 as in the paper's algorithm 1
//! (`freq > 1`; some write that as a threshold of 1). It comes to the main queue with no uses. A page that moves on does
//! not by itself drive another from the main queue: the next victim is taken there, for the queue is then too long. (In
//! the paper's algorithm a page that moves leads to an eviction from the main queue at once, which empties more frames
//! than a fault needs.) The small queue gives the victim if it has its share of frames; else the main queue. Two other
//! simulators, one with and one without that eviction, differ by 0.3 points at most.
//!
//! # Source
//! J. Yang, Y. Zhang, Z. Qiu, Y. Yue, K. V. Rashmi: FIFO Queues are All You Need for Cache Eviction. SOSP 2023,
//! section 4, algorithm 1.

use longshore_base::PageId;

use super::queues::{Queued, Queues, check_len};
use super::sweep::{Weighted, sweep};
use crate::catalogue::{About, Ghosts, Listed, Parameter, Unit};
use crate::inspect::Inspector;
use crate::lists::{Offered, ask};
use crate::nodes::NodeId;
use crate::policy::{Frame, Gone, Incoming, Nodes, Placement, Policy, Take, Taker};
use crate::spec::{Values, share};

/// New pages, the oldest in front.
const SMALL: u8 = 0;
/// The hand points to the front.
const MAIN: u8 = 1;
/// Pages that left the small queue unused, the oldest in front.
const GHOSTS: u8 = 2;

/// See the head of the file.
pub(crate) struct S3Fifo {
    queues: Queues<State, 3>,
    /// Counts calls of `evict`.
    call: u32,
    small_len: usize,
    ghosts_max: usize,
    settings: Settings,
}

struct Settings {
    small: f64,
    ghosts: f64,
    /// Uses that let a page move on.
    move_at: u8,
    /// No more uses are counted.
    cap: u8,
}

#[derive(Default)]
struct State {
    uses: u8,
    queue: u8,
    declined_in: u32,
}

impl Queued for State {
    fn queue(&self) -> usize {
        usize::from(self.queue)
    }

    fn set_queue(&mut self, queue: u8) {
        self.queue = queue;
    }
}

impl Weighted for State {
    fn weight(&self) -> u32 {
        u32::from(self.uses)
    }

    fn lower(&mut self) {
        self.uses -= 1;
    }

    fn declined_in(&mut self) -> &mut u32 {
        &mut self.declined_in
    }
}

impl Listed for S3Fifo {
    const ABOUT: About = About {
        name: "s3-fifo",
        source: "Yang et al. 2023",
        weakness: "a second use after the small queue and its ghosts misses; loops defeat it",
        memory: Queues::<State, 3>::MEMORY.and_ghosts(Ghosts::Parameter("ghosts")),
        parameters: &[
            Parameter {
                name: "small",
                meaning: "frames for pages that are new",
                unit: Unit::Percent,
                default: 10.0,
                min: 0.0,
                max: 100.0,
            },
            Parameter {
                name: "ghosts",
                meaning: "pages remembered that left unused",
                unit: Unit::Percent,
                default: 90.0,
                min: 0.0,
                max: 1000.0,
            },
            Parameter {
                name: "move",
                meaning: "uses of a new page that let it stay",
                unit: Unit::Whole,
                default: 2.0,
                min: 1.0,
                max: 255.0,
            },
            Parameter {
                name: "cap",
                meaning: "the most uses counted",
                unit: Unit::Whole,
                default: 3.0,
                min: 1.0,
                max: 255.0,
            },
        ],
    };

    fn new(capacity: u32, values: &Values<'_>) -> S3Fifo {
        let mut policy = S3Fifo {
            queues: Queues::new(capacity),
            call: 0,
            small_len: 0,
            ghosts_max: 0,
            settings: Settings {
                small: values.percent("small"),
                ghosts: values.percent("ghosts"),
                move_at: values.whole("move") as u8,
                cap: values.whole("cap") as u8,
            },
        };
        policy.set_capacity(capacity);
        policy
    }
}

impl S3Fifo {
    fn offer_of(&mut self, queue: u8, take: Taker<'_>) -> Offered {
        match queue {
            SMALL => self.offer_small(take),
            _ => sweep(&mut self.queues, MAIN, self.call, take),
        }
    }

    /// From the small queue: what was used there moves on, the rest is offered.
    fn offer_small(&mut self, take: Taker<'_>) -> Offered {
        let mut next = self.queues[SMALL].front();
        for _ in 0..self.queues[SMALL].len() {
            let Some(id) = next else { break };
            next = Some(self.queues[SMALL].next(&self.queues.nodes, id));
            let state = &mut self.queues.nodes[id].state;
            if state.uses >= self.settings.move_at {
                state.uses = 0;
                self.queues.move_to(id, MAIN);
                continue;
            }
            match ask(&self.queues.nodes, id, take) {
                Take::Taken => return Offered::Taken(id),
                Take::Busy | Take::Dirty => {}
                Take::Enough => return Offered::Enough,
            }
        }
        Offered::Declined
    }

    /// What a page must lose before it can leave: in the small queue it moves on instead.
    fn weight(&self, state: &State) -> u32 {
        match state.queue {
            SMALL => u32::from(state.uses >= self.settings.move_at),
            _ => u32::from(state.uses),
        }
    }
}

impl Policy for S3Fifo {
    #[inline]
    fn on_hit(&mut self, frame: Frame) {
        let cap = self.settings.cap;
        let state = &mut self.queues.nodes[NodeId::of(frame)].state;
        state.uses += u8::from(state.uses < cap);
    }

    /// The placement is the number of a queue.
    fn on_miss(&mut self, page: PageId) -> Placement {
        let is_known = self.queues.forget(page);
        Placement::new(u32::from(if is_known { MAIN } else { SMALL }))
    }

    fn evict(&mut self, _incoming: Incoming, take: Taker<'_>) -> Option<Frame> {
        self.call = self.call.wrapping_add(1);
        let is_small_full = self.queues[SMALL].len() >= self.small_len;
        // Last, all of the small queue may have moved on after the main queue was looked at.
        let order = match is_small_full || self.queues[MAIN].is_empty() {
            true => [SMALL, MAIN, MAIN],
            false => [MAIN, SMALL, MAIN],
        };
        let mut offered = order.into_iter().map(|queue| self.offer_of(queue, take));
        let offered = offered.find(|offered| *offered != Offered::Declined)?;
        let frame = offered.taken()?;
        let (page, state) = self.queues.vacate(frame);
        if state.queue == SMALL {
            let (state, max) = (State::default(), self.ghosts_max);
            self.queues.remember(page, state, GHOSTS, max);
        }
        Some(frame)
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, at: Placement) {
        let (state, queue) = (State::default(), at.get() as u8);
        self.queues.admit(frame, page, state, queue);
    }

    fn on_remove(&mut self, frame: Frame, _why: Gone) {
        self.queues.vacate(frame);
    }

    fn forget_ghost(&mut self, page: PageId) {
        self.queues.forget(page);
    }

    fn set_capacity(&mut self, frames: u32) {
        self.queues.nodes.reserve(frames);
        self.small_len = share(self.settings.small, frames);
        self.ghosts_max = share(self.settings.ghosts, frames);
        self.queues.trim(GHOSTS, self.ghosts_max);
    }

    fn bytes(&self) -> usize {
        self.queues.nodes.bytes()
    }

    fn nodes(&self) -> Nodes {
        self.queues.nodes.addresses()
    }

    fn likely_victims(&self, limit: usize, out: &mut Vec<Frame>) {
        let order = match self.queues[SMALL].len() >= self.small_len {
            true => [SMALL, MAIN],
            false => [MAIN, SMALL],
        };
        let weight = |state: &State| self.weight(state);
        self.queues.guess(order, weight, limit, out);
    }

    fn inspect(&self, out: &mut dyn Inspector) {
        let uses = |state: &State| u32::from(state.uses);
        let names = [(SMALL, "small"), (MAIN, "main"), (GHOSTS, "ghosts")];
        self.queues.show(names, uses, out);
    }

    fn check(&self) -> Result<(), String> {
        check_len("ghosts", self.queues[GHOSTS].len(), self.ghosts_max)?;
        self.queues.check(GHOSTS)
    }
}

#[cfg(test)]
mod tests {
    use crate::policies::testing::Bench;

    #[test]
    fn order_step_by_step() {
        let mut bench = Bench::new("s3-fifo:small=50%,ghosts=50%", 4);
        assert_eq!(
            bench.use_pages([1, 2, 3, 4, 1, 1, 3]),
            "small: 1:2 2 3:1 4 | main: - | ghosts: -"
        );
        assert_eq!(bench.likely(9), [2, 3, 4]);
        assert_eq!(
            bench.use_page(5),
            "small: 3:1 4 5 | main: 1 | ghosts: (2)",
            "1 moves on, 2 leaves"
        );
        assert_eq!(
            bench.use_page(2),
            "small: 4 5 | main: 1 2 | ghosts: (3)",
            "one use is not enough; 2 comes back to the main queue"
        );
        assert_eq!(
            bench.use_pages([1, 1, 1, 1]),
            "small: 4 5 | main: 1:3 2 | ghosts: (3)"
        );
        bench.pin(4);
        assert_eq!(
            bench.use_page(6),
            "small: 4 6 | main: 1:3 2 | ghosts: (3) (5)",
            "the pinned keep their place"
        );
        assert_eq!(
            bench.use_pages([4, 4]),
            "small: 4:2 6 | main: 1:3 2 | ghosts: (3) (5)"
        );
        assert_eq!(
            bench.use_page(3),
            "small: - | main: 1:3 2 4 3 | ghosts: (5) (6)",
            "4 moves on although it is pinned"
        );
        assert_eq!(
            bench.use_page(7),
            "small: 7 | main: 4 3 1:2 | ghosts: (5) (6)",
            "the main queue is too long: 2 leaves, unremembered"
        );
        assert_eq!(bench.remove(3), "small: 7 | main: 4 1:2 | ghosts: (5) (6)");
    }

    #[test]
    fn ghosts_are_cut_when_the_pool_shrinks() {
        let mut bench = Bench::new("s3-fifo", 10);
        bench.use_pages(0..30);
        bench.policy.set_capacity(3);
        assert!(bench.dump().ends_with("ghosts: (18) (19)"));
        bench.policy.forget_ghost(longshore_base::PageId::new(18));
        assert!(bench.dump().ends_with("ghosts: (19)"));
    }
}
