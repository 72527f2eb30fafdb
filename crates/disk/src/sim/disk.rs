//! The simulated disk from outside: what a harness may ask of it, and the traits it serves.

use super::plan::{CrashCount, Fault, Mischief, PlannedFault, SimIo};
use super::state::State;
use super::style::{CrashStyle, Luck};
use crate::disk::{Disk, DiskFile, DiskLock, OpenMode, check_name};
use crate::error::{DiskError, DiskErrorKind, DiskOperation};
use crate::names::LockedNames;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A simulated directory. Cloning gives another handle to the same disk.
#[derive(Clone)]
pub struct SimDisk {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    locked: LockedNames,
}

/// What a simulated disk is like from the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimOptions {
    /// Space for data in bytes, counted in chunks of 4 KiB; unlimited if `None`.
    pub capacity_bytes: Option<u64>,
}

/// Making, counting and watching.
impl SimDisk {
    /// Makes an empty disk whose own choices (how short a short write is) come from `seed`.
    pub fn new(seed: u64, options: SimOptions) -> Self {
        Self::with_state(State::new(seed, options))
    }

    /// Counts the I/Os so far.
    pub fn io_count(&self) -> u64 {
        self.state().ios
    }

    /// Counts the I/Os so far that changed something: the places worth crashing at.
    pub fn change_count(&self) -> u64 {
        self.state().changes
    }

    /// Begins to remember every I/O.
    pub fn start_trace(&self) {
        self.state().trace = Some(Vec::new());
    }

    /// Returns the I/Os remembered so far and goes on remembering, if a trace was started.
    pub fn take_trace(&self) -> Vec<SimIo> {
        self.state()
            .trace
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Returns all bytes of a file as a reader would see them; not an I/O, works after a crash.
    pub fn contents(&self, file: &str) -> Option<Vec<u8>> {
        self.state().contents(file)
    }

    /// Returns the bytes of space in use.
    pub fn used_bytes(&self) -> u64 {
        self.state().used_bytes()
    }

    fn with_state(state: State) -> Self {
        let shared = Shared {
            state: Mutex::new(state),
            locked: LockedNames::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }
}

/// Crashing.
impl SimDisk {
    /// Lets `ios` more I/Os pass and crashes in the one after; replaces an earlier plan to crash.
    pub fn crash_after(&self, ios: u64) {
        self.state().crash = Some(CrashCount::Ios(ios));
    }

    /// Lets `changes` more I/Os that change something pass and crashes in the one after.
    pub fn crash_after_changes(&self, changes: u64) {
        self.state().crash = Some(CrashCount::Changes(changes));
    }

    /// Crashes between two I/Os.
    pub fn crash_now(&self) {
        self.state().is_crashed = true;
    }

    /// Whether the machine has crashed.
    pub fn is_crashed(&self) -> bool {
        self.state().is_crashed
    }

    /// Makes a disk that holds what a crash at this moment might leave, as `seed` decides.
    ///
    /// Works at any time, crashed or not, any number of times; this disk does not notice. Locks are
    /// released, faults and plans forgotten, counts start again; the capacity stays.
    pub fn crash_image(&self, seed: u64) -> SimDisk {
        Self::with_state(self.state().crash_image(&mut Luck::from_seed(seed), seed))
    }

    /// Makes a crash image in a given style, for the extremes.
    pub fn crash_image_in_style(&self, style: CrashStyle, seed: u64) -> SimDisk {
        Self::with_state(
            self.state()
                .crash_image(&mut Luck::with_style(style, seed), seed),
        )
    }
}

/// Going wrong.
impl SimDisk {
    /// Makes the `n`th call from now that `fault` counts fail (1 is the next one).
    ///
    /// Several faults may be planned; each counts for itself. A failed sync also loses the changes
    /// that it was to make safe, as operating systems do: later syncs will not write them.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn fail_at(&self, n: u64, fault: Fault) {
        assert!(n > 0, "calls are counted from 1");
        self.state().faults.push(PlannedFault { fault, left: n });
    }

    /// Forgets all faults; what they did stays.
    pub fn clear_faults(&self) {
        self.state().faults.clear();
    }

    /// Counts the calls that planned faults have failed.
    pub fn faults_hit(&self) -> u64 {
        self.state().faults_hit
    }

    /// Sets the space for data; files that are already larger stay.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().set_capacity(bytes);
    }

    /// Inverts one bit of a file on the medium.
    ///
    /// # Panics
    /// If there is no such file or byte.
    pub fn flip_bit(&self, file: &str, offset: u64, bit: u8) {
        self.state().flip_bit(file, offset, bit);
    }

    /// Makes the next write to `file` (that covers offset `at`, if given) land at `to` instead.
    pub fn misdirect_next_write(&self, file: &str, at: Option<u64>, to: u64) {
        let mischief = Mischief {
            file: file.to_owned(),
            at,
            to: Some(to),
        };
        self.state().mischief.push(mischief);
    }

    /// Makes the next write to `file` (that covers offset `at`, if given) never happen, though it
    /// reports success: the bytes there stay stale.
    pub fn lose_next_write(&self, file: &str, at: Option<u64>) {
        self.state().mischief.push(Mischief {
            file: file.to_owned(),
            at,
            to: None,
        });
    }
}

impl Disk for SimDisk {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn DiskFile>, DiskError> {
        check_name(name);
        let (name, inode) = self.state().open(name, mode)?;
        let shared = self.shared.clone();
        Ok(Arc::new(SimFile {
            name,
            inode,
            writable: mode.is_writable(),
            shared,
        }))
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        self.state().list()
    }

    fn exists(&self, name: &str) -> Result<bool, DiskError> {
        check_name(name);
        self.state().exists(name)
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        check_name(name);
        self.state().remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        check_name(from);
        check_name(to);
        self.state().rename(from, to)
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        self.state().sync_directory()
    }

    fn lock(&self, name: &str) -> Result<DiskLock, DiskError> {
        check_name(name);
        self.state().create_lock_file(name)?;
        self.shared.locked.try_lock(name).ok_or_else(|| {
            let reason = "somebody has the simulated disk open";
            DiskError::because(DiskOperation::Lock, name, DiskErrorKind::Locked, reason)
        })
    }
}

struct SimFile {
    name: Arc<str>,
    inode: usize,
    writable: bool,
    shared: Arc<Shared>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SimFile {
    fn check_writable(&self, operation: DiskOperation) -> Result<(), DiskError> {
        match self.writable {
            true => Ok(()),
            false => {
                let denied = std::io::ErrorKind::PermissionDenied.into();
                Err(DiskError::new(operation, &*self.name, None, denied))
            }
        }
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        self.shared
            .state()
            .read(self.inode, &self.name, bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), DiskError> {
        self.check_writable(DiskOperation::Write)?;
        self.shared
            .state()
            .write(self.inode, &self.name, bytes, offset)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.shared.state().sync(self.inode, &self.name)
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.shared.state().len(self.inode, &self.name)
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.check_writable(DiskOperation::SetLen)?;
        self.shared.state().set_len(self.inode, &self.name, len)
    }

    fn allocate(&self, len: u64) -> Result<(), DiskError> {
        self.check_writable(DiskOperation::Allocate)?;
        self.shared.state().allocate(self.inode, &self.name, len)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.shared.state().close(self.inode);
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("SimDisk")
            .field("ios", &state.ios)
            .field("is_crashed", &state.is_crashed)
            .finish_non_exhaustive()
    }
}
