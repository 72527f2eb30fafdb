//! The stack beside the list that it should be.

use super::*;
use crate::nodes::NodeTable;
use longshore_base::{Environment, PageId, SeededEnvironment};

struct Numbers(SeededEnvironment);

impl Numbers {
    fn below(&mut self, limit: u32) -> u32 {
        (self.0.random() % u64::from(limit)) as u32
    }

    /// Few frames come often, so that blocks thin out.
    fn frame(&mut self) -> Frame {
        let limit = [600, 40, 3][self.below(3) as usize];
        self.below(limit)
    }
}

/// A stack, and the list that it should be: nodes and marks.
struct Pair {
    nodes: NodeTable<()>,
    stack: Stack,
    list: Vec<(NodeId, bool)>,
}

impl Pair {
    fn at(&self, frame: Frame) -> Option<usize> {
        let is_wanted = |(id, _): &(NodeId, bool)| *id == NodeId::of(frame);
        self.list.iter().position(is_wanted)
    }

    fn use_frame(&mut self, frame: Frame, mark: bool) {
        match self.at(frame) {
            Some(at) => {
                let (_, was_marked) = self.list.remove(at);
                let raised = match (was_marked, at) {
                    (false, _) => Raised::Not,
                    (true, 0) => Raised::FromBottom,
                    (true, _) => Raised::FromWithin,
                };
                assert_eq!(self.stack.raise_marked(frame), raised);
                self.stack.raise(frame, mark);
            }
            None => self.stack.push(frame, mark),
        }
        self.list.push((NodeId::of(frame), mark));
    }

    fn remove(&mut self, frame: Frame) {
        if let Some(at) = self.at(frame) {
            self.stack.remove(self.list.remove(at).0);
        }
    }

    fn replace(&mut self, frame: Frame, page: PageId) {
        if let Some(at) = self.at(frame)
            && self.nodes.ghost(page).is_none()
        {
            let ghost = self.nodes.remember(page, ());
            self.stack.replace(NodeId::of(frame), ghost);
            self.list[at] = (ghost, false);
        }
    }

    fn pop_bottom(&mut self) {
        let bottom = (!self.list.is_empty()).then(|| self.list.remove(0).0);
        assert_eq!(self.stack.pop_bottom(), bottom);
        if let Some(ghost) = bottom.filter(|id| id.is_ghost()) {
            self.nodes.forget(ghost);
        }
    }

    fn compare(&self) {
        assert_eq!(self.stack.check(), Ok(()));
        let ids = self.stack.iter();
        let found: Vec<_> = ids.map(|id| (id, self.stack.is_marked(id))).collect();
        assert_eq!(found, self.list);
    }
}

#[test]
fn acts_like_a_list() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut numbers = Numbers(SeededEnvironment::new(seed));
        let mut pair = Pair {
            nodes: NodeTable::new(0),
            stack: Stack::new(8),
            list: Vec::new(),
        };
        for step in 0..20_000 {
            let frame = numbers.frame();
            match numbers.below(50) {
                0 => pair.remove(frame),
                1 => pair.replace(frame, PageId::new(u64::from(numbers.below(50)))),
                2 => pair.pop_bottom(),
                _ => pair.use_frame(frame, numbers.below(2) == 0),
            }
            let bottom = pair.list.first().map(|(id, _)| *id);
            assert_eq!(pair.stack.bottom(), bottom, "S3, step {step}");
            if step % 97 == 0 {
                pair.compare();
            }
        }
        pair.compare();
    }
}

#[test]
fn the_bottom_is_found_though_the_top_is_full_just_then() {
    let mut stack = Stack::new(5 * SLOTS);
    (0..5 * SLOTS).for_each(|frame| stack.push(frame, false));
    // The third block goes on top, the first one goes; the second has above it the next in memory to that on top.
    (2 * SLOTS..3 * SLOTS).for_each(|frame| stack.raise(frame, false));
    (0..SLOTS).for_each(|frame| stack.remove(NodeId::of(frame)));
    let above = stack.blocks[stack.lowest as usize].above;
    assert_eq!((stack.lowest, above, stack.top), (1, 3, 2));
    (SLOTS..2 * SLOTS).for_each(|frame| stack.raise(frame, false));
    assert_eq!(stack.bottom(), Some(NodeId::of(3 * SLOTS)));
    stack.check().unwrap();
}

#[test]
fn blocks_that_thinned_out_on_top_are_joined() {
    let mut stack = Stack::new(100);
    stack.push(0, false);
    for frame in 1..100 {
        // One node stays in each block, another leaves it.
        stack.push(frame, false);
        (1..SLOTS).for_each(|_| stack.raise(0, false));
    }
    stack.check().unwrap();
    assert!(stack.bytes() <= 100 * Stack::NODE_BYTES + Stack::FIXED_BYTES);
}

#[test]
fn the_block_on_top_is_joined_with_none() {
    let mut stack = Stack::new(SLOTS + 1);
    (0..SLOTS + 1).for_each(|frame| stack.push(frame, false));
    (0..50).for_each(|_| stack.raise(SLOTS, false));
    (0..SLOTS - 8).for_each(|frame| stack.remove(NodeId::of(frame)));
    stack.check().unwrap();
    let frames: Vec<_> = stack.iter().filter_map(NodeId::frame).collect();
    assert!(frames.into_iter().eq(SLOTS - 8..SLOTS + 1));
}

#[test]
fn gaps_are_used_again() {
    let (frames, mut numbers) = (1000, Numbers(SeededEnvironment::new(1)));
    let mut stack = Stack::new(frames);
    (0..frames).for_each(|frame| stack.push(frame, false));
    for _ in 0..100_000 {
        stack.raise(numbers.below(frames), false);
    }
    stack.check().unwrap();
    let slots = stack.slots.len();
    assert!(slots <= 2 * frames as usize, "{slots} slots");
    assert!(stack.bytes() <= frames as usize * Stack::NODE_BYTES);
}
