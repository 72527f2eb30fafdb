//! LRU: the page that was not used for longest leaves.
//!
//! Weakness: one scan as long as the pool flushes it, and a loop one page longer than the pool never hits; every hit
//! moves a node, so hits of many threads contend.
//! Memory: 18 bytes a frame.
//!
//! # Source
//! R. L. Mattson et al.: Evaluation Techniques for Storage Hierarchies. IBM Systems Journal 9(2), 1970.

use super::one_queue::{ALL, Pages, Rule};
use crate::catalogue::About;
use crate::nodes::NodeId;
use crate::spec::Values;

/// See the head of the file.
pub(crate) struct Lru;

impl Rule for Lru {
    type State = ();

    const ABOUT: About = About {
        name: "lru",
        source: "Mattson et al. 1970",
        weakness: "a scan flushes it; a loop longer than the pool never hits",
        memory: Pages::<()>::MEMORY,
        parameters: &[],
    };

    const QUEUE: &'static str = "queue";
    const SETTLES: bool = true;

    fn new(_values: &Values<'_>) -> Lru {
        Lru
    }

    #[inline]
    fn hit(&mut self, pages: &mut Pages<()>, id: NodeId) {
        pages.move_to(id, ALL);
    }
}

#[cfg(test)]
mod tests {
    use crate::policies::testing::Bench;

    #[test]
    fn order_step_by_step() {
        let mut bench = Bench::new("lru", 3);
        assert_eq!(bench.use_pages([1, 2, 3]), "queue: 1 2 3");
        assert_eq!(bench.use_page(2), "queue: 1 3 2");
        assert_eq!(bench.use_page(1), "queue: 3 2 1");
        assert_eq!(bench.use_page(1), "queue: 3 2 1");
        assert_eq!(bench.use_page(4), "queue: 2 1 4");
        bench.pin(2);
        assert_eq!(
            bench.use_page(5),
            "queue: 2 4 5",
            "the pinned keep their place"
        );
        assert_eq!(bench.likely(2), [2, 4]);
        assert_eq!(bench.remove(4), "queue: 2 5");
        assert_eq!(bench.use_page(2), "queue: 5 2");
    }
}
