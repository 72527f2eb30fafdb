//! The one way to bytes at rest: a directory of named files, and a file.
//!
//! # Protocol
//! A database is one directory. `open` gives files; files are read and written at offsets by any
//! number of threads at once. What survives a crash is said by three calls, and by nothing else:
//!
//! | call | what is safe when it returns `Ok` |
//! |---|---|
//! | `DiskFile::write_at`, `set_len`, `allocate` | nothing yet |
//! | `DiskFile::sync` | every earlier change of that file's bytes and length; not its name |
//! | `Disk::open` (creating), `remove`, `rename` | nothing yet; a rename is atomic: old name or new |
//! | `Disk::sync_directory` | every earlier creation, removal and renaming; not the files' bytes |
//!
//! A new file is therefore safe after `sync` *and* `sync_directory`, in either order.
//!
//! # Invariants
//! I1. What was synced is there after any crash, until a later change to the same place.
//! I2. All disks answer the same sequence of calls alike.
//! I3. Space that `allocate` returned is there: a later write below that length is never `Full`.
//! I4. At most one `DiskLock` per name and directory exists, over all processes.
//!
//! # Failure
//! After an error of `write_at` the bytes it covered are unknown, those beside it are untouched.
//! After an error of `sync`, whatever was not yet safe may never become so, even if a later `sync`
//! says `Ok` (operating systems forget which pages failed): the caller must stop, and recover.

use crate::error::DiskError;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// One database directory: names for files.
///
/// Names are plain file names, chosen by us: never empty, no `/`, not `.` or `..`.
pub trait Disk: Send + Sync {
    /// Opens a file by name, as `mode` says.
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn DiskFile>, DiskError>;

    /// Lists the names of all files, sorted.
    fn list(&self) -> Result<Vec<String>, DiskError>;

    /// Tells whether a file of that name is there.
    fn exists(&self, name: &str) -> Result<bool, DiskError>;

    /// Removes a name; who has the file open may go on using it.
    fn remove(&self, name: &str) -> Result<(), DiskError>;

    /// Gives a file another name, atomically replacing whatever had that name.
    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError>;

    /// Waits until names created, removed and renamed before are safe.
    fn sync_directory(&self) -> Result<(), DiskError>;

    /// Locks a name against other processes and other openers in this one, until dropped.
    ///
    /// Creates a file of that name, which stays behind when the lock is released.
    ///
    /// # Errors
    /// Kind [`Locked`](crate::DiskErrorKind::Locked) at once, without waiting, if it is held.
    fn lock(&self, name: &str) -> Result<DiskLock, DiskError>;
}

/// An open file: bytes at offsets. Closed when the last handle is dropped.
///
/// Reads and writes of different places may run at once from any thread; each sees every write that
/// returned before it began. Two calls on the *same* bytes at once must be kept apart by the caller,
/// as must `set_len` to a shorter length from writes beyond it.
pub trait DiskFile: Send + Sync {
    /// Reads bytes from `offset` on; returns how many, fewer than asked only at the end of the file.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize, DiskError>;

    /// Writes all of `bytes` at `offset`; grows the file if it must, a gap before it reads as zeros.
    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), DiskError>;

    /// Waits until the bytes and the length are safe (not the name: [`Disk::sync_directory`]).
    fn sync(&self) -> Result<(), DiskError>;

    /// Returns the length in bytes.
    fn len(&self) -> Result<u64, DiskError>;

    /// Tells whether the file has no bytes.
    fn is_empty(&self) -> Result<bool, DiskError> {
        Ok(self.len()? == 0)
    }

    /// Cuts the file to `len`, or grows it by zeros for which no space is reserved.
    fn set_len(&self, len: u64) -> Result<(), DiskError>;

    /// Makes sure that space for the first `len` bytes is really there; grows the file to `len`.
    ///
    /// Bytes that were there stay; new ones are zero. Never shortens the file.
    fn allocate(&self, len: u64) -> Result<(), DiskError>;
}

/// What [`Disk::open`] expects to find, and what the handle may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// The file must exist; every change through the handle is `PermissionDenied`.
    Read,
    /// The file must exist.
    Write,
    /// The file must not exist, and is created empty.
    Create,
    /// The file is created if it is not there.
    OpenOrCreate,
}

impl OpenMode {
    pub(crate) fn is_writable(self) -> bool {
        self != Self::Read
    }

    pub(crate) fn may_create(self) -> bool {
        matches!(self, Self::Create | Self::OpenOrCreate)
    }
}

/// Held while a name is locked; dropping it releases the lock.
#[must_use = "dropping the lock releases it"]
pub struct DiskLock {
    _held: Box<dyn Any + Send + Sync>,
}

impl DiskLock {
    /// Wraps whatever an implementation releases by dropping it.
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self {
            _held: Box::new(held),
        }
    }
}

impl fmt::Debug for DiskLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DiskLock")
    }
}

/// Panics on a name that is not a plain file name: names are ours, never a user's.
pub(crate) fn check_name(name: &str) {
    let plain = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
    assert!(plain, "{name:?} is not a plain file name");
}
