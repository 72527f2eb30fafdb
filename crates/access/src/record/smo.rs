//! Structure changes: the actions of one mini-transaction, page by page.

use longshore_base::{Lsn, PageId};
use smallvec::SmallVec;

use super::{Actions, PageChange};
use crate::action::PageAction;
use crate::bytes::{Decoder, Malformed};

/// Bytes of a page's entry before its actions.
const PAGE_HEAD: usize = 20;

/// Gathers the body of a structure change, page by page.
#[derive(Debug, Default)]
pub struct SmoBody {
    pages: SmallVec<[(PageId, Vec<u8>); 4]>,
    count: [u8; 2],
}

impl SmoBody {
    /// A structure change of no page.
    pub fn new() -> SmoBody {
        SmoBody::default()
    }

    /// Adds an action on `page`, whose LSN before the structure change is `previous`.
    pub fn push(&mut self, page: PageId, previous: Lsn, action: &PageAction<'_>) {
        let index = self
            .pages
            .iter()
            .position(|(id, _)| *id == page)
            .unwrap_or_else(|| {
                let mut head = Vec::with_capacity(PAGE_HEAD + 64);
                head.extend_from_slice(&page.get().to_le_bytes());
                head.extend_from_slice(&previous.get().to_le_bytes());
                head.extend_from_slice(&0u32.to_le_bytes());
                self.pages.push((page, head));
                self.pages.len() - 1
            });
        let bytes = &mut self.pages[index].1;
        action.encode(bytes);
        let len = (bytes.len() - PAGE_HEAD) as u32;
        bytes[PAGE_HEAD - 4..PAGE_HEAD].copy_from_slice(&len.to_le_bytes());
        self.count = (self.pages.len() as u16).to_le_bytes();
    }

    /// Whether no page is changed.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Bytes of the body so far.
    pub fn body_bytes(&self) -> usize {
        self.count.len()
            + self
                .pages
                .iter()
                .map(|(_, bytes)| bytes.len())
                .sum::<usize>()
    }

    /// The body in the pieces that the log copies together.
    pub fn parts(&self) -> SmallVec<[&[u8]; 8]> {
        let pages = self.pages.iter().map(|(_, bytes)| bytes.as_slice());
        std::iter::once(self.count.as_slice())
            .chain(pages)
            .collect()
    }
}

/// Reads the body of a structure change.
pub(super) fn decode_smo(body: &[u8]) -> Result<SmallVec<[PageChange<'_>; 4]>, Malformed> {
    let mut from = Decoder::new(body);
    let pages = from.u16()?;
    let mut changes = SmallVec::new();
    for _ in 0..pages {
        let page = PageId::new(from.u64()?);
        let previous = Lsn::new(from.u64()?);
        let len = from.u32()? as usize;
        let actions = Actions::Encoded(from.bytes(len)?);
        changes.push(PageChange {
            page,
            previous,
            actions,
        });
    }
    from.finish()?;
    Ok(changes)
}
