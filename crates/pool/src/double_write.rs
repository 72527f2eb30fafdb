//! The double-write area: a whole copy of every page that is being written, so that none is torn.
//!
//! # Format
//! One page of header, then the copies, sealed as at home:
//!
//! | bytes | field |
//! |---|---|
//! | 0..8   | magic |
//! | 8..12  | CRC32C of bytes 12.. of the header up to the last page id |
//! | 12..16 | page size |
//! | 16..24 | number of pages, n |
//! | 24..24 + 8n | page ids |
//!
//! # Recovery
//! A page at home that is damaged, and of which the area has a whole copy, is restored from it. A
//! header or copy that is not whole was being written when the crash came, so nothing was being
//! written home, and home is whole. A copy may be older than home: only damaged pages are replaced.

use crate::data_file::IoBuffer;
use crate::error::PoolError;
use crate::pool::Pool;
use longshore_base::page::check;
use longshore_base::{PageId, PageSize, crash_point};
use longshore_disk::{DiskError, DiskFile};
use std::sync::Arc;

const MAGIC: u64 = u64::from_le_bytes(*b"LSHRDBLW");
const CHECKSUM: usize = 8;
const PAGE_BYTES: usize = 12;
const COUNT: usize = 16;
const IDS: usize = 24;

/// The most pages whose ids fit the header of the smallest page.
pub(crate) const BATCH_MAX: usize = 128;
const _: () = assert!(IDS + BATCH_MAX * 8 <= PageSize::MIN.bytes());

pub(crate) struct DoubleWriteArea {
    file: Arc<dyn DiskFile>,
    page_bytes: usize,
}

impl DoubleWriteArea {
    pub(crate) fn new(file: Arc<dyn DiskFile>, page_bytes: usize) -> DoubleWriteArea {
        DoubleWriteArea { file, page_bytes }
    }

    /// Makes sure that the area has space for `bytes`.
    pub(crate) fn reach(&self, bytes: u64) -> Result<(), DiskError> {
        if self.file.len()? < bytes {
            self.file.allocate(bytes)?;
        }
        Ok(())
    }

    /// Writes a header for `pages`, and the copies that `buffer` holds behind the place of the header.
    pub(crate) fn write(&self, pages: &[PageId], buffer: &mut [u8]) -> Result<(), DiskError> {
        let len = (pages.len() + 1) * self.page_bytes;
        self.write_header(pages, &mut buffer[..self.page_bytes]);
        self.file.write_at(&buffer[..len], 0)
    }

    pub(crate) fn sync(&self) -> Result<(), DiskError> {
        self.file.sync()
    }

    fn write_header(&self, pages: &[PageId], header: &mut [u8]) {
        header.fill(0);
        put(header, 0, &MAGIC.to_le_bytes());
        put(header, PAGE_BYTES, &(self.page_bytes as u32).to_le_bytes());
        put(header, COUNT, &(pages.len() as u64).to_le_bytes());
        for (index, page) in pages.iter().enumerate() {
            put(header, IDS + index * 8, &page.get().to_le_bytes());
        }
        let sum = header_checksum(header, pages.len());
        put(header, CHECKSUM, &sum.to_le_bytes());
    }

    /// The pages that the area says it holds; none if its header is not whole.
    fn read_header(&self) -> Result<Vec<PageId>, DiskError> {
        let mut header = vec![0; self.page_bytes];
        let read = self.file.read_at(&mut header, 0)?;
        let count = number(&header, COUNT) as usize;
        let size = number(&header, PAGE_BYTES) as u32 as usize;
        let is_plausible = read == self.page_bytes
            && number(&header, 0) == MAGIC
            && size == self.page_bytes
            && count <= BATCH_MAX;
        if !is_plausible {
            return Ok(Vec::new());
        }
        let stored = number(&header, CHECKSUM) as u32;
        if stored != header_checksum(&header, count) {
            return Ok(Vec::new());
        }
        let id = |index| PageId::new(number(&header, IDS + index * 8));
        Ok((0..count).map(id).collect())
    }

    /// Reads the copy number `index`; what is missing is zero.
    fn read_copy(&self, index: usize, bytes: &mut [u8]) -> Result<(), DiskError> {
        let offset = (index + 1) * self.page_bytes;
        let read = self.file.read_at(bytes, offset as u64)?;
        bytes[read..].fill(0);
        Ok(())
    }
}

impl Pool {
    /// Restores pages that a crash tore; at open, before any page is fixed. Says which.
    ///
    /// # Errors
    /// [`PoolError::Disk`]; the call can be made again.
    pub fn recover_double_write(&self) -> Result<Vec<PageId>, PoolError> {
        let cleaner = self.cleaner.lock();
        let Some(area) = cleaner.area() else {
            return Ok(Vec::new());
        };
        let mut restored = Vec::new();
        let mut home = IoBuffer::take(self.options.page_size.bytes());
        for (index, page) in area.read_header()?.into_iter().enumerate() {
            self.data.read_unchecked(page, &mut home)?;
            if check(page, &home).is_ok() {
                continue;
            }
            area.read_copy(index, &mut home)?;
            // The copy is of use only if it is whole and really one; zeros are not.
            let is_whole = matches!(
                check(page, &home),
                Ok(longshore_base::page::PageState::Valid)
            );
            if is_whole {
                self.data.write_run(page, &home)?;
                crash_point("double_write.restored");
                restored.push(page);
            }
        }
        home.give_back();
        if !restored.is_empty() {
            self.sync_home()?;
        }
        Ok(restored)
    }
}

fn header_checksum(header: &[u8], count: usize) -> u32 {
    crc32c::crc32c(&header[PAGE_BYTES..IDS + count * 8])
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
