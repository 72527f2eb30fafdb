//! Changing a node. Called by [`PageAction::apply`](crate::action::PageAction::apply) only.
//!
//! Each change checks everything it depends on before it touches the page: an error leaves the page
//! as it was. The errors are reasons for [`Corrupt`](crate::action::Corrupt); in forward work
//! the tree has looked first, so they mean damage.

use longshore_base::bits::little_word;
use longshore_base::page::{self, header};
use longshore_base::{PageId, PageType};
use longshore_pool::PageMut;

use super::image::{ImageEntry, NodeImage, prefix_len};
use super::kept::Kept;
use super::layout::{
    FENCE_WORD, FOSTER_WORD, HEADER_BYTES, HEADS_WORD, Heads, RecordHeader, RowFlags, SHAPE_WORD,
    SLOT_WORD, Shape, Slot, WORD, first_word, padded, words,
};
use super::read::{NodeRef, value_at};
use super::room::{Room, record_bytes};

/// Why a change cannot be made.
pub(crate) type Reason = &'static str;

/// A node under an exclusive latch.
pub(crate) struct NodeMut<'m, 'p> {
    page: &'m mut PageMut<'p>,
}

impl<'m, 'p> NodeMut<'m, 'p> {
    /// A page that must be a node already.
    pub fn new(page: &'m mut PageMut<'p>) -> Result<NodeMut<'m, 'p>, Reason> {
        if page.as_ref().page_type() != Some(PageType::Node) {
            return Err("it is not a node");
        }
        Ok(NodeMut { page })
    }

    /// Makes the page a node with the content of `image`, whatever it was before.
    pub fn format(
        page: &'m mut PageMut<'p>,
        id: PageId,
        image: &NodeImage<'_>,
    ) -> Result<(), Reason> {
        check_image(page.len(), image)?;
        NodeMut { page }.rebuild(id, image);
        Ok(())
    }

    /// The node as a reader sees it.
    pub fn node(&self) -> NodeRef<'_> {
        NodeRef::new(self.page.as_ref())
    }

    /// Inserts a row before slot `position`, where [`NodeRef::find`] did not find its key.
    pub fn insert(
        &mut self,
        position: usize,
        key: &[u8],
        flags: RowFlags,
        value: &[u8],
    ) -> Result<(), Reason> {
        match self.node().room_for_insert(key.len(), value.len()) {
            Room::Fits => {}
            Room::Compact => self.compact(),
            Room::Split => return Err("the row does not fit"),
        }
        self.insert_into_gap(position, key, flags, value);
        Ok(())
    }

    /// Gives the row in `slot` other flags, and another value but for what is kept of it.
    #[inline]
    pub fn update(
        &mut self,
        slot: usize,
        flags: RowFlags,
        kept: Kept,
        middle: &[u8],
    ) -> Result<(), Reason> {
        let node = self.node();
        let word = node.slot(slot);
        let value_len = node.record_header(word).value_len;
        if value_len as usize == kept.bytes() + middle.len() {
            put_header(self.page, word, flags, value_len);
            self.page
                .copy_in(value_at(word) + kept.front as usize, middle);
            return Ok(());
        }
        if kept == Kept::NOTHING {
            return self.replace(slot, flags, middle);
        }
        let mut value = node.value(slot);
        if !kept.replace(&mut value, middle) {
            return Err("the row is shorter than what an update keeps of it");
        }
        self.replace(slot, flags, &value)
    }

    /// Gives the row in `slot` other flags and another value.
    fn replace(&mut self, slot: usize, flags: RowFlags, value: &[u8]) -> Result<(), Reason> {
        let node = self.node();
        let room = node.room_for_update(slot, value.len());
        let old_words = node.stored_words(slot);
        let word = node.slot(slot);
        let new_words = words(record_bytes(word.stored_len(), value.len()));
        if new_words <= old_words {
            let mut shape = node.shape;
            shape.garbage += (old_words - new_words) as u16;
            self.page.set_word(SHAPE_WORD, shape.to_word());
            put_value(self.page, word, flags, value);
            return Ok(());
        }
        if room == Room::Split {
            return Err("the new value does not fit");
        }
        let key = node.key(slot);
        self.remove(slot);
        if room == Room::Compact {
            self.compact();
        }
        self.insert_into_gap(slot, &key, flags, value);
        Ok(())
    }

    /// Sets the flags of the row in `slot`.
    pub fn set_flags(&mut self, slot: usize, flags: RowFlags) {
        let node = self.node();
        let word = node.slot(slot);
        let header = RecordHeader {
            flags,
            ..node.record_header(word)
        };
        self.page
            .set_word(word.record_at() / WORD, header.to_word());
    }

    /// Takes the row in `slot` out; its words become garbage.
    pub fn remove(&mut self, slot: usize) {
        let node = self.node();
        let mut shape = node.shape;
        shape.garbage += node.stored_words(slot) as u16;
        shape.count -= 1;
        let after = (SLOT_WORD + slot + 1) * WORD;
        let len = (shape.count as usize - slot) * WORD;
        self.page.copy_within(after, len, after - WORD);
        self.page.set_word(SHAPE_WORD, shape.to_word());
    }

    /// Drops the rows from `slot` on, whose first key is `key`; `foster` has them.
    pub fn split_off(&mut self, slot: usize, key: &[u8], foster: PageId) -> Result<(), Reason> {
        let node = self.node();
        if !node.is_leaf() && slot == 0 {
            return Err("it would be a branch without children");
        }
        if node.slot(slot).is_low() {
            return Err("a node cannot be split at its low fence");
        }
        if slot + 1 == node.count() && self.cut_last(key, foster) {
            return Ok(());
        }
        let image = self.node().image_left_of(slot, key, foster);
        self.rebuild(self.page.as_ref().page_id(), &image.as_image());
        Ok(())
    }

    /// Drops the last row, whose key is `key`, and writes the fence into the heap; no other row moves.
    /// False if there is no stretch for the fence: then nothing is done.
    fn cut_last(&mut self, key: &[u8], foster: PageId) -> bool {
        let node = self.node();
        let (mut shape, mut fences) = (node.shape, node.fences);
        let slot = node.count() - 1;
        let record = node.slot(slot).record_at() / WORD;
        let freed = node.stored_words(slot) as u16;
        if record == shape.heap_start as usize {
            shape.heap_start += freed;
        } else {
            shape.garbage += freed;
        }
        shape.garbage += words(fences.upper as usize) as u16;
        shape.count -= 1;
        shape.unbounded = false;
        let fence = words(key.len());
        if (shape.heap_start as usize) < SLOT_WORD + slot + fence {
            return false;
        }
        shape.heap_start -= fence as u16;
        fences.upper = key.len() as u16;
        fences.upper_at = shape.heap_start;
        self.page.copy_in(shape.heap_start as usize * WORD, key);
        self.page.set_word(SHAPE_WORD, shape.to_word());
        self.page.set_word(FENCE_WORD, fences.to_word());
        self.page.set_word(FOSTER_WORD, foster.get());
        self.follow_fences();
        true
    }

    /// Moves the heads behind what the fences share by now, if keys go on behind the heads.
    fn follow_fences(&mut self) {
        let node = self.node();
        let (low, upper) = (node.low(), node.upper());
        let shared = prefix_len(&low, upper.as_deref());
        let heads = node.heads();
        let reach = heads.start() + size_of::<u32>();
        if shared > heads.start() && upper.is_some_and(|upper| upper.len() > reach) {
            self.set_heads(shared as u16);
        }
    }

    /// Writes the heads of all slots anew, behind `shared` bytes and what more the stored keys share.
    fn set_heads(&mut self, shared: u16) {
        let node = self.node();
        let (first, count) = (node.first_stored(), node.count());
        let skip = (shared - node.fences.prefix) as usize;
        let word = |index| node.suffix_word(node.slot(index), skip);
        let heads = match count - first {
            0 => Heads::spanning(shared, 0, u64::MAX),
            _ => Heads::spanning(shared, word(first), word(count - 1)),
        };
        self.page.set_word(HEADS_WORD, heads.to_word());
        for index in first..count {
            let node = self.node();
            let slot = node.slot(index);
            let head = heads.head(node.suffix_word(slot, skip));
            self.page
                .set_word(SLOT_WORD + index, slot.with_head(head).0);
        }
    }

    /// Sets the foster child; the upper fence stays.
    pub fn set_foster(&mut self, foster: PageId) {
        self.page.set_word(FOSTER_WORD, foster.get());
    }

    /// Takes in the whole content of the right neighbour.
    pub fn absorb(&mut self, right: &NodeImage<'_>) -> Result<(), Reason> {
        check_image(self.page.len(), right)?;
        let left = self.node().image();
        let left = left.as_image();
        let mut merged = super::ImageBuf::new(left.store, left.level, left.low, right.upper)
            .with_foster(right.foster);
        merged.push_image(&left);
        merged.push_image(right);
        check_image(self.page.len(), &merged.as_image())?;
        self.rebuild(self.page.as_ref().page_id(), &merged.as_image());
        Ok(())
    }

    /// Writes the node anew without garbage.
    fn compact(&mut self) {
        let image = self.node().image();
        self.rebuild(self.page.as_ref().page_id(), &image.as_image());
    }

    /// Writes a node with the content of `image`, which is sound and fits.
    fn rebuild(&mut self, id: PageId, image: &NodeImage<'_>) {
        let mut fences = image.fence_lens();
        let page = &mut *self.page;
        let low_at = page.len() - padded(image.low.len());
        let upper_at = page.len() - fences.bytes();
        fences.upper_at = (upper_at / WORD) as u16;
        page.set_u8(header::FORMAT, page::FORMAT_VERSION);
        page.set_u8(header::TYPE, PageType::Node as u8);
        page.set_u16(header::TYPE + 1, 0);
        page.set_u64(header::ID, id.get());
        page.set_u32(header::STORE, image.store.get());
        page.set_u32(header::STORE + 4, 0);
        page.set_word(FOSTER_WORD, image.foster.get());
        page.set_word(FENCE_WORD, fences.to_word());
        page.copy_in(low_at, image.low);
        page.copy_in(upper_at, image.upper.unwrap_or_default());

        let low_suffix = &image.low[fences.prefix as usize..];
        let mut heap = upper_at;
        for (index, entry) in image.entries().enumerate() {
            let is_low = index == 0 && entry.suffix == low_suffix;
            let stored = if is_low { &[] } else { entry.suffix };
            heap -= record_bytes(stored.len(), entry.value.len());
            let len = if is_low {
                Slot::IS_LOW
            } else {
                stored.len() as u16
            };
            let slot = Slot::new(heap / WORD, len, 0);
            page.set_word(SLOT_WORD + index, slot.0);
            put_record(page, slot, entry.flags, stored, entry.value);
        }
        let shape = Shape {
            level: image.level,
            unbounded: image.upper.is_none(),
            count: image.count() as u16,
            heap_start: (heap / WORD) as u16,
            garbage: 0,
        };
        page.set_word(SHAPE_WORD, shape.to_word());
        self.set_heads(prefix_len(image.low, image.upper) as u16);
    }

    /// Writes a row for which slot and record have room between slots and heap.
    fn insert_into_gap(&mut self, position: usize, key: &[u8], flags: RowFlags, value: &[u8]) {
        let node = self.node();
        let mut shape = node.shape;
        let suffix = &key[node.fences.prefix as usize..];
        let is_low = position == 0
            && suffix.len() == (node.fences.low - node.fences.prefix) as usize
            && node
                .page
                .compare(node.low_at(), node.fences.low as usize, key)
                .is_eq();
        let stored = if is_low { &[] } else { suffix };
        let heads = node.heads();
        let word = first_word(key, heads.shared as usize);
        let is_first = node.first_stored() == node.count();
        let heap = shape.heap_start as usize * WORD - record_bytes(stored.len(), value.len());
        let count = shape.count as usize;
        assert!(
            heap >= (SLOT_WORD + count + 1) * WORD,
            "node N3: a record would overlap the slots"
        );

        let at = (SLOT_WORD + position) * WORD;
        self.page
            .copy_within(at, (count - position) * WORD, at + WORD);
        let len = if is_low {
            Slot::IS_LOW
        } else {
            stored.len() as u16
        };
        let slot = Slot::new(heap / WORD, len, if is_low { 0 } else { heads.head(word) });
        self.page.set_word(SLOT_WORD + position, slot.0);
        put_record(self.page, slot, flags, stored, value);
        shape.count += 1;
        shape.heap_start = (heap / WORD) as u16;
        self.page.set_word(SHAPE_WORD, shape.to_word());
        if !is_low && (is_first || heads.compare(word).is_ne()) {
            self.set_heads(heads.shared);
        }
    }
}

/// Writes a whole record, word by word: its words are its own, so none is read first.
fn put_record(page: &mut PageMut<'_>, slot: Slot, flags: RowFlags, suffix: &[u8], value: &[u8]) {
    let header = RecordHeader {
        flags,
        value_len: value.len() as u16,
    };
    let at = slot.record_at() / WORD;
    page.set_word(at, header.to_word());
    let (whole, rest) = suffix.as_chunks::<WORD>();
    page.set_words(at + 1, whole);
    let after = at + 1 + whole.len();
    if !rest.is_empty() {
        return put_shifted(page, after, rest, value);
    }
    let (whole, rest) = value.as_chunks::<WORD>();
    page.set_words(after, whole);
    if !rest.is_empty() {
        page.set_word(after + whole.len(), little_word(rest));
    }
}

/// Writes a value behind the last bytes of a key, which share its first word and shift the rest.
fn put_shifted(page: &mut PageMut<'_>, mut index: usize, before: &[u8], value: &[u8]) {
    let bits = 8 * before.len() as u32;
    let mut carried = little_word(before);
    let (pieces, rest) = value.as_chunks::<WORD>();
    for piece in pieces {
        let word = u64::from_le_bytes(*piece);
        page.set_word(index, carried | word << bits);
        carried = word >> (64 - bits);
        index += 1;
    }
    let word = little_word(rest);
    page.set_word(index, carried | word << bits);
    if bits as usize + 8 * rest.len() > 64 {
        page.set_word(index + 1, word >> (64 - bits));
    }
}

fn put_value(page: &mut PageMut<'_>, slot: Slot, flags: RowFlags, value: &[u8]) {
    put_header(page, slot, flags, value.len() as u16);
    page.copy_in(value_at(slot), value);
}

fn put_header(page: &mut PageMut<'_>, slot: Slot, flags: RowFlags, value_len: u16) {
    let header = RecordHeader { flags, value_len };
    page.set_word(slot.record_at() / WORD, header.to_word());
}

/// Checks that `image` is the content of a sound node that fits into a page of `page_bytes`.
fn check_image(page_bytes: usize, image: &NodeImage<'_>) -> Result<(), Reason> {
    if image.upper.is_some_and(|upper| upper <= image.low) {
        return Err("its fences are out of order");
    }
    if image.level > 0 && image.count() == 0 {
        return Err("it would be a branch without children");
    }
    let fences = image.fence_lens();
    let low = &image.low[fences.prefix as usize..];
    let mut bytes = HEADER_BYTES + fences.bytes();
    let mut last: Option<&[u8]> = None;
    for ImageEntry {
        suffix,
        flags,
        value,
    } in image.entries()
    {
        let is_low = last.is_none() && suffix == low;
        let stored_len = if is_low { 0 } else { suffix.len() };
        bytes += WORD + record_bytes(stored_len, value.len());
        if image.level > 0 && (value.len() != WORD || flags != RowFlags::NONE) {
            return Err("a branch entry is not a page id");
        }
        if image.level > 0 && last.is_none() && !is_low {
            return Err("a branch does not start at its low fence");
        }
        if last.map_or(suffix < low, |last| last >= suffix) {
            return Err("its keys are out of order or below its low fence");
        }
        last = Some(suffix);
    }
    if bytes > page_bytes {
        return Err("its content does not fit into the page");
    }
    let upper = image.upper.map(|upper| &upper[fences.prefix as usize..]);
    if upper.is_some_and(|upper| last.is_some_and(|last| last >= upper)) {
        return Err("its keys go beyond its upper fence");
    }
    Ok(())
}
