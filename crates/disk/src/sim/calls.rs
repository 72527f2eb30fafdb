//! The calls of `Disk` and `DiskFile` on the state of a simulated disk.

use super::admission::{Call, Fate};
use super::image::{CHUNK, SECTOR, chunk_of, chunks_below};
use super::inode::Inode;
use super::names::InodeId;
use super::plan::{FaultError, Mischief};
use super::state::State;
use crate::disk::OpenMode;
use crate::error::{DiskError, DiskOperation};
use rand::Rng;
use std::io;
use std::sync::Arc;

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
