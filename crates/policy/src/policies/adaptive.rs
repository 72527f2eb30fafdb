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

use crate::inspect::{Entry, Inspector};
use crate::lists::List;
use crate::nodes::{NodeId, NodeTable};
use crate::policy::{Frame, Placement};

/// Names a class: index of T1 and B1.
pub(crate) const ONCE: usize = 0;
/// Index of T2 and B2.
pub(crate) const OFTEN: usize = 1;

/// The page is not remembered. Others come from B1 or B2.
pub(crate) const NEW: Placement = Placement::new(0);
/// The page was in B1.
pub(crate) const FROM_ONCE: Placement = Placement::new(1);
/// The page was in B2.
pub(crate) const FROM_OFTEN: Placement = Placement::new(2);

#[derive(Clone, Copy, Default)]
pub(crate) struct State {
    is_often: bool,
    /// CAR's reference bit.
    pub(crate) used: bool,
    /// The last call of CAR's `evict` that offered it in vain.
    pub(crate) declined_in: u32,
}

/// See the head of the file. In lists of residents the next victim is in front, in lists of ghosts the oldest.
pub(crate) struct Adaptive {
    pub(crate) nodes: NodeTable<State>,
    /// T1 and T2.
    pub(crate) residents: [List; 2],
    /// B1 and B2.
    ghosts: [List; 2],
    target: f64,
    capacity: usize,
}

impl Adaptive {
    pub(crate) fn new(capacity: u32) -> Adaptive {
        Adaptive {
            nodes: NodeTable::new(capacity),
            residents: [List::new(), List::new()],
            ghosts: [List::new(), List::new()],
            target: 0.0,
            capacity: capacity as usize,
        }
    }

    /// The class of a node.
    #[inline]
    pub(crate) fn class(&self, id: NodeId) -> usize {
        usize::from(self.nodes[id].state.is_often)
    }

    /// Length of T1.
    pub(crate) fn once_len(&self) -> f64 {
        self.residents[ONCE].len() as f64
    }

    /// Frames that T1 should have.
    pub(crate) fn target(&self) -> f64 {
        self.target
    }

    /// Where a page that is missed comes from.
    pub(crate) fn origin(&self, page: PageId) -> Placement {
        match self.nodes.ghost(page).map(|ghost| self.class(ghost)) {
            None => NEW,
            Some(ONCE) => FROM_ONCE,
            Some(_) => FROM_OFTEN,
        }
    }

    /// If there is a ghost of `page`, moves the target towards its class, by more the shorter its list, and forgets it.
    pub(crate) fn learn(&mut self, page: PageId) {
        let [once, often] = self.ghosts.each_ref().map(|list| list.len() as f64);
        match self.origin(page) {
            FROM_ONCE => {
                let more = self.target + (often / once).max(1.0);
                self.target = more.min(self.capacity as f64);
            }
            FROM_OFTEN => self.target = (self.target - (once / often).max(1.0)).max(0.0),
            _ => {}
        }
        self.forget_ghost(page);
    }

    /// A new page comes last in T1; one that was remembered, in T2.
    pub(crate) fn insert(&mut self, frame: Frame, page: PageId, at: Placement) {
        let state = State {
            is_often: at != NEW,
            ..State::default()
        };
        let id = self.nodes.occupy(frame, page, state);
        let class = self.class(id);
        self.residents[class].push_back(&mut self.nodes, id);
        self.cut();
    }

    /// A resident comes last in T2.
    #[inline]
    pub(crate) fn promote(&mut self, id: NodeId) {
        match self.class(id) {
            OFTEN => self.residents[OFTEN].move_to_back(&mut self.nodes, id),
            _ => {
                self.residents[ONCE].remove(&mut self.nodes, id);
                self.nodes[id].state.is_often = true;
                self.residents[OFTEN].push_back(&mut self.nodes, id);
            }
        }
    }

    /// A resident becomes the newest ghost of its class.
    pub(crate) fn leave(&mut self, frame: Frame) {
        let class = self.class(NodeId::of(frame));
        let page = self.remove(frame);
        let state = State {
            is_often: class == OFTEN,
            ..State::default()
        };
        let ghost = self.nodes.remember(page, state);
        self.ghosts[class].push_back(&mut self.nodes, ghost);
        self.cut();
    }

    /// A resident is gone.
    pub(crate) fn remove(&mut self, frame: Frame) -> PageId {
        let id = NodeId::of(frame);
        self.residents[self.class(id)].remove(&mut self.nodes, id);
        self.nodes.vacate(frame).0
    }

    pub(crate) fn forget_ghost(&mut self, page: PageId) {
        if let Some(ghost) = self.nodes.ghost(page) {
            self.ghosts[self.class(ghost)].remove(&mut self.nodes, ghost);
            self.nodes.forget(ghost);
        }
    }

    pub(crate) fn set_capacity(&mut self, frames: u32) {
        self.nodes.reserve(frames);
        self.capacity = frames as usize;
        self.target = self.target.min(f64::from(frames));
        self.cut();
    }

    /// How many ghosts each class may have (A2).
    fn ghosts_max(&self) -> [usize; 2] {
        let [once, often] = self.residents.each_ref().map(List::len);
        let once_max = self.capacity.saturating_sub(once);
        let others = once + often + self.ghosts[ONCE].len();
        [once_max, (2 * self.capacity).saturating_sub(others)]
    }

    fn cut(&mut self) {
        for class in [ONCE, OFTEN] {
            let len_max = self.ghosts_max()[class];
            self.ghosts[class].trim(&mut self.nodes, len_max);
        }
    }

    pub(crate) fn inspect(&self, out: &mut dyn Inspector) {
        let used = |state: &State, entry: &mut Entry| entry.weight = u32::from(state.used);
        self.residents[ONCE].show(&self.nodes, out, "t1", used);
        self.residents[OFTEN].show(&self.nodes, out, "t2", used);
        self.ghosts[ONCE].show(&self.nodes, out, "b1", used);
        self.ghosts[OFTEN].show(&self.nodes, out, "b2", used);
        out.counter("p", self.target as u64);
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let mut listed = 0;
        for (class, list) in [ONCE, OFTEN, ONCE, OFTEN]
            .into_iter()
            .zip(self.residents.iter().chain(&self.ghosts))
        {
            list.check(&self.nodes)?;
            listed += list.len();
            if list.iter(&self.nodes).any(|id| self.class(id) != class) {
                return Err("a page stands in a list of the other class".to_string());
            }
        }
        self.nodes.check(listed)?;
        let ghosts = self.ghosts.each_ref().map(List::len);
        if self.ghosts.iter().map(List::len).sum::<usize>() != self.nodes.ghosts() {
            return Err("a ghost stands among residents".to_string());
        }
        let ghosts_max = self.ghosts_max();
        if ghosts[ONCE] > ghosts_max[ONCE] || ghosts[OFTEN] > ghosts_max[OFTEN] {
            return Err(format!("A2: {ghosts:?} ghosts, not {ghosts_max:?}"));
        }
        match (0.0..=self.capacity as f64).contains(&self.target) {
            true => Ok(()),
            false => Err(format!("A1: target {}", self.target)),
        }
    }
}
