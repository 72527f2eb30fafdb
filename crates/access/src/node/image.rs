//! A node's logical content as bytes: what `FormatNode` and `Absorb` carry in the log, and what
//! every rebuild of a page goes through.
//!
//! An image holds fences, foster child and rows, never offsets: formatting a page from it yields a
//! compact node whatever the page looked like before.

use longshore_base::{PageId, StoreId};

use super::layout::{FenceLens, HEADER_BYTES, RowFlags, WORD, common_prefix};
use super::read::{NodeRef, value_at};
use super::room::record_bytes;
use crate::bytes::{Decoder, Malformed};

/// The logical content of a node, borrowed from a log record or from an [`ImageBuf`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NodeImage<'a> {
    /// The store that the node belongs to.
    pub store: StoreId,
    /// Height above the leaves.
    pub level: u8,
    /// The foster child, or [`PageId::NONE`].
    pub foster: PageId,
    /// The low fence.
    pub low: &'a [u8],
    /// The upper bound; `None` is infinity.
    pub upper: Option<&'a [u8]>,
    prefix_len: u16,
    count: u16,
    entries: &'a [u8],
}

/// One row of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageEntry<'a> {
    /// The key without the node's prefix.
    pub suffix: &'a [u8],
    /// The row's flags.
    pub flags: RowFlags,
    /// The value: a row's, or a child's page id.
    pub value: &'a [u8],
}

const UPPER_ABSENT: u16 = u16::MAX;
const ENTRY_HEADER: usize = 6;

impl<'a> NodeImage<'a> {
    /// Number of rows.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Bytes that all keys of the node share.
    pub fn prefix(&self) -> &'a [u8] {
        &self.low[..self.prefix_len as usize]
    }

    /// The rows in key order.
    pub fn entries(&self) -> impl Iterator<Item = ImageEntry<'a>> + use<'a> {
        let mut decoder = Decoder::new(self.entries);
        // Decoding cannot fail here: `decode` walked the entries once, and `ImageBuf` wrote them.
        std::iter::from_fn(move || {
            if decoder.is_empty() {
                None
            } else {
                ImageEntry::decode(&mut decoder).ok()
            }
        })
    }

    /// Bytes of a page that the node takes, header and fences included.
    pub fn page_bytes(&self) -> usize {
        let fences = self.fence_lens();
        let low_suffix = &self.low[fences.prefix as usize..];
        let row = |(index, entry): (usize, ImageEntry<'_>)| {
            let is_low = index == 0 && entry.suffix == low_suffix;
            let stored_len = if is_low { 0 } else { entry.suffix.len() };
            WORD + record_bytes(stored_len, entry.value.len())
        };
        HEADER_BYTES + fences.bytes() + self.entries().enumerate().map(row).sum::<usize>()
    }

    /// The lengths of fences and prefix; the upper fence has no place yet.
    pub(super) fn fence_lens(&self) -> FenceLens {
        FenceLens {
            prefix: self.prefix_len,
            low: self.low.len() as u16,
            upper: self.upper.map_or(0, <[u8]>::len) as u16,
            upper_at: 0,
        }
    }

    /// Appends the image to `out`, as [`decode`](Self::decode) reads it.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.store.get().to_le_bytes());
        out.push(self.level);
        out.extend_from_slice(&self.foster.get().to_le_bytes());
        out.extend_from_slice(&(self.low.len() as u16).to_le_bytes());
        let upper_len = self.upper.map_or(UPPER_ABSENT, |upper| upper.len() as u16);
        out.extend_from_slice(&upper_len.to_le_bytes());
        out.extend_from_slice(&self.prefix_len.to_le_bytes());
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        out.extend_from_slice(self.low);
        out.extend_from_slice(self.upper.unwrap_or_default());
        out.extend_from_slice(self.entries);
    }

    pub(crate) fn decode(decoder: &mut Decoder<'a>) -> Result<NodeImage<'a>, Malformed> {
        let store = StoreId::new(decoder.u32()?);
        let level = decoder.u8()?;
        let foster = PageId::new(decoder.u64()?);
        let low_len = decoder.u16()?;
        let upper_len = decoder.u16()?;
        let prefix_len = decoder.u16()?;
        let count = decoder.u16()?;
        let entries_len = decoder.u32()?;
        let low = decoder.bytes(low_len as usize)?;
        let upper = match upper_len {
            UPPER_ABSENT => None,
            len => Some(decoder.bytes(len as usize)?),
        };
        if prefix_len as usize > self::prefix_len(low, upper) {
            return Err(Malformed("a prefix is longer than what the fences share"));
        }
        let entries = decoder.bytes(entries_len as usize)?;
        let mut walk = Decoder::new(entries);
        for _ in 0..count {
            ImageEntry::decode(&mut walk)?;
        }
        walk.finish()?;
        Ok(NodeImage {
            store,
            level,
            foster,
            low,
            upper,
            prefix_len,
            count,
            entries,
        })
    }
}

impl std::fmt::Debug for NodeImage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeImage")
            .field("store", &self.store)
            .field("level", &self.level)
            .field("foster", &self.foster)
            .field("low", &self.low)
            .field("upper", &self.upper)
            .field("entries", &self.entries().collect::<Vec<_>>())
            .finish()
    }
}

impl<'a> ImageEntry<'a> {
    fn decode(decoder: &mut Decoder<'a>) -> Result<ImageEntry<'a>, Malformed> {
        let flags = RowFlags::from_bits(decoder.u16()?).ok_or(Malformed("unknown row flags"))?;
        let value_len = decoder.u16()? as usize;
        let suffix_len = decoder.u16()? as usize;
        let suffix = decoder.bytes(suffix_len)?;
        let value = decoder.bytes(value_len)?;
        Ok(ImageEntry {
            suffix,
            flags,
            value,
        })
    }
}

/// An image that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageBuf {
    store: StoreId,
    level: u8,
    foster: PageId,
    low: Vec<u8>,
    upper: Option<Vec<u8>>,
    prefix_len: usize,
    count: u16,
    entries: Vec<u8>,
}

impl ImageBuf {
    /// An image without rows and without a foster child.
    pub fn new(store: StoreId, level: u8, low: &[u8], upper: Option<&[u8]>) -> ImageBuf {
        ImageBuf {
            store,
            level,
            foster: PageId::NONE,
            low: low.to_vec(),
            upper: upper.map(<[u8]>::to_vec),
            prefix_len: prefix_len(low, upper),
            count: 0,
            entries: Vec::new(),
        }
    }

    /// The same image with `foster` as its foster child.
    pub fn with_foster(mut self, foster: PageId) -> ImageBuf {
        self.foster = foster;
        self
    }

    /// Adds a row; rows come in ascending key order, and keys lie between the fences.
    pub fn push(&mut self, key: &[u8], flags: RowFlags, value: &[u8]) {
        let suffix = &key[self.prefix_len..];
        self.push_header(flags, suffix.len(), value.len());
        self.entries.extend_from_slice(suffix);
        self.entries.extend_from_slice(value);
    }

    /// Adds the entry of a branch.
    pub fn push_child(&mut self, key: &[u8], child: PageId) {
        self.push(key, RowFlags::NONE, &child.get().to_le_bytes());
    }

    /// Adds all rows of another image, whose fences lie between this one's.
    pub fn push_image(&mut self, other: &NodeImage<'_>) {
        let head = other.prefix().get(self.prefix_len..).unwrap_or_default();
        let cut = self.prefix_len.saturating_sub(other.prefix().len());
        for entry in other.entries() {
            let suffix = &entry.suffix[cut..];
            self.push_header(entry.flags, head.len() + suffix.len(), entry.value.len());
            self.entries.extend_from_slice(head);
            self.entries.extend_from_slice(suffix);
            self.entries.extend_from_slice(entry.value);
        }
    }

    /// The image as an action holds it.
    pub fn as_image(&self) -> NodeImage<'_> {
        NodeImage {
            store: self.store,
            level: self.level,
            foster: self.foster,
            low: &self.low,
            upper: self.upper.as_deref(),
            prefix_len: self.prefix_len as u16,
            count: self.count,
            entries: &self.entries,
        }
    }

    fn push_header(&mut self, flags: RowFlags, suffix_len: usize, value_len: usize) {
        self.count += 1;
        let mut header = [0; ENTRY_HEADER];
        header[0..2].copy_from_slice(&flags.bits().to_le_bytes());
        header[2..4].copy_from_slice(&(value_len as u16).to_le_bytes());
        header[4..6].copy_from_slice(&(suffix_len as u16).to_le_bytes());
        self.entries.extend_from_slice(&header);
    }

    /// Adds the rows of `node` in `slots`; this image's fences lie between the node's.
    fn push_rows(&mut self, node: &NodeRef<'_>, slots: std::ops::Range<usize>) {
        let skip = self.prefix_len.saturating_sub(node.fences.prefix as usize);
        for index in slots {
            let slot = node.slot(index);
            let record = node.record_header(slot);
            let (at, len) = node.suffix_span(slot);
            let (suffix_len, value_len) = (len.saturating_sub(skip), record.value_len as usize);
            self.push_header(record.flags.known(), suffix_len, value_len);
            node.page
                .append_to(at + skip, suffix_len, &mut self.entries);
            node.page
                .append_to(value_at(slot), value_len, &mut self.entries);
        }
    }
}

impl NodeRef<'_> {
    /// The whole node, prefix included, as content for another page: root growth and shrinking, copies.
    ///
    /// To be called under a latch: of a page that changes meanwhile the image is nonsense, and large.
    pub fn image(&self) -> ImageBuf {
        let (low, upper) = (self.low(), self.upper());
        let mut image = self.image_between(&low, upper.as_deref());
        image.prefix_len = self.fences.prefix as usize;
        image.push_rows(self, 0..self.count());
        image.with_foster(PageId::new(self.page.word(super::layout::FOSTER_WORD)))
    }

    /// What moves to the right when the node is split at `slot`: the rows from there on, and the
    /// foster child. The new node's low fence is the key in `slot`. To be called under a latch.
    pub fn image_right_of(&self, slot: usize) -> ImageBuf {
        let (low, upper) = (self.key(slot), self.upper());
        let mut image = self.image_between(&low, upper.as_deref());
        image.push_rows(self, slot..self.count());
        image.with_foster(PageId::new(self.page.word(super::layout::FOSTER_WORD)))
    }

    /// What stays behind when the node is split at `slot`, whose key is `key`.
    ///
    /// A node that gives away its last row only keeps its prefix, so that it need not be rebuilt.
    pub(super) fn image_left_of(&self, slot: usize, key: &[u8], foster: PageId) -> ImageBuf {
        let mut image = self.image_between(&self.low(), Some(key));
        if slot + 1 == self.count() {
            image.prefix_len = self.fences.prefix as usize;
        }
        image.push_rows(self, 0..slot);
        image.with_foster(foster)
    }

    fn image_between(&self, low: &[u8], upper: Option<&[u8]>) -> ImageBuf {
        ImageBuf::new(self.page.store(), self.level(), low, upper)
    }
}

/// Length of the prefix that every key between the fences shares: the longest that a node may have (N4).
pub(super) fn prefix_len(low: &[u8], upper: Option<&[u8]>) -> usize {
    upper.map_or(0, |upper| common_prefix(low, upper))
}
