//! Several queues of nodes: a node is in one of them, and knows in which.
//!
//! Most policies are made of such: pages used once and pages used more often, ghosts of either. A policy names its queues
//! by their numbers, and says what brings a page from one to another; pages and ghosts are never in the same queue.
//!
//! # Invariants
//! Q1. A node is in the queue that its state names, and all nodes are in queues.

use std::ops::Index;

use longshore_base::PageId;

use crate::catalogue::Memory;
use crate::inspect::{Entry, Inspector};
use crate::lists::{List, Offered};
use crate::nodes::{NodeId, NodeTable};
use crate::policy::{Frame, Taker};

/// What a policy keeps of a page, the number of its queue being a part of it unless there is one queue only.
pub(crate) trait Queued: Default {
    /// In which queue the page is.
    fn queue(&self) -> usize {
        0
    }

    /// It is in that one now.
    fn set_queue(&mut self, _queue: u8) {}
}

impl Queued for () {}

impl Queued for bool {}

/// The number of the queue, and nothing else.
impl Queued for u8 {
    #[inline]
    fn queue(&self) -> usize {
        usize::from(*self)
    }

    #[inline]
    fn set_queue(&mut self, queue: u8) {
        *self = queue;
    }
}

/// `N` queues, and the nodes that are in them.
pub(crate) struct Queues<S, const N: usize> {
    pub(crate) nodes: NodeTable<S>,
    lists: [List; N],
}

impl<S: Queued, const N: usize> Queues<S, N> {
    /// The most memory that the nodes take.
    pub(crate) const MEMORY: Memory = NodeTable::<S>::MEMORY;

    /// Queues for a pool of `capacity` frames, all of them empty.
    pub(crate) fn new(capacity: u32) -> Self {
        Queues {
            nodes: NodeTable::new(capacity),
            lists: std::array::from_fn(|_| List::new()),
        }
    }

    /// `page` is resident in `frame`, and comes last in `queue`.
    pub(crate) fn admit(&mut self, frame: Frame, page: PageId, state: S, queue: u8) {
        let id = self.nodes.occupy(frame, page, state);
        self.push(id, queue);
    }

    /// The page in `frame` is resident no more.
    pub(crate) fn vacate(&mut self, frame: Frame) -> (PageId, S) {
        self.take_out(NodeId::of(frame));
        self.nodes.vacate(frame)
    }

    /// A node, in whichever queue, comes last in `queue`.
    #[inline]
    pub(crate) fn move_to(&mut self, id: NodeId, queue: u8) {
        if self.nodes[id].state.queue() == usize::from(queue) {
            self.lists[usize::from(queue)].move_to_back(&mut self.nodes, id);
        } else {
            self.take_out(id);
            self.push(id, queue);
        }
    }

    /// The front of `queue` becomes its back: a hand moves on.
    #[inline]
    pub(crate) fn rotate(&mut self, queue: u8) {
        self.lists[usize::from(queue)].rotate(&self.nodes);
    }

    /// A page that left becomes the last ghost in `queue`, which keeps at most `len_max`.
    pub(crate) fn remember(&mut self, page: PageId, state: S, queue: u8, len_max: usize) {
        let ghost = self.nodes.remember(page, state);
        self.push(ghost, queue);
        self.trim(queue, len_max);
    }

    /// Drops the ghost of `page`. True if there was one.
    pub(crate) fn forget(&mut self, page: PageId) -> bool {
        let ghost = self.nodes.ghost(page);
        if let Some(ghost) = ghost {
            self.take_out(ghost);
            self.nodes.forget(ghost);
        }
        ghost.is_some()
    }

    /// Forgets ghosts from the front of `queue` until at most `len_max` are left.
    pub(crate) fn trim(&mut self, queue: u8, len_max: usize) {
        self.lists[usize::from(queue)].trim(&mut self.nodes, len_max);
    }

    #[inline]
    fn push(&mut self, id: NodeId, queue: u8) {
        self.nodes[id].state.set_queue(queue);
        self.lists[usize::from(queue)].push_back(&mut self.nodes, id);
    }

    #[inline]
    fn take_out(&mut self, id: NodeId) {
        let queue = self.nodes[id].state.queue();
        self.lists[queue].remove(&mut self.nodes, id);
    }

    /// Offers the pages of these queues, one queue after the other, each from its front, until one is taken.
    pub(crate) fn offer(&self, queues: impl IntoIterator<Item = u8>, take: Taker<'_>) -> Offered {
        for queue in queues {
            match self[queue].offer(&self.nodes, take) {
                Offered::Declined => {}
                taken_or_enough => return taken_or_enough,
            }
        }
        Offered::Declined
    }

    /// Appends frames to `out` in the order in which they would be offered, those without `weight` only, until it holds
    /// `limit`.
    pub(crate) fn guess(
        &self,
        queues: impl IntoIterator<Item = u8>,
        weight: impl Fn(&S) -> u32,
        limit: usize,
        out: &mut Vec<Frame>,
    ) {
        let all = queues.into_iter();
        let all = all.flat_map(|queue| self[queue].iter(&self.nodes));
        let weightless = all.filter(|&id| weight(&self.nodes[id].state) == 0);
        out.extend(weightless.filter_map(NodeId::frame).take(limit - out.len()));
    }

    /// Shows queues by name.
    pub(crate) fn show(
        &self,
        queues: impl IntoIterator<Item = (u8, &'static str)>,
        weight: impl Fn(&S) -> u32,
        out: &mut dyn Inspector,
    ) {
        for (queue, name) in queues {
            let detail = |state: &S, entry: &mut Entry| entry.weight = weight(state);
            self[queue].show(&self.nodes, out, name, detail);
        }
    }

    /// Verifies Q1, and that those of the queues from `first_ghosts` on, and only those, have ghosts.
    pub(crate) fn check(&self, first_ghosts: u8) -> Result<(), String> {
        for (queue, list) in self.lists.iter().enumerate() {
            list.check(&self.nodes)?;
            let belongs = |id: NodeId| {
                let is_ghosts = queue >= usize::from(first_ghosts);
                self.nodes[id].state.queue() == queue && id.is_ghost() == is_ghosts
            };
            if !list.iter(&self.nodes).all(belongs) {
                return Err(format!("Q1: queue {queue} has a node of another"));
            }
        }
        self.nodes.check(self.lists.iter().map(List::len).sum())
    }
}

/// A queue by its number.
impl<S, const N: usize> Index<u8> for Queues<S, N> {
    type Output = List;

    #[inline]
    fn index(&self, queue: u8) -> &List {
        &self.lists[usize::from(queue)]
    }
}

/// For a state whose pages have no weight.
pub(crate) fn weightless<S>(_: &S) -> u32 {
    0
}

/// Says that a queue of ghosts is too long.
pub(crate) fn check_len(what: &str, len: usize, len_max: usize) -> Result<(), String> {
    match len <= len_max {
        true => Ok(()),
        false => Err(format!("{len} {what}, not {len_max}")),
    }
}
