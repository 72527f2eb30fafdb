//! W-TinyLFU: a small LRU window takes every new page; what falls out of it is admitted to the main part, a segmented
//! LRU queue, only if it was used more often, lately, than the page that would have to leave for it.
//!
//! Weakness: what is used in bursts, or rarely but regularly, loses against what was counted more often; after the hot
//! set has changed, the new pages need some uses before they are admitted. The window does not adapt.
//! Memory: 24 bytes a frame, and 8 to 16 bytes for the sketch of frequencies.
//! Parameters: `window` 1 % of the frames, at least one, and `protected`, 80 % of the main part: the paper's. `luck`, the
//! chance of a page to be admitted although it was used no more often, if it was used `WARM` times at least, 0.78125 %
//! (one in 128), and the `seed` of that chance: Caffeine's, not the paper's. In loops all pages are used equally often;
//! then those whose counters collide would stay for ever.
//!
//! Uses are counted in a sketch (`sketch.rs`), for pages resident and not; that takes arithmetic on the page's number,
//! no directory. A page always comes in, for a pool cannot pass it by; with `window=0%` the window is one frame, which
//! is as near as a pool can come to TinyLFU without a window.
//!
//! The reference rows (Caffeine's) are met within 1 point on real traces and within 2 on loops and scans, where all pages
//! are counted alike and those whose counters collide by chance decide: with that simulator's own hash functions the rows
//! of cs, scan at 500 pages and loop at 512 come out exactly.
//!
//! # Source
//! G. Einziger, R. Friedman, B. Manes: TinyLFU: A Highly Efficient Cache Admission Policy. ACM Transactions on Storage
//! 13(4), 2017, section 4.

use longshore_base::{Environment, PageId, SeededEnvironment};

use super::segments::{Segment, Segments};
use super::sketch::Sketch;
use crate::catalogue::{About, Listed, Parameter, Unit};
use crate::inspect::Inspector;
use crate::lists::{List, Offered, offer_in_turn};
use crate::nodes::{NodeId, NodeTable};
use crate::policy::{Frame, Gone, Nodes, Placement, Policy, Take};
use crate::spec::{Values, share};

/// See the head of the file.
pub(crate) struct WTinyLfu {
    nodes: NodeTable<Segment>,
    /// New pages, the one not used for longest in front.
    window: List,
    window_len: usize,
    main: Segments,
    sketch: Sketch,
    chance: SeededEnvironment,
    settings: Settings,
}

/// In percent.
struct Settings {
    window: f64,
    protected: f64,
    luck: f64,
}

/// Uses that let a page try its luck.
const WARM: u64 = 6;

impl Listed for WTinyLfu {
    const ABOUT: About = About {
        name: "w-tinylfu",
        source: "Einziger, Friedman, Manes 2017",
        weakness: "bursts and new hot pages lose against what was used often before",
        memory: "32-40 B",
        parameters: &[
            Parameter {
                name: "window",
                meaning: "frames that take new pages, at least one",
                unit: Unit::Percent,
                default: 1.0,
                min: 0.0,
                max: 100.0,
            },
            Parameter {
                name: "protected",
                meaning: "frames of the rest for pages used again there",
                unit: Unit::Percent,
                default: 80.0,
                min: 0.0,
                max: 100.0,
            },
            Parameter {
                name: "luck",
                meaning: "chance that a page used often is admitted where another was used as often",
                unit: Unit::Percent,
                default: 0.78125,
                min: 0.0,
                max: 100.0,
            },
            Parameter {
                name: "seed",
                meaning: "determines who is lucky",
                unit: Unit::Whole,
                default: 1.0,
                min: 0.0,
                max: 4294967295.0,
            },
        ],
    };

    fn new(capacity: u32, values: &Values<'_>) -> WTinyLfu {
        let mut policy = WTinyLfu {
            nodes: NodeTable::new(capacity),
            window: List::new(),
            window_len: 0,
            main: Segments::new(),
            sketch: Sketch::new(capacity),
            chance: SeededEnvironment::new(values.whole("seed")),
            settings: Settings {
                window: values.percent("window"),
                protected: values.percent("protected"),
                luck: values.percent("luck"),
            },
        };
        policy.arrange(capacity);
        policy
    }
}

impl WTinyLfu {
    /// Shares out the frames.
    fn arrange(&mut self, frames: u32) {
        let main = share(100.0 - self.settings.window, frames).min(frames as usize - 1);
        self.window_len = frames as usize - main;
        let protected = share(self.settings.protected, main as u32);
        self.main.set_protected_max(&mut self.nodes, protected);
    }

    /// The page that falls out of the window when another comes in, unless it is admitted to the main part.
    fn rejected(&self) -> Option<NodeId> {
        if self.window.len() < self.window_len {
            return None;
        }
        let candidate = self.window.front()?;
        let uses = |id| self.sketch.estimate(self.nodes[id].page());
        let used = uses(candidate);
        match self.main.probation.front() {
            Some(victim) if used > uses(victim) || used >= WARM && self.is_lucky() => None,
            _ => Some(candidate),
        }
    }

    fn is_lucky(&self) -> bool {
        let drawn = self.chance.random() as f64 / u64::MAX as f64;
        drawn * 100.0 < self.settings.luck
    }

    /// The lists in the order in which they give victims, but for a page rejected.
    fn victims(&self) -> [&List; 3] {
        let Segments {
            probation,
            protected,
            ..
        } = &self.main;
        match self.window.len() < self.window_len {
            true => [probation, protected, &self.window],
            false => [probation, &self.window, protected],
        }
    }

    fn offer(&self, take: &mut dyn FnMut(Frame, PageId) -> Take) -> Offered {
        if let Some(id) = self.rejected()
            && let Some(frame) = id.frame()
        {
            match take(frame, self.nodes[id].page()) {
                Take::Taken => return Offered::Taken(id),
                Take::Enough => return Offered::Enough,
                Take::Busy | Take::Dirty => {}
            }
        }
        offer_in_turn(self.victims(), &self.nodes, take)
    }
}

impl Policy for WTinyLfu {
    #[inline]
    fn on_hit(&mut self, frame: Frame) {
        let id = NodeId::of(frame);
        self.sketch.count(self.nodes[id].page());
        match self.nodes[id].state {
            Segment::Elsewhere => self.window.move_to_back(&mut self.nodes, id),
            _ => self.main.hit(&mut self.nodes, id),
        }
    }

    fn on_miss(&mut self, page: PageId) -> Placement {
        self.sketch.count(page);
        Placement::ONLY
    }

    fn evict(
        &mut self,
        _incoming: Option<(PageId, Placement)>,
        take: &mut dyn FnMut(Frame, PageId) -> Take,
    ) -> Option<Frame> {
        match self.offer(take) {
            Offered::Taken(victim) => {
                let frame = victim.frame()?;
                self.on_remove(frame, Gone::Invalidated);
                Some(frame)
            }
            Offered::Declined | Offered::Enough => None,
        }
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, _at: Placement) {
        let id = self.nodes.occupy(frame, page, Segment::Elsewhere);
        self.window.push_back(&mut self.nodes, id);
        while self.window.len() > self.window_len
            && let Some(admitted) = self.window.pop_front(&mut self.nodes)
        {
            self.main.admit(&mut self.nodes, admitted);
        }
    }

    fn on_remove(&mut self, frame: Frame, _why: Gone) {
        let id = NodeId::of(frame);
        match self.nodes[id].state {
            Segment::Elsewhere => self.window.remove(&mut self.nodes, id),
            _ => self.main.remove(&mut self.nodes, id),
        }
        self.nodes.vacate(frame);
    }

    /// The sketch begins anew: its counters cannot be told apart by page.
    fn set_capacity(&mut self, frames: u32) {
        self.nodes.reserve(frames);
        self.sketch = Sketch::new(frames);
        self.arrange(frames);
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
        self.window.show(&self.nodes, out, "window", |_, _| {});
        self.main.show(&self.nodes, out);
    }

    fn check(&self) -> Result<(), String> {
        self.window.check(&self.nodes)?;
        self.main.check(&self.nodes)?;
        self.nodes.check(self.window.len() + self.main.len())?;
        let mut window = self.window.iter(&self.nodes);
        match window.all(|id| self.nodes[id].state == Segment::Elsewhere) {
            true => Ok(()),
            false => Err("a page of the main part stands in the window".to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policies::testing::Bench;

    #[test]
    fn order_step_by_step() {
        let mut bench = Bench::new("w-tinylfu:window=40%,protected=50%", 5);
        assert_eq!(
            bench.use_pages([1, 2, 3, 4, 5]),
            "window: 4 5 | probation: 1 2 3 | protected: -",
            "admitted while there is room"
        );
        assert_eq!(
            bench.use_pages([2, 4]),
            "window: 5 4 | probation: 1 3 | protected: 2"
        );
        assert_eq!(
            bench.use_page(6),
            "window: 4 6 | probation: 1 3 | protected: 2",
            "5 was used no more than 1 and is rejected"
        );
        assert_eq!(
            bench.use_page(7),
            "window: 6 7 | probation: 3 4 | protected: 2",
            "4 was used more than 1"
        );
        assert_eq!(bench.likely(9), [3, 4, 6, 7, 2]);
        assert_eq!(
            bench.use_page(3),
            "window: 6 7 | probation: 4 2 | protected: 3"
        );
        bench.pin(6);
        assert_eq!(
            bench.use_page(8),
            "window: 7 8 | probation: 2 6 | protected: 3",
            "6 is rejected, but pinned: 4 leaves"
        );
        assert_eq!(bench.remove(7), "window: 8 | probation: 2 6 | protected: 3");
        assert_eq!(
            bench.use_page(9),
            "window: 8 9 | probation: 2 6 | protected: 3"
        );
    }

    #[test]
    fn what_was_used_often_before_it_left_is_admitted_again() {
        let mut bench = Bench::new("w-tinylfu", 3);
        bench.use_pages([1, 2, 3, 1, 1, 1]);
        bench.remove(1);
        bench.use_pages([4, 1]);
        assert_eq!(bench.dump(), "window: 1 | probation: 2 3 | protected: -");
        assert_eq!(
            bench.use_page(5),
            "window: 5 | probation: 3 1 | protected: -"
        );
    }
}
