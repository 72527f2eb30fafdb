//! LFU, without aging and with it: the page of the least priority leaves; of those with the same the one that has had it
//! for longest. The priority of a page is how often it was used since it came in, plus the age of the pool when it was
//! used last. In plain LFU the pool does not age. In LFU-aging (LFU-DA) its age is the priority of the last victim, so
//! that what was hot once is overtaken, with no sweeps to halve counts.
//!
//! Weakness: LFU never forgets: what was hot once stays, and a new page leaves before it can be used again; with aging the
//! old pages stay until the age has grown by their counts. A page that leaves is counted from the start when it comes
//! back (in-cache LFU).
//! Memory: 27 bytes a frame, and 41 for each priority that some page has: 68 at most.
//!
//! Parameters of LFU-aging: `compound`, 0, the paper's rule; 1: that of libCacheSim, whose rows are called LFUDA. There a
//! hit adds the age to the page's priority, again and again, so that old pages gain most; and the age is the least priority
//! that a page has, from the first eviction on. On OLTP with 1,000 pages 84 % of requests miss then, not 61 %.
//!
//! With aging a hit is not quite O(1): the page passes the ranks between its old priority and its new one, as many as the
//! age grew since its last use, at most as many as there are priorities; a few in practice.
//!
//! # Source
//! LFU is well known; as a list of lists, one for each count: K. Shah, A. Mitra, D. Matani: An O(1) Algorithm for
//! Implementing the LFU Cache Eviction Scheme, 2010. LFU-DA: M. Arlitt, L. Cherkasova, J. Dilley, R. Friedrich, T. Jin:
//! Evaluating Content Management Techniques for Web Proxy Caches. SIGMETRICS Performance Evaluation Review 27(4), 2000.

use longshore_base::PageId;

use super::ranks::{Ranks, Standing};
use crate::catalogue::{About, Listed, Parameter, Unit};
use crate::inspect::Inspector;
use crate::nodes::NodeId;
use crate::policy::{Frame, Gone, Incoming, Nodes, Placement, Policy, Taker};
use crate::spec::Values;

/// LFU, or if it is `AGING`, LFU-aging. See the head of the file.
pub(crate) struct Lfu<const AGING: bool> {
    /// By priority.
    pages: Ranks,
    age: u64,
    /// A hit adds the age to the page's priority.
    compounds: bool,
}

impl Listed for Lfu<false> {
    const ABOUT: About = About {
        name: "lfu",
        source: "Shah, Mitra, Matani 2010",
        weakness: "what was hot once stays; new pages leave before they are used again",
        memory: Ranks::MEMORY,
        parameters: &[],
    };

    fn new(capacity: u32, _values: &Values<'_>) -> Self {
        Lfu::build(capacity, false)
    }
}

impl Listed for Lfu<true> {
    const ABOUT: About = About {
        name: "lfu-aging",
        source: "Arlitt et al. 2000",
        weakness: "the old hot set stays until the pool has aged by its counts",
        memory: Ranks::MEMORY,
        parameters: &[Parameter {
            name: "compound",
            meaning: "0: a hit sets the priority to uses and age; 1: it adds the age to the priority",
            unit: Unit::Whole,
            default: 0.0,
            min: 0.0,
            max: 1.0,
        }],
    };

    fn new(capacity: u32, values: &Values<'_>) -> Self {
        Lfu::build(capacity, values.whole("compound") == 1)
    }
}

impl<const AGING: bool> Lfu<AGING> {
    fn build(capacity: u32, compounds: bool) -> Self {
        Lfu {
            pages: Ranks::new(capacity),
            age: 0,
            compounds,
        }
    }

    /// A hit by libCacheSim's rule.
    fn compound(&mut self, id: NodeId) {
        let priority = self.pages.key(id).saturating_add(self.age);
        self.pages.raise(id, priority);
        if self.age > 0 {
            self.age = self.pages.lowest_key().unwrap_or(self.age);
        }
    }
}

impl<const AGING: bool> Policy for Lfu<AGING> {
    #[inline]
    fn on_hit(&mut self, frame: Frame) {
        let id = NodeId::of(frame);
        let standing = &mut self.pages.nodes[id].state;
        standing.uses = standing.uses.saturating_add(1);
        let priority = self.age + u64::from(standing.uses);
        match AGING && self.compounds {
            false => self.pages.raise(id, priority),
            true => self.compound(id),
        }
    }

    fn evict(&mut self, _incoming: Incoming, take: Taker<'_>) -> Option<Frame> {
        let frame = self.pages.offer(take).taken()?;
        if AGING {
            // Where pages are declined the victim has a greater priority; those that stay must not be passed.
            self.age = self.pages.lowest_key().unwrap_or(self.age);
        }
        self.pages.vacate(frame);
        if self.compounds {
            self.age = self.pages.lowest_key().unwrap_or(self.age);
        }
        Some(frame)
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, _at: Placement) {
        let standing = Standing::used_once();
        self.pages.admit(frame, page, standing, self.age + 1);
    }

    fn on_remove(&mut self, frame: Frame, _why: Gone) {
        self.pages.vacate(frame);
    }

    fn set_capacity(&mut self, frames: u32) {
        self.pages.nodes.reserve(frames);
    }

    fn bytes(&self) -> usize {
        self.pages.bytes()
    }

    fn nodes(&self) -> Nodes {
        self.pages.nodes.addresses()
    }

    fn likely_victims(&self, limit: usize, out: &mut Vec<Frame>) {
        self.pages.guess(limit, out);
    }

    fn inspect(&self, out: &mut dyn Inspector) {
        self.pages.show(out);
        if AGING {
            out.counter("age", self.age);
        }
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
        let mut bench = Bench::new("lfu", 4);
        assert_eq!(bench.use_pages([1, 2, 3, 4]), "pages: 1:1 2:1 3:1 4:1");
        assert_eq!(bench.use_page(2), "pages: 1:1 3:1 4:1 2:2");
        assert_eq!(bench.use_pages([2, 2]), "pages: 1:1 3:1 4:1 2:4");
        assert_eq!(bench.use_pages([1, 3]), "pages: 4:1 1:2 3:2 2:4");
        assert_eq!(bench.use_page(5), "pages: 5:1 1:2 3:2 2:4");
        assert_eq!(bench.likely(2), [5, 1]);
        bench.pin(5);
        assert_eq!(
            bench.use_page(6),
            "pages: 5:1 6:1 3:2 2:4",
            "5 is pinned; 1 has been used twice for longest"
        );
        assert_eq!(bench.use_pages([6, 6, 6]), "pages: 5:1 3:2 2:4 6:4");
        assert_eq!(bench.remove(3), "pages: 5:1 2:4 6:4");
        assert_eq!(bench.use_page(3), "pages: 5:1 3:1 2:4 6:4", "counted anew");
    }

    #[test]
    fn order_step_by_step_with_aging() {
        let mut bench = Bench::new("lfu-aging", 3);
        assert_eq!(
            bench.use_pages([1, 1, 1, 1, 2, 2, 3]),
            "pages: 3:1 2:2 1:4 | age=0"
        );
        assert_eq!(bench.use_page(4), "pages: 2:2 4:2 1:4 | age=1");
        assert_eq!(
            bench.use_page(5),
            "pages: 4:2 5:3 1:4 | age=2",
            "what is new ranks above what is old"
        );
        assert_eq!(bench.use_page(4), "pages: 5:3 1:4 4:4 | age=2");
        assert_eq!(bench.likely(2), [5, 1]);
        bench.pin(5);
        assert_eq!(
            bench.use_page(6),
            "pages: 5:3 4:4 6:4 | age=3",
            "1 leaves, but 5 stays: no older than it"
        );
        assert_eq!(bench.remove(4), "pages: 5:3 6:4 | age=3");
        assert_eq!(bench.use_page(5), "pages: 6:4 5:5 | age=3");
    }

    #[test]
    fn compounding_ages_add_up() {
        let mut bench = Bench::new("lfu-aging:compound=1", 3);
        assert_eq!(
            bench.use_pages([1, 1, 2, 3]),
            "pages: 1:1 2:1 3:1 | age=0",
            "nothing is added before the first eviction"
        );
        assert_eq!(bench.use_page(4), "pages: 2:1 3:1 4:2 | age=1");
        assert_eq!(bench.use_pages([3, 4]), "pages: 2:1 3:2 4:3 | age=1");
        assert_eq!(bench.use_page(5), "pages: 3:2 4:3 5:3 | age=2");
        assert_eq!(
            bench.use_pages([4, 4]),
            "pages: 3:2 5:3 4:7 | age=2",
            "twice the age, and no uses"
        );
        assert_eq!(bench.use_page(3), "pages: 5:3 3:4 4:7 | age=3");
    }
}
