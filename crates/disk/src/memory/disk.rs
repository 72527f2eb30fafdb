//! The directory of files in memory, and handles to them.

use super::content::Content;
use crate::disk::{Disk, DiskFile, DiskLock, OpenMode, check_name};
use crate::error::{DiskError, DiskErrorKind, DiskOperation};
use crate::names::LockedNames;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A directory of files in memory. Cloning gives another handle to the same directory.
#[derive(Clone, Default)]
pub struct MemoryDisk {
    shared: Arc<Directory>,
}

#[derive(Default)]
struct Directory {
    files: Mutex<BTreeMap<String, Arc<Content>>>,
    locked: LockedNames,
}

impl MemoryDisk {
    /// Makes an empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Content>>> {
        self.shared
            .files
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for MemoryDisk {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn DiskFile>, DiskError> {
        check_name(name);
        let content = match self.files().entry(name.to_owned()) {
            Entry::Occupied(_) if mode == OpenMode::Create => {
                return Err(failed(
                    DiskOperation::Open,
                    name,
                    io::ErrorKind::AlreadyExists,
                ));
            }
            Entry::Occupied(entry) => entry.get().clone(),
            Entry::Vacant(entry) if mode.may_create() => entry.insert(Arc::default()).clone(),
            Entry::Vacant(_) => {
                return Err(failed(DiskOperation::Open, name, io::ErrorKind::NotFound));
            }
        };
        Ok(Arc::new(MemoryFile {
            name: name.to_owned(),
            writable: mode.is_writable(),
            content,
        }))
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        Ok(self.files().keys().cloned().collect())
    }

    fn exists(&self, name: &str) -> Result<bool, DiskError> {
        check_name(name);
        Ok(self.files().contains_key(name))
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        check_name(name);
        let removed = self.files().remove(name);
        removed
            .map(drop)
            .ok_or_else(|| failed(DiskOperation::Remove, name, io::ErrorKind::NotFound))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        check_name(from);
        check_name(to);
        let mut files = self.files();
        let content = files
            .remove(from)
            .ok_or_else(|| failed(DiskOperation::Rename, from, io::ErrorKind::NotFound))?;
        files.insert(to.to_owned(), content);
        Ok(())
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn lock(&self, name: &str) -> Result<DiskLock, DiskError> {
        check_name(name);
        self.files().entry(name.to_owned()).or_default();
        self.shared.locked.try_lock(name).ok_or_else(|| {
            let reason = "somebody in this process has it open";
            DiskError::because(DiskOperation::Lock, name, DiskErrorKind::Locked, reason)
        })
    }
}

fn failed(operation: DiskOperation, name: &str, kind: io::ErrorKind) -> DiskError {
    DiskError::new(operation, name, None, kind.into())
}

struct MemoryFile {
    name: String,
    writable: bool,
    content: Arc<Content>,
}

impl MemoryFile {
    fn check_writable(&self, operation: DiskOperation) -> Result<(), DiskError> {
        match self.writable {
            true => Ok(()),
            false => Err(failed(
                operation,
                &self.name,
                io::ErrorKind::PermissionDenied,
            )),
        }
    }
}

impl DiskFile for MemoryFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        Ok(self.content.read(bytes, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), DiskError> {
        self.check_writable(DiskOperation::Write)?;
        self.content.write(bytes, offset);
        Ok(())
    }

    fn sync(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn len(&self) -> Result<u64, DiskError> {
        Ok(self.content.len())
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.check_writable(DiskOperation::SetLen)?;
        self.content.set_len(len);
        Ok(())
    }

    /// Memory cannot be reserved ahead in a way that the system would honour: this only grows.
    fn allocate(&self, len: u64) -> Result<(), DiskError> {
        self.check_writable(DiskOperation::Allocate)?;
        self.content.grow(len);
        Ok(())
    }
}
