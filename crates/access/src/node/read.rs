//! Reading a node: header, fences, rows.

use longshore_base::PageId;
use longshore_pool::PageRef;

use super::layout::{
    FENCE_WORD, FOSTER_WORD, FenceLens, HEADS_WORD, Heads, RECORD_HEADER, RecordHeader, RowFlags,
    SHAPE_WORD, SLOT_WORD, Shape, Slot, WORD, padded,
};

/// A node as it is read. Every method tolerates garbage; see the module's header.
#[derive(Clone, Copy)]
pub struct NodeRef<'a> {
    pub(super) page: PageRef<'a>,
    pub(super) shape: Shape,
    pub(super) fences: FenceLens,
    count: usize,
}

/// Cache lines of slots that are fetched ahead: enough for 80 rows.
const PREFETCH_LINES: usize = 10;

/// Where a key belongs, seen from one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owns {
    /// Left of the node.
    Below,
    /// In the node.
    Own,
    /// In the foster child or further right.
    Foster(PageId),
    /// Right of the node, which has no foster child.
    Above,
}

impl<'a> NodeRef<'a> {
    /// Looks at `page` as a node; costs two loads.
    #[inline]
    pub fn new(page: PageRef<'a>) -> NodeRef<'a> {
        let shape = Shape::from_word(page.word(SHAPE_WORD));
        let fences = FenceLens::from_word(page.word(FENCE_WORD));
        let slots_max = (page.len() / WORD).saturating_sub(SLOT_WORD);
        NodeRef {
            page,
            shape,
            fences,
            count: (shape.count as usize).min(slots_max),
        }
    }

    /// The page that the node lives in.
    #[inline]
    pub fn page(&self) -> PageRef<'a> {
        self.page
    }

    /// Height above the leaves, which are at level 0.
    #[inline]
    pub fn level(&self) -> u8 {
        self.shape.level
    }

    /// Whether the node holds rows rather than children.
    #[inline]
    pub fn is_leaf(&self) -> bool {
        self.shape.level == 0
    }

    /// Number of slots, ghosts included.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The foster child: the right neighbour that no parent knows yet.
    #[inline]
    pub fn foster(&self) -> Option<PageId> {
        let foster = PageId::new(self.page.word(FOSTER_WORD));
        (foster != PageId::NONE).then_some(foster)
    }

    /// Leading bytes that all keys of the node share.
    pub fn prefix_len(&self) -> usize {
        self.fences.prefix as usize
    }

    /// Whether the node has no upper fence: it reaches up to positive infinity.
    #[inline]
    pub fn is_unbounded(&self) -> bool {
        self.shape.unbounded
    }

    /// Says where `key` belongs, by the node's own fences.
    #[inline]
    pub fn owns(&self, key: &[u8]) -> Owns {
        if self
            .page
            .compare(self.low_at(), self.fences.low as usize, key)
            .is_gt()
        {
            return Owns::Below;
        }
        self.owns_from_left(key)
    }

    /// Like [`owns`](Self::owns), for a key known to be at or above the low fence, as it is after
    /// a descent whose parent was validated. Costs one compare only where an upper fence exists.
    #[inline]
    pub fn owns_from_left(&self, key: &[u8]) -> Owns {
        let upper_len = self.fences.upper as usize;
        if self.shape.unbounded || self.page.compare(self.upper_at(), upper_len, key).is_gt() {
            return Owns::Own;
        }
        self.foster().map_or(Owns::Above, Owns::Foster)
    }

    /// Like [`owns_from_left`](Self::owns_from_left), for a node that a validated descent led to: a key
    /// can be outside its fences only if there is a foster child to ask. Costs no compare without one.
    #[inline]
    pub fn owns_in_descent(&self, key: &[u8]) -> Owns {
        match self.foster() {
            None => Owns::Own,
            Some(_) => self.owns_from_left(key),
        }
    }

    /// Has the processor fetch the first slots, which a search will look at in no foreseeable order.
    #[inline]
    pub fn prefetch_slots(page: PageRef<'_>) {
        page.prefetch::<PREFETCH_LINES>(SLOT_WORD);
    }

    /// Replaces the content of `out` by the low fence.
    pub fn low_into(&self, out: &mut Vec<u8>) {
        out.clear();
        self.page
            .append_to(self.low_at(), self.fences.low as usize, out);
    }

    /// Replaces the content of `out` by the upper bound (foster key or high fence); false, and
    /// `out` empty, when the node is unbounded.
    pub fn upper_into(&self, out: &mut Vec<u8>) -> bool {
        out.clear();
        if !self.shape.unbounded {
            self.page
                .append_to(self.upper_at(), self.fences.upper as usize, out);
        }
        !self.shape.unbounded
    }

    /// The low fence, in a vector of its own.
    pub fn low(&self) -> Vec<u8> {
        let mut low = Vec::new();
        self.low_into(&mut low);
        low
    }

    /// The upper bound, in a vector of its own; `None` is infinity.
    pub fn upper(&self) -> Option<Vec<u8>> {
        let mut upper = Vec::new();
        self.upper_into(&mut upper).then_some(upper)
    }

    /// Replaces the content of `out` by the key in `slot`.
    pub fn key_into(&self, slot: usize, out: &mut Vec<u8>) {
        out.clear();
        self.page
            .append_to(self.low_at(), self.fences.prefix as usize, out);
        let (at, len) = self.suffix_span(self.slot(slot));
        self.page.append_to(at, len, out);
    }

    /// The key in `slot`, in a vector of its own.
    pub fn key(&self, slot: usize) -> Vec<u8> {
        let mut key = Vec::new();
        self.key_into(slot, &mut key);
        key
    }

    /// Flags of the row in `slot`; bits without meaning are dropped.
    #[inline]
    pub fn flags(&self, slot: usize) -> RowFlags {
        self.record_header(self.slot(slot)).flags.known()
    }

    /// Whether the row in `slot` is deleted.
    #[inline]
    pub fn is_ghost(&self, slot: usize) -> bool {
        self.flags(slot).is_ghost()
    }

    /// Length of the value in `slot`, in bytes.
    #[inline]
    pub fn value_len(&self, slot: usize) -> usize {
        self.record_header(self.slot(slot)).value_len as usize
    }

    /// Replaces the content of `out` by the value in `slot`.
    #[inline]
    pub fn value_into(&self, slot: usize, out: &mut Vec<u8>) {
        out.clear();
        self.value_append(slot, out);
    }

    /// Appends the value in `slot` to `out`.
    #[inline]
    pub fn value_append(&self, slot: usize, out: &mut Vec<u8>) {
        let slot = self.slot(slot);
        let len = self.record_header(slot).value_len as usize;
        self.page.append_to(value_at(slot), len, out);
    }

    /// The value in `slot`, in a vector of its own.
    pub fn value(&self, slot: usize) -> Vec<u8> {
        let mut value = Vec::new();
        self.value_into(slot, &mut value);
        value
    }

    /// The child in `slot` of a branch.
    #[inline]
    pub fn child(&self, slot: usize) -> PageId {
        PageId::new(self.page.u64(value_at(self.slot(slot))))
    }

    /// The child of this branch whose range holds `key`, by what this node knows: the child may
    /// have handed the key on to a foster child of its own.
    ///
    /// `key` must be one that the node [owns](Self::owns). [`PageId::NONE`] in a node without
    /// entries, which only a racing reader meets.
    #[inline]
    pub fn child_for(&self, key: &[u8]) -> PageId {
        self.child_slot(key)
            .map_or(PageId::NONE, |slot| self.child(slot))
    }

    /// The slot of [`child_for`](Self::child_for).
    #[inline]
    pub fn child_slot(&self, key: &[u8]) -> Option<usize> {
        let slot = match self.find(key) {
            Ok(slot) => slot,
            Err(slot) => slot.saturating_sub(1),
        };
        (slot < self.count).then_some(slot)
    }

    /// Says where the keys just below `bound` belong, for a bound known to be above the low fence.
    #[inline]
    pub fn owns_before(&self, bound: &[u8]) -> Owns {
        let upper_len = self.fences.upper as usize;
        if self.shape.unbounded || self.page.compare(self.upper_at(), upper_len, bound).is_ge() {
            return Owns::Own;
        }
        self.foster().map_or(Owns::Above, Owns::Foster)
    }

    /// The child of this branch whose range holds the keys just below `bound`, which must be above
    /// the low fence and at most the upper bound.
    #[inline]
    pub fn child_before(&self, bound: &[u8]) -> PageId {
        let (Ok(slot) | Err(slot)) = self.find(bound);
        let slot = slot.saturating_sub(1);
        if slot < self.count {
            self.child(slot)
        } else {
            PageId::NONE
        }
    }

    #[inline]
    pub(super) fn slot(&self, index: usize) -> Slot {
        Slot(self.page.word(SLOT_WORD + index))
    }

    #[inline]
    pub(super) fn record_header(&self, slot: Slot) -> RecordHeader {
        RecordHeader::from_word(self.page.word(slot.record_at() / WORD))
    }

    /// Where the suffix of the key in `slot` stands: byte and length.
    #[inline]
    pub(super) fn suffix_span(&self, slot: Slot) -> (usize, usize) {
        if slot.is_low() {
            let prefix = self.fences.prefix as usize;
            (
                self.low_at() + prefix,
                (self.fences.low as usize).saturating_sub(prefix),
            )
        } else {
            (slot.record_at() + RECORD_HEADER, slot.stored_len())
        }
    }

    /// First byte of the low fence.
    #[inline]
    pub(super) fn low_at(&self) -> usize {
        self.page
            .len()
            .saturating_sub(padded(self.fences.low as usize))
    }

    /// First byte of the upper fence.
    #[inline]
    pub(super) fn upper_at(&self) -> usize {
        self.fences.upper_at as usize * WORD
    }

    #[inline]
    pub(super) fn heads(&self) -> Heads {
        Heads::from_word(self.page.word(HEADS_WORD))
    }

    /// The first slot whose record stores its key; the number of slots if there is none.
    #[inline]
    pub(super) fn first_stored(&self) -> usize {
        usize::from(self.count > 0 && self.slot(0).is_low())
    }
}

/// First byte of the value in `slot`.
#[inline]
pub(super) fn value_at(slot: Slot) -> usize {
    slot.record_at() + RECORD_HEADER + slot.stored_len()
}
