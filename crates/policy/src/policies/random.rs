//! RANDOM: any page, each with the same chance.
//!
//! Weakness: it knows nothing; but neither scans nor loops can do worse to it than anything else.
//! Memory: 23 bytes a frame.
//! Parameters: `seed`, from which the choices follow.
//!
//! If the page drawn is declined, those behind it are offered in the order in which they stand.
//!
//! # Source
//! L. A. Belady: A Study of Replacement Algorithms for a Virtual-Storage Computer. IBM Systems Journal 5(2), 1966.

use longshore_base::{Environment, PageId, SeededEnvironment};

use crate::catalogue::{About, Ghosts, Listed, Memory, Parameter, Unit};
use crate::inspect::{Entry, Inspector};
use crate::nodes::{SPARE, grow, grown};
use crate::policy::{Frame, Gone, Incoming, Placement, Policy, Take, Taker};
use crate::spec::Values;

/// See the head of the file.
pub(crate) struct Random {
    /// Residents, in no order.
    residents: Vec<(Frame, PageId)>,
    /// By frame: where it stands in `residents`.
    place: Vec<u32>,
    chance: SeededEnvironment,
}

/// Not resident.
const NOWHERE: u32 = u32::MAX;

impl Listed for Random {
    const ABOUT: About = About {
        name: "random",
        source: "Belady 1966",
        weakness: "knows nothing of use",
        memory: Memory {
            fixed: SPARE * (size_of::<(Frame, PageId)>() + size_of::<u32>()),
            frame: grown(size_of::<(Frame, PageId)>()) + grown(size_of::<u32>()),
            ghost: 0,
            ghosts: Ghosts::None,
        },
        parameters: &[Parameter {
            name: "seed",
            meaning: "determines the choices",
            unit: Unit::Whole,
            default: 1.0,
            min: 0.0,
            max: 4294967295.0,
        }],
    };

    fn new(capacity: u32, values: &Values<'_>) -> Random {
        Random {
            residents: Vec::with_capacity(capacity as usize),
            place: vec![NOWHERE; capacity as usize],
            chance: SeededEnvironment::new(values.whole("seed")),
        }
    }
}

impl Random {
    /// A number below `bound`, which is not zero.
    fn below(&self, bound: usize) -> usize {
        ((u128::from(self.chance.random()) * bound as u128) >> 64) as usize
    }
}

impl Policy for Random {
    #[inline]
    fn on_hit(&mut self, _frame: Frame) {}

    fn evict(&mut self, _incoming: Incoming, take: Taker<'_>) -> Option<Frame> {
        let len = self.residents.len();
        if len == 0 {
            return None;
        }
        let start = self.below(len);
        for at in (start..len).chain(0..start) {
            let (frame, page) = self.residents[at];
            match take(frame, page) {
                Take::Taken => {
                    self.on_remove(frame, Gone::Invalidated);
                    return Some(frame);
                }
                Take::Busy | Take::Dirty => {}
                Take::Enough => return None,
            }
        }
        None
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, _at: Placement) {
        if frame as usize >= self.place.len() {
            grow(&mut self.place, frame as usize + 1);
            self.place.resize(frame as usize + 1, NOWHERE);
        }
        debug_assert!(self.place[frame as usize] == NOWHERE, "policy I1");
        self.place[frame as usize] = self.residents.len() as u32;
        let len = self.residents.len();
        grow(&mut self.residents, len + 1);
        self.residents.push((frame, page));
    }

    fn on_remove(&mut self, frame: Frame, _why: Gone) {
        let at = std::mem::replace(&mut self.place[frame as usize], NOWHERE);
        self.residents.swap_remove(at as usize);
        if let Some(&(moved, _)) = self.residents.get(at as usize) {
            self.place[moved as usize] = at;
        }
    }

    fn set_capacity(&mut self, _frames: u32) {}

    fn bytes(&self) -> usize {
        self.residents.capacity() * size_of::<(Frame, PageId)>()
            + self.place.capacity() * size_of::<u32>()
    }

    /// A sample: nobody knows.
    fn likely_victims(&self, limit: usize, out: &mut Vec<Frame>) {
        out.extend(self.residents.iter().take(limit).map(|&(frame, _)| frame));
    }

    fn inspect(&self, out: &mut dyn Inspector) {
        let mut entries = self.residents.iter().map(|&(frame, page)| Entry {
            page,
            frame: Some(frame),
            weight: 0,
            kind: "",
        });
        out.queue("pages", &mut entries);
    }

    fn check(&self) -> Result<(), String> {
        let placed = self.place.iter().filter(|&&at| at != NOWHERE).count();
        if placed != self.residents.len() {
            return Err(format!(
                "{placed} placed, {} resident",
                self.residents.len()
            ));
        }
        for (at, &(frame, _)) in self.residents.iter().enumerate() {
            if self.place[frame as usize] as usize != at {
                return Err(format!("frame {frame} is not where it is said to be"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::policies::testing::Bench;

    #[test]
    fn order_step_by_step() {
        let mut bench = Bench::new("random", 3);
        assert_eq!(bench.use_pages([1, 2, 3, 1]), "pages: 1 2 3");
        assert_eq!(bench.remove(1), "pages: 3 2", "the last takes its place");
        assert_eq!(bench.use_page(1), "pages: 3 2 1");
        bench.pin(3);
        bench.pin(2);
        assert_eq!(bench.use_page(4), "pages: 3 2 4", "whatever is drawn");
        assert_eq!(bench.likely(2), [3, 2]);
    }

    #[test]
    fn a_seed_reproduces_and_all_have_a_chance() {
        let run = |spec| {
            let mut bench = Bench::new(spec, 4);
            (0..100)
                .map(|page| bench.use_page(page))
                .collect::<Vec<_>>()
        };
        assert_eq!(run("random:seed=5"), run("random:seed=5"));
        assert_ne!(run("random:seed=5"), run("random:seed=6"));
        let mut bench = Bench::new("random", 2);
        bench.use_pages([1, 2]);
        let mut left = std::collections::HashSet::new();
        for page in 3..40 {
            let (before, after) = (bench.dump(), bench.use_page(page));
            left.insert(before.split(' ').nth(1) == after.split(' ').nth(1));
        }
        assert_eq!(left.len(), 2, "first and second of them leave at times");
    }
}
