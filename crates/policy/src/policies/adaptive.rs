//! What ARC and CAR have in common: pages used once and pages used more often, ghosts of both, and the number that says
//! how many frames the first should have.
//!
//! The papers' names: T1 and T2 for the residents of the two classes, B1 and B2 for their ghosts, p for the target.
//!
//! # Invariants
//! A1. As ghosts of a class come back, the target moves towards that class; it stays between 0 and the capacity c.
//! A2. T1 and B1 together have at most c pages, or B1 is empty; all four at most 2 c, or B2 is empty.
//!
//! The papers cut B1 and B2 before a new page comes in, for A2 to hold after; here they are cut when it did not hold.
//! That is the same, and holds in a pool that has more residents than frames, too.

use longshore_base::PageId;

use super::queues::{Queued, Queues, check_len};
use crate::catalogue::{Ghosts, Memory};
use crate::inspect::Inspector;
use crate::nodes::NodeId;
use crate::policy::{Frame, Placement};

/// Pages used once, the next victim in front.
pub(crate) const T1: u8 = 0;
/// Pages used more often.
pub(crate) const T2: u8 = 1;
/// Ghosts of T1, the oldest in front.
const B1: u8 = 2;
/// Ghosts of T2.
const B2: u8 = 3;

/// The page is not remembered. Others come from B1 or B2.
pub(crate) const NEW: Placement = Placement::new(0);
/// The page was in B1.
pub(crate) const FROM_B1: Placement = Placement::new(1);
/// The page was in B2.
pub(crate) const FROM_B2: Placement = Placement::new(2);

#[derive(Clone, Copy, Default)]
pub(crate) struct State {
    queue: u8,
    /// CAR's reference bit.
    pub(crate) used: bool,
    /// The last call of CAR's `evict` that offered it in vain.
    pub(crate) declined_in: u32,
}

impl Queued for State {
    #[inline]
    fn queue(&self) -> usize {
        usize::from(self.queue)
    }

    #[inline]
    fn set_queue(&mut self, queue: u8) {
        self.queue = queue;
    }
}

impl State {
    pub(crate) fn weight(&self) -> u32 {
        u32::from(self.used)
    }
}

/// See the head of the file.
pub(crate) struct Adaptive {
    pub(crate) queues: Queues<State, 4>,
    target: f64,
    capacity: usize,
}

impl Adaptive {
    /// Ghosts of all pages known, if none is resident (A2).
    pub(crate) const MEMORY: Memory = Queues::<State, 4>::MEMORY.and_ghosts(Ghosts::Percent(200.0));

    pub(crate) fn new(capacity: u32) -> Adaptive {
        Adaptive {
            queues: Queues::new(capacity),
            target: 0.0,
            capacity: capacity as usize,
        }
    }

    fn len(&self, queue: u8) -> usize {
        self.queues[queue].len()
    }

    /// Length of T1.
    pub(crate) fn t1_len(&self) -> f64 {
        self.len(T1) as f64
    }

    /// Frames that T1 should have.
    pub(crate) fn target(&self) -> f64 {
        self.target
    }

    /// Where a page that is missed comes from.
    pub(crate) fn origin(&self, page: PageId) -> Placement {
        let ghost = self.queues.nodes.ghost(page);
        match ghost.map(|ghost| self.queues.nodes[ghost].state.queue) {
            None => NEW,
            Some(B1) => FROM_B1,
            Some(_) => FROM_B2,
        }
    }

    /// If there is a ghost of `page`, moves the target towards its class, by more the shorter its list, and forgets it.
    pub(crate) fn learn(&mut self, page: PageId) {
        let (b1, b2) = (self.len(B1) as f64, self.len(B2) as f64);
        match self.origin(page) {
            FROM_B1 => {
                let more = self.target + (b2 / b1).max(1.0);
                self.target = more.min(self.capacity as f64);
            }
            FROM_B2 => self.target = (self.target - (b1 / b2).max(1.0)).max(0.0),
            _ => {}
        }
        self.queues.forget(page);
    }

    /// A new page comes last in T1; one that was remembered, in T2.
    pub(crate) fn insert(&mut self, frame: Frame, page: PageId, at: Placement) {
        let queue = if at == NEW { T1 } else { T2 };
        self.queues.admit(frame, page, State::default(), queue);
        self.cut();
    }

    /// A resident comes last in T2.
    #[inline]
    pub(crate) fn promote(&mut self, id: NodeId) {
        self.queues.move_to(id, T2);
    }

    /// A resident becomes the newest ghost of its class.
    pub(crate) fn leave(&mut self, frame: Frame) {
        let (page, state) = self.queues.vacate(frame);
        let ghosts = if state.queue == T1 { B1 } else { B2 };
        self.queues
            .remember(page, State::default(), ghosts, usize::MAX);
        self.cut();
    }

    pub(crate) fn set_capacity(&mut self, frames: u32) {
        self.queues.nodes.reserve(frames);
        self.capacity = frames as usize;
        self.target = self.target.min(f64::from(frames));
        self.cut();
    }

    /// How many pages B1 may have (A2).
    fn b1_max(&self) -> usize {
        self.capacity.saturating_sub(self.len(T1))
    }

    /// How many pages B2 may have (A2).
    fn b2_max(&self) -> usize {
        let others = self.len(T1) + self.len(T2) + self.len(B1);
        (2 * self.capacity).saturating_sub(others)
    }

    fn cut(&mut self) {
        self.queues.trim(B1, self.b1_max());
        self.queues.trim(B2, self.b2_max());
    }

    pub(crate) fn inspect(&self, out: &mut dyn Inspector) {
        let names = [(T1, "t1"), (T2, "t2"), (B1, "b1"), (B2, "b2")];
        self.queues.show(names, State::weight, out);
        out.counter("p", self.target as u64);
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        self.queues.check(B1)?;
        check_len("pages in B1 (A2)", self.len(B1), self.b1_max())?;
        check_len("pages in B2 (A2)", self.len(B2), self.b2_max())?;
        match (0.0..=self.capacity as f64).contains(&self.target) {
            true => Ok(()),
            false => Err(format!("A1: target {}", self.target)),
        }
    }
}
