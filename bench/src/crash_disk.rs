//! A real disk that can be cut off, as when the process is killed: nothing written later arrives.
//!
//! What was handed to the system before stays, as after `kill -9`. The database above fails at every
//! call from then on and cannot close cleanly, so opening the folder again is a restart.

use longshore_disk::{
    Disk, DiskError, DiskErrorKind, DiskFile, DiskLock, DiskOperation, FileDisk, FileOptions,
    OpenMode,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A folder of files until [`CrashDisk::cut`].
pub(crate) struct CrashDisk {
    files: FileDisk,
    cable: Arc<Cable>,
}

/// Whether the disk can still be reached.
#[derive(Default)]
struct Cable {
    is_cut: AtomicBool,
}

impl Cable {
    fn check(&self, operation: DiskOperation, file: &str) -> Result<(), DiskError> {
        // Relaxed: calls under way when the cable is cut may go either way, as in a crash.
        if !self.is_cut.load(Ordering::Relaxed) {
            return Ok(());
        }
        let reason = "the benchmark cut the disk off";
        Err(DiskError::because(
            operation,
            file,
            DiskErrorKind::Crashed,
            reason,
        ))
    }
}

impl CrashDisk {
    pub(crate) fn open(folder: &Path, options: FileOptions) -> Result<Arc<CrashDisk>, DiskError> {
        let files = FileDisk::open(folder, options)?;
        Ok(Arc::new(CrashDisk {
            files,
            cable: Arc::default(),
        }))
    }

    /// Lets every later call fail.
    pub(crate) fn cut(&self) {
        // Relaxed: see `Cable::check`.
        self.cable.is_cut.store(true, Ordering::Relaxed);
    }
}

impl Disk for CrashDisk {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn DiskFile>, DiskError> {
        self.cable.check(DiskOperation::Open, name)?;
        let file = self.files.open(name, mode)?;
        Ok(Arc::new(CrashFile {
            name: name.to_owned(),
            file,
            cable: Arc::clone(&self.cable),
        }))
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        self.cable.check(DiskOperation::List, "")?;
        self.files.list()
    }

    fn exists(&self, name: &str) -> Result<bool, DiskError> {
        self.cable.check(DiskOperation::Exists, name)?;
        self.files.exists(name)
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.cable.check(DiskOperation::Remove, name)?;
        self.files.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.cable.check(DiskOperation::Rename, from)?;
        self.files.rename(from, to)
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        self.cable.check(DiskOperation::SyncDirectory, "")?;
        self.files.sync_directory()
    }

    fn lock(&self, name: &str) -> Result<DiskLock, DiskError> {
        self.cable.check(DiskOperation::Lock, name)?;
        self.files.lock(name)
    }
}

struct CrashFile {
    name: String,
    file: Arc<dyn DiskFile>,
    cable: Arc<Cable>,
}

impl CrashFile {
    fn check(&self, operation: DiskOperation) -> Result<(), DiskError> {
        self.cable.check(operation, &self.name)
    }
}

impl DiskFile for CrashFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        self.check(DiskOperation::Read)?;
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), DiskError> {
        self.check(DiskOperation::Write)?;
        self.file.write_at(bytes, offset)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.check(DiskOperation::Sync)?;
        self.file.sync()
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.check(DiskOperation::Len)?;
        self.file.len()
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.check(DiskOperation::SetLen)?;
        self.file.set_len(len)
    }

    fn allocate(&self, len: u64) -> Result<(), DiskError> {
        self.check(DiskOperation::Allocate)?;
        self.file.allocate(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_disk::FileIo;

    #[test]
    fn what_was_written_stays_and_nothing_comes_after() {
        let folder = tempfile::tempdir().unwrap();
        let options = FileOptions {
            io: FileIo::Buffered,
            create: false,
        };
        let disk = CrashDisk::open(folder.path(), options).unwrap();
        let file = disk.open("f", OpenMode::Create).unwrap();
        file.write_at(b"kept", 0).unwrap();
        disk.cut();
        let refused = file.write_at(b"lost", 0).unwrap_err();
        assert!(
            refused.is_crash() && refused.to_string().contains("f"),
            "{refused}"
        );
        assert!(disk.open("g", OpenMode::Create).is_err());
        assert_eq!(std::fs::read(folder.path().join("f")).unwrap(), b"kept");
        assert!(!folder.path().join("g").exists());
    }
}
