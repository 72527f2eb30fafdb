//! The directory of real files.

use super::handle::{FileHandle, Shape};
use super::{direct, lock};
use crate::disk::{Disk, DiskFile, DiskLock, OpenMode, check_name};
use crate::error::{DiskError, DiskErrorKind, DiskOperation};
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

/// Device and number: what a file is, whatever its name.
pub(super) type Identity = (u64, u64);

type Shapes = BTreeMap<Identity, Weak<RwLock<Shape>>>;

/// A database directory in the file system.
#[derive(Debug)]
pub struct FileDisk {
    path: PathBuf,
    /// The directory itself, kept open to be synced.
    directory: File,
    io: FileIo,
    /// The latch of each open file, shared by all its handles; looked up only when one is opened.
    shapes: Mutex<Shapes>,
}

/// How a [`FileDisk`] is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// Through the system's cache, or past it.
    pub io: FileIo,
    /// Whether to create the directory, and those above it, if it is not there.
    pub create: bool,
}

/// Which way bytes take to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileIo {
    /// Through the system's page cache.
    #[default]
    Buffered,
    /// Straight to the device (`O_DIRECT`). Any range may be read and written; ranges of whole
    /// 4096-byte blocks from an [`AlignedBuffer`](crate::AlignedBuffer) are the fast ones.
    Direct,
}

impl FileDisk {
    /// Opens a database directory.
    ///
    /// # Errors
    /// `NotFound` if it is not there and not to be created; `Io` if the path is no directory.
    pub fn open(path: impl AsRef<Path>, options: FileOptions) -> Result<Self, DiskError> {
        let path = path.as_ref();
        let failed =
            |source| DiskError::new(DiskOperation::Open, path.to_string_lossy(), None, source);
        if options.create && !path.exists() {
            create_directory(path).map_err(failed)?;
        }
        let path = fs::canonicalize(path).map_err(failed)?;
        if !path.is_dir() {
            let reason = "it is not a directory; name the directory of a database";
            return Err(because(
                DiskOperation::Open,
                &path,
                DiskErrorKind::Io,
                reason,
            ));
        }
        let directory = File::open(&path).map_err(failed)?;
        Ok(Self {
            path,
            directory,
            io: options.io,
            shapes: Mutex::default(),
        })
    }

    /// Returns the absolute path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Finds the latch of a file, whatever the name it was opened by.
    fn shape_of(&self, file: &File) -> io::Result<Arc<RwLock<Shape>>> {
        let identity = identity_of(&file.metadata()?);
        let mut shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        shapes.retain(|_, shape| shape.strong_count() > 0);
        let known = shapes.entry(identity).or_default();
        Ok(known.upgrade().unwrap_or_else(|| {
            let shape = Arc::default();
            *known = Arc::downgrade(&shape);
            shape
        }))
    }

    fn failed(&self, operation: DiskOperation, name: &str, source: io::Error) -> DiskError {
        failed(operation, &self.path.join(name), None, source)
    }

    fn open_options(&self, mode: OpenMode) -> fs::OpenOptions {
        let mut options = File::options();
        options.read(true).write(mode.is_writable());
        match mode {
            OpenMode::Read | OpenMode::Write => {}
            OpenMode::Create => _ = options.create_new(true),
            OpenMode::OpenOrCreate => _ = options.create(true).truncate(false),
        }
        if self.io == FileIo::Direct {
            options.custom_flags(OFlags::DIRECT.bits() as i32);
        }
        options
    }
}

impl Disk for FileDisk {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn DiskFile>, DiskError> {
        check_name(name);
        let path = self.path.join(name);
        let file = self.open_options(mode).open(&path).map_err(|source| {
            match self.io == FileIo::Direct && is_refusal(&source) {
                true => direct::refused(DiskOperation::Open, &path),
                false => failed(DiskOperation::Open, &path, None, source),
            }
        })?;
        let shape = self
            .shape_of(&file)
            .map_err(|source| failed(DiskOperation::Open, &path, None, source))?;
        Ok(Arc::new(FileHandle::new(path, file, mode, self.io, shape)))
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        let names = list_files(&self.path);
        names.map_err(|source| failed(DiskOperation::List, &self.path, None, source))
    }

    fn exists(&self, name: &str) -> Result<bool, DiskError> {
        check_name(name);
        let exists = self.path.join(name).try_exists();
        exists.map_err(|source| self.failed(DiskOperation::Exists, name, source))
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        check_name(name);
        let removed = fs::remove_file(self.path.join(name));
        removed.map_err(|source| self.failed(DiskOperation::Remove, name, source))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        check_name(from);
        check_name(to);
        let renamed = fs::rename(self.path.join(from), self.path.join(to));
        renamed.map_err(|source| self.failed(DiskOperation::Rename, from, source))
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        let synced = sync_directory(&self.directory);
        synced.map_err(|source| failed(DiskOperation::SyncDirectory, &self.path, None, source))
    }

    fn lock(&self, name: &str) -> Result<DiskLock, DiskError> {
        check_name(name);
        lock::lock(&self.path.join(name))
    }
}

/// Creates a directory whose name survives a crash, as far as the directories above it do.
fn create_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    let path = fs::canonicalize(path)?;
    match path.parent() {
        Some(parent) => sync_directory(&File::open(parent)?),
        None => Ok(()),
    }
}

fn sync_directory(directory: &File) -> io::Result<()> {
    match directory.sync_all() {
        // Some file systems cannot sync directories and say so; their names are as safe as can be.
        Err(error) if is_refusal(&error) => Ok(()),
        result => result,
    }
}

/// Lists the files; what is no file, or has a name that none of ours can have, is not ours.
fn list_files(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if let (Ok(name), false) = (entry.file_name().into_string(), entry.file_type()?.is_dir()) {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

pub(super) fn identity_of(metadata: &fs::Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

/// Whether the system says that it does not do such a thing here.
pub(super) fn is_refusal(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error())
}

pub(super) fn failed(
    operation: DiskOperation,
    path: &Path,
    offset: Option<u64>,
    source: io::Error,
) -> DiskError {
    DiskError::new(operation, path.to_string_lossy(), offset, source)
}

pub(super) fn because(
    operation: DiskOperation,
    path: &Path,
    kind: DiskErrorKind,
    reason: &str,
) -> DiskError {
    DiskError::because(operation, path.to_string_lossy(), kind, reason)
}
