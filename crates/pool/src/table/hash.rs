//! The hash table: a fixed number of slots, lock-free to change, wait-free to look up.
//!
//! # Protocol
//! A page may live in the 8 slots of either of two lines, chosen by its hash; entries never move. An
//! entry is page and value in one word. Uniqueness without a lock: a reservation first takes any free
//! slot *tentatively*, then looks through both lines again:
//!
//! | it meets, for the same page | it |
//! |---|---|
//! | a firm entry | withdraws |
//! | a tentative one in a lower slot | withdraws |
//! | a tentative one in a higher slot | makes it *doomed*; its owner will find that and withdraw |
//!
//! and if it met none that made it withdraw, turns its own entry firm, unless it was doomed meanwhile.
//!
//! # Invariants
//! H1. Of two reservations for a page at most one turns firm: the later of the two to write its tentative
//!     entry sees the other's in its second look. If that one is firm or lower, it withdraws; if it is
//!     higher, it dooms it, or finds it firm by then and withdraws.
//! H2. A slot that is tentative or doomed is emptied, or made firm, by its owner only.
//!
//! # Source
//! The paper takes Click's hash map. We differ: entries come and go with every miss, which leaves a
//! table of Click's kind full of tombstones.

use super::{CLAIMED, ENTRY_BITS, Entry, LOADING, Reserve, TICKETS, Ticket};
use crate::error::PoolError;
use crate::frame::FrameId;
use crate::memory::Memory;
use longshore_base::PageId;
use longshore_base::sync::atomic::{AtomicU64, Ordering};

/// Slots in a cache line.
const LINE: usize = 8;
/// Slots per frame at creation; half of it is kept when the pool grows.
const SLOTS_PER_FRAME: usize = 4;

/// Values that no [`Entry`] has: tentative, and tentative but given up by somebody else.
const TENTATIVE: u32 = (1 << ENTRY_BITS) - 1;
const DOOMED: u32 = TENTATIVE - 1;
const _: () = assert!((LOADING | CLAIMED) as u64 + TICKETS <= DOOMED as u64);

pub(crate) struct HashTable {
    slots: Memory<AtomicU64>,
    /// Lines - 1; the number of lines is a power of two.
    line_mask: u64,
}

/// A slot's content: page in the upper bits, value in the lower; 0 is empty.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Slot(u64);

impl Slot {
    const EMPTY: Slot = Slot(0);

    fn new(page: PageId, value: u32) -> Slot {
        Slot((page.get() << ENTRY_BITS) | u64::from(value))
    }

    #[inline]
    fn value(self) -> u32 {
        (self.0 & ((1 << ENTRY_BITS) - 1)) as u32
    }

    #[inline]
    fn is_of(self, page: PageId) -> bool {
        self != Slot::EMPTY && self.0 >> ENTRY_BITS == page.get()
    }

    fn is_firm(self) -> bool {
        !matches!(self.value(), TENTATIVE | DOOMED)
    }
}

/// What a second look over both lines says of a tentative entry.
enum Verdict {
    Alone,
    Yield,
    Found(Entry),
}

impl HashTable {
    pub(super) fn new(frames: u32) -> Result<HashTable, PoolError> {
        let slots = (frames as usize * SLOTS_PER_FRAME).next_power_of_two();
        let slots = slots.max(2 * LINE);
        Ok(HashTable {
            slots: Memory::zeroed(slots).map_err(PoolError::memory)?,
            line_mask: (slots / LINE - 1) as u64,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.as_slice().len() * size_of::<u64>()
    }

    pub(super) fn frames_max(&self) -> u32 {
        (self.slots.as_slice().len() / (SLOTS_PER_FRAME / 2)) as u32
    }

    /// Not inline: what it reckons with would be reckoned beforehand wherever the other table is asked.
    #[inline(never)]
    pub(super) fn lookup(&self, page: PageId) -> Entry {
        for index in self.places(page) {
            let slot = self.load(index);
            if slot.is_of(page) && slot.is_firm() {
                return Entry::from_raw(slot.value());
            }
        }
        Entry::Absent
    }

    pub(super) fn reserve(&self, page: PageId, ticket: Ticket) -> Reserve {
        let reserved = Slot::new(page, Entry::Loading(ticket).to_raw());
        loop {
            if let Some(found) = self.find_firm(page) {
                return Reserve::Found(found);
            }
            let Some(mine) = self.take_slot(page) else {
                return Reserve::Crowded(self.neighbours(page));
            };
            match self.look_again(page, mine) {
                Verdict::Alone => {
                    if self.swap(mine, Slot::new(page, TENTATIVE), reserved) {
                        return Reserve::Won;
                    }
                    self.empty(mine);
                }
                Verdict::Yield => self.empty(mine),
                Verdict::Found(entry) => {
                    self.empty(mine);
                    return Reserve::Found(entry);
                }
            }
            // Doomed by, or yielding to, a reservation that is about to turn firm.
            longshore_base::sync::thread::yield_now();
        }
    }

    pub(super) fn exchange(&self, page: PageId, from: Entry, to: Entry) -> bool {
        let from = Slot::new(page, from.to_raw());
        let to = match to {
            Entry::Absent => Slot::EMPTY,
            _ => Slot::new(page, to.to_raw()),
        };
        self.places(page)
            .any(|index| self.load(index) == from && self.swap(index, from, to))
    }

    /// The second look (H1).
    fn look_again(&self, page: PageId, mine: usize) -> Verdict {
        for index in self.places(page).filter(|index| *index != mine) {
            let mut slot = self.load(index);
            if slot == Slot::new(page, TENTATIVE) && index > mine {
                if self.swap(index, slot, Slot::new(page, DOOMED)) {
                    continue;
                }
                slot = self.load(index);
            }
            if slot.is_of(page) && slot.is_firm() {
                return Verdict::Found(Entry::from_raw(slot.value()));
            }
            if slot == Slot::new(page, TENTATIVE) {
                return Verdict::Yield;
            }
        }
        Verdict::Alone
    }

    fn find_firm(&self, page: PageId) -> Option<Entry> {
        match self.lookup(page) {
            Entry::Absent => None,
            found => Some(found),
        }
    }

    /// Writes a tentative entry into a free slot, in the emptier of the two lines.
    fn take_slot(&self, page: PageId) -> Option<usize> {
        let (a, b) = self.lines(page);
        let is_free = |index: &usize| self.load(*index) == Slot::EMPTY;
        let free = |line: usize| (line..line + LINE).filter(is_free).count();
        let (first, second) = if free(a) >= free(b) { (a, b) } else { (b, a) };
        (first..first + LINE)
            .chain(second..second + LINE)
            .filter(is_free)
            .find(|index| self.swap(*index, Slot::EMPTY, Slot::new(page, TENTATIVE)))
    }

    fn neighbours(&self, page: PageId) -> Vec<FrameId> {
        self.places(page)
            .map(|index| self.load(index))
            .filter(|slot| *slot != Slot::EMPTY && slot.is_firm())
            .filter_map(|slot| match Entry::from_raw(slot.value()) {
                Entry::Frame(frame) => Some(frame),
                _ => None,
            })
            .collect()
    }

    /// The slots in which a page may be.
    #[inline]
    fn places(&self, page: PageId) -> impl Iterator<Item = usize> + use<> {
        let (a, b) = self.lines(page);
        (a..a + LINE).chain(b..b + LINE)
    }

    /// The first slots of the page's two lines, which differ.
    #[inline]
    fn lines(&self, page: PageId) -> (usize, usize) {
        // Fibonacci hashing (Knuth 6.4); the two halves of the product choose the lines.
        let hash = page.get().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let a = (hash >> 32) & self.line_mask;
        let step = (hash >> 8) & self.line_mask;
        let b = a ^ step.max(1);
        (a as usize * LINE, b as usize * LINE)
    }

    #[inline]
    fn load(&self, index: usize) -> Slot {
        // SeqCst: the second look must see what was written before our own tentative entry (H1:
        // store-then-load on both sides); on reading it is an ordinary load.
        Slot(self.slots.as_slice()[index].load(Ordering::SeqCst))
    }

    fn swap(&self, index: usize, from: Slot, to: Slot) -> bool {
        // SeqCst: see `load`. As Release it publishes the frame's header to `lookup`.
        self.slots.as_slice()[index]
            .compare_exchange(from.0, to.0, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    fn empty(&self, index: usize) {
        // SeqCst: see `load`. A plain store: tentative or doomed, the slot is ours to empty (H2).
        self.slots.as_slice()[index].store(Slot::EMPTY.0, Ordering::SeqCst);
    }
}
