//! S3-FIFO: new pages pass through a small FIFO queue; those used there go on to a main queue, where they leave FIFO but
//! stay another round for each use; those not used leave early, and are remembered: if they come back soon, they go
//! straight to the main queue.
//!
//! Weakness: a page whose second use comes after it passed the small queue and its ghosts misses every time; loops a
//! little larger than the pool defeat it.
//! Memory: 24 bytes a frame, and 24 bytes and a place in the directory (about 18) for each of up to `ghosts` pages.
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

use super::sweep::{Weighted, sweep};
use crate::catalogue::{About, Listed, Parameter, Unit};
use crate::inspect::{Entry, Inspector};
use crate::lists::{List, Offered};
use crate::nodes::{NodeId, NodeTable};
use crate::policy::{Frame, Gone, Nodes, Placement, Policy, Take};
use crate::spec::{Values, share};

/// See the head of the file.
pub(crate) struct S3Fifo {
    nodes: NodeTable<State>,
    /// New pages, the oldest in front.
    small: List,
    /// The hand points to the front.
    main: List,
    /// Pages that left the small queue unused, the oldest in front.
    ghosts: List,
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
    is_main: bool,
    declined_in: u32,
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

const SMALL: Placement = Placement::new(0);
const MAIN: Placement = Placement::new(1);

impl Listed for S3Fifo {
    const ABOUT: About = About {
        name: "s3-fifo",
        source: "Yang et al. 2023",
        weakness: "a second use after the small queue and its ghosts misses; loops defeat it",
        memory: "24 B + 38 B",
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
            nodes: NodeTable::new(capacity),
            small: List::new(),
            main: List::new(),
            ghosts: List::new(),
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
    /// From the small queue: what was used there moves on, the rest is offered.
    fn offer_small(&mut self, take: &mut dyn FnMut(Frame, PageId) -> Take) -> Offered {
        let mut next = self.small.front();
        for _ in 0..self.small.len() {
            let Some((id, frame)) = next.and_then(|id| Some((id, id.frame()?))) else {
                break;
            };
            next = Some(self.small.next(&self.nodes, id));
            if self.nodes[id].state.uses >= self.settings.move_at {
                self.move_on(id);
                continue;
            }
            match take(frame, self.nodes[id].page()) {
                Take::Taken => return Offered::Taken(id),
                Take::Busy | Take::Dirty => {}
                Take::Enough => return Offered::Enough,
            }
        }
        Offered::Declined
    }

    fn move_on(&mut self, id: NodeId) {
        self.small.remove(&mut self.nodes, id);
        self.nodes[id].state = State {
            is_main: true,
            ..State::default()
        };
        self.main.push_back(&mut self.nodes, id);
    }

    fn offer_main(&mut self, take: &mut dyn FnMut(Frame, PageId) -> Take) -> Offered {
        sweep(&mut self.main, &mut self.nodes, self.call, take)
    }
}

impl Policy for S3Fifo {
    #[inline]
    fn on_hit(&mut self, frame: Frame) {
        let cap = self.settings.cap;
        let state = &mut self.nodes[NodeId::of(frame)].state;
        state.uses += u8::from(state.uses < cap);
    }

    fn on_miss(&mut self, page: PageId) -> Placement {
        match self.nodes.ghost(page) {
            Some(_) => {
                self.forget_ghost(page);
                MAIN
            }
            None => SMALL,
        }
    }

    fn evict(
        &mut self,
        _incoming: Option<(PageId, Placement)>,
        take: &mut dyn FnMut(Frame, PageId) -> Take,
    ) -> Option<Frame> {
        self.call = self.call.wrapping_add(1);
        let small_first = self.small.len() >= self.small_len || self.main.is_empty();
        let mut offered = match small_first {
            true => self.offer_small(take),
            false => self.offer_main(take),
        };
        if offered == Offered::Declined {
            offered = match small_first {
                true => self.offer_main(take),
                false => self.offer_small(take),
            };
        }
        // All of the small queue may have moved on after the main queue was looked at.
        if offered == Offered::Declined {
            offered = self.offer_main(take);
        }
        let Offered::Taken(id) = offered else {
            return None;
        };
        let frame = id.frame()?;
        let (page, is_main) = (self.nodes[id].page(), self.nodes[id].state.is_main);
        self.on_remove(frame, Gone::Invalidated);
        if !is_main {
            let ghost = self.nodes.remember(page, State::default());
            self.ghosts.push_back(&mut self.nodes, ghost);
            self.ghosts.trim(&mut self.nodes, self.ghosts_max);
        }
        Some(frame)
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, at: Placement) {
        let state = State {
            is_main: at == MAIN,
            ..State::default()
        };
        let id = self.nodes.occupy(frame, page, state);
        match at == MAIN {
            true => self.main.push_back(&mut self.nodes, id),
            false => self.small.push_back(&mut self.nodes, id),
        }
    }

    fn on_remove(&mut self, frame: Frame, _why: Gone) {
        let id = NodeId::of(frame);
        match self.nodes[id].state.is_main {
            true => self.main.remove(&mut self.nodes, id),
            false => self.small.remove(&mut self.nodes, id),
        }
        self.nodes.vacate(frame);
    }

    fn forget_ghost(&mut self, page: PageId) {
        if let Some(ghost) = self.nodes.ghost(page) {
            self.ghosts.remove(&mut self.nodes, ghost);
            self.nodes.forget(ghost);
        }
    }

    fn set_capacity(&mut self, frames: u32) {
        self.nodes.reserve(frames);
        self.small_len = share(self.settings.small, frames);
        self.ghosts_max = share(self.settings.ghosts, frames);
        self.ghosts.trim(&mut self.nodes, self.ghosts_max);
    }

    fn nodes(&self) -> Nodes {
        self.nodes.addresses()
    }

    fn likely_victims(&self, limit: usize, out: &mut Vec<Frame>) {
        let small = self.small.iter(&self.nodes);
        let small = small.filter(|&id| self.nodes[id].state.uses < self.settings.move_at);
        let main = self.main.iter(&self.nodes);
        let main = main.filter(|&id| self.nodes[id].state.uses == 0);
        match self.small.len() >= self.small_len {
            true => out.extend(small.chain(main).filter_map(NodeId::frame).take(limit)),
            false => out.extend(main.chain(small).filter_map(NodeId::frame).take(limit)),
        }
    }

    fn inspect(&self, out: &mut dyn Inspector) {
        let uses = |state: &State, entry: &mut Entry| {
            entry.weight = u32::from(state.uses);
        };
        self.small.show(&self.nodes, out, "small", uses);
        self.main.show(&self.nodes, out, "main", uses);
        self.ghosts.show(&self.nodes, out, "ghosts", uses);
    }

    fn check(&self) -> Result<(), String> {
        for list in [&self.small, &self.main, &self.ghosts] {
            list.check(&self.nodes)?;
        }
        let residents = self.small.len() + self.main.len();
        self.nodes.check(residents + self.ghosts.len())?;
        if self.ghosts.len() > self.ghosts_max || self.nodes.ghosts() != self.ghosts.len() {
            return Err(format!("{} ghosts", self.nodes.ghosts()));
        }
        let is_main = |id| self.nodes[id].state.is_main;
        let strayed =
            self.small.iter(&self.nodes).any(is_main) || !self.main.iter(&self.nodes).all(is_main);
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
