//! What the open snapshots may need: who reads, the images kept, and the rows that have no slot any more.
//!
//! Shared with the lock table, which asks it before a ghost leaves its leaf.

use super::budget::Budget;
use super::image::RowRef;
use super::kept::Kept;
use super::registry::{Open, Registry};
use super::removed::Removed;
use longshore_base::Lsn;
use longshore_base::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub(crate) struct Past {
    pub registry: Registry,
    pub kept: Kept,
    pub removed: Removed,
    pub budget: Budget,
    /// The newest commit of a writer whose images were not complete.
    incomplete: AtomicU64,
    /// The oldest snapshot when maintenance looked last; a hint.
    oldest: AtomicU64,
}

impl Past {
    /// For `snapshots` at a time, with images in `bytes_max` of memory.
    pub fn new(snapshots: usize, bytes_max: usize) -> Past {
        Past {
            registry: Registry::new(snapshots),
            kept: Kept::new(),
            removed: Removed::default(),
            budget: Budget::new(bytes_max),
            incomplete: AtomicU64::new(0),
            oldest: AtomicU64::new(0),
        }
    }

    /// Whether the ghost of `row` may leave its leaf, as far as snapshots are concerned. If one of them
    /// may see a row there, it is listed, and scans find it without a slot.
    ///
    /// The caller holds the latch of the leaf, and has seen that nobody may change the row: the last who
    /// did has committed at `commit` or before.
    pub fn let_go(&self, row: RowRef<'_>, commit: Lsn) -> bool {
        if self.registry.all_see(commit) {
            return true;
        }
        // Relaxed: ordered by the locks that the writer has released.
        let incomplete = self.incomplete.load(Ordering::Relaxed);
        if incomplete > 0 && !self.registry.all_see(Lsn::new(incomplete)) {
            return false;
        }
        if self.kept.has_any(row) {
            self.budget.charge(self.removed.add(row, commit));
        }
        true
    }

    /// A writer that has given up its images has committed at `lsn`. It holds its locks.
    pub fn note_incomplete(&self, lsn: Lsn) {
        // Relaxed: published with the locks.
        self.incomplete.fetch_max(lsn.get(), Ordering::Relaxed);
    }

    /// Whether a writer that a snapshot at `at` does not see has committed with incomplete images.
    pub fn is_incomplete_since(&self, at: Lsn) -> bool {
        // Relaxed: ordered by the lock that the writer has released, in whose bucket we have looked.
        self.incomplete.load(Ordering::Relaxed) >= at.get()
    }

    /// Drops what no snapshot needs.
    pub fn sweep(&self, open: &Open) {
        let mut freed = self.kept.sweep(open);
        if !self.removed.is_empty() {
            freed += self.removed.sweep(|row| self.kept.has_any(row));
        }
        self.budget.refund(freed);
    }

    /// Whether there is no oldest snapshot, or another one than when this was asked last.
    pub fn is_oldest_new(&self, open: &Open) -> bool {
        open.oldest().is_none_or(|oldest| {
            // Relaxed: a hint; a sweep too many, or one later, does no harm.
            self.oldest.swap(oldest.get(), Ordering::Relaxed) != oldest.get()
        })
    }

    /// Whether there is nothing to sweep.
    pub fn is_empty(&self) -> bool {
        self.kept.count() == 0 && self.removed.is_empty()
    }
}
