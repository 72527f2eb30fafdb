//! Everything that a simulated disk knows, behind its one mutex.
//!
//! Each operation is admitted first: it is counted, and the plans decide whether it happens, fails,
//! or happens unseen because the machine crashes in it.

use super::SimOptions;
use super::image::{CHUNK, SECTOR, chunk_of, chunks_below};
use super::inode::Inode;
use super::names::{InodeId, NameMap, Names};
use super::plan::{CrashCount, FaultError, Mischief, PlannedFault, SimIo};
use super::style::Luck;
use crate::disk::OpenMode;
use crate::error::{DiskError, DiskErrorKind, DiskOperation};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::io;
use std::sync::Arc;

pub(super) struct State {
    random: SmallRng,
    names: Names,
    inodes: Vec<Inode>,
    /// Inodes without name and handle, whose bytes a crash may still bring back.
    unused: Vec<InodeId>,
    /// Inodes that no crash can bring back, to be taken again.
    free: Vec<InodeId>,
    capacity_chunks: u64,
    used_chunks: u64,
    pub(super) ios: u64,
    pub(super) changes: u64,
    pub(super) trace: Option<Vec<SimIo>>,
    pub(super) is_crashed: bool,
    pub(super) crash: Option<CrashCount>,
    pub(super) faults: Vec<PlannedFault>,
    pub(super) faults_hit: u64,
    pub(super) mischief: Vec<Mischief>,
}

/// What becomes of an operation that was admitted.
enum Fate {
    Happens,
    /// It happens, but the caller does not live to see it.
    Crashes,
    Fails(FaultError),
}

/// One call, as it is counted and traced.
struct Call<'a> {
    operation: DiskOperation,
    file: &'a str,
    offset: u64,
    len: u64,
    is_change: bool,
}

/// Making, crashing, and looking from outside.
impl State {
    pub(super) fn new(seed: u64, options: SimOptions) -> Self {
        Self::with_files(seed, options.capacity_bytes, NameMap::new(), Vec::new())
    }

    fn with_files(seed: u64, capacity: Option<u64>, names: NameMap, inodes: Vec<Inode>) -> Self {
        Self {
            random: SmallRng::seed_from_u64(seed),
            names: Names::settled(names),
            unused: Vec::new(),
            free: Vec::new(),
            capacity_chunks: capacity_in_chunks(capacity),
            used_chunks: inodes.iter().map(|inode| inode.current.chunks_used()).sum(),
            inodes,
            ios: 0,
            changes: 0,
            trace: None,
            is_crashed: false,
            crash: None,
            faults: Vec::new(),
            faults_hit: 0,
            mischief: Vec::new(),
        }
    }

    pub(super) fn crash_image(&self, luck: &mut Luck, seed: u64) -> State {
        let mut names = self.names.crash(luck);
        let mut inodes = Vec::with_capacity(names.len());
        for inode in names.values_mut() {
            inodes.push(Inode::settled(self.inodes[*inode].crash(luck)));
            *inode = inodes.len() - 1;
        }
        let mut state = Self::with_files(seed, None, names, inodes);
        state.capacity_chunks = self.capacity_chunks;
        state
    }

    pub(super) fn contents(&self, file: &str) -> Option<Vec<u8>> {
        let image = &self.inodes[*self.names.current.get(file)?].current;
        let mut bytes = vec![0; image.len() as usize];
        image.read(&mut bytes, 0);
        Some(bytes)
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.used_chunks * CHUNK as u64
    }

    pub(super) fn set_capacity(&mut self, bytes: Option<u64>) {
        self.capacity_chunks = capacity_in_chunks(bytes);
    }

    pub(super) fn flip_bit(&mut self, file: &str, offset: u64, bit: u8) {
        let inode = *self
            .names
            .current
            .get(file)
            .expect("the file to damage exists");
        let inode = &mut self.inodes[inode];
        assert!(
            offset < inode.current.len() && bit < 8,
            "no bit {bit} of byte {offset} in {file}"
        );
        self.used_chunks += inode.current.holes(chunk_of(offset), chunk_of(offset) + 1);
        inode.flip_bit(offset, bit);
    }
}

fn capacity_in_chunks(bytes: Option<u64>) -> u64 {
    bytes.map_or(u64::MAX, |bytes| bytes / CHUNK as u64)
}

/// The directory.
impl State {
    pub(super) fn open(
        &mut self,
        name: &str,
        mode: OpenMode,
    ) -> Result<(Arc<str>, InodeId), DiskError> {
        let found = self
            .names
            .current
            .get_key_value(name)
            .map(|(name, id)| (name.clone(), *id));
        let is_change = found.is_none() && mode.may_create();
        let call = Call {
            is_change,
            ..Call::on(DiskOperation::Open, name)
        };
        self.perform(&call, |state| {
            let (name, inode) = match found {
                Some(_) if mode == OpenMode::Create => {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                Some(found) => found,
                None if mode.may_create() => state.create(name),
                None => return Err(io::ErrorKind::NotFound.into()),
            };
            state.inodes[inode].handles += 1;
            Ok((name, inode))
        })
    }

    pub(super) fn list(&mut self) -> Result<Vec<String>, DiskError> {
        let call = Call {
            is_change: false,
            ..Call::on(DiskOperation::List, "")
        };
        self.perform(&call, |state| {
            Ok(state
                .names
                .current
                .keys()
                .map(|name| name.to_string())
                .collect())
        })
    }

    pub(super) fn exists(&self, name: &str) -> Result<bool, DiskError> {
        self.check_alive(DiskOperation::Exists, name)?;
        Ok(self.names.current.contains_key(name))
    }

    pub(super) fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        self.perform(&Call::on(DiskOperation::Remove, name), |state| {
            let inode = state.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
            state.unname(inode);
            Ok(())
        })
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        let renamed = self.perform(&Call::on(DiskOperation::Rename, to), |state| {
            let replaced = state
                .names
                .rename(from, to)
                .ok_or(io::ErrorKind::NotFound)?;
            if let Some(inode) = replaced {
                state.unname(inode);
            }
            Ok(())
        });
        renamed.map_err(|error| DiskError {
            file: from.to_owned(),
            ..error
        })
    }

    pub(super) fn sync_directory(&mut self) -> Result<(), DiskError> {
        self.perform_sync(&Call::on(DiskOperation::SyncDirectory, ""), |state| {
            state.names.sync();
            // Nothing names these any more, neither now nor after a crash.
            for inode in state.unused.drain(..) {
                state.inodes[inode] = Inode::default();
                state.free.push(inode);
            }
        })
    }

    /// Makes the file that a lock is named after; like the lock itself not counted as an I/O.
    pub(super) fn create_lock_file(&mut self, name: &str) -> Result<(), DiskError> {
        self.check_alive(DiskOperation::Lock, name)?;
        if !self.names.current.contains_key(name) {
            self.create(name);
        }
        Ok(())
    }

    fn create(&mut self, name: &str) -> (Arc<str>, InodeId) {
        let name: Arc<str> = name.into();
        let inode = self.free.pop().unwrap_or_else(|| {
            self.inodes.push(Inode::default());
            self.inodes.len() - 1
        });
        self.inodes[inode].names = 1;
        self.names.create(name.clone(), inode);
        (name, inode)
    }

    fn unname(&mut self, inode: InodeId) {
        self.inodes[inode].names = 0;
        self.let_go(inode);
    }

    pub(super) fn close(&mut self, inode: InodeId) {
        self.inodes[inode].handles -= 1;
        self.let_go(inode);
    }

    /// Gives the space of a file back once it has neither name nor handle.
    fn let_go(&mut self, id: InodeId) {
        let inode = &self.inodes[id];
        if inode.names == 0 && inode.handles == 0 {
            self.used_chunks -= inode.current.chunks_used();
            self.unused.push(id);
        }
    }
}

/// Files.
impl State {
    pub(super) fn read(
        &mut self,
        inode: InodeId,
        file: &str,
        bytes: &mut [u8],
        offset: u64,
    ) -> Result<usize, DiskError> {
        let len = bytes.len() as u64;
        let call = Call {
            offset,
            len,
            is_change: false,
            ..Call::on(DiskOperation::Read, file)
        };
        self.perform(&call, |state| {
            Ok(state.inodes[inode].current.read(bytes, offset))
        })
    }

    pub(super) fn write(
        &mut self,
        inode: InodeId,
        file: &str,
        bytes: &[u8],
        offset: u64,
    ) -> Result<(), DiskError> {
        let len = bytes.len() as u64;
        let call = Call {
            offset,
            len,
            ..Call::on(DiskOperation::Write, file)
        };
        match self.admit(&call)? {
            Fate::Happens => {
                let written = self.transfer(inode, file, bytes, offset);
                written.map_err(|source| call.failed(source))
            }
            Fate::Crashes => {
                // What is lost by a full disk at this moment nobody will ask.
                let _unseen = self.transfer(inode, file, bytes, offset);
                Err(call.crashed())
            }
            Fate::Fails(FaultError::ShortWrite) => {
                let part = self.random.random_range(0..=bytes.len() / SECTOR) * SECTOR;
                let part = part.min(bytes.len().saturating_sub(1));
                let _unseen = self.transfer(inode, file, &bytes[..part], offset);
                Err(call.failed(FaultError::ShortWrite.into()))
            }
            Fate::Fails(error) => Err(call.failed(error.into())),
        }
    }

    pub(super) fn sync(&mut self, inode: InodeId, file: &str) -> Result<(), DiskError> {
        let call = Call::on(DiskOperation::Sync, file);
        let synced = self.perform_sync(&call, |state| state.inodes[inode].sync());
        if synced.is_err() && !self.is_crashed {
            self.inodes[inode].fail_sync();
        }
        synced
    }

    pub(super) fn len(&self, inode: InodeId, file: &str) -> Result<u64, DiskError> {
        self.check_alive(DiskOperation::Len, file)?;
        Ok(self.inodes[inode].current.len())
    }

    pub(super) fn set_len(
        &mut self,
        inode: InodeId,
        file: &str,
        len: u64,
    ) -> Result<(), DiskError> {
        self.perform(
            &Call {
                len,
                ..Call::on(DiskOperation::SetLen, file)
            },
            |state| {
                let inode = &mut state.inodes[inode];
                if len < inode.current.len() {
                    state.used_chunks -= inode.current.chunks_used();
                    inode.set_len(len);
                    state.used_chunks += inode.current.chunks_used();
                } else {
                    inode.set_len(len);
                }
                Ok(())
            },
        )
    }

    pub(super) fn allocate(
        &mut self,
        inode: InodeId,
        file: &str,
        len: u64,
    ) -> Result<(), DiskError> {
        self.perform(
            &Call {
                len,
                ..Call::on(DiskOperation::Allocate, file)
            },
            |state| {
                let needed = state.inodes[inode].current.holes(0, chunks_below(len));
                if needed > state.chunks_left() {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                state.used_chunks += needed;
                state.inodes[inode].allocate(len);
                Ok(())
            },
        )
    }

    /// Writes where the write is to go, if it is to go anywhere, as far as there is space.
    fn transfer(
        &mut self,
        inode: InodeId,
        file: &str,
        bytes: &[u8],
        offset: u64,
    ) -> Result<(), io::Error> {
        let offset = match self.take_mischief(file, offset, bytes.len()) {
            None => offset,
            Some(Mischief {
                to: Some(elsewhere),
                ..
            }) => elsewhere,
            Some(Mischief { to: None, .. }) => return Ok(()),
        };
        if bytes.is_empty() {
            return Ok(());
        }
        let fitting = self.fitting(inode, offset, bytes.len());
        let end = offset + fitting as u64;
        let holes = self.inodes[inode]
            .current
            .holes(chunk_of(offset), chunks_below(end).max(chunk_of(offset)));
        self.used_chunks += holes;
        self.inodes[inode].write(&bytes[..fitting], offset);
        match fitting == bytes.len() {
            true => Ok(()),
            false => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    /// How many of `len` bytes at `offset` find space.
    fn fitting(&self, inode: InodeId, offset: u64, len: usize) -> usize {
        let current = &self.inodes[inode].current;
        let (first, end) = (chunk_of(offset), chunks_below(offset + len as u64));
        let mut left = self.chunks_left();
        if left >= (end - first) as u64 {
            return len;
        }
        for chunk in first..end {
            match current.holes(chunk, chunk + 1) {
                0 => {}
                _ if left > 0 => left -= 1,
                _ => return ((chunk * CHUNK) as u64).saturating_sub(offset) as usize,
            }
        }
        len
    }

    fn chunks_left(&self) -> u64 {
        self.capacity_chunks.saturating_sub(self.used_chunks)
    }

    fn take_mischief(&mut self, file: &str, offset: u64, len: usize) -> Option<Mischief> {
        let index = self
            .mischief
            .iter()
            .position(|plan| plan.strikes(file, offset, len))?;
        Some(self.mischief.remove(index))
    }
}

/// Admission.
impl State {
    /// Counts a call and decides what becomes of it.
    fn admit(&mut self, call: &Call<'_>) -> Result<Fate, DiskError> {
        self.check_alive(call.operation, call.file)?;
        self.ios += 1;
        self.changes += u64::from(call.is_change);
        if let Some(trace) = &mut self.trace {
            trace.push(call.traced());
        }
        if self
            .crash
            .as_mut()
            .is_some_and(|crash| crash.strikes(call.is_change))
        {
            self.is_crashed = true;
            return Ok(Fate::Crashes);
        }
        let mut failing = None;
        for planned in &mut self.faults {
            // Every fault counts every call, even one that another fault has already hit.
            if planned.strikes(call.operation, call.is_change) {
                failing = failing.or(Some(planned.fault.error));
            }
        }
        self.faults_hit += u64::from(failing.is_some());
        Ok(failing.map_or(Fate::Happens, Fate::Fails))
    }

    /// Admits a call and does its work.
    fn perform<T>(
        &mut self,
        call: &Call<'_>,
        work: impl FnOnce(&mut State) -> Result<T, io::Error>,
    ) -> Result<T, DiskError> {
        match self.admit(call)? {
            Fate::Happens => work(self).map_err(|source| call.failed(source)),
            Fate::Crashes => {
                let _unseen = work(self);
                Err(call.crashed())
            }
            Fate::Fails(error) => Err(call.failed(error.into())),
        }
    }

    /// Admits a call that makes something safe: if the machine crashes in it, nothing is.
    fn perform_sync(
        &mut self,
        call: &Call<'_>,
        work: impl FnOnce(&mut State),
    ) -> Result<(), DiskError> {
        match self.admit(call)? {
            Fate::Happens => {
                work(self);
                Ok(())
            }
            Fate::Crashes => Err(call.crashed()),
            Fate::Fails(error) => Err(call.failed(error.into())),
        }
    }

    fn check_alive(&self, operation: DiskOperation, file: &str) -> Result<(), DiskError> {
        match self.is_crashed {
            false => Ok(()),
            true => Err(crashed(operation, file)),
        }
    }
}

impl<'a> Call<'a> {
    /// A call that changes something, on a whole file.
    fn on(operation: DiskOperation, file: &'a str) -> Self {
        Self {
            operation,
            file,
            offset: 0,
            len: 0,
            is_change: true,
        }
    }

    fn traced(&self) -> SimIo {
        SimIo {
            operation: self.operation,
            file: self.file.into(),
            offset: self.offset,
            len: self.len,
            is_change: self.is_change,
        }
    }

    fn failed(&self, source: io::Error) -> DiskError {
        let has_offset = matches!(self.operation, DiskOperation::Read | DiskOperation::Write);
        DiskError::new(
            self.operation,
            self.file,
            has_offset.then_some(self.offset),
            source,
        )
    }

    fn crashed(&self) -> DiskError {
        crashed(self.operation, self.file)
    }
}

fn crashed(operation: DiskOperation, file: &str) -> DiskError {
    let reason = "the simulated machine has crashed";
    DiskError::because(operation, file, DiskErrorKind::Crashed, reason)
}

impl From<FaultError> for io::Error {
    fn from(error: FaultError) -> Self {
        match error {
            FaultError::Io => io::Error::other("injected fault: the device failed"),
            FaultError::ShortWrite => io::Error::other("injected fault: written only in part"),
            FaultError::Full => io::ErrorKind::StorageFull.into(),
        }
    }
}
