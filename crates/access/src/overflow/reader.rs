//! Reading a chain, link by link.

use longshore_base::{PageId, StoreId};
use longshore_pool::PageRef;

use super::link::{self, ChainId};
use super::stub::Stub;
use crate::access::Access;
use crate::error::AccessError;

/// Reads a value in a chain from its beginning. Holds no latch and no page between calls.
#[derive(Clone, Debug)]
pub struct ChainReader {
    store: StoreId,
    chain: ChainId,
    next: Option<PageId>,
    /// Number of the link to read next.
    index: u32,
    left: u64,
}

/// What came of reading on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// More bytes.
    Read,
    /// The value has been read to its end.
    End,
    /// The chain is not there. Under a lock on the row that means damage; without one, that the row
    /// has been changed since it was read, and must be read again.
    Gone,
}

/// One link, as it was at some moment.
struct Found {
    is_link: bool,
    len: u32,
    next: Option<PageId>,
}

impl Found {
    fn of(page: PageRef<'_>, store: StoreId, chain: ChainId) -> Found {
        Found {
            is_link: link::is_link(page, store, chain),
            len: link::len(page),
            next: link::next(page),
        }
    }
}

impl ChainReader {
    /// A reader of the value that `stub` stands for.
    pub fn new(store: StoreId, stub: Stub) -> ChainReader {
        ChainReader {
            store,
            chain: stub.chain,
            next: Some(stub.chain.first),
            index: 0,
            left: stub.len,
        }
    }

    /// Bytes not yet read.
    pub fn remaining(&self) -> u64 {
        self.left
    }

    /// Appends the bytes of the next link to `out`: less than a page.
    ///
    /// # Errors
    /// When a page cannot be had, or the chain contradicts its stub.
    pub fn read_link(&mut self, access: &Access, out: &mut Vec<u8>) -> Result<Link, AccessError> {
        if self.left == 0 {
            return Ok(Link::End);
        }
        let Some(page) = self.next else {
            return Ok(Link::Gone);
        };
        let start = out.len();
        let found = look(access, page, |bytes| {
            out.truncate(start);
            link::append_to(bytes, out);
            let mut found = Found::of(bytes, self.store, self.chain);
            // Of a chain that is being freed, the first link names a later one than it did.
            found.is_link &= link::index(bytes) == self.index;
            found
        })?;
        if !found.is_link {
            out.truncate(start);
            return Ok(Link::Gone);
        }
        let len = u64::from(found.len);
        if len == 0 || len > self.left {
            out.truncate(start);
            let expected = format!("an overflow link of 1 to {} bytes", self.left);
            return Err(AccessError::corrupt(
                page,
                self.store,
                expected,
                format!("{len} bytes"),
            ));
        }
        self.left -= len;
        self.next = found.next;
        self.index += 1;
        Ok(Link::Read)
    }

    /// Appends all bytes not yet read to `out`; false when the chain is gone.
    ///
    /// # Errors
    /// As [`read_link`](Self::read_link).
    pub fn read_to_end(&mut self, access: &Access, out: &mut Vec<u8>) -> Result<bool, AccessError> {
        loop {
            match self.read_link(access, out)? {
                Link::Read => {}
                Link::End => return Ok(true),
                Link::Gone => return Ok(false),
            }
        }
    }
}

/// Calls `visit` for each page of a chain, finished or not, and returns how many bytes it holds.
///
/// # Errors
/// When a page cannot be had, or the chain leads back into itself.
pub fn walk(
    access: &Access,
    store: StoreId,
    chain: ChainId,
    mut visit: impl FnMut(PageId),
) -> Result<u64, AccessError> {
    let pages_max = access.pool.file_pages();
    let mut len = 0;
    let mut at = Some(chain.first);
    for _ in 0..=pages_max {
        let Some(page) = at else {
            return Ok(len);
        };
        let found = look(access, page, |bytes| Found::of(bytes, store, chain))?;
        if !found.is_link {
            return Ok(len);
        }
        visit(page);
        len += u64::from(found.len);
        at = found.next;
    }
    Err(AccessError::corrupt(
        chain.first,
        store,
        "an overflow chain with an end",
        "a circle",
    ))
}

/// What `read` makes of the page: without a latch, or with one if somebody changes it meanwhile.
fn look(
    access: &Access,
    page: PageId,
    mut read: impl FnMut(PageRef<'_>) -> Found,
) -> Result<Found, AccessError> {
    let guard = access.pool.read_scan(page)?;
    let found = read(guard.page());
    if guard.validate().is_ok() {
        return Ok(found);
    }
    let guard = access.pool.fix_shared(page)?;
    Ok(read(guard.page()))
}
