//! The graph of transactions: who must come before whom, and why.
//!
//! Beside transactions there are *relays*, which save edges: who has an edge to a relay has it to all
//! that can be reached from there over `Through` edges, which carry no meaning of their own.

use super::transactions::TxnId;
use super::values::KeyId;

/// Names a node: the transactions come first, relays after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Node(pub(super) u32);

impl From<TxnId> for Node {
    fn from(txn: TxnId) -> Node {
        Node(txn.0)
    }
}

/// Why one comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(super) enum Kind {
    Ww,
    Wr,
    Rw,
    PredicateRw,
    Process,
    RealTime,
    /// From a relay on.
    Through,
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const fn of(kinds: &[Kind]) -> Kinds {
        let (mut bits, mut at) = (0, 0);
        while at < kinds.len() {
            bits |= 1 << kinds[at] as u8;
            at += 1;
        }
        Kinds(bits)
    }

    pub(super) const fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    pub(super) const fn without(self, other: Kinds) -> Kinds {
        Kinds(self.0 & !other.0)
    }

    pub(super) fn has(self, kind: Kind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }
}

/// Anti-dependencies.
pub(super) const ANTI: Kinds = Kinds::of(&[Kind::Rw, Kind::PredicateRw]);
/// Edges of time.
pub(super) const TIME: Kinds = Kinds::of(&[Kind::Process, Kind::RealTime]);

/// An edge, seen from where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge {
    pub(super) to: Node,
    pub(super) kind: Kind,
    /// The key that shows it; none for time.
    pub(super) key: Option<KeyId>,
}

/// A graph in the making.
#[derive(Debug)]
pub(super) struct Builder {
    nodes: u32,
    transactions: u32,
    edges: Vec<(Node, Edge)>,
}

impl Builder {
    pub(super) fn new(transactions: usize) -> Builder {
        let transactions = transactions as u32;
        Builder {
            nodes: transactions,
            transactions,
            edges: Vec::new(),
        }
    }

    /// A new relay.
    pub(super) fn relay(&mut self) -> Node {
        self.nodes += 1;
        Node(self.nodes - 1)
    }

    /// Adds an edge, but none from a node to itself.
    pub(super) fn add(
        &mut self,
        from: impl Into<Node>,
        to: impl Into<Node>,
        kind: Kind,
        key: impl Into<Option<KeyId>>,
    ) {
        let (from, to, key) = (from.into(), to.into(), key.into());
        if from != to {
            self.edges.push((from, Edge { to, kind, key }));
        }
    }

    pub(super) fn build(self) -> Graph {
        let mut starts = vec![0u32; self.nodes as usize + 1];
        for (from, _) in &self.edges {
            starts[from.0 as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let nowhere = Edge {
            to: Node(0),
            kind: Kind::Through,
            key: None,
        };
        let mut edges = vec![nowhere; self.edges.len()];
        for (from, edge) in self.edges {
            let at = &mut next[from.0 as usize];
            edges[*at as usize] = edge;
            *at += 1;
        }
        Graph {
            transactions: self.transactions,
            starts,
            edges,
        }
    }
}

/// The graph, edges sorted by where they begin.
#[derive(Debug)]
pub(super) struct Graph {
    transactions: u32,
    starts: Vec<u32>,
    edges: Vec<Edge>,
}

impl Graph {
    pub(super) fn nodes(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    pub(super) fn edges(&self, node: Node) -> &[Edge] {
        let at = node.0 as usize;
        &self.edges[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// The transaction that a node stands for; none if it is a relay.
    pub(super) fn transaction(&self, node: Node) -> Option<TxnId> {
        (node.0 < self.transactions).then_some(TxnId(node.0))
    }

    /// How many edges there are of a kind.
    pub(super) fn count(&self, kind: Kind) -> usize {
        self.edges.iter().filter(|edge| edge.kind == kind).count()
    }
}
