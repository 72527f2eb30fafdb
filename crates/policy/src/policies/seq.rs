//! SEQ: LRU, but for floods: when pages are missed one after the other in the order of their numbers, the victims are
//! taken from behind the front of that sequence, and the rest of the pool is spared.
//!
//! Weakness: LRU where pages are not missed in order: a loop over scattered pages, or a scan through an index, is not seen.
//! Memory: 36 bytes a frame, and 112 for each of at most `SEQUENCES` sequences.
//! Parameters: `length`, 20: pages missed in order that make a sequence long; `distance`, 20: victims are so far behind
//! its front. The paper's L and M.
//!
//! # Facts relied on
//! From memory of the paper, and of an independent simulator that has the same constants:
//! - misses alone make sequences; one more page at the end, up or down, extends a sequence; a miss inside one cuts it
//!   there, and begins a new one; any other miss begins one;
//! - of the sequences longer than L the one is chosen whose N-th last miss, N = 5, is the most recent, so that a sequence
//!   which grows slowly does not pay for one that grows fast;
//! - its victim is the resident page nearest to its front that is M pages or more behind it, a page that a loop will need
//!   last; where no sequence is long the victim is LRU's.
//!
//! How many sequences the paper keeps is not known to us; ours are `SEQUENCES`. Room for another is
//! made, in the manner of CLOCK, by a short one that was not extended of late.
//!
//! # Source
//! G. Glass, P. Cao: Adaptive Page Replacement Based on Memory Reference Behavior. SIGMETRICS 1997, section 4.

use longshore_base::PageId;

use crate::catalogue::{About, Listed, Parameter, Unit};
use crate::inspect::Inspector;
use crate::lists::{List, Offered, offer};
use crate::nodes::{NodeId, NodeTable};
use crate::policy::{Frame, Gone, Incoming, Nodes, Placement, Policy, Taker};
use crate::spec::Values;

/// Sequences followed at a time.
const SEQUENCES: usize = 128;
/// What `starts` and `long` take.
const SEQUENCE_BYTES: usize = SEQUENCES * 2 * size_of::<(u64, u16)>();
/// Of so many last misses of a sequence the first is compared: the paper's N.
const MISSES: usize = 5;

/// Link number of the queue of all residents, and of the lists of sequences.
const QUEUE: usize = 0;
const SEQUENCE: usize = 1;

/// See the head of the file.
pub(crate) struct Seq {
    /// With each frame, the slot of the sequence that its page is a part of, or `NONE`.
    nodes: NodeTable<u16, 2>,
    /// All residents, the one not used for longest in front.
    queue: List<QUEUE>,
    /// In slots, which do not move.
    sequences: [Option<Sequence>; SEQUENCES],
    /// The lowest page of each sequence, in order, and its slot.
    starts: Vec<(u64, u16)>,
    /// The long sequences in the order in which they give victims, the next at the end: when the first of their last
    /// misses was, and the slot.
    long: Vec<(u64, u16)>,
    /// The slot where a new sequence looks for room first.
    hand: usize,
    /// Misses so far.
    now: u64,
    length: u64,
    distance: u64,
}

const NONE: u16 = u16::MAX;

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    /// One page only.
    Unknown,
    Up,
    Down,
}

/// Pages missed in the order of their numbers.
struct Sequence {
    low: u64,
    high: u64,
    direction: Direction,
    /// Since the hand of the table came by.
    is_extended: bool,
    /// Times of the last misses, the last one at the end.
    misses: [u64; MISSES],
    /// Those of its pages that are resident, the front of the sequence at the back of the list.
    pages: List<SEQUENCE>,
}

impl Sequence {
    fn new(page: u64) -> Sequence {
        Sequence {
            low: page,
            high: page,
            direction: Direction::Unknown,
            is_extended: false,
            misses: [0; MISSES],
            pages: List::new(),
        }
    }

    fn len(&self) -> u64 {
        self.high - self.low + 1
    }

    fn contains(&self, page: u64) -> bool {
        (self.low..=self.high).contains(&page)
    }

    fn is_next(&self, page: u64) -> bool {
        let is_up = page.checked_sub(1) == Some(self.high) && self.direction != Direction::Down;
        let is_down = page.checked_add(1) == Some(self.low) && self.direction != Direction::Up;
        is_up || is_down
    }

    /// `page` was missed; it is next, or the first.
    fn extend_to(&mut self, page: u64, now: u64) {
        self.is_extended = page != self.low;
        if page > self.high {
            (self.high, self.direction) = (page, Direction::Up);
        } else if page < self.low {
            (self.low, self.direction) = (page, Direction::Down);
        }
        self.misses.rotate_left(1);
        self.misses[MISSES - 1] = now;
    }

    fn last_miss(&self) -> u64 {
        self.misses[MISSES - 1]
    }

    /// Its resident pages, from its front.
    fn pages_from_front<'a>(
        &self,
        nodes: &'a NodeTable<u16, 2>,
    ) -> impl Iterator<Item = NodeId> + use<'a> {
        self.pages.iter_back(nodes)
    }

    /// Pages from `page`, which it contains, to its front.
    fn behind_front(&self, page: u64) -> u64 {
        match self.direction {
            Direction::Down => page - self.low,
            _ => self.high - page,
        }
    }
}

/// Where a sequence stands in lists in order, with its slot.
#[derive(Clone, Copy)]
struct Keys {
    start: Option<(u64, u16)>,
    long: Option<(u64, u16)>,
}

/// Brings the key of a sequence up to date in a list in order.
fn file(keys: &mut Vec<(u64, u16)>, former: Option<(u64, u16)>, now: Option<(u64, u16)>) {
    if now == former {
        return;
    }
    let place = |keys: &[_], key| keys.partition_point(|&other| other < key);
    if let Some(former) = former {
        keys.remove(place(keys, former));
    }
    if let Some(now) = now {
        keys.insert(place(keys, now), now);
    }
}

impl Listed for Seq {
    const ABOUT: About = About {
        name: "seq",
        source: "Glass, Cao 1997",
        weakness: "LRU wherever pages are not missed in the order of their numbers",
        memory: NodeTable::<u16, 2>::MEMORY.and_fixed(size_of::<Seq>() + SEQUENCE_BYTES),
        parameters: &[
            Parameter {
                name: "length",
                meaning: "a sequence is long if it has more pages",
                unit: Unit::Whole,
                default: 20.0,
                min: 1.0,
                max: 1e9,
            },
            Parameter {
                name: "distance",
                meaning: "pages that the victim is behind the front of a sequence, at least",
                unit: Unit::Whole,
                default: 20.0,
                min: 0.0,
                max: 1e9,
            },
        ],
    };

    fn new(capacity: u32, values: &Values<'_>) -> Seq {
        Seq {
            nodes: NodeTable::new(capacity),
            queue: List::new(),
            sequences: [const { None }; SEQUENCES],
            starts: Vec::with_capacity(SEQUENCES),
            long: Vec::with_capacity(SEQUENCES),
            hand: 0,
            now: 0,
            length: values.whole("length"),
            distance: values.whole("distance"),
        }
    }
}

impl Seq {
    /// Takes note of a miss; returns the slot of the sequence that `page` is at the front of now.
    fn miss(&mut self, page: u64) -> usize {
        self.now += 1;
        let (extended, cut) = self.find(page);
        if let Some(slot) = cut {
            self.cut(slot, page);
        }
        let slot = extended.unwrap_or_else(|| self.begin(page));
        let former = self.keys(slot);
        if let Some(sequence) = &mut self.sequences[slot] {
            sequence.extend_to(page, self.now);
        }
        self.file(slot, former);
        slot
    }

    /// The sequence to which `page` is next, of several the one extended last; and the one that contains it.
    fn find(&self, page: u64) -> (Option<usize>, Option<usize>) {
        let (mut next, mut inside, mut newest) = (None, None, 0);
        // No page is in two: three can be as near, one that starts before, and two that start at the page or behind it.
        let start = self.starts.partition_point(|&(low, _)| low < page);
        let near = self.starts.iter().take(start + 2).skip(start.max(1) - 1);
        for slot in near.map(|&(_, slot)| usize::from(slot)) {
            let Some(sequence) = &self.sequences[slot] else {
                continue;
            };
            if sequence.is_next(page) && sequence.last_miss() > newest {
                newest = sequence.last_miss();
                next = Some(slot);
            } else if sequence.contains(page) {
                inside = Some(slot);
            }
        }
        (next, inside)
    }

    fn used(&self) -> impl Iterator<Item = (usize, &Sequence)> {
        let slots = self.sequences.iter().enumerate();
        slots.filter_map(|(slot, sequence)| Some((slot, sequence.as_ref()?)))
    }

    fn is_long(&self, slot: usize) -> bool {
        let sequence = self.sequences[slot].as_ref();
        sequence.is_some_and(|sequence| sequence.len() > self.length)
    }

    /// What `starts` and `long` should have of a sequence.
    fn keys(&self, slot: usize) -> Keys {
        let sequence = self.sequences[slot].as_ref();
        let key = |value| (value, slot as u16);
        Keys {
            start: sequence.map(|sequence| key(sequence.low)),
            long: sequence
                .filter(|sequence| sequence.len() > self.length)
                .map(|sequence| key(sequence.misses[0])),
        }
    }

    /// A sequence has changed whose keys were `former`: `starts` and `long` follow.
    fn file(&mut self, slot: usize, former: Keys) {
        let keys = self.keys(slot);
        file(&mut self.starts, former.start, keys.start);
        file(&mut self.long, former.long, keys.long);
    }

    /// `page` was missed inside a sequence: what lies from there to its front is cut off.
    fn cut(&mut self, slot: usize, page: u64) {
        let former = self.keys(slot);
        let Some(sequence) = &mut self.sequences[slot] else {
            return;
        };
        let behind = sequence.behind_front(page);
        while let Some(id) = sequence.pages.back(&self.nodes)
            && sequence.behind_front(self.nodes[id].page().get()) <= behind
        {
            sequence.pages.remove(&mut self.nodes, id);
            self.nodes[id].state = NONE;
        }
        if behind + 1 == sequence.len() {
            self.sequences[slot] = None;
        } else if sequence.direction == Direction::Down {
            sequence.low = page + 1;
        } else {
            sequence.high = page - 1;
        }
        self.file(slot, former);
    }

    /// Begins a sequence; returns its slot.
    fn begin(&mut self, page: u64) -> usize {
        let slot = self.room();
        let former = self.keys(slot);
        if let Some(mut dropped) = self.sequences[slot].replace(Sequence::new(page)) {
            while let Some(id) = dropped.pages.pop_front(&mut self.nodes) {
                self.nodes[id].state = NONE;
            }
        }
        self.file(slot, former);
        slot
    }

    /// A slot for a new sequence: as in CLOCK the hand passes over what is long, and over what was extended since it came
    /// by last; after two rounds it takes what it finds.
    fn room(&mut self) -> usize {
        for _ in 0..2 * SEQUENCES {
            self.hand = (self.hand + 1) % SEQUENCES;
            let is_long = self.is_long(self.hand);
            match &mut self.sequences[self.hand] {
                Some(sequence) if is_long || sequence.is_extended => sequence.is_extended = false,
                _ => break,
            }
        }
        self.hand
    }

    /// The long sequences that have pages to give, that whose first remembered miss is the latest first.
    fn floods(&self) -> impl Iterator<Item = &Sequence> {
        let latest_first = self.long.iter().rev();
        let sequences =
            latest_first.filter_map(|&(_, slot)| self.sequences[usize::from(slot)].as_ref());
        sequences.filter(|sequence| {
            let last = sequence.pages.front();
            last.is_some_and(|id| self.may_leave(sequence, id))
        })
    }

    /// Whether a page of a sequence is not too near to its front to leave.
    fn may_leave(&self, sequence: &Sequence, id: NodeId) -> bool {
        sequence.behind_front(self.nodes[id].page().get()) >= self.distance
    }

    /// The pages of a sequence that may leave: from its front, but not near to it.
    fn pages_behind<'a>(&'a self, sequence: &'a Sequence) -> impl Iterator<Item = NodeId> + 'a {
        let pages = sequence.pages_from_front(&self.nodes);
        pages.filter(move |&id| self.may_leave(sequence, id))
    }

    fn offer(&self, take: Taker<'_>) -> Offered {
        for flood in self.floods() {
            match offer(self.pages_behind(flood), &self.nodes, take) {
                Offered::Declined => {}
                taken_or_enough => return taken_or_enough,
            }
        }
        self.queue.offer(&self.nodes, take)
    }

    /// Puts a page, which is resident now, in its place in a sequence: at the front, but where misses overtake each other.
    fn join(&mut self, slot: usize, id: NodeId) {
        let page = self.nodes[id].page().get();
        let Some(sequence) = &mut self.sequences[slot] else {
            return;
        };
        if !sequence.contains(page) {
            return;
        }
        let behind = sequence.behind_front(page);
        let nodes = &self.nodes;
        let is_nearer = |&other: &NodeId| sequence.behind_front(nodes[other].page().get()) < behind;
        match sequence
            .pages_from_front(nodes)
            .take_while(is_nearer)
            .last()
        {
            Some(other) => sequence.pages.insert_before(&mut self.nodes, other, id),
            None => sequence.pages.push_back(&mut self.nodes, id),
        }
        self.nodes[id].state = slot as u16;
    }
}

impl Policy for Seq {
    #[inline]
    fn on_hit(&mut self, frame: Frame) {
        self.queue.move_to_back(&mut self.nodes, NodeId::of(frame));
    }

    fn on_miss(&mut self, page: PageId) -> Placement {
        Placement::new(self.miss(page.get()) as u32)
    }

    fn evict(&mut self, _incoming: Incoming, take: Taker<'_>) -> Option<Frame> {
        let frame = self.offer(take).taken()?;
        self.on_remove(frame, Gone::Invalidated);
        Some(frame)
    }

    fn on_insert(&mut self, frame: Frame, page: PageId, at: Placement) {
        let id = self.nodes.occupy(frame, page, NONE);
        self.queue.push_back(&mut self.nodes, id);
        self.join(at.get() as usize, id);
    }

    fn on_remove(&mut self, frame: Frame, _why: Gone) {
        let id = NodeId::of(frame);
        if let Some(Some(sequence)) = self.sequences.get_mut(usize::from(self.nodes[id].state)) {
            sequence.pages.remove(&mut self.nodes, id);
        }
        self.queue.remove(&mut self.nodes, id);
        self.nodes.vacate(frame);
    }

    fn set_capacity(&mut self, frames: u32) {
        self.nodes.reserve(frames);
    }

    fn bytes(&self) -> usize {
        size_of::<Seq>() + self.nodes.bytes() + SEQUENCE_BYTES
    }

    fn nodes(&self) -> Nodes {
        self.nodes.addresses()
    }

    fn likely_victims(&self, limit: usize, out: &mut Vec<Frame>) {
        if let Some(flood) = self.floods().next() {
            let pages = self.pages_behind(flood);
            out.extend(pages.filter_map(NodeId::frame).take(limit));
        }
        let rest = self.queue.iter(&self.nodes).filter_map(NodeId::frame);
        for frame in rest.take(limit) {
            if out.len() < limit && !out.contains(&frame) {
                out.push(frame);
            }
        }
    }

    /// Sequences of one page are left out.
    fn inspect(&self, out: &mut dyn Inspector) {
        self.queue.show(&self.nodes, out, "queue", |_, _| {});
        for (_, sequence) in self.used() {
            match sequence.direction {
                Direction::Up => sequence.pages.show(&self.nodes, out, "up", |_, _| {}),
                Direction::Down => sequence.pages.show(&self.nodes, out, "down", |_, _| {}),
                Direction::Unknown => {}
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        self.queue.check(&self.nodes)?;
        self.nodes.check(self.queue.len())?;
        let mut members = 0;
        let mut long: Vec<_> = (0..SEQUENCES)
            .filter_map(|slot| self.keys(slot).long)
            .collect();
        long.sort_unstable();
        if long != self.long {
            return Err("other sequences are long".to_string());
        }
        let used = self.used();
        let mut starts: Vec<_> = used
            .map(|(slot, sequence)| (sequence.low, slot as u16))
            .collect();
        starts.sort_unstable();
        if starts != self.starts {
            return Err("sequences start elsewhere".to_string());
        }
        for (slot, sequence) in self.used() {
            sequence.pages.check(&self.nodes)?;
            members += sequence.pages.len();
            let mut behind = None;
            for id in sequence.pages_from_front(&self.nodes) {
                let page = self.nodes[id].page().get();
                let is_known = usize::from(self.nodes[id].state) == slot;
                if !is_known
                    || !sequence.contains(page)
                    || behind >= Some(sequence.behind_front(page))
                {
                    return Err(format!("page {page} is out of its sequence"));
                }
                behind = Some(sequence.behind_front(page));
            }
            let overlaps = |&(other, range): &(usize, &Sequence)| {
                other != slot && range.contains(sequence.low)
            };
            if self.used().any(|other| overlaps(&other)) {
                return Err(format!("two sequences have page {}", sequence.low));
            }
        }
        let mut queue = self.queue.iter(&self.nodes);
        match queue
            .by_ref()
            .filter(|&id| self.nodes[id].state != NONE)
            .count()
            == members
        {
            true => Ok(()),
            false => Err("a page is in a sequence, and does not know it".to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policies::testing::Bench;
    use crate::simulator::Contender;
    use crate::trace::Trace;

    #[test]
    fn order_step_by_step() {
        let mut bench = Bench::new("seq:length=3,distance=2", 6);
        assert_eq!(
            bench.use_pages([90, 50, 10, 11, 12]),
            "queue: 90 50 10 11 12 | up: 10 11 12"
        );
        assert_eq!(
            bench.use_pages([13, 14]),
            "queue: 90 50 10 11 13 14 | up: 10 11 13 14",
            "a flood: the page that is two behind its front leaves, not 90"
        );
        assert_eq!(bench.likely(3), [11, 10, 90]);
        assert_eq!(
            bench.use_pages([50, 90]),
            "queue: 10 11 13 14 50 90 | up: 10 11 13 14"
        );
        bench.pin(13);
        assert_eq!(
            bench.use_page(15),
            "queue: 10 13 14 50 90 15 | up: 10 13 14 15",
            "13 is pinned"
        );
        assert_eq!(
            bench.use_page(12),
            "queue: 13 14 50 90 15 12 | up: -",
            "missed inside: 12 to 15 are cut off; what is left of it is short"
        );
        assert_eq!(bench.remove(13), "queue: 14 50 90 15 12 | up: -");
        assert_eq!(
            bench.use_page(49),
            "queue: 14 50 90 15 12 49 | down: 50 49 | up: -"
        );
    }

    /// Once, only one sequence that starts at the page or before was looked at.
    #[test]
    fn a_page_that_begins_a_sequence_may_be_next_to_another() {
        let mut bench = Bench::new("seq:length=3,distance=2", 3);
        assert_eq!(
            bench.use_pages([8, 9, 6, 7]),
            "queue: 9 6 7 | up: 9 | up: 6 7"
        );
        assert_eq!(bench.use_page(8), "queue: 6 7 8 | up: 6 7 8");
    }

    #[test]
    fn a_loop_longer_than_the_pool_keeps_most_of_it() {
        let trace: Trace = (0..1200).map(|at| at % 120).collect();
        let seq: Contender = "seq".parse().unwrap();
        let misses = seq.run(&trace, 100, &mut |_| {}).unwrap().misses;
        assert!(
            misses < 600,
            "{misses} misses; LRU has 1200, OPT {}",
            120 + 1080 / 5
        );
    }
}
