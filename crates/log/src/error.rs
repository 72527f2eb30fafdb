//! What the log may fail with, each with its cause and the way out.

use longshore_base::{DurabilityLost, Lsn};
use longshore_disk::DiskError;
use std::sync::Arc;

/// A failed call on the log. Cheap to clone: one failure is told to everybody who waited for it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// No space could be set aside for records to come. Nothing was written, nothing is lost.
    #[error(
        "the log is full: no room for {asked} bytes more, because {cause}; everything from LSN \
         {oldest} on is still needed: take a checkpoint, end long transactions, or {}",
        cause.way_out()
    )]
    Full {
        /// The bytes that were to be set aside.
        asked: u64,
        /// What stands in the way.
        cause: FullCause,
        /// The oldest position that the segments at hand reach back to.
        oldest: Lsn,
    },
    /// A write or sync of the log failed before; nothing later may succeed until it is reopened.
    #[error("the log failed and takes no more records until the database is reopened: {cause}")]
    Poisoned {
        /// The failure that came first.
        cause: Arc<str>,
    },
    /// Bytes that had been made durable are not what was written.
    #[error(
        "the log is damaged: segment {segment:?}, offset {offset} (LSN {lsn}): {reason}; the \
         records from there on cannot be trusted: restore the segment, or the database, from a backup"
    )]
    Damaged {
        /// The segment file.
        segment: String,
        /// The byte offset in it.
        offset: u64,
        /// The position of the record that is damaged.
        lsn: Lsn,
        /// What is wrong there.
        reason: String,
    },
    /// A segment that must be there is not.
    #[error(
        "log segment {segment:?} is missing, and the records from LSN {lsn} on are needed: put the \
         file back, or restore the database from a backup"
    )]
    Missing {
        /// The file that should be there.
        segment: String,
        /// The first position that it would hold.
        lsn: Lsn,
    },
    /// A file with the name of a segment is something else.
    #[error("{segment:?} is not a segment of this log: {reason}")]
    NotALog {
        /// The file.
        segment: String,
        /// What gave it away.
        reason: String,
    },
    /// A segment was written by another version of the program.
    #[error(
        "log segment {segment:?} has format version {found}, this program reads version {known}: \
         use the version of the program that wrote it"
    )]
    Version {
        /// The file.
        segment: String,
        /// The version it states.
        found: u32,
        /// The version that this program writes and reads.
        known: u32,
    },
    /// A segment belongs to another database.
    #[error(
        "log segment {segment:?} belongs to another database ({found:016x}, this one is \
         {expected:016x}): the files of two databases were mixed up"
    )]
    OtherDatabase {
        /// The file.
        segment: String,
        /// The database it names.
        found: u64,
        /// The database that is being opened.
        expected: u64,
    },
    /// A log was to be created where one is already.
    #[error("cannot create a log: segment {segment:?} is there already")]
    AlreadyExists {
        /// The file that is in the way.
        segment: String,
    },
    /// A record is longer than the log buffer.
    #[error(
        "a log record of {bytes} bytes does not fit the log buffer: at most {max} bytes; raise \
         log_buffer_bytes"
    )]
    TooLarge {
        /// Its length with header.
        bytes: u64,
        /// The longest that is possible.
        max: u64,
    },
    /// A position at which no record can start, or beyond the end.
    #[error("no log record at LSN {lsn}: the log ends at {end}")]
    BeyondEnd {
        /// The position asked for.
        lsn: Lsn,
        /// The end of the log.
        end: Lsn,
    },
    /// A position whose segment has been recycled.
    #[error("the log no longer holds LSN {lsn}: it was truncated to {oldest}")]
    Truncated {
        /// The position asked for.
        lsn: Lsn,
        /// The oldest position still held.
        oldest: Lsn,
    },
    /// The log was opened for reading only.
    #[error("the log is open for reading only: nothing can be appended")]
    ReadOnly,
    /// An option is out of range.
    #[error("{option} is {given}: {allowed}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What was given.
        given: u64,
        /// What is allowed.
        allowed: String,
    },
    /// The disk failed while opening, reading or preparing; no acknowledged record is affected.
    #[error("the log cannot use the disk: {0}")]
    Disk(#[from] DiskError),
}

/// What keeps the log from growing.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FullCause {
    /// The segments use all that the option allows.
    #[error("its segments use {used} bytes of at most {bytes_max} (log_bytes_max)")]
    Limit {
        /// Bytes of all segment files, and of the one that would be needed.
        used: u64,
        /// The option.
        bytes_max: u64,
    },
    /// The disk has no room for one more segment.
    #[error("{0}")]
    Disk(DiskError),
}

impl FullCause {
    fn way_out(&self) -> &'static str {
        match self {
            FullCause::Limit { .. } => "raise log_bytes_max",
            FullCause::Disk(_) => "free space on the disk",
        }
    }
}

impl LogError {
    /// Whether the same call can succeed once log space has been freed.
    pub fn is_full(&self) -> bool {
        matches!(self, LogError::Full { .. })
    }

    /// Whether nothing more can be made durable until the log is reopened.
    pub fn is_poisoned(&self) -> bool {
        matches!(self, LogError::Poisoned { .. })
    }

    /// Whether stored bytes are missing or not what was written.
    pub fn is_damage(&self) -> bool {
        matches!(self, LogError::Damaged { .. } | LogError::Missing { .. })
    }
}

impl From<LogError> for DurabilityLost {
    fn from(error: LogError) -> DurabilityLost {
        let cause = match error {
            LogError::Poisoned { cause } => cause,
            other => other.to_string().into(),
        };
        DurabilityLost { cause }
    }
}
