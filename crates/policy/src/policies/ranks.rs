//! Nodes in ranks: a list for each key that some page has, the ranks linked in the order of their keys. LFU's counts and
//! LFU-aging's priorities are such keys.
//!
//! A page that rises passes the ranks between its old key and its new one: none or one with LFU, whose keys grow by
//! one.
//!
//! # Invariants
//! R1. Keys rise from `lowest` along `above`; `below` undoes it; no rank is empty.
//! R2. Each node knows its rank.

use longshore_base::PageId;

use crate::catalogue::Memory;
use crate::inspect::{Entry, Inspector};
use crate::lists::{List, Offered, offer};
use crate::nodes::{NodeId, NodeTable, SPARE, grow, grown};
use crate::policy::{Frame, Taker};

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

/// All ranks, and the nodes that are in them.
pub(crate) struct Ranks {
    pub(crate) nodes: NodeTable<Standing>,
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

/// Of a rank, used or free.
const RANK_BYTES: usize = size_of::<Rank>() + size_of::<u32>();

impl Ranks {
    /// The most that [`bytes`](Self::bytes) comes to: each page may have a rank of its own.
    pub(crate) const MEMORY: Memory = NodeTable::<Standing>::MEMORY
        .and_frame(grown(RANK_BYTES))
        .and_fixed(SPARE * RANK_BYTES);

    /// Memory held for nodes and ranks.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.bytes()
            + self.ranks.capacity() * size_of::<Rank>()
            + self.free.capacity() * size_of::<u32>()
    }

    /// Ranks for a pool of `capacity` frames, all of them empty.
    pub(crate) fn new(capacity: u32) -> Ranks {
        Ranks {
            nodes: NodeTable::new(capacity),
            ranks: Vec::new(),
            free: Vec::new(),
            lowest: NONE,
            len: 0,
        }
    }

    /// The key of a page.
    pub(crate) fn key(&self, id: NodeId) -> u64 {
        self.at(self.nodes[id].state.rank).key
    }

    /// The least key that a page has.
    pub(crate) fn lowest_key(&self) -> Option<u64> {
        self.rising().next().map(|rank| rank.key)
    }

    /// `page` is resident in `frame`; its rank is looked for from the lowest.
    pub(crate) fn admit(&mut self, frame: Frame, page: PageId, standing: Standing, key: u64) {
        let id = self.nodes.occupy(frame, page, standing);
        let rank = match self.lowest {
            NONE => self.add(NONE, key),
            lowest if self.at(lowest).key > key => self.add(NONE, key),
            lowest => self.find_from(lowest, key),
        };
        self.join(id, rank);
        self.len += 1;
    }

    /// Gives a page another key, which is no less than its own. It comes last in its rank.
    #[inline]
    pub(crate) fn raise(&mut self, id: NodeId, key: u64) {
        let rank = self.nodes[id].state.rank;
        let above = self.at(rank).above;
        let passes_nobody = above == NONE || self.at(above).key > key;
        if passes_nobody && self.at(rank).list.len() == 1 {
            self.ranks[rank as usize].key = key;
            return;
        }
        let target = self.find_from(rank, key);
        self.leave(id);
        self.join(id, target);
    }

    /// The page in `frame` is resident no more.
    pub(crate) fn vacate(&mut self, frame: Frame) {
        self.leave(NodeId::of(frame));
        self.nodes.vacate(frame);
        self.len -= 1;
    }

    /// The pages, those of the lowest rank first.
    fn pages(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.rising().flat_map(|rank| rank.list.iter(&self.nodes))
    }

    /// Offers pages, those of the lowest rank first, until one is taken.
    pub(crate) fn offer(&self, take: Taker<'_>) -> Offered {
        offer(self.pages(), &self.nodes, take)
    }

    /// Fills `out`, which is empty, with up to `limit` frames, those of the lowest rank first.
    pub(crate) fn guess(&self, limit: usize, out: &mut Vec<Frame>) {
        out.extend(self.pages().filter_map(NodeId::frame).take(limit));
    }

    /// Shows all pages as one queue, with their keys as weights.
    pub(crate) fn show(&self, out: &mut dyn Inspector) {
        let mut entries = self.rising().flat_map(|rank| {
            rank.list.iter(&self.nodes).map(|id| Entry {
                weight: u32::try_from(rank.key).unwrap_or(u32::MAX),
                ..self.nodes.entry(id)
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
                let at = self.ranks.len();
                grow(&mut self.ranks, at + 1);
                self.ranks.push(rank);
                at as u32
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

    fn join(&mut self, id: NodeId, rank: u32) {
        self.nodes[id].state.rank = rank;
        self.ranks[rank as usize]
            .list
            .push_back(&mut self.nodes, id);
    }

    fn leave(&mut self, id: NodeId) {
        let at = self.nodes[id].state.rank;
        let rank = &mut self.ranks[at as usize];
        rank.list.remove(&mut self.nodes, id);
        if rank.list.is_empty() {
            let (below, above) = (rank.below, rank.above);
            self.link(below, above);
            grow(&mut self.free, self.ranks.len());
            self.free.push(at);
        }
    }

    /// Verifies R1 and R2.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (mut at, mut below, mut seen, mut used) = (self.lowest, NONE, 0, 0);
        while at != NONE {
            let rank = self.at(at);
            rank.list.check(&self.nodes)?;
            let rises = below == NONE || self.at(below).key < rank.key;
            if rank.below != below || !rises || rank.list.is_empty() {
                return Err(format!("R1: at key {}", rank.key));
            }
            if rank
                .list
                .iter(&self.nodes)
                .any(|id| self.nodes[id].state.rank != at)
            {
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
            true => self.nodes.check(seen),
            false => Err(format!("{seen} pages in ranks, not {}", self.len)),
        }
    }
}
