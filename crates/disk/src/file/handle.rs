//! An open file of the operating system.
//!
//! # Invariants
//! I9. A transfer never undoes what another wrote to neighbouring bytes meanwhile.
//!
//! # Order
//! `shape` is the only latch, one for all handles of a file. Shared: transfers that touch exactly the
//! bytes they were asked for. Exclusive: whatever rewrites bytes beside them (the edges of an
//! unaligned direct write, the zeros of a reservation) or changes the length (I9). It is held over
//! the system call that it protects; nothing else is waited for under it.

use super::disk::{FileIo, because, failed, is_refusal};
use super::{direct, reserve, transfer};
use crate::aligned::{is_aligned, is_whole};
use crate::disk::{DiskFile, OpenMode};
use crate::error::{DiskError, DiskErrorKind, DiskOperation};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub(super) struct FileHandle {
    path: PathBuf,
    file: File,
    mode: OpenMode,
    io: FileIo,
    shape: Arc<RwLock<Shape>>,
}

/// What is known about the file as a whole; see Order.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// No holes below this, where we had to see to it ourselves.
    pub(super) filled_bytes: u64,
}

impl FileHandle {
    pub(super) fn new(
        path: PathBuf,
        file: File,
        mode: OpenMode,
        io: FileIo,
        shape: Arc<RwLock<Shape>>,
    ) -> Self {
        Self {
            path,
            file,
            mode,
            io,
            shape,
        }
    }

    fn shared(&self) -> RwLockReadGuard<'_, Shape> {
        self.shape.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclusive(&self) -> RwLockWriteGuard<'_, Shape> {
        self.shape.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_writable(&self, operation: DiskOperation) -> Result<(), DiskError> {
        if self.mode.is_writable() {
            return Ok(());
        }
        let reason = "it was opened for reading only";
        Err(because(
            operation,
            &self.path,
            DiskErrorKind::PermissionDenied,
            reason,
        ))
    }

    fn failed(&self, operation: DiskOperation, source: io::Error) -> DiskError {
        failed(operation, &self.path, None, source)
    }

    fn transfer_failed(
        &self,
        operation: DiskOperation,
        offset: u64,
        source: io::Error,
    ) -> DiskError {
        // Some file systems accept the flag when a file is opened, and refuse the first transfer.
        match self.io == FileIo::Direct && is_refusal(&source) {
            true => direct::refused(operation, &self.path),
            false => failed(operation, &self.path, Some(offset), source),
        }
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.io {
            FileIo::Buffered => {
                transfer::read_fully(bytes, offset, |bytes, at| self.file.read_at(bytes, at))
            }
            FileIo::Direct => {
                let _no_half_written_edges = self.shared();
                match is_aligned(bytes, offset) {
                    true => direct::read_blocks(&self.file, bytes, offset),
                    false => direct::read_any(&self.file, bytes, offset),
                }
            }
        }
    }

    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match self.io {
            FileIo::Direct if !is_whole(bytes.len(), offset) => {
                let _no_neighbours = self.exclusive();
                direct::write_edges(&self.file, bytes, offset)
            }
            FileIo::Direct if !is_aligned(bytes, offset) => {
                let _shared = self.shared();
                direct::write_copied(&self.file, bytes, offset)
            }
            FileIo::Buffered | FileIo::Direct => {
                let _shared = self.shared();
                transfer::write_fully(bytes, offset, |bytes, at| self.file.write_at(bytes, at))
            }
        }
    }
}

impl DiskFile for FileHandle {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        let read = self.read(bytes, offset);
        read.map_err(|source| self.transfer_failed(DiskOperation::Read, offset, source))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), DiskError> {
        self.check_writable(DiskOperation::Write)?;
        let written = self.write(bytes, offset);
        written.map_err(|source| self.transfer_failed(DiskOperation::Write, offset, source))
    }

    fn sync(&self) -> Result<(), DiskError> {
        // fdatasync: the bytes, and of the rest what is needed to read them back, the length above
        // all; not the times.
        let synced = self.file.sync_data();
        synced.map_err(|source| self.failed(DiskOperation::Sync, source))
    }

    fn len(&self) -> Result<u64, DiskError> {
        let _no_half_written_edges = self.shared();
        let metadata = self.file.metadata();
        metadata
            .map(|metadata| metadata.len())
            .map_err(|source| self.failed(DiskOperation::Len, source))
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.check_writable(DiskOperation::SetLen)?;
        let mut shape = self.exclusive();
        shape.filled_bytes = shape.filled_bytes.min(len);
        let set = self.file.set_len(len);
        set.map_err(|source| self.failed(DiskOperation::SetLen, source))
    }

    fn allocate(&self, len: u64) -> Result<(), DiskError> {
        self.check_writable(DiskOperation::Allocate)?;
        let mut shape = self.exclusive();
        let reserved = reserve::reserve(&self.file, len, &mut shape.filled_bytes);
        reserved.map_err(|source| self.failed(DiskOperation::Allocate, source))
    }
}
