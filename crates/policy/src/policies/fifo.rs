//! FIFO: the page that came first leaves first, however often it was used.
//!
//! Weakness: blind to use; with some traces more frames even mean more misses (Belady's anomaly).
//! Memory: 18 bytes a frame.
//!
//! # Source
//! L. A. Belady: A Study of Replacement Algorithms for a Virtual-Storage Computer. IBM Systems Journal 5(2), 1966.

use super::one_queue::{Pages, Rule};
use crate::catalogue::About;
use crate::nodes::NodeId;
use crate::spec::Values;

/// See the head of the file.
pub(crate) struct Fifo;

impl Rule for Fifo {
    type State = ();

    const ABOUT: About = About {
        name: "fifo",
        source: "Belady 1966",
        weakness: "blind to use",
        memory: Pages::<()>::MEMORY,
        parameters: &[],
    };

    const QUEUE: &'static str = "queue";
    const SETTLES: bool = true;

    fn new(_values: &Values<'_>) -> Fifo {
        Fifo
    }

    #[inline]
    fn hit(&mut self, _pages: &mut Pages<()>, _id: NodeId) {}
}

#[cfg(test)]
mod tests {
    use crate::policies::testing::Bench;

    #[test]
    fn order_step_by_step() {
        let mut bench = Bench::new("fifo", 3);
        assert_eq!(bench.use_pages([1, 2, 3]), "queue: 1 2 3");
        assert_eq!(bench.use_page(1), "queue: 1 2 3", "a hit changes nothing");
        assert_eq!(bench.use_page(4), "queue: 2 3 4");
        bench.pin(2);
        assert_eq!(
            bench.use_page(5),
            "queue: 2 4 5",
            "the pinned keep their place"
        );
        assert_eq!(bench.likely(2), [2, 4]);
        assert_eq!(bench.remove(4), "queue: 2 5");
        assert_eq!(bench.use_page(4), "queue: 2 5 4");
    }
}
