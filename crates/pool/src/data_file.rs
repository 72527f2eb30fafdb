//! The data file as pages: reading, writing in runs, growing, syncing.
//!
//! # Invariants
//! D1. A page beyond the end of the file reads as blank.
//! D2. What is read is checked, what is written is sealed; damage never reaches a frame.

use crate::error::PoolError;
use crate::page_bytes::{PageMut, PageRef};
use longshore_base::page::{self};
use longshore_base::{PageId, PageSize};
use longshore_disk::{DiskError, DiskFile};
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
// Not the model checker's: the length of the file is a hint but for the one who changes it.
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) struct DataFile {
    file: Arc<dyn DiskFile>,
    page_size: PageSize,
    /// Pages of the file, the last perhaps in part. Grows before anybody asks for new pages.
    pages: AtomicU64,
}

impl DataFile {
    pub(crate) fn new(file: Arc<dyn DiskFile>, page_size: PageSize) -> Result<Self, DiskError> {
        let pages = file.len()?.div_ceil(page_size.bytes() as u64);
        Ok(DataFile {
            file,
            page_size,
            pages: AtomicU64::new(pages),
        })
    }

    pub(crate) fn pages(&self) -> u64 {
        // Acquire: pairs with Release in `note_pages`: a page below the length may be read.
        self.pages.load(Ordering::Acquire)
    }

    /// Reads and checks a page.
    pub(crate) fn read(&self, page: PageId, bytes: &mut [u8]) -> Result<(), PoolError> {
        self.read_unchecked(page, bytes)?;
        match page::check(page, bytes) {
            Ok(_) => Ok(()),
            Err(reason) => Err(PoolError::Damaged { page, reason }),
        }
    }

    /// Reads a page whatever it holds; what lies beyond the end of the file is zero.
    pub(crate) fn read_unchecked(&self, page: PageId, bytes: &mut [u8]) -> Result<(), DiskError> {
        let filled = if page.get() < self.pages() {
            self.file.read_at(bytes, self.offset(page))?
        } else {
            0
        };
        bytes[filled..].fill(0);
        Ok(())
    }

    /// Writes sealed pages that follow each other, from `first` on.
    pub(crate) fn write_run(&self, first: PageId, bytes: &[u8]) -> Result<(), DiskError> {
        self.file.write_at(bytes, self.offset(first))?;
        self.note_pages(first.get() + (bytes.len() / self.page_size.bytes()) as u64);
        Ok(())
    }

    pub(crate) fn sync(&self) -> Result<(), DiskError> {
        self.file.sync()
    }

    /// Makes sure that space for `pages` pages is there.
    pub(crate) fn grow(&self, pages: u64) -> Result<(), DiskError> {
        if pages > self.pages() {
            self.file.allocate(pages * self.page_size.bytes() as u64)?;
            self.note_pages(pages);
        }
        Ok(())
    }

    /// Cuts the file to `pages` pages.
    pub(crate) fn truncate(&self, pages: u64) -> Result<(), DiskError> {
        if pages < self.pages() {
            self.file.set_len(pages * self.page_size.bytes() as u64)?;
            // Release: pairs with Acquire in `pages`.
            self.pages.store(pages, Ordering::Release);
        }
        Ok(())
    }

    fn note_pages(&self, pages: u64) {
        // Release: pairs with Acquire in `pages`.
        self.pages.fetch_max(pages, Ordering::Release);
    }

    fn offset(&self, page: PageId) -> u64 {
        page.get() * self.page_size.bytes() as u64
    }
}

/// Copies a page out of its words.
pub(crate) fn copy_to_bytes(page: PageRef<'_>, bytes: &mut [u8]) {
    page.copy_out(0, bytes);
}

/// Copies a page into its words.
pub(crate) fn copy_from_bytes(bytes: &[u8], page: &mut PageMut<'_>) {
    let (words, _) = bytes.as_chunks();
    page.set_words(0, words);
}

/// An I/O buffer of one page, aligned for direct I/O, lent by the thread.
pub(crate) struct IoBuffer {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

const ALIGN: usize = 4096;

thread_local! {
    static SPARE: RefCell<Option<IoBuffer>> = const { RefCell::new(None) };
}

impl IoBuffer {
    /// A buffer of `len` bytes: the thread's spare one, if it fits.
    pub(crate) fn take(len: usize) -> IoBuffer {
        let spare = SPARE.try_with(|spare| spare.borrow_mut().take());
        match spare.ok().flatten() {
            Some(buffer) if buffer.len == len => buffer,
            _ => IoBuffer::new(len),
        }
    }

    /// A new buffer of `len` bytes, zero at first.
    pub(crate) fn new(len: usize) -> IoBuffer {
        let bytes = vec![0; len + ALIGN];
        let start = bytes.as_ptr().align_offset(ALIGN).min(ALIGN);
        IoBuffer { bytes, start, len }
    }

    /// Gives the buffer back to the thread.
    pub(crate) fn give_back(self) {
        // While the thread ends there is nobody to give it to.
        let _ = SPARE.try_with(|spare| *spare.borrow_mut() = Some(self));
    }
}

impl Deref for IoBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }
}

impl DerefMut for IoBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}
