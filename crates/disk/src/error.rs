//! What the disk may do wrong, as a value: what was tried, on which file, where, and why it failed.

use std::fmt;
use std::io;
use std::sync::Arc;

/// A failed call on a disk: what was tried, on what, where, and what came of it.
///
/// Its text is one sentence that names the cause and the way out. Cheap to clone, so one failure can
/// be handed to everybody who waited for it.
#[derive(Clone, Debug)]
pub struct DiskError {
    /// What was tried.
    pub operation: DiskOperation,
    /// The file (or, for whole-directory operations, the directory) it was tried on.
    pub file: String,
    /// The byte offset in the file, for operations that have one.
    pub offset: Option<u64>,
    /// The class of failure that callers decide by.
    pub kind: DiskErrorKind,
    /// What the operating system, or the simulation, said.
    pub source: Arc<io::Error>,
}

/// The classes of failure that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiskErrorKind {
    /// The file was to exist, and does not.
    NotFound,
    /// The file was to be new, and is there already.
    AlreadyExists,
    /// The operating system forbids it, or the file was opened for reading only.
    PermissionDenied,
    /// No space left, for data or for the directory entry.
    Full,
    /// Somebody else holds the lock, in this process or in another one.
    Locked,
    /// The simulated machine has crashed; nothing works until a crash image is opened.
    Crashed,
    /// Anything else: the device or the file system failed.
    Io,
}

/// The operations of a disk, as they appear in errors and in the trace of the simulated disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiskOperation {
    /// [`Disk::open`](crate::Disk::open).
    Open,
    /// [`Disk::list`](crate::Disk::list).
    List,
    /// [`Disk::exists`](crate::Disk::exists).
    Exists,
    /// [`Disk::remove`](crate::Disk::remove).
    Remove,
    /// [`Disk::rename`](crate::Disk::rename).
    Rename,
    /// [`Disk::sync_directory`](crate::Disk::sync_directory).
    SyncDirectory,
    /// [`Disk::lock`](crate::Disk::lock).
    Lock,
    /// [`DiskFile::read_at`](crate::DiskFile::read_at).
    Read,
    /// [`DiskFile::write_at`](crate::DiskFile::write_at).
    Write,
    /// [`DiskFile::sync`](crate::DiskFile::sync).
    Sync,
    /// [`DiskFile::len`](crate::DiskFile::len).
    Len,
    /// [`DiskFile::set_len`](crate::DiskFile::set_len).
    SetLen,
    /// [`DiskFile::allocate`](crate::DiskFile::allocate).
    Allocate,
}

impl DiskOperation {
    /// Whether the operation can change what a crash would leave behind.
    pub fn is_change(self) -> bool {
        !matches!(
            self,
            Self::List | Self::Exists | Self::Lock | Self::Read | Self::Len
        )
    }
}

impl DiskError {
    /// Describes a failure reported by the operating system; the kind follows from `source`.
    pub fn new(
        operation: DiskOperation,
        file: impl Into<String>,
        offset: Option<u64>,
        source: io::Error,
    ) -> Self {
        let kind = kind_of(&source);
        Self {
            operation,
            file: file.into(),
            offset,
            kind,
            source: Arc::new(source),
        }
    }

    /// Describes a failure whose kind and reason we state ourselves.
    pub fn because(
        operation: DiskOperation,
        file: impl Into<String>,
        kind: DiskErrorKind,
        reason: impl Into<String>,
    ) -> Self {
        let source = Arc::new(io::Error::other(reason.into()));
        Self {
            operation,
            file: file.into(),
            offset: None,
            kind,
            source,
        }
    }

    /// Whether the simulated machine has crashed.
    pub fn is_crash(&self) -> bool {
        self.kind == DiskErrorKind::Crashed
    }

    /// Whether the disk has no space left.
    pub fn is_full(&self) -> bool {
        self.kind == DiskErrorKind::Full
    }
}

fn kind_of(source: &io::Error) -> DiskErrorKind {
    match source.kind() {
        io::ErrorKind::NotFound => DiskErrorKind::NotFound,
        io::ErrorKind::AlreadyExists => DiskErrorKind::AlreadyExists,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            DiskErrorKind::PermissionDenied
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            DiskErrorKind::Full
        }
        _ => DiskErrorKind::Io,
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {:?}", self.operation, self.file)?;
        if let Some(offset) = self.offset {
            write!(f, " at offset {offset}")?;
        }
        write!(f, ": {}", self.source)?;
        match self.kind.way_out() {
            "" => Ok(()),
            way_out => write!(f, "; {way_out}"),
        }
    }
}

impl std::error::Error for DiskError {
    // The text above already contains that of `source`: pass on what lies behind it, so that a
    // printed chain of causes says everything once.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&*self.source)
    }
}

impl DiskErrorKind {
    /// What the reader of the message can do about it; empty where the message says it itself.
    fn way_out(self) -> &'static str {
        match self {
            Self::NotFound => "check the path",
            Self::AlreadyExists => "choose another name, or remove it first",
            Self::PermissionDenied => "check the permissions of the file and its directory",
            Self::Full => "free some space on the disk, then try again",
            Self::Locked => "close the other opener first",
            Self::Crashed => "open a crash image of this disk",
            Self::Io => "",
        }
    }
}

impl fmt::Display for DiskOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::List => "list",
            Self::Exists => "look for",
            Self::Remove => "remove",
            Self::Rename => "rename",
            Self::SyncDirectory => "sync the directory",
            Self::Lock => "lock",
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Len => "measure",
            Self::SetLen => "set the length of",
            Self::Allocate => "allocate space for",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_operation_file_offset_cause_and_way_out() {
        let full = io::Error::from_raw_os_error(28);
        let error = DiskError::new(DiskOperation::Write, "data", Some(8192), full);
        assert_eq!(error.kind, DiskErrorKind::Full);
        assert_eq!(
            error.to_string(),
            "cannot write \"data\" at offset 8192: No space left on device (os error 28); \
             free some space on the disk, then try again"
        );
    }

    #[test]
    fn kind_follows_from_what_the_system_says() {
        let kind = |code| {
            DiskError::new(
                DiskOperation::Open,
                "x",
                None,
                io::Error::from_raw_os_error(code),
            )
            .kind
        };
        assert_eq!(kind(2), DiskErrorKind::NotFound);
        assert_eq!(kind(17), DiskErrorKind::AlreadyExists);
        assert_eq!(kind(13), DiskErrorKind::PermissionDenied);
        assert_eq!(kind(30), DiskErrorKind::PermissionDenied);
        assert_eq!(kind(28), DiskErrorKind::Full);
        assert_eq!(kind(122), DiskErrorKind::Full);
        assert_eq!(kind(5), DiskErrorKind::Io);
    }
}
