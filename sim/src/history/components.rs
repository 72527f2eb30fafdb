//! Views of the graph, and their strongly connected components: what lies on a circle.
//!
//! A view follows edges of some kinds only. One that keeps anti-dependencies *apart* never follows two in
//! a row: each node is there twice, as reached by one or by something else, and circles in such a view
//! are the ones that snapshot isolation forbids.
//!
//! # Source
//! Tarjan, "Depth-first search and linear graph algorithms" (1972), with a stack of our own.

use super::graph::{ANTI, Edge, Graph, Kind, Kinds, Node};

/// Whether anti-dependencies may follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anti {
    Free,
    Apart,
}

/// A node of a view: twice the node, and one if it was reached by an anti-dependency.
pub(super) type State = u32;

/// Some edges of a graph.
#[derive(Clone, Copy)]
pub(super) struct View<'g> {
    pub(super) graph: &'g Graph,
    pub(super) kinds: Kinds,
    pub(super) anti: Anti,
    /// If set: for each node its region; edges that leave it are not followed.
    pub(super) regions: Option<&'g [u32]>,
}

/// In no region: on no circle.
pub(super) const NOWHERE: u32 = u32::MAX;

impl<'g> View<'g> {
    pub(super) fn start(&self, node: Node) -> State {
        node.0 * 2
    }

    pub(super) fn node(&self, state: State) -> Node {
        Node(state / 2)
    }

    pub(super) fn edges(&self, state: State) -> &'g [Edge] {
        self.graph.edges(self.node(state))
    }

    /// Where an edge leads from `state`, if the view has it.
    pub(super) fn follow(&self, state: State, edge: &Edge) -> Option<State> {
        if let Some(regions) = self.regions {
            let (from, to) = (state as usize / 2, edge.to.0 as usize);
            if regions[from] == NOWHERE || regions[from] != regions[to] {
                return None;
            }
        }
        let reached_by_anti = match edge.kind {
            Kind::Through => state % 2,
            kind if !self.kinds.has(kind) => return None,
            kind if self.anti == Anti::Apart && ANTI.has(kind) => {
                if state % 2 == 1 {
                    return None;
                }
                1
            }
            _ => 0,
        };
        Some(edge.to.0 * 2 + reached_by_anti)
    }

    /// For each state the component that it lies in, or [`NOWHERE`] if it is alone there.
    pub(super) fn components(&self) -> Vec<u32> {
        let states = self.graph.nodes() as usize * 2;
        let mut search = Search {
            number: vec![0; states],
            low: vec![0; states],
            component: vec![NOWHERE; states],
            next_number: 1,
            components: 0,
            stack: Vec::new(),
        };
        for node in 0..self.graph.nodes() {
            let outside = self
                .regions
                .is_some_and(|regions| regions[node as usize] == NOWHERE);
            if !outside && search.number[node as usize * 2] == 0 {
                search.visit(self, node * 2);
            }
        }
        search.component
    }
}

struct Search {
    /// Order of discovery, from 1.
    number: Vec<u32>,
    low: Vec<u32>,
    component: Vec<u32>,
    next_number: u32,
    components: u32,
    stack: Vec<State>,
}

/// In `low`: the component is complete.
const CLOSED: u32 = u32::MAX;

impl Search {
    fn visit(&mut self, view: &View, root: State) {
        let mut path = vec![(root, 0usize)];
        self.discover(root);
        while let Some((state, at)) = path.last_mut() {
            let (state, edges) = (*state, view.edges(*state));
            let Some(edge) = edges.get(*at) else {
                path.pop();
                self.close(state);
                if let Some((parent, _)) = path.last() {
                    self.lower(*parent, state);
                }
                continue;
            };
            *at += 1;
            let Some(next) = view.follow(state, edge) else {
                continue;
            };
            if self.number[next as usize] == 0 {
                self.discover(next);
                path.push((next, 0));
            } else {
                self.lower(state, next);
            }
        }
    }

    fn discover(&mut self, state: State) {
        self.number[state as usize] = self.next_number;
        self.low[state as usize] = self.next_number;
        self.next_number += 1;
        self.stack.push(state);
    }

    /// `from` reaches what `to` reaches, unless that is done with.
    fn lower(&mut self, from: State, to: State) {
        let low = self.low[to as usize];
        if low != CLOSED {
            self.low[from as usize] = self.low[from as usize].min(low);
        }
    }

    /// All edges of `state` are followed: takes its component off the stack, if it is the first of it.
    fn close(&mut self, state: State) {
        if self.low[state as usize] != self.number[state as usize] {
            return;
        }
        let start = self.stack.iter().rposition(|other| *other == state);
        let members = self.stack.split_off(start.expect("it is on the stack"));
        let is_circle = members.len() > 1;
        for member in members {
            self.low[member as usize] = CLOSED;
            if is_circle {
                self.component[member as usize] = self.components;
            }
        }
        self.components += u32::from(is_circle);
    }
}
