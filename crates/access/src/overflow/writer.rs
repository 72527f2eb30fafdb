//! Writing a chain, link by link.

use longshore_base::{PageId, StoreId};

use super::link::{ChainId, link_capacity};
use super::stub::Stub;
use crate::access::{Access, LogContext};
use crate::action::PageAction;
use crate::error::AccessError;
use crate::mtr::{MiniTransaction, Steps};
use crate::space::Reserved;

const APPEND: Steps = Steps::new("chain.latched", "chain.logged", "chain.applied");

/// A chain being written. It holds one link's bytes in memory, and the page that they will go to.
///
/// After an error the writer is of no more use: drop it, and free what it wrote.
pub struct ChainWriter<'a> {
    access: &'a Access,
    store: StoreId,
    chain: ChainId,
    /// The page of the link being filled; none after an error.
    page: Option<Reserved<'a>>,
    buffer: Vec<u8>,
    capacity: usize,
    /// Number of the link being filled.
    index: u32,
    /// Bytes in links that are written.
    written: u64,
}

impl<'a> ChainWriter<'a> {
    /// Chooses where the chain begins. Nothing is written yet; see [`chain`](Self::chain).
    ///
    /// # Errors
    /// When the file cannot grow.
    pub fn begin(access: &'a Access, store: StoreId) -> Result<ChainWriter<'a>, AccessError> {
        let page = access.reserve_page(store)?;
        // The log's end is read after the page is ours: who had it before logged that it let it go.
        let chain = ChainId {
            first: page.page(),
            born: access.log.tail(),
        };
        let capacity = link_capacity(access.page_size);
        Ok(ChainWriter {
            access,
            store,
            chain,
            page: Some(page),
            buffer: Vec::with_capacity(capacity),
            capacity,
            index: 0,
            written: 0,
        })
    }

    /// The chain, to be written down before its first link is.
    pub fn chain(&self) -> ChainId {
        self.chain
    }

    /// Bytes given so far.
    pub fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Whether no byte was given so far.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends `bytes` to the value. May log and write any number of links.
    ///
    /// # Errors
    /// When the log or the file is full, or a page cannot be had.
    /// # Panics
    /// If an earlier call failed.
    pub fn write(&mut self, cx: &mut LogContext, bytes: &[u8]) -> Result<(), AccessError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.buffer.len() == self.capacity {
                let next = self.access.reserve_page(self.store)?;
                self.put_link(cx, next.page())?;
                self.page = Some(next);
            }
            let (now, later) = rest.split_at(rest.len().min(self.capacity - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            rest = later;
        }
        Ok(())
    }

    /// Writes the last link. The stub is for the row.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    /// # Panics
    /// If an earlier call failed.
    pub fn finish(mut self, cx: &mut LogContext) -> Result<Stub, AccessError> {
        self.put_link(cx, PageId::NONE)?;
        Ok(Stub {
            chain: self.chain,
            len: self.written,
        })
    }

    /// Writes the buffer as the link in the page set aside for it.
    fn put_link(&mut self, cx: &mut LogContext, next: PageId) -> Result<(), AccessError> {
        let page = self
            .page
            .take()
            .expect("a chain writer is dropped after it failed");
        let mut mtr = MiniTransaction::begin(self.access);
        let link = PageAction::OverflowImage {
            store: self.store,
            chain: self.chain,
            index: self.index,
            next,
            bytes: &self.buffer,
        };
        mtr.allocate(page, link)?;
        mtr.commit(cx, &APPEND)?;
        self.index += 1;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}
