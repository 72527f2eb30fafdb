//! What is to go wrong on a simulated disk, and when: counted in calls, so that it can be repeated.

use crate::error::DiskOperation;

/// A failure to be injected by [`SimDisk::fail_at`](crate::SimDisk::fail_at).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// How the call fails.
    pub error: FaultError,
    /// Whether later calls fail too.
    pub repeat: FaultRepeat,
    /// Which calls are counted, and hit.
    pub on: FaultOn,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultError {
    /// The device reports an error; nothing is transferred.
    Io,
    /// No space left; nothing is transferred. Never hits calls that only read.
    Full,
    /// A prefix of the bytes is written, then the device fails. Hits only `write_at`.
    ShortWrite,
}

/// Whether a fault stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultRepeat {
    /// One call fails.
    Once,
    /// That call and every later one of the kind fail.
    ForEver,
}

/// Which calls a fault counts and hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultOn {
    /// All that are counted as I/O.
    Any,
    /// Reading: `read_at`, `list`, and `open` of a file that is there.
    Read,
    /// Changing: `write_at`, `set_len`, `allocate`, creating, `remove`, `rename`.
    Write,
    /// Making safe: `sync` and `sync_directory`.
    Sync,
}

/// One I/O, as the trace remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimIo {
    /// What was called.
    pub operation: DiskOperation,
    /// On which file; the new name for a rename; empty for the directory.
    pub file: std::sync::Arc<str>,
    /// Where in the file; 0 where there is no such thing.
    pub offset: u64,
    /// Bytes to transfer, or the length asked for.
    pub len: u64,
    /// Whether it can change what a crash leaves: cut there, and nowhere else.
    pub is_change: bool,
}

/// When the machine is to crash.
#[derive(Clone, Copy)]
pub(super) enum CrashCount {
    /// After so many more I/Os.
    Ios(u64),
    /// After so many more I/Os that change something.
    Changes(u64),
}

impl CrashCount {
    /// Counts one I/O; returns whether the machine crashes in it.
    pub(super) fn strikes(&mut self, is_change: bool) -> bool {
        let left = match self {
            Self::Changes(_) if !is_change => return false,
            Self::Ios(left) | Self::Changes(left) => left,
        };
        if *left == 0 {
            return true;
        }
        *left -= 1;
        false
    }
}

/// A fault and the calls that it still lets pass.
pub(super) struct PlannedFault {
    pub(super) fault: Fault,
    /// Matching calls until it hits, counting the one hit; 0 = has hit.
    pub(super) left: u64,
}

impl PlannedFault {
    /// Counts one call; returns whether it is to fail.
    pub(super) fn strikes(&mut self, operation: DiskOperation, is_change: bool) -> bool {
        if !self.fault.matches(operation, is_change) {
            return false;
        }
        match self.left {
            0 => self.fault.repeat == FaultRepeat::ForEver,
            _ => {
                self.left -= 1;
                self.left == 0
            }
        }
    }
}

impl Fault {
    fn matches(&self, operation: DiskOperation, is_change: bool) -> bool {
        let is_sync = matches!(
            operation,
            DiskOperation::Sync | DiskOperation::SyncDirectory
        );
        let is_counted = match self.on {
            FaultOn::Any => true,
            FaultOn::Read => !is_change,
            FaultOn::Write => is_change && !is_sync,
            FaultOn::Sync => is_sync,
        };
        is_counted
            && match self.error {
                FaultError::Io => true,
                FaultError::Full => is_change,
                FaultError::ShortWrite => operation == DiskOperation::Write,
            }
    }
}

/// A write that is to go wrong without a word.
pub(super) struct Mischief {
    pub(super) file: String,
    /// The write must cover this offset; any write will do if `None`.
    pub(super) at: Option<u64>,
    /// Where it lands instead; nowhere if `None`.
    pub(super) to: Option<u64>,
}

impl Mischief {
    pub(super) fn strikes(&self, file: &str, offset: u64, len: usize) -> bool {
        let covers = |at: u64| (offset..offset + len as u64).contains(&at);
        self.file == file && self.at.is_none_or(covers)
    }
}
