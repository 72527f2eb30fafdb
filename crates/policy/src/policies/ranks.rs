//! Nodes in ranks: a list for each key that some page has, the ranks linked in the order of their keys. LFU's counts and
//! LFU-aging's priorities are such keys.
//!
//! A page that rises passes the ranks between its old key and its new one: none or one with LFU, whose keys grow by
//! one.
//!
//! # Invariants
//! R1. Keys rise from `lowest` along `above`; `below` undoes it; no rank is empty.
//! R2. Each node knows its rank.

use crate::inspect::{Entry, Inspector};
use crate::lists::List;
use crate::nodes::{NodeId, NodeTable};
use crate::policy::Frame;

/// What is kept of a page.
#[derive(Default)]
pub(crate) struct Standing {
    /// Where its rank lies.
    rank: u32,
    /// How often it was used since it came in.
    pub(crate) uses: u32,
}

impl Standing {
    /// That of a page that comes in.
    pub(crate) fn used_once() -> Standing {
        Standing {
            rank: NONE,
            uses: 1,
        }
    }
}

/// All ranks.
pub(crate) struct Ranks {
    ranks: Vec<Rank>,
    /// Ranks not used.
    free: Vec<u32>,
    lowest: u32,
    len: usize,
}

struct Rank {
    key: u64,
    /// The page that came to the rank first is in front.
    list: List,
    below: u32,
    above: u32,
}

const NONE: u32 = u32::MAX;

impl Ranks {
    pub(crate) fn new() -> Ranks {
        Ranks {
            ranks: Vec::new(),
            free: Vec::new(),
            lowest: NONE,
            len: 0,
        }
    }

    /// The key of a page.
    pub(crate) fn key(&self, nodes: &NodeTable<Standing>, id: NodeId) -> u64 {
        self.at(nodes[id].state.rank).key
    }

    /// The least key that a page has.
    pub(crate) fn lowest_key(&self) -> Option<u64> {
        self.rising().next().map(|rank| rank.key)
    }

    /// Brings in a page, which is in no list, looking for its rank from the lowest.
    pub(crate) fn insert(&mut self, nodes: &mut NodeTable<Standing>, id: NodeId, key: u64) {
        let rank = match self.lowest {
            NONE => self.add(NONE, key),
            lowest if self.at(lowest).key > key => self.add(NONE, key),
            lowest => self.find_from(lowest, key),
        };
        self.join(nodes, id, rank);
        self.len += 1;
    }

    /// Gives a page another key, which is no less than its own. It comes last in its rank.
    #[inline]
    pub(crate) fn raise(&mut self, nodes: &mut NodeTable<Standing>, id: NodeId, key: u64) {
        let rank = nodes[id].state.rank;
        let above = self.at(rank).above;
        let passes_nobody = above == NONE || self.at(above).key > key;
        if passes_nobody && self.at(rank).list.len() == 1 {
            self.ranks[rank as usize].key = key;
            return;
        }
        let target = self.find_from(rank, key);
        self.leave(nodes, id);
        self.join(nodes, id, target);
    }

    /// Takes a page out.
    pub(crate) fn remove(&mut self, nodes: &mut NodeTable<Standing>, id: NodeId) {
        self.leave(nodes, id);
        self.len -= 1;
    }

    /// The ranks' lists, the lowest first.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &List> {
        self.rising().map(|rank| &rank.list)
    }

    /// Appends frames to `out`, those of the lowest rank first, until it holds `limit`.
    pub(crate) fn guess(&self, nodes: &NodeTable<Standing>, limit: usize, out: &mut Vec<Frame>) {
        let pages = self.lists().flat_map(|list| list.iter(nodes));
        out.extend(pages.filter_map(NodeId::frame).take(limit));
    }

    /// Shows all pages as one queue, with their keys as weights.
    pub(crate) fn show(&self, nodes: &NodeTable<Standing>, out: &mut dyn Inspector) {
        let mut entries = self.rising().flat_map(|rank| {
            rank.list.iter(nodes).map(|id| Entry {
                weight: u32::try_from(rank.key).unwrap_or(u32::MAX),
                ..nodes.entry(id)
            })
        });
        out.queue("pages", &mut entries);
    }

    fn at(&self, rank: u32) -> &Rank {
        &self.ranks[rank as usize]
    }

    fn rising(&self) -> impl Iterator<Item = &Rank> {
        let rank = |at: u32| self.ranks.get(at as usize);
        std::iter::successors(rank(self.lowest), move |found| rank(found.above))
    }

    /// The rank of `key`, which is no less than that of the rank `below`; it is added if there is none.
    fn find_from(&mut self, mut below: u32, key: u64) -> u32 {
        loop {
            let above = self.at(below).above;
            if above == NONE || self.at(above).key > key {
                break;
            }
            below = above;
        }
        match self.at(below).key == key {
            true => below,
            false => self.add(below, key),
        }
    }

    /// Adds a rank above `below`, or below all with `NONE`.
    fn add(&mut self, below: u32, key: u64) -> u32 {
        let above = match below {
            NONE => self.lowest,
            below => self.at(below).above,
        };
        let rank = Rank {
            key,
            list: List::new(),
            below,
            above,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.ranks[at as usize] = rank;
                at
            }
            None => {
                self.ranks.push(rank);
                self.ranks.len() as u32 - 1
            }
        };
        self.link(below, at);
        self.link(at, above);
        at
    }

    fn link(&mut self, below: u32, above: u32) {
        match below {
            NONE => self.lowest = above,
            below => self.ranks[below as usize].above = above,
        }
        if above != NONE {
            self.ranks[above as usize].below = below;
        }
    }

    fn join(&mut self, nodes: &mut NodeTable<Standing>, id: NodeId, rank: u32) {
        nodes[id].state.rank = rank;
        self.ranks[rank as usize].list.push_back(nodes, id);
    }

    fn leave(&mut self, nodes: &mut NodeTable<Standing>, id: NodeId) {
        let at = nodes[id].state.rank;
        let rank = &mut self.ranks[at as usize];
        rank.list.remove(nodes, id);
        if rank.list.is_empty() {
            let (below, above) = (rank.below, rank.above);
            self.link(below, above);
            self.free.push(at);
        }
    }

    /// Verifies R1 and R2.
    pub(crate) fn check(&self, nodes: &NodeTable<Standing>) -> Result<(), String> {
        let (mut at, mut below, mut seen, mut used) = (self.lowest, NONE, 0, 0);
        while at != NONE {
            let rank = self.at(at);
            rank.list.check(nodes)?;
            let rises = below == NONE || self.at(below).key < rank.key;
            if rank.below != below || !rises || rank.list.is_empty() {
                return Err(format!("R1: at key {}", rank.key));
            }
            if rank.list.iter(nodes).any(|id| nodes[id].state.rank != at) {
                return Err(format!("R2: at key {}", rank.key));
            }
            seen += rank.list.len();
            used += 1;
            (below, at) = (at, rank.above);
        }
        if used + self.free.len() != self.ranks.len() {
            return Err("R1: a rank is neither used nor free".to_string());
        }
        match seen == self.len {
            true => nodes.check(seen),
            false => Err(format!("{seen} pages in ranks, not {}", self.len)),
        }
    }
}
