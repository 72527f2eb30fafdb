//! What a log is opened with.

use crate::LogError;
use crate::group::Goal;
use crate::segment::HEADER_BYTES;
use longshore_base::Lsn;

/// Sizes of a log. All may change from one open to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// Size of a new segment file: 8 KiB to 1 GiB, in steps of 4 KiB.
    pub segment_bytes: u64,
    /// Memory for records on their way to disk: a power of two, 4 KiB to 1 GiB. No record is longer.
    pub buffer_bytes: usize,
    /// Disk space for all segments together; at least four of them.
    pub bytes_max: u64,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            segment_bytes: 16 << 20,
            buffer_bytes: 4 << 20,
            bytes_max: 1 << 30,
        }
    }
}

impl LogOptions {
    pub(crate) fn check(&self) -> Result<(), LogError> {
        let refuse = |option, given, allowed: String| {
            Err(LogError::Option {
                option,
                given,
                allowed,
            })
        };
        let segment = self.segment_bytes;
        if !segment.is_multiple_of(HEADER_BYTES) || !(8 << 10..=1 << 30).contains(&segment) {
            let allowed = "8 KiB to 1 GiB in steps of 4 KiB are possible";
            return refuse("log_segment_bytes", segment, allowed.to_owned());
        }
        let buffer = self.buffer_bytes;
        if !buffer.is_power_of_two() || !(4 << 10..=1 << 30).contains(&buffer) {
            let allowed = "a power of two from 4 KiB to 1 GiB is possible";
            return refuse("log_buffer_bytes", buffer as u64, allowed.to_owned());
        }
        if self.bytes_max < 4 * segment {
            let allowed = format!("four segments are the least, {} bytes", 4 * segment);
            return refuse("log_bytes_max", self.bytes_max, allowed);
        }
        Ok(())
    }
}

/// What an open log may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading and scanning; nothing on disk is changed.
    ReadOnly,
    /// Everything.
    ReadWrite,
}

/// How safe a record is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// In the log buffer: lost with the process.
    None,
    /// With the operating system: survives the process, not the machine.
    Os,
    /// On the device: survives power loss.
    Sync,
}

impl Level {
    /// What must be reached for the record that starts at `lsn`.
    pub(crate) fn goal(self, lsn: Lsn) -> Option<Goal> {
        match self {
            _ if lsn == Lsn::ZERO => None,
            Level::None => None,
            Level::Os => Some(Goal::Written(lsn.get() + 1)),
            Level::Sync => Some(Goal::Synced(lsn.get() + 1)),
        }
    }
}

/// From where a log is read when it is opened, and how far it certainly reaches.
///
/// A bare [`Lsn`] converts into it: from there, and it reaches at least there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanFrom {
    /// A record starts here, or the log ends here. [`Lsn::ZERO`]: from the first one.
    pub lsn: Lsn,
    /// The log is known to have been durable up to this position (not a record's start, but the end
    /// of something), by other means than the log: if it ends before, it is damaged.
    pub known_durable: Lsn,
}

impl From<Lsn> for ScanFrom {
    fn from(lsn: Lsn) -> ScanFrom {
        ScanFrom {
            lsn,
            known_durable: lsn,
        }
    }
}
