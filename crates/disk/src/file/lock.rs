//! One opener at a time: an advisory lock on a file, and a list of what this process has locked.
//!
//! The system's lock (`flock`) keeps other processes out and dies with its holder, however that ends.
//! On some network file systems it does not keep out a second opener in the *same* process, so those
//! are listed here by the file's identity. The lock file stays behind when released: removing it
//! would let a third party lock a file that has lost its name. Its text names the last holder, for
//! the error message and for nothing else.

use super::disk::{Identity, because, failed, identity_of};
use crate::disk::DiskLock;
use crate::error::{DiskError, DiskErrorKind, DiskOperation};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locked by this process.
static HELD: Mutex<BTreeSet<Identity>> = Mutex::new(BTreeSet::new());

fn held() -> MutexGuard<'static, BTreeSet<Identity>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the file at `path`, creating it if need be; never waits.
pub(super) fn lock(path: &Path) -> Result<DiskLock, DiskError> {
    let failed = |source| failed(DiskOperation::Lock, path, None, source);
    let locked = |reason: &str| because(DiskOperation::Lock, path, DiskErrorKind::Locked, reason);
    loop {
        let file = open(path).map_err(failed)?;
        let identity = identity_of(&file.metadata().map_err(failed)?);
        let Some(listed) = Listed::try_new(identity) else {
            return Err(locked("this process has it open already"));
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::INTR) => continue,
            Err(Errno::WOULDBLOCK) => return Err(locked(&holder(&file))),
            Err(error) => return Err(failed(error.into())),
        }
        // Somebody may have replaced the file between our opening and our locking it.
        if std::fs::metadata(path).is_ok_and(|now| identity_of(&now) == identity) {
            sign(&file);
            return Ok(DiskLock::new(Held {
                _file: file,
                _listed: listed,
            }));
        }
    }
}

/// Fields are dropped in order: the system's lock goes first, so that whoever finds the list free
/// finds the lock free too.
struct Held {
    _file: File,
    _listed: Listed,
}

struct Listed(Identity);

impl Listed {
    fn try_new(identity: Identity) -> Option<Self> {
        held().insert(identity).then(|| Self(identity))
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        held().remove(&self.0);
    }
}

fn open(path: &Path) -> io::Result<File> {
    let opened = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path);
    match opened {
        // A database on a read-only medium can be locked all the same, if it was ever open before.
        Err(error) if is_read_only(&error) => File::open(path).map_err(|_| error),
        result => result,
    }
}

fn is_read_only(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    )
}

/// Leaves our process number for error messages; it does not matter if that fails.
fn sign(file: &File) {
    let text = format!("{}\n", std::process::id());
    if file.set_len(0).is_ok() {
        let _unsigned_is_fine = file.write_all_at(text.as_bytes(), 0);
    }
}

fn holder(file: &File) -> String {
    let mut text = [0; 16];
    let count = file.read_at(&mut text, 0).unwrap_or(0);
    match std::str::from_utf8(&text[..count])
        .ok()
        .and_then(|text| text.trim().parse::<u32>().ok())
    {
        Some(process) => format!("process {process} has it open"),
        None => "another process has it open".to_owned(),
    }
}
