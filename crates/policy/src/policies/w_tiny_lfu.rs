//! W-TinyLFU: a small LRU window takes every new page; what falls out of it is admitted to the main part, a segmented
//! LRU queue, only if it was used more often, lately, than the page that would have to leave for it.
//!
//! Weakness: what is used in bursts, or rarely but regularly, loses against what was counted more often; after the hot
//! set has changed, the new pages need some uses before they are admitted. The window does not adapt.
//! Memory: 27 bytes a frame, and 8 to 16 bytes for the sketch of frequencies.
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

use super::queues::{Queues, check_len, weightless};
use super::segments::{PROBATION, PROTECTED, demote, protect};
use super::sketch::Sketch;
use crate::catalogue::{About, Listed, Parameter, Unit};
use crate::inspect::Inspector;
use crate::lists::{Offered, ask};
use crate::nodes::NodeId;
use crate::policy::{Frame, Gone, Incoming, Nodes, Placement, Policy, Take, Taker};
use crate::spec::{Values, share};

/// New pages, the one not used for longest in front.
const WINDOW: u8 = 2;

/// See the head of the file.
pub(crate) struct WTinyLfu {
    /// The segments of the main part, and the window.
    queues: Queues<u8, 3>,
    window_len: usize,
    protected_max: usize,
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
        memory: Queues::<u8, 3>::MEMORY
            .and_frame(Sketch::FRAME_BYTES)
            .and_fixed(8 * Sketch::FRAME_BYTES),
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
            queues: Queues::new(capacity),
            window_len: 0,
            protected_max: 0,
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
        self.protected_max = share(self.settings.protected, main as u32);
        demote(&mut self.queues, self.protected_max);
    }

    /// The page that falls out of the window when another comes in, unless it is admitted to the main part.
    fn rejected(&self) -> Option<NodeId> {
        if self.queues[WINDOW].len() < self.window_len {
            return None;
        }
        let candidate = self.queues[WINDOW].front()?;
        let uses = |id| self.sketch.estimate(self.queues.nodes[id].page());
        let used = uses(candidate);
        match self.queues[PROBATION].front() {
            Some(victim) if used > uses(victim) || used >= WARM && self.is_lucky() => None,
            _ => Some(candidate),
        }
    }

    fn is_lucky(&self) -> bool {
        let drawn = self.chance.random() as f64 / u64::MAX as f64;
        drawn * 100.0 < self.settings.luck
    }

    /// The queues in the order in which they give victims, but for a page rejected.
    fn victims(&self) -> [u8; 3] {
        match self.queues[WINDOW].len() < self.window_len {
            true => [PROBATION, PROTECTED, WINDOW],
            false => [PROBATION, WINDOW, PROTECTED],
        }
    }

    fn offer(&self, take: Taker<'_>) -> Offered {
        if let Some(id) = self.rejected() {
            match ask(&self.queues.nodes, id, take) {
                Take::Taken => return Offered::Taken(id),
                Take::Enough => return Offered::Enough,
                Take::Busy | Take::Dirty => {}
            }
        }
        self.queues.offer(self.victims(), take)
    }
}

impl Policy for WTinyLfu {
    #[inline]
    fn on_hit(&mut self, frame: Frame) {
        let id = NodeId::of(frame);
        let node = &self.queues.nodes[id];
        self.sketch.count(node.page());
        match node.state {
            WINDOW => self.queues.move_to(id, WINDOW),
            _ => protect(&mut self.queues, id, self.protected_max),
        }
    }

    fn on_miss(&mut self, page: PageId) -> Placement {
        self.sketch.count(page);
        Placement::ONLY
    }

    fn evict(&mut self, _incoming: Incoming, take: Taker<'_>) -> Option<Frame> {
        let frame = self.offer(take).taken()?;
        self.queues.vacate(frame);
        Some(frame)
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, _at: Placement) {
        self.queues.admit(frame, page, WINDOW, WINDOW);
        while self.queues[WINDOW].len() > self.window_len
            && let Some(admitted) = self.queues[WINDOW].front()
        {
            self.queues.move_to(admitted, PROBATION);
        }
    }

    fn on_remove(&mut self, frame: Frame, _why: Gone) {
        self.queues.vacate(frame);
    }

    /// The sketch begins anew: its counters cannot be told apart by page.
    fn set_capacity(&mut self, frames: u32) {
        self.queues.nodes.reserve(frames);
        self.sketch = Sketch::new(frames);
        self.arrange(frames);
    }

    fn bytes(&self) -> usize {
        self.queues.nodes.bytes() + self.sketch.bytes()
    }

    fn nodes(&self) -> Nodes {
        self.queues.nodes.addresses()
    }

    fn likely_victims(&self, limit: usize, out: &mut Vec<Frame>) {
        self.queues.guess(self.victims(), weightless, limit, out);
    }

    fn inspect(&self, out: &mut dyn Inspector) {
        let names = [
            (WINDOW, "window"),
            (PROBATION, "probation"),
            (PROTECTED, "protected"),
        ];
        self.queues.show(names, weightless, out);
    }

    fn check(&self) -> Result<(), String> {
        check_len(
            "protected",
            self.queues[PROTECTED].len(),
            self.protected_max,
        )?;
        self.queues.check(3)
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

    #[test]
    fn a_page_missed_often_is_admitted() {
        let mut bench = Bench::new("w-tinylfu", 3);
        assert_eq!(
            bench.use_pages([1, 2, 3, 4, 5, 4]),
            "window: 4 | probation: 1 2 | protected: -"
        );
        assert_eq!(
            bench.use_page(5),
            "window: 5 | probation: 2 4 | protected: -",
            "4 was missed twice"
        );
    }

    #[test]
    fn counts_are_forgotten_when_the_size_changes() {
        let mut bench = Bench::new("w-tinylfu", 3);
        bench.use_pages([1, 2, 3, 4, 5, 4]);
        bench.policy.set_capacity(3);
        assert_eq!(
            bench.use_page(5),
            "window: 5 | probation: 1 2 | protected: -"
        );
    }

    #[test]
    fn a_page_used_often_is_rejected_without_luck() {
        let often = |page| std::iter::repeat_n(page, 6);
        let mut bench = Bench::new("w-tinylfu:protected=0%,luck=0%", 3);
        bench.use_pages([1, 2, 3]);
        bench.use_pages(often(1).chain(often(2)));
        bench.use_pages(often(3).skip(1));
        assert_eq!(
            bench.use_page(4),
            "window: 4 | probation: 1 2 | protected: -"
        );
    }
}
