//! One link of an overflow chain: a page with a stretch of a value and the way to the next.
//!
//! ```text
//!   0..32  page header        32..40  next link, all ones at the end
//!  40..44  bytes held         44..48  number of the link in the chain
//!  48..56  chain: first page  56..64  chain: born        64..  the bytes
//! ```

use longshore_base::{Lsn, PageId, PageSize, PageType, StoreId};
use longshore_pool::{PageMut, PageRef};

const NEXT_WORD: usize = 4;
const LEN_AT: usize = 40;
const INDEX_AT: usize = 44;
const FIRST_WORD: usize = 6;
const BORN_WORD: usize = 7;
const BYTES_AT: usize = 64;

/// Which chain it is; no two chains of a database are ever the same.
///
/// A page is given to one chain at a time, and the log grows before it is given to another. So
/// whoever comes to a page with the id of a chain that is gone sees that it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChainId {
    /// The first link.
    pub first: PageId,
    /// The end of the log when the first link was chosen.
    pub born: Lsn,
}

/// Bytes of a value that one link holds.
pub const fn link_capacity(page_size: PageSize) -> usize {
    page_size.bytes() - BYTES_AT
}

/// Checks that a link in a page of `page_bytes` can hold `len` bytes.
pub(crate) fn check_len(page_bytes: usize, len: usize) -> Result<(), &'static str> {
    if len > page_bytes - BYTES_AT {
        Err("an overflow link is longer than a page")
    } else {
        Ok(())
    }
}

/// Writes the content of a link behind the page header.
pub(crate) fn put(page: &mut PageMut<'_>, chain: ChainId, index: u32, next: PageId, bytes: &[u8]) {
    put_next(page, next);
    page.set_u32(LEN_AT, bytes.len() as u32);
    page.set_u32(INDEX_AT, index);
    page.set_word(FIRST_WORD, chain.first.get());
    page.set_word(BORN_WORD, chain.born.get());
    page.copy_in(BYTES_AT, bytes);
}

/// Points a link to another next one.
pub(crate) fn put_next(page: &mut PageMut<'_>, next: PageId) {
    page.set_word(NEXT_WORD, next.get());
}

/// Whether the page is a link of that chain.
pub(super) fn is_link(page: PageRef<'_>, store: StoreId, chain: ChainId) -> bool {
    page.page_type() == Some(PageType::Overflow)
        && page.store() == store
        && page.word(FIRST_WORD) == chain.first.get()
        && page.word(BORN_WORD) == chain.born.get()
}

/// Number of the link in its chain.
pub(super) fn index(page: PageRef<'_>) -> u32 {
    page.u32(INDEX_AT)
}

/// The next link of the chain.
pub(super) fn next(page: PageRef<'_>) -> Option<PageId> {
    let next = PageId::new(page.word(NEXT_WORD));
    (next != PageId::NONE).then_some(next)
}

/// Bytes that the link holds.
pub(super) fn len(page: PageRef<'_>) -> u32 {
    page.u32(LEN_AT)
}

/// Appends the link's bytes to `out`; at most a page of them, whatever the page holds.
pub(super) fn append_to(page: PageRef<'_>, out: &mut Vec<u8>) {
    page.append_to(BYTES_AT, len(page) as usize, out);
}
