//! A disk in memory whose syncs of the log can be held back, let go, or made to fail; or all I/O of the log held.

use longshore_disk::{
    Disk, DiskError, DiskErrorKind, DiskFile, DiskLock, DiskOperation, MemoryDisk, OpenMode,
};
use std::io;
use std::sync::{Arc, Condvar, Mutex};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Syncs {
    Pass,
    Wait,
    /// And so do reads and writes.
    AllWait,
    Fail,
}

#[derive(Debug)]
struct Gate {
    syncs: Mutex<Syncs>,
    changed: Condvar,
}

pub struct GateDisk {
    inner: MemoryDisk,
    gate: Arc<Gate>,
}

struct GateFile {
    inner: Arc<dyn DiskFile>,
    name: String,
    gate: Arc<Gate>,
}

impl GateDisk {
    pub fn new() -> Arc<GateDisk> {
        Arc::new(GateDisk {
            inner: MemoryDisk::new(),
            gate: Arc::new(Gate {
                syncs: Mutex::new(Syncs::Pass),
                changed: Condvar::new(),
            }),
        })
    }

    /// What syncs of the log do from now on, those under way included.
    pub fn set(&self, syncs: Syncs) {
        *self.gate.syncs.lock().unwrap() = syncs;
        self.gate.changed.notify_all();
    }
}

impl Disk for GateDisk {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn DiskFile>, DiskError> {
        Ok(Arc::new(GateFile {
            inner: self.inner.open(name, mode)?,
            name: name.to_owned(),
            gate: Arc::clone(&self.gate),
        }))
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        self.inner.list()
    }

    fn exists(&self, name: &str) -> Result<bool, DiskError> {
        self.inner.exists(name)
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.inner.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.inner.rename(from, to)
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        self.inner.sync_directory()
    }

    fn lock(&self, name: &str) -> Result<DiskLock, DiskError> {
        self.inner.lock(name)
    }
}

impl GateFile {
    /// Waits at the gate while it is closed, and says how it is then. Only the log has one.
    fn pass(&self, is_closed: impl Fn(Syncs) -> bool) -> Syncs {
        if !self.name.starts_with("log-") {
            return Syncs::Pass;
        }
        let syncs = self.gate.syncs.lock().unwrap();
        let waiting = self.gate.changed.wait_while(syncs, |now| is_closed(*now));
        *waiting.unwrap()
    }
}

impl DiskFile for GateFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        self.pass(|syncs| syncs == Syncs::AllWait);
        self.inner.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), DiskError> {
        self.pass(|syncs| syncs == Syncs::AllWait);
        self.inner.write_at(bytes, offset)
    }

    fn sync(&self) -> Result<(), DiskError> {
        if self.pass(|syncs| matches!(syncs, Syncs::Wait | Syncs::AllWait)) == Syncs::Fail {
            return Err(DiskError {
                operation: DiskOperation::Sync,
                file: self.name.clone(),
                offset: None,
                kind: DiskErrorKind::Io,
                source: Arc::new(io::Error::other("the plug was pulled")),
            });
        }
        self.inner.sync()
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.inner.set_len(len)
    }

    fn allocate(&self, len: u64) -> Result<(), DiskError> {
        self.inner.allocate(len)
    }
}
