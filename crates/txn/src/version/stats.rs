//! What the versions count.

use super::Versions;
use super::registry::SnapshotView;
use longshore_base::metrics::Counter;
use std::time::Duration;

/// Older images of rows: how much there is, and what has happened since the manager was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VersionStats {
    /// Bytes of memory in use.
    pub bytes_used: usize,
    /// Bytes of memory allowed.
    pub bytes_max: usize,
    /// Images kept for open snapshots after their writer has committed.
    pub kept: usize,
    /// Reads that found a row changed since their snapshot, or being changed.
    pub images_read: u64,
    /// Changes refused because the row had been changed since the snapshot.
    pub conflicts: u64,
    /// Snapshots ended because memory ran out.
    pub too_old: u64,
    /// Statements refused because memory ran out.
    pub refused: u64,
    /// Transactions whose images stayed incomplete because there were too many.
    pub incomplete: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub images_read: Counter,
    pub conflicts: Counter,
    pub too_old: Counter,
    pub refused: Counter,
    pub incomplete: Counter,
}

impl Versions {
    /// The counters.
    pub fn stats(&self) -> VersionStats {
        VersionStats {
            bytes_used: self.past.budget.used(),
            bytes_max: self.past.budget.bytes_max(),
            kept: self.past.kept.count(),
            images_read: self.counters.images_read.get(),
            conflicts: self.counters.conflicts.get(),
            too_old: self.counters.too_old.get(),
            refused: self.counters.refused.get(),
            incomplete: self.counters.incomplete.get(),
        }
    }

    /// The open snapshots, oldest first.
    pub fn views(&self, now: Duration) -> Vec<SnapshotView> {
        self.past.registry.views(now)
    }
}
