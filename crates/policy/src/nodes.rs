//! Nodes: one for each frame, found by the frame's number, and one for each ghost, found by its page.
//!
//! Both kinds are named by a [`NodeId`] and may stand in the same [`List`](crate::lists::List): LIRS's stack and the
//! clock of CLOCK-Pro mix them. A node has `L` pairs of links, so that it can be in `L` lists at once (LIRS: stack and
//! queue), a page, and what the policy adds. Frame nodes are an array: no hashing for pages that are resident.
//!
//! # Invariants
//! N1. The directory (`directory.rs`) holds the ghosts, all of them, each under its page.
//! N2. A ghost's node is used or in `free`.

use std::ops::{Index, IndexMut};

use longshore_base::PageId;

use crate::catalogue::{Ghosts, Memory};
use crate::directory::Directory;
use crate::inspect::Entry;
use crate::policy::{Frame, Nodes};

/// Names a frame's node or a ghost's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(u32);

const GHOST: u32 = 1 << 31;

impl NodeId {
    /// No node.
    pub(crate) const NIL: NodeId = NodeId(u32::MAX);

    /// The node of a frame.
    pub(crate) fn of(frame: Frame) -> NodeId {
        debug_assert!(frame < GHOST);
        NodeId(frame)
    }

    /// The frame, unless it is a ghost's node.
    pub(crate) fn frame(self) -> Option<Frame> {
        (!self.is_ghost()).then_some(self.0)
    }

    pub(crate) fn is_ghost(self) -> bool {
        self.0 & GHOST != 0
    }

    /// Its number among those of its kind.
    pub(crate) fn number(self) -> usize {
        (self.0 & !GHOST) as usize
    }
}

/// A place in a list: the neighbours, in a ring. `NIL`: in no list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    pub(crate) prev: NodeId,
    pub(crate) next: NodeId,
}

impl Links {
    pub(crate) const NONE: Links = Links {
        prev: NodeId::NIL,
        next: NodeId::NIL,
    };
}

/// What is known of a page, resident or not.
#[derive(Clone, Debug)]
pub(crate) struct Node<S, const L: usize = 1> {
    pub(crate) links: [Links; L],
    /// `NONE` where the frame is not resident, or the ghost's node is not used.
    page: PageId,
    /// What the policy adds.
    pub(crate) state: S,
}

impl<S: Default, const L: usize> Node<S, L> {
    fn new(page: PageId, state: S) -> Self {
        Node {
            links: [Links::NONE; L],
            page,
            state,
        }
    }

    fn unused() -> Self {
        Node::new(PageId::NONE, S::default())
    }
}

impl<S, const L: usize> Node<S, L> {
    pub(crate) fn page(&self) -> PageId {
        self.page
    }
}

/// All nodes of a policy.
#[derive(Debug)]
pub(crate) struct NodeTable<S, const L: usize = 1> {
    frames: Vec<Node<S, L>>,
    ghosts: Vec<Node<S, L>>,
    /// Ghosts' nodes that are not used.
    free: Vec<NodeId>,
    directory: Directory,
}

/// Makes room for `len` in all, and an eighth more: what a list takes is known to be at most that.
pub(crate) fn grow<T>(list: &mut Vec<T>, len: usize) {
    if list.capacity() < len {
        list.reserve_exact(len + len / 8 + SPARE - list.len());
    }
}

/// What a short list grows by.
pub(crate) const SPARE: usize = 8;

/// Bytes of each of many in a list that `grow` made room for.
pub(crate) const fn grown(bytes: usize) -> usize {
    bytes + bytes.div_ceil(8)
}

impl<S: Default, const L: usize> NodeTable<S, L> {
    /// A table for `frames` frames, none of them resident.
    pub(crate) fn new(frames: u32) -> Self {
        let mut table = NodeTable {
            frames: Vec::new(),
            ghosts: Vec::new(),
            free: Vec::new(),
            directory: Directory::default(),
        };
        table.reserve(frames);
        table
    }

    /// Makes sure that there are nodes for `frames` frames. Never fewer than before.
    pub(crate) fn reserve(&mut self, frames: u32) {
        if frames as usize > self.frames.len() {
            grow(&mut self.frames, frames as usize);
            self.frames.resize_with(frames as usize, Node::unused);
        }
    }

    /// Makes `page` resident in `frame`; its node is in no list yet.
    pub(crate) fn occupy(&mut self, frame: Frame, page: PageId, state: S) -> NodeId {
        self.reserve(frame + 1);
        let node = &mut self.frames[frame as usize];
        debug_assert!(node.page == PageId::NONE, "policy I1");
        *node = Node::new(page, state);
        NodeId::of(frame)
    }

    /// The page in `frame` is resident no more; its node must be in no list. Returns page and state.
    pub(crate) fn vacate(&mut self, frame: Frame) -> (PageId, S) {
        let node = std::mem::replace(&mut self.frames[frame as usize], Node::unused());
        debug_assert!(node.page != PageId::NONE, "policy I1");
        (node.page, node.state)
    }

    /// Makes a ghost of `page`, in no list yet. There must be none of it.
    pub(crate) fn remember(&mut self, page: PageId, state: S) -> NodeId {
        let node = Node::new(page, state);
        let id = match self.free.pop() {
            Some(id) => {
                self[id] = node;
                id
            }
            None => {
                let at = self.ghosts.len();
                grow(&mut self.ghosts, at + 1);
                self.ghosts.push(node);
                NodeId(GHOST | at as u32)
            }
        };
        debug_assert!(self.ghost(page).is_none(), "nodes N1");
        let page_of = |ghost: u32| self.ghosts[ghost as usize].page;
        self.directory.insert(id.0 ^ GHOST, page_of);
        id
    }

    /// Drops the ghost `id`, which must be in no list. Returns page and state.
    pub(crate) fn forget(&mut self, id: NodeId) -> (PageId, S) {
        debug_assert!(id.is_ghost());
        let page_of = |ghost: u32| self.ghosts[ghost as usize].page;
        self.directory.remove(self[id].page, page_of);
        let node = std::mem::replace(&mut self[id], Node::unused());
        grow(&mut self.free, self.ghosts.len());
        self.free.push(id);
        (node.page, node.state)
    }
}

impl<S, const L: usize> NodeTable<S, L> {
    /// The ghost of `page`, if there is one.
    pub(crate) fn ghost(&self, page: PageId) -> Option<NodeId> {
        let page_of = |ghost: u32| self.ghosts[ghost as usize].page;
        let found = self.directory.find(page, page_of);
        found.map(|ghost| NodeId(GHOST | ghost))
    }

    /// The most that [`bytes`](Self::bytes) comes to; how many ghosts there are is the policy's to say.
    pub(crate) const MEMORY: Memory = Memory {
        fixed: 4 * Directory::BYTES + 2 * SPARE * (size_of::<Node<S, L>>() + size_of::<NodeId>()),
        frame: grown(size_of::<Node<S, L>>()),
        ghost: grown(size_of::<Node<S, L>>() + size_of::<NodeId>()) + Directory::BYTES,
        ghosts: Ghosts::None,
    };

    /// Memory held for nodes and directory.
    pub(crate) fn bytes(&self) -> usize {
        let nodes = self.frames.capacity() + self.ghosts.capacity();
        nodes * size_of::<Node<S, L>>()
            + self.free.capacity() * size_of::<NodeId>()
            + self.directory.bytes()
    }

    /// Number of ghosts.
    pub(crate) fn ghosts(&self) -> usize {
        self.directory.len()
    }

    /// Whether `frame` holds a page.
    pub(crate) fn is_resident(&self, frame: Frame) -> bool {
        let node = self.frames.get(frame as usize);
        node.is_some_and(|node| node.page != PageId::NONE)
    }

    /// Resident frames, by number: for checks, not for use.
    pub(crate) fn residents(&self) -> impl Iterator<Item = Frame> + '_ {
        (0..self.frames.len() as u32).filter(|&frame| self.is_resident(frame))
    }

    /// Where the frames' nodes lie, for prefetching.
    pub(crate) fn addresses(&self) -> Nodes {
        Nodes {
            address: self.frames.as_ptr() as usize,
            stride: size_of::<Node<S, L>>(),
        }
    }

    /// What an inspector is shown of a node, without weight and kind.
    pub(crate) fn entry(&self, id: NodeId) -> Entry {
        Entry {
            page: self[id].page,
            frame: id.frame(),
            weight: 0,
            kind: "",
        }
    }

    /// Verifies N1 and N2, and that `listed` nodes (in the policy's lists, each counted once) are all there are.
    pub(crate) fn check(&self, listed: usize) -> Result<(), String> {
        for id in self.directory.iter().map(|ghost| NodeId(GHOST | ghost)) {
            let page = self[id].page;
            if self.ghost(page) != Some(id) {
                return Err(format!("N1: {id:?} of page {page} is not found"));
            }
        }
        if self.directory.len() + self.free.len() != self.ghosts.len() {
            return Err("N2: a ghost's node is neither used nor free".to_string());
        }
        let used = self.residents().count() + self.ghosts();
        match used == listed {
            true => Ok(()),
            false => Err(format!("{used} nodes are used, {listed} are in lists")),
        }
    }
}

impl<S, const L: usize> Index<NodeId> for NodeTable<S, L> {
    type Output = Node<S, L>;

    #[inline]
    fn index(&self, id: NodeId) -> &Node<S, L> {
        match id.is_ghost() {
            false => &self.frames[id.0 as usize],
            true => &self.ghosts[id.number()],
        }
    }
}

impl<S, const L: usize> IndexMut<NodeId> for NodeTable<S, L> {
    #[inline]
    fn index_mut(&mut self, id: NodeId) -> &mut Node<S, L> {
        match id.is_ghost() {
            false => &mut self.frames[id.0 as usize],
            true => &mut self.ghosts[id.number()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_ghosts_have_nodes_of_their_own() {
        let mut table: NodeTable<u32> = NodeTable::new(1);
        let resident = table.occupy(3, PageId::new(30), 7);
        let ghost = table.remember(PageId::new(9), 8);
        assert_eq!((resident.frame(), ghost.frame()), (Some(3), None));
        assert_eq!(table.ghost(PageId::new(9)), Some(ghost));
        assert_eq!(table.ghost(PageId::new(30)), None);
        assert_eq!(table.check(2), Ok(()));
        assert_eq!(table.vacate(3), (PageId::new(30), 7));
        assert_eq!(table.forget(ghost), (PageId::new(9), 8));
        assert_eq!(table.ghost(PageId::new(9)), None);
        let again = table.remember(PageId::new(5), 1);
        assert_eq!(again, ghost, "freed nodes are used again");
        assert_eq!(table.check(1), Ok(()));
    }
}
