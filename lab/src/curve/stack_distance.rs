//! LRU at all sizes at once: how many other pages were used since a page was used last.
//!
//! A reference hits in every LRU cache that is larger than its stack distance. Distances are counted in a tree over
//! time (a Fenwick tree), with a mark where each page was used last: the distance is the number of marks since. When
//! time has filled the tree, the marks are moved together. O(log pages) a reference, 8 bytes a page and 8 a mark.
//!
//! # Source
//! R. L. Mattson et al.: Evaluation Techniques for Storage Hierarchies. IBM Systems Journal 9(2), 1970.
//! F. Olken: Efficient Methods for Calculating the Success Function of Fixed Space Replacement Policies. LBL-12370,
//! 1981.

use longshore_policy::Trace;

/// References to a page that was not used before have no distance.
const NEVER: u32 = u32::MAX;
/// References between two calls of `progress`.
const PROGRESS: usize = 1 << 16;

/// LRU's misses at every size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LruCurve {
    /// At size `i` the number of hits, up to the number of distinct pages.
    hits: Vec<u64>,
    requests: u64,
}

impl LruCurve {
    /// The curve of a trace. `progress` is told how many references are done, now and then.
    pub fn of(trace: &Trace, progress: &mut dyn FnMut(u64)) -> LruCurve {
        let distinct = trace.pages().len();
        let mut stack = Stack::new(distinct);
        let mut hits = vec![0u64; distinct + 1];
        for (at, &page) in trace.refs().iter().enumerate() {
            if at % PROGRESS == 0 {
                progress(at as u64);
            }
            if let Some(distance) = stack.use_page(page) {
                hits[distance as usize + 1] += 1;
            }
        }
        let mut sum = 0;
        for hits in &mut hits {
            sum += *hits;
            *hits = sum;
        }
        LruCurve {
            hits,
            requests: trace.refs().len() as u64,
        }
    }

    /// The misses of an LRU cache of `size` pages.
    pub fn misses(&self, size: u32) -> u64 {
        let last = self.hits.len() - 1;
        self.requests - self.hits[last.min(size as usize)]
    }

    /// References of the trace.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The size from which on no more is hit: all pages.
    pub fn size_max(&self) -> u32 {
        self.hits.len() as u32 - 1
    }
}

/// When each page was used last.
struct Stack {
    /// By page: its mark's place in time; `NEVER` if not used yet.
    last: Vec<u32>,
    /// By place: whose mark it is, or was.
    page_at: Vec<u32>,
    marks: Marks,
    now: usize,
}

impl Stack {
    fn new(pages: usize) -> Stack {
        let places = (2 * pages).max(64);
        Stack {
            last: vec![NEVER; pages],
            page_at: vec![0; places],
            marks: Marks::new(places),
            now: 0,
        }
    }

    /// How many other pages were used since this one was; it is used now.
    fn use_page(&mut self, page: u32) -> Option<u32> {
        if self.now == self.page_at.len() {
            self.compact();
        }
        let last = std::mem::replace(&mut self.last[page as usize], self.now as u32);
        let distance = (last != NEVER).then(|| {
            self.marks.add(last as usize, -1);
            self.marks.total - self.marks.up_to(last as usize)
        });
        self.marks.add(self.now, 1);
        self.page_at[self.now] = page;
        self.now += 1;
        distance.map(|distance| distance as u32)
    }

    /// Moves the marks together, in their order.
    fn compact(&mut self) {
        let mut kept = 0;
        for place in 0..self.now {
            let page = self.page_at[place];
            if self.last[page as usize] == place as u32 {
                self.last[page as usize] = kept as u32;
                self.page_at[kept] = page;
                kept += 1;
            }
        }
        self.marks.first(kept);
        self.now = kept;
    }
}

/// A set of places whose members before a place can be counted.
struct Marks {
    /// `sums[i]`, from 1, holds the marks of the places that end at `i` and are as many as its lowest bit says.
    sums: Vec<i32>,
    total: i32,
}

impl Marks {
    fn new(places: usize) -> Marks {
        Marks {
            sums: vec![0; places + 1],
            total: 0,
        }
    }

    fn add(&mut self, place: usize, by: i32) {
        self.total += by;
        let mut at = place + 1;
        while at < self.sums.len() {
            self.sums[at] += by;
            at += at & at.wrapping_neg();
        }
    }

    /// Marks at `place` and before.
    fn up_to(&self, place: usize) -> i32 {
        let (mut at, mut sum) = (place + 1, 0);
        while at > 0 {
            sum += self.sums[at];
            at &= at - 1;
        }
        sum
    }

    /// Marks the first `count` places, and no others.
    fn first(&mut self, count: usize) {
        self.total = count as i32;
        for at in 1..self.sums.len() {
            let begin = at - (at & at.wrapping_neg());
            self.sums[at] = (at.min(count) - begin.min(count)) as i32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_policy::simulator::Contender;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_size_misses_as_the_simulator_does(pages in proptest::collection::vec(0u64..40, 1..600)) {
            let trace: Trace = pages.into_iter().collect();
            let lru: Contender = "lru".parse().unwrap();
            let curve = LruCurve::of(&trace, &mut |_| {});
            for size in 1..45 {
                let simulated = lru.run(&trace, size, &mut |_| {}).unwrap();
                prop_assert_eq!(curve.misses(size), simulated.misses, "{} pages", size);
            }
        }
    }

    #[test]
    fn a_loop_hits_when_all_of_it_fits() {
        let trace: Trace = (0..10_000).map(|at| at % 100).collect();
        let curve = LruCurve::of(&trace, &mut |_| {});
        assert_eq!(
            (curve.misses(0), curve.misses(99), curve.misses(100)),
            (10_000, 10_000, 100)
        );
        assert_eq!((curve.misses(u32::MAX), curve.size_max()), (100, 100));
    }
}
