//! GCLOCK: CLOCK with a counter for each page: it survives as many sweeps of the hand as it had hits.
//!
//! Weakness: a page hit very often long ago stays long, and the hand may have to turn many times to find a victim; `cap`
//! bounds both.
//! Memory: 27 bytes a frame.
//! Parameters: `cap`, the most sweeps a page survives without a hit; 0, the default: no bound.
//!
//! The paper's counter starts at 1, each sweep takes 1 from it, and a page leaves when that makes it 0. The weight here
//! is one less: the sweeps still to be survived. As in CLOCK the ring is linked, and a page comes in behind the hand.
//!
//! # Source
//! A. J. Smith: Sequentiality and Prefetching in Database Systems. ACM TODS 3(3), 1978.
//! V. F. Nicola, A. Dan, D. M. Dias: Analysis of the Generalized Clock Buffer Replacement Scheme for Database
//! Transaction Processing. SIGMETRICS 1992.

use super::one_queue::{ALL, Pages, Rule};
use super::queues::Queued;
use super::sweep::{Weighted, sweep};
use crate::catalogue::{About, Parameter, Unit};
use crate::lists::Offered;
use crate::nodes::NodeId;
use crate::policy::Taker;
use crate::spec::Values;

/// See the head of the file.
pub(crate) struct Gclock {
    /// No weight is greater.
    cap: u32,
    /// Counts calls of `evict`.
    call: u32,
}

#[derive(Default)]
pub(crate) struct State {
    /// Sweeps still to be survived.
    weight: u32,
    declined_in: u32,
}

impl Weighted for State {
    fn weight(&self) -> u32 {
        self.weight
    }

    fn lower(&mut self) {
        self.weight -= 1;
    }

    fn declined_in(&mut self) -> &mut u32 {
        &mut self.declined_in
    }
}

impl Queued for State {}

impl Rule for Gclock {
    type State = State;

    const ABOUT: About = About {
        name: "gclock",
        source: "Smith 1978; Nicola, Dan, Dias 1992",
        weakness: "what was hit often long ago stays long, unless cap is small",
        memory: Pages::<State>::MEMORY,
        parameters: &[Parameter {
            name: "cap",
            meaning: "the most sweeps a page survives without a hit; 0: no bound",
            unit: Unit::Whole,
            default: 0.0,
            min: 0.0,
            max: 1e9,
        }],
    };

    const QUEUE: &'static str = "ring";

    fn new(values: &Values<'_>) -> Gclock {
        Gclock {
            cap: match values.whole("cap") {
                0 => u32::MAX,
                cap => cap as u32,
            },
            call: 0,
        }
    }

    #[inline]
    fn hit(&mut self, ring: &mut Pages<State>, id: NodeId) {
        let state = &mut ring.nodes[id].state;
        state.weight += u32::from(state.weight < self.cap);
    }

    fn offer(&mut self, ring: &mut Pages<State>, take: Taker<'_>) -> Offered {
        self.call = self.call.wrapping_add(1);
        sweep(ring, ALL, self.call, take)
    }

    fn weight(state: &State) -> u32 {
        state.weight
    }
}

#[cfg(test)]
mod tests {
    use crate::policies::testing::Bench;
    use crate::policy::Take;

    #[test]
    fn order_step_by_step() {
        let mut bench = Bench::new("gclock", 3);
        assert_eq!(bench.use_pages([1, 2, 3, 1, 1, 2]), "ring: 1:2 2:1 3");
        assert_eq!(bench.use_page(4), "ring: 1:1 2 4", "two lowered, 3 leaves");
        assert_eq!(bench.use_page(5), "ring: 4 1 5", "1 lowered, 2 leaves");
        bench.pin(4);
        assert_eq!(bench.use_page(6), "ring: 5 4 6", "4 is passed, 1 leaves");
        assert_eq!(bench.use_pages([5, 6]), "ring: 5:1 4 6:1");
        assert_eq!(bench.likely(9), [4]);
        assert_eq!(
            bench.use_page(7),
            "ring: 4 6 7",
            "5 and 6 lowered in a first sweep"
        );
        assert_eq!(bench.remove(6), "ring: 4 7");
        assert_eq!(bench.use_page(7), "ring: 4 7:1");
    }

    #[test]
    fn weights_stop_at_the_cap() {
        let mut bench = Bench::new("gclock:cap=2", 2);
        assert_eq!(bench.use_pages([1, 2, 1, 1, 1, 1]), "ring: 1:2 2");
        assert_eq!(bench.use_page(3), "ring: 1:1 3");
    }

    #[test]
    fn a_frame_declined_is_not_offered_again_while_others_are_lowered() {
        let mut bench = Bench::new("gclock", 2);
        bench.use_pages([1, 2, 2, 2, 2, 2]);
        let mut offers = Vec::new();
        let victim = bench.policy.evict(None, &mut |_, page| {
            offers.push(page.get());
            Take::Busy
        });
        assert_eq!((victim, offers), (None, vec![1, 2]));
        assert_eq!(bench.dump(), "ring: 1 2", "2 was lowered to the end");
    }
}
