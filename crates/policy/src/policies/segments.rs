//! The two segments of a segmented LRU queue, which SLRU and the main part of W-TinyLFU are made of.

use crate::inspect::Inspector;
use crate::lists::List;
use crate::nodes::{NodeId, NodeTable};

/// Where a page stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Segment {
    /// On trial.
    #[default]
    Probation,
    /// Used while on trial.
    Protected,
    /// In a queue of the policy's own.
    Elsewhere,
}

/// Both segments; in each the page not used for longest is in front.
pub(crate) struct Segments {
    pub(crate) probation: List,
    pub(crate) protected: List,
    protected_max: usize,
}

impl Segments {
    pub(crate) fn new() -> Segments {
        Segments {
            probation: List::new(),
            protected: List::new(),
            protected_max: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.probation.len() + self.protected.len()
    }

    /// Puts a node, which is in no list, on trial.
    pub(crate) fn admit(&mut self, nodes: &mut NodeTable<Segment>, id: NodeId) {
        nodes[id].state = Segment::Probation;
        self.probation.push_back(nodes, id);
    }

    /// A page of one of the segments was used.
    #[inline]
    pub(crate) fn hit(&mut self, nodes: &mut NodeTable<Segment>, id: NodeId) {
        if nodes[id].state == Segment::Protected {
            return self.protected.move_to_back(nodes, id);
        }
        self.probation.remove(nodes, id);
        nodes[id].state = Segment::Protected;
        self.protected.push_back(nodes, id);
        self.demote(nodes);
    }

    /// Takes a node of one of the segments out of it.
    pub(crate) fn remove(&mut self, nodes: &mut NodeTable<Segment>, id: NodeId) {
        match nodes[id].state {
            Segment::Protected => self.protected.remove(nodes, id),
            _ => self.probation.remove(nodes, id),
        }
    }

    /// At most so many pages are protected from now on.
    pub(crate) fn set_protected_max(&mut self, nodes: &mut NodeTable<Segment>, max: usize) {
        self.protected_max = max;
        self.demote(nodes);
    }

    fn demote(&mut self, nodes: &mut NodeTable<Segment>) {
        while self.protected.len() > self.protected_max
            && let Some(id) = self.protected.pop_front(nodes)
        {
            self.admit(nodes, id);
        }
    }

    pub(crate) fn show(&self, nodes: &NodeTable<Segment>, out: &mut dyn Inspector) {
        self.probation.show(nodes, out, "probation", |_, _| {});
        self.protected.show(nodes, out, "protected", |_, _| {});
    }

    /// Verifies both lists, and that their nodes know where they stand.
    pub(crate) fn check(&self, nodes: &NodeTable<Segment>) -> Result<(), String> {
        self.probation.check(nodes)?;
        self.protected.check(nodes)?;
        if self.protected.len() > self.protected_max {
            return Err(format!("{} are protected", self.protected.len()));
        }
        let stands = |segment| move |id| nodes[id].state == segment;
        let known = self.probation.iter(nodes).all(stands(Segment::Probation))
            && self.protected.iter(nodes).all(stands(Segment::Protected));
        match known {
            true => Ok(()),
            false => Err("a page stands in the other segment".to_string()),
        }
    }
}
