//! Lists through nodes: rings with a front, linked by node ids.
//!
//! The front is what leaves next, the back what came last. A list is a ring, so that its front can move on without
//! touching a node ([`List::rotate`]): a clock is a list whose front is the hand, and what is inserted at its back
//! stands right behind the hand.
//!
//! # Invariants
//! L1. From the front, `len` steps along `next` visit `len` nodes and end at the front; `prev` undoes `next`.

use crate::inspect::{Entry, Inspector};
use crate::nodes::{Links, NodeId, NodeTable};
use crate::policy::{Frame, Take, Taker};

/// A list that uses the pair of links number `K` of its nodes.
#[derive(Debug)]
pub(crate) struct List<const K: usize = 0> {
    front: NodeId,
    len: usize,
}

/// What came of offering a list's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    /// This one was taken; it is still in the list.
    Taken(NodeId),
    /// All were declined.
    Declined,
    /// The caller wants no more of them.
    Enough,
}

impl Offered {
    /// The frame that was taken.
    pub(crate) fn taken(self) -> Option<Frame> {
        match self {
            Offered::Taken(id) => id.frame(),
            Offered::Declined | Offered::Enough => None,
        }
    }
}

impl<const K: usize> List<K> {
    pub(crate) fn new() -> Self {
        List {
            front: NodeId::NIL,
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The node that leaves next.
    pub(crate) fn front(&self) -> Option<NodeId> {
        (self.len > 0).then_some(self.front)
    }

    /// The node that came last.
    pub(crate) fn back<S, const L: usize>(&self, nodes: &NodeTable<S, L>) -> Option<NodeId> {
        (self.len > 0).then(|| nodes[self.front].links[K].prev)
    }

    /// The node behind `id`; behind the back comes the front.
    pub(crate) fn next<S, const L: usize>(&self, nodes: &NodeTable<S, L>, id: NodeId) -> NodeId {
        nodes[id].links[K].next
    }

    /// Appends a node.
    pub(crate) fn push_back<S, const L: usize>(&mut self, nodes: &mut NodeTable<S, L>, id: NodeId) {
        debug_assert!(nodes[id].links[K].next == NodeId::NIL, "in a list already");
        if self.len == 0 {
            self.front = id;
            nodes[id].links[K] = Links { prev: id, next: id };
        } else {
            let back = nodes[self.front].links[K].prev;
            nodes[id].links[K] = Links {
                prev: back,
                next: self.front,
            };
            nodes[back].links[K].next = id;
            nodes[self.front].links[K].prev = id;
        }
        self.len += 1;
    }

    /// Puts a node right before `at`, which is in the list.
    pub(crate) fn insert_before<S, const L: usize>(
        &mut self,
        nodes: &mut NodeTable<S, L>,
        at: NodeId,
        id: NodeId,
    ) {
        let front = std::mem::replace(&mut self.front, at);
        self.push_back(nodes, id);
        self.front = if at == front { id } else { front };
    }

    /// Takes a node of the list out of it.
    #[inline]
    pub(crate) fn remove<S, const L: usize>(&mut self, nodes: &mut NodeTable<S, L>, id: NodeId) {
        let Links { prev, next } = std::mem::replace(&mut nodes[id].links[K], Links::NONE);
        debug_assert!(next != NodeId::NIL, "in no list");
        self.len -= 1;
        if next != id {
            nodes[prev].links[K].next = next;
            nodes[next].links[K].prev = prev;
        }
        if self.front == id {
            self.front = if self.len == 0 { NodeId::NIL } else { next };
        }
    }

    /// Takes out the front.
    pub(crate) fn pop_front<S, const L: usize>(
        &mut self,
        nodes: &mut NodeTable<S, L>,
    ) -> Option<NodeId> {
        let front = self.front()?;
        self.remove(nodes, front);
        Some(front)
    }

    /// Makes a node of the list its back.
    #[inline]
    pub(crate) fn move_to_back<S, const L: usize>(
        &mut self,
        nodes: &mut NodeTable<S, L>,
        id: NodeId,
    ) {
        if self.front == id {
            return self.rotate(nodes);
        }
        self.remove(nodes, id);
        self.push_back(nodes, id);
    }

    /// Makes the front the back: a hand moves on.
    #[inline]
    pub(crate) fn rotate<S, const L: usize>(&mut self, nodes: &NodeTable<S, L>) {
        self.front = nodes[self.front].links[K].next;
    }

    /// The nodes, from the front.
    pub(crate) fn iter<'a, S, const L: usize>(
        &self,
        nodes: &'a NodeTable<S, L>,
    ) -> impl Iterator<Item = NodeId> + use<'a, S, L, K> {
        let (mut at, mut left) = (self.front, self.len);
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let id = at;
            at = nodes[id].links[K].next;
            Some(id)
        })
    }

    /// The nodes, from the back.
    pub(crate) fn iter_back<'a, S, const L: usize>(
        &self,
        nodes: &'a NodeTable<S, L>,
    ) -> impl Iterator<Item = NodeId> + use<'a, S, L, K> {
        let (mut at, mut left) = (self.front, self.len);
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            at = nodes[at].links[K].prev;
            Some(at)
        })
    }

    /// Offers the resident frames of the list, from the front, until one is taken.
    pub(crate) fn offer<S, const L: usize>(
        &self,
        nodes: &NodeTable<S, L>,
        take: Taker<'_>,
    ) -> Offered {
        offer(self.iter(nodes), nodes, take)
    }

    /// Appends resident frames from the front to `out` until it holds `limit`.
    pub(crate) fn guess<S, const L: usize>(
        &self,
        nodes: &NodeTable<S, L>,
        limit: usize,
        out: &mut Vec<Frame>,
    ) {
        let room = limit.saturating_sub(out.len());
        out.extend(self.iter(nodes).filter_map(NodeId::frame).take(room));
    }

    /// Shows the list as a queue called `name`; `detail` may add weight and kind.
    pub(crate) fn show<S, const L: usize>(
        &self,
        nodes: &NodeTable<S, L>,
        out: &mut dyn Inspector,
        name: &'static str,
        detail: impl Fn(&S, &mut Entry),
    ) {
        let mut entries = self.iter(nodes).map(|id| {
            let mut entry = nodes.entry(id);
            detail(&nodes[id].state, &mut entry);
            entry
        });
        out.queue(name, &mut entries);
    }

    /// Forgets ghosts from the front of a list of ghosts until at most `len_max` are left.
    pub(crate) fn trim<S: Default, const L: usize>(
        &mut self,
        nodes: &mut NodeTable<S, L>,
        len_max: usize,
    ) {
        while self.len > len_max {
            if let Some(oldest) = self.pop_front(nodes) {
                nodes.forget(oldest);
            }
        }
    }

    /// Verifies L1.
    pub(crate) fn check<S, const L: usize>(&self, nodes: &NodeTable<S, L>) -> Result<(), String> {
        let mut at = self.front;
        for step in 0..self.len {
            let next = nodes[at].links[K].next;
            if next == NodeId::NIL || nodes[next].links[K].prev != at {
                return Err(format!("L1: links broken behind {at:?}"));
            }
            if next == self.front && step + 1 < self.len {
                return Err(format!("L1: {} nodes, not {}", step + 1, self.len));
            }
            at = next;
        }
        match at == self.front {
            true => Ok(()),
            false => Err(format!("L1: more than {} nodes", self.len)),
        }
    }
}

/// Offers the resident frames among `ids` until one is taken.
pub(crate) fn offer<S, const L: usize>(
    ids: impl Iterator<Item = NodeId>,
    nodes: &NodeTable<S, L>,
    take: Taker<'_>,
) -> Offered {
    for id in ids {
        match ask(nodes, id, take) {
            Take::Taken => return Offered::Taken(id),
            Take::Enough => return Offered::Enough,
            Take::Busy | Take::Dirty => {}
        }
    }
    Offered::Declined
}

/// Offers one frame. A ghost has none, and is passed like one that is busy.
pub(crate) fn ask<S, const L: usize>(nodes: &NodeTable<S, L>, id: NodeId, take: Taker<'_>) -> Take {
    match id.frame() {
        Some(frame) => take(frame, nodes[id].page()),
        None => Take::Busy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_base::PageId;

    fn pages(list: &List, nodes: &NodeTable<()>) -> Vec<u64> {
        list.check(nodes).unwrap();
        list.iter(nodes).map(|id| nodes[id].page().get()).collect()
    }

    #[test]
    fn list_keeps_its_order() {
        let mut nodes: NodeTable<()> = NodeTable::new(8);
        let mut list: List = List::new();
        let ids: Vec<NodeId> = (0..4)
            .map(|frame| nodes.occupy(frame, PageId::new(u64::from(frame)), ()))
            .collect();
        for &id in &ids[..3] {
            list.push_back(&mut nodes, id);
        }
        assert_eq!(pages(&list, &nodes), [0, 1, 2]);
        list.insert_before(&mut nodes, ids[0], ids[3]);
        assert_eq!(pages(&list, &nodes), [3, 0, 1, 2]);
        list.rotate(&nodes);
        assert_eq!(pages(&list, &nodes), [0, 1, 2, 3]);
        list.move_to_back(&mut nodes, ids[1]);
        assert_eq!(pages(&list, &nodes), [0, 2, 3, 1]);
        list.move_to_back(&mut nodes, ids[0]);
        assert_eq!(pages(&list, &nodes), [2, 3, 1, 0]);
        assert_eq!(list.pop_front(&mut nodes), Some(ids[2]));
        list.insert_before(&mut nodes, ids[3], ids[2]);
        assert_eq!(pages(&list, &nodes), [2, 3, 1, 0]);
        let ghost = nodes.remember(PageId::new(9), ());
        list.insert_before(&mut nodes, ids[2], ghost);
        list.remove(&mut nodes, ids[2]);
        assert_eq!(pages(&list, &nodes), [9, 3, 1, 0]);
        assert_eq!(list.back(&nodes), Some(ids[0]));
        assert!(list.iter_back(&nodes).eq([ids[0], ids[1], ids[3], ghost]));
        assert_eq!(list.next(&nodes, ghost), ids[3]);
        while list.pop_front(&mut nodes) != Some(ids[0]) {}
        assert_eq!(pages(&list, &nodes), [0; 0]);
        assert!(list.is_empty() && list.front().is_none() && list.back(&nodes).is_none());
    }

    #[test]
    fn a_list_of_ghosts_forgets_the_oldest() {
        let mut nodes: NodeTable<()> = NodeTable::new(0);
        let mut list: List = List::new();
        for page in 0..5 {
            let ghost = nodes.remember(PageId::new(page), ());
            list.push_back(&mut nodes, ghost);
            list.trim(&mut nodes, 2);
        }
        assert_eq!(pages(&list, &nodes), [3, 4]);
        assert_eq!(nodes.ghost(PageId::new(2)), None);
        assert_eq!(nodes.check(2), Ok(()));
    }

    #[test]
    fn offers_go_from_the_front_and_skip_ghosts() {
        let mut nodes: NodeTable<()> = NodeTable::new(4);
        let mut list: List = List::new();
        for frame in 0..4 {
            let id = nodes.occupy(frame, PageId::new(10 + u64::from(frame)), ());
            list.push_back(&mut nodes, id);
        }
        let ghost = nodes.remember(PageId::new(9), ());
        list.insert_before(&mut nodes, NodeId::of(0), ghost);
        let mut seen = Vec::new();
        let offered = list.offer(&nodes, &mut |frame, page| {
            seen.push((frame, page.get()));
            if frame == 2 { Take::Taken } else { Take::Busy }
        });
        assert_eq!(offered, Offered::Taken(NodeId::of(2)));
        assert_eq!(seen, [(0, 10), (1, 11), (2, 12)]);
        assert_eq!(
            list.offer(&nodes, &mut |_, _| Take::Dirty),
            Offered::Declined
        );
        assert_eq!(
            list.offer(&nodes, &mut |_, _| Take::Enough),
            Offered::Enough
        );
    }
}
