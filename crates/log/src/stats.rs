//! What a log counts.

/// What a log has done since it was opened, and what it holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Bytes appended.
    pub bytes: u64,
    /// Records written out, the log's own markers included.
    pub records: u64,
    /// Writes of a group of records.
    pub groups: u64,
    /// Syncs.
    pub syncs: u64,
    /// Time spent in syncs, in microseconds.
    pub sync_us: u64,
    /// Sync markers appended.
    pub markers: u64,
    /// Appends that found the buffer full.
    pub waits_for_room: u64,
    /// Calls that had to wait for a write or a sync, or do it.
    pub waits_for_durability: u64,
    /// Times the writer gave up the processor because the next record was not filled yet.
    pub waits_for_appender: u64,
    /// Times somebody who needed a flush found another one at it, and slept.
    pub role_taken: u64,
    /// Bytes in the buffer now.
    pub unwritten_bytes: u64,
    /// Bytes claimed now for records to come.
    pub claimed_bytes: u64,
    /// Segment files now.
    pub segments: u64,
    /// Their size on disk.
    pub disk_bytes: u64,
}

impl LogStats {
    /// Records per write; zero before the first.
    pub fn records_per_group(&self) -> f64 {
        ratio(self.records, self.groups)
    }

    /// Waiting calls served per sync; zero before the first.
    pub fn waits_per_sync(&self) -> f64 {
        ratio(self.waits_for_durability, self.syncs)
    }
}

fn ratio(count: u64, of: u64) -> f64 {
    if of == 0 {
        0.0
    } else {
        count as f64 / of as f64
    }
}
