//! A stack by last use, in blocks: a node that is used goes on top, and touches none of its neighbours.
//!
//! In a list of links a use writes five nodes, three of which lie anywhere in memory. Here it writes the node's place,
//! four bytes, and the top. Each node has one bit for its owner, the *mark*.
//!
//! # Protocol
//! Slots are numbered, and [`SLOTS`] of them in a row are a block; blocks are linked from the bottom to the top. A node is
//! pushed into the next slot of the block on top, and leaves a gap where it was. A block without nodes is free; two
//! neighbours that have become thin are pushed together into one. That moves at most [`THIN`] nodes, once for each block
//! that is filled: O(1) amortised.
//!
//! # Invariants
//! S1. A node has a place if, and only if, the slot of that place names it.
//! S2. `live` has a bit for each slot with a node, and `count` counts them; on top, for each that is not yet filled, too.
//! S3. `bottom` is the lowest node.
//! S4. Two neighbours below the top have more than half a block of nodes together: `thinned` sees to it.

use crate::nodes::{NodeId, grow, grown};
use crate::policy::Frame;

/// Slots of a block.
const SLOTS: u32 = 64;
/// Neighbours with no more nodes than this together become one block.
const THIN: u32 = 48;
/// A block looks at its neighbours whenever so many more nodes have left it.
const STEP: u32 = 8;
const NO_BLOCK: u32 = u32::MAX;

/// See the head of the file.
pub(crate) struct Stack {
    /// By frame.
    places: Vec<Place>,
    /// By the ghost's number.
    ghosts: Vec<Place>,
    /// The node of each slot, or one that was there.
    slots: Vec<NodeId>,
    blocks: Vec<Block>,
    free: Vec<u32>,
    lowest: u32,
    top: u32,
    /// The next slot to be filled, in the block on top.
    next: u32,
    len: usize,
    bottom: NodeId,
}

/// Whence a node was put on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Raised {
    /// It was not.
    Not,
    FromBottom,
    FromWithin,
}

/// Where a node is: its slot, and the mark.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place(u32);

const MARK: u32 = 1 << 31;

impl Place {
    const NONE: Place = Place(!MARK);

    #[inline]
    fn new(slot: u32, mark: bool) -> Place {
        Place(slot | if mark { MARK } else { 0 })
    }

    #[inline]
    fn slot(self) -> u32 {
        self.0 & !MARK
    }

    #[inline]
    fn is_marked(self) -> bool {
        self.0 & MARK != 0
    }
}

/// Slots in a row.
struct Block {
    /// By slot, the first in the lowest bit.
    live: u64,
    count: u32,
    below: u32,
    above: u32,
}

impl Stack {
    /// The most bytes for a node: a place, and by S4 four slots and a sixteenth of a block.
    pub(crate) const NODE_BYTES: usize = grown(size_of::<Place>() + 4 * size_of::<NodeId>() + 2);
    /// However few nodes there are: a few blocks.
    pub(crate) const FIXED_BYTES: usize = 8 * (SLOTS as usize * size_of::<NodeId>() + 32);

    /// Memory held.
    pub(crate) fn bytes(&self) -> usize {
        let places = self.places.capacity() + self.ghosts.capacity();
        places * size_of::<Place>()
            + self.slots.capacity() * size_of::<NodeId>()
            + self.blocks.capacity() * size_of::<Block>()
            + self.free.capacity() * size_of::<u32>()
    }

    /// An empty stack, with room for the nodes of `frames` frames.
    pub(crate) fn new(frames: u32) -> Stack {
        let mut stack = Stack {
            places: Vec::new(),
            ghosts: Vec::new(),
            slots: Vec::new(),
            blocks: Vec::new(),
            free: Vec::new(),
            lowest: 0,
            top: NO_BLOCK,
            next: 0,
            len: 0,
            bottom: NodeId::NIL,
        };
        stack.reserve(frames);
        stack.open_block();
        stack
    }

    /// Makes sure that there is room for the nodes of `frames` frames.
    pub(crate) fn reserve(&mut self, frames: u32) {
        self.reach(NodeId::of(frames.max(1) - 1));
    }

    /// Where the places of the frames lie, and how far apart.
    pub(crate) fn address(&self) -> (usize, usize) {
        (self.places.as_ptr() as usize, size_of::<Place>())
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The node that was used longest ago.
    #[inline]
    pub(crate) fn bottom(&self) -> Option<NodeId> {
        (self.bottom != NodeId::NIL).then_some(self.bottom)
    }

    #[inline]
    pub(crate) fn contains(&self, id: NodeId) -> bool {
        self.place(id) != Place::NONE
    }

    /// Whether a node is in the stack, and marked.
    #[inline]
    pub(crate) fn is_marked(&self, id: NodeId) -> bool {
        self.place(id).is_marked()
    }

    /// Puts the node of a frame, which is not in the stack, on top.
    pub(crate) fn push(&mut self, frame: Frame, mark: bool) {
        let id = NodeId::of(frame);
        self.reach(id);
        debug_assert!(!self.contains(id), "in the stack already");
        self.len += 1;
        if self.bottom == NodeId::NIL {
            self.bottom = id;
        }
        self.put_on_top(frame, mark);
        self.fill_up();
    }

    /// Puts the node of a frame, which is in the stack, on top.
    pub(crate) fn raise(&mut self, frame: Frame, mark: bool) {
        self.move_up(frame, self.places[frame as usize].slot(), mark);
    }

    /// Puts the node of a frame on top, if it is in the stack and marked.
    #[inline(always)]
    pub(crate) fn raise_marked(&mut self, frame: Frame) -> Raised {
        match self.places.get(frame as usize) {
            Some(place) if place.is_marked() => self.move_up(frame, place.slot(), true),
            _ => Raised::Not,
        }
    }

    #[inline(always)]
    fn move_up(&mut self, frame: Frame, from: u32, mark: bool) -> Raised {
        let was_bottom = self.bottom == NodeId::of(frame);
        if was_bottom {
            // First, while there is a next slot.
            self.find_bottom(from);
            if self.bottom == NodeId::NIL {
                self.bottom = NodeId::of(frame);
            }
        }
        self.put_on_top(frame, mark);
        self.leave(from);
        self.fill_up();
        match was_bottom {
            true => Raised::FromBottom,
            false => Raised::FromWithin,
        }
    }

    /// Takes a node of the stack out of it.
    pub(crate) fn remove(&mut self, id: NodeId) {
        let from = self.place(id).slot();
        *self.place_mut(id) = Place::NONE;
        self.len -= 1;
        if self.bottom == id {
            self.find_bottom(from);
        }
        self.leave(from);
    }

    /// Takes out the bottom.
    pub(crate) fn pop_bottom(&mut self) -> Option<NodeId> {
        let id = self.bottom()?;
        self.remove(id);
        Some(id)
    }

    /// Puts `id`, not in the stack and without mark, in the place of `former`, which is.
    pub(crate) fn replace(&mut self, former: NodeId, id: NodeId) {
        self.reach(id);
        let slot = self.place(former).slot();
        *self.place_mut(former) = Place::NONE;
        *self.place_mut(id) = Place::new(slot, false);
        self.slots[slot as usize] = id;
        if self.bottom == former {
            self.bottom = id;
        }
    }

    /// The nodes, from the bottom.
    pub(crate) fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes_from(first_slot(self.lowest))
    }

    #[inline]
    fn place(&self, id: NodeId) -> Place {
        let place = match id.frame() {
            Some(frame) => self.places.get(frame as usize),
            None => self.ghosts.get(id.number()),
        };
        place.copied().unwrap_or(Place::NONE)
    }

    fn place_mut(&mut self, id: NodeId) -> &mut Place {
        match id.frame() {
            Some(frame) => &mut self.places[frame as usize],
            None => &mut self.ghosts[id.number()],
        }
    }

    /// Makes sure that `id` can have a place.
    fn reach(&mut self, id: NodeId) {
        let places = match id.is_ghost() {
            false => &mut self.places,
            true => &mut self.ghosts,
        };
        if id.number() >= places.len() {
            grow(places, id.number() + 1);
            places.resize(id.number() + 1, Place::NONE);
        }
    }

    /// Fills the next slot; [`Stack::fill_up`] is due.
    #[inline]
    fn put_on_top(&mut self, frame: Frame, mark: bool) {
        self.slots[self.next as usize] = NodeId::of(frame);
        self.places[frame as usize] = Place::new(self.next, mark);
        self.next += 1;
    }

    /// Sees to it that there is a next slot.
    #[inline]
    fn fill_up(&mut self) {
        if self.next.is_multiple_of(SLOTS) {
            self.open_block();
        }
    }

    /// The slot is a gap now.
    #[inline]
    fn leave(&mut self, slot: u32) {
        let block = &mut self.blocks[(slot / SLOTS) as usize];
        block.live &= !(1 << (slot % SLOTS));
        block.count -= 1;
        if block.count <= THIN && block.count.is_multiple_of(STEP) {
            self.thinned(slot / SLOTS);
        }
    }

    /// The nodes in this slot and in those above. There is a next slot: it shows where the stack ends.
    fn nodes_from(&self, slot: u32) -> impl Iterator<Item = NodeId> + '_ {
        let mut at = slot;
        std::iter::from_fn(move || {
            loop {
                if at == self.next {
                    return None;
                }
                let slot = at;
                let block = &self.blocks[(slot / SLOTS) as usize];
                at += 1;
                if at.is_multiple_of(SLOTS) && slot / SLOTS != self.top {
                    at = first_slot(block.above);
                }
                if block.live & (1 << (slot % SLOTS)) != 0 {
                    return Some(self.slots[slot as usize]);
                }
            }
        })
    }

    /// Restores S3: the bottom, which was in this slot, has left it.
    #[inline(never)]
    fn find_bottom(&mut self, slot: u32) {
        // The slot still counts as taken, by the first of these.
        let next = self.nodes_from(slot).nth(1);
        self.bottom = next.unwrap_or(NodeId::NIL);
    }

    /// Puts an empty block on top.
    #[inline(never)]
    fn open_block(&mut self) {
        let former = self.top;
        let block = Block {
            live: u64::MAX,
            count: SLOTS,
            below: former,
            above: NO_BLOCK,
        };
        self.top = match self.free.pop() {
            Some(free) => {
                self.blocks[free as usize] = block;
                free
            }
            None => {
                let slots = self.slots.len() + SLOTS as usize;
                grow(&mut self.slots, slots);
                self.slots.resize(slots, NodeId::NIL);
                let blocks = self.blocks.len() + 1;
                grow(&mut self.blocks, blocks);
                self.blocks.push(block);
                (self.blocks.len() - 1) as u32
            }
        };
        self.next = first_slot(self.top);
        if former != NO_BLOCK {
            self.blocks[former as usize].above = self.top;
            // It was not looked at while it was being filled.
            self.thinned(former);
        }
    }

    /// A block has lost nodes: it goes, or becomes one with a neighbour. That on top is left to be filled.
    #[inline(never)]
    fn thinned(&mut self, number: u32) {
        if number == self.top {
            return;
        }
        let block = &self.blocks[number as usize];
        let can_join = |other: u32| {
            other != NO_BLOCK
                && other != self.top
                && self.blocks[other as usize].count + block.count <= THIN
        };
        if block.count == 0 {
            self.free(number);
        } else if can_join(block.below) {
            self.join(block.below, number);
        } else if can_join(block.above) {
            self.join(number, block.above);
        }
    }

    /// Pushes the nodes of two neighbours together into the lower.
    fn join(&mut self, lower: u32, upper: u32) {
        let start = first_slot(lower);
        let mut to = start;
        for number in [lower, upper] {
            let mut live = self.blocks[number as usize].live;
            while live != 0 {
                let id = self.slots[(first_slot(number) + live.trailing_zeros()) as usize];
                live &= live - 1;
                self.slots[to as usize] = id;
                let place = self.place_mut(id);
                *place = Place::new(to, place.is_marked());
                to += 1;
            }
        }
        let block = &mut self.blocks[lower as usize];
        block.count = to - start;
        block.live = (1 << block.count) - 1;
        self.free(upper);
    }

    /// Takes a block, not the one on top, out of the order.
    fn free(&mut self, number: u32) {
        let Block { below, above, .. } = self.blocks[number as usize];
        self.blocks[above as usize].below = below;
        match below {
            NO_BLOCK => self.lowest = above,
            _ => self.blocks[below as usize].above = above,
        }
        grow(&mut self.free, self.blocks.len());
        self.free.push(number);
    }

    /// Verifies the invariants.
    pub(crate) fn check(&self) -> Result<(), String> {
        let places = self.places.iter().chain(&self.ghosts);
        let placed = places.filter(|&&place| place != Place::NONE).count();
        let is_placed = |id| self.slots[self.place(id).slot() as usize] == id;
        if placed != self.len || self.iter().count() != self.len || !self.iter().all(is_placed) {
            return Err(format!("S1: {placed} nodes have places, not {}", self.len));
        }
        let (mut number, mut used) = (self.lowest, 1);
        while number != self.top {
            let block = &self.blocks[number as usize];
            if block.live.count_ones() != block.count || block.count == 0 {
                return Err(format!("S2: block {number} has {} nodes", block.count));
            }
            let above = &self.blocks[block.above as usize];
            if block.above != self.top && block.count + above.count <= SLOTS / 2 {
                return Err(format!("S4: block {number} and the next are thin"));
            }
            (number, used) = (block.above, used + 1);
        }
        if used + self.free.len() != self.blocks.len() {
            return Err("S4: a block is lost".to_string());
        }
        match self.iter().next() == self.bottom() {
            true => Ok(()),
            false => Err("S3: the bottom is another".to_string()),
        }
    }
}

fn first_slot(block: u32) -> u32 {
    block * SLOTS
}

#[cfg(test)]
mod tests;
