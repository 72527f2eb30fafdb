//! Older states of rows, in memory, for those who read a snapshot: they wait for nobody and nobody waits
//! for them.
//!
//! # Protocol
//! Rows lie in place; what they were before is kept by *name* (store and key), so it does not matter which
//! page a row lies in, or whether that page is in memory. The *serial number* of a transaction is the
//! position of its commit record, `c`. A snapshot has a position `S`, the log's tail when it opened, and
//! sees a transaction if `c < S`.
//!
//! **A writer** has a slot ([`writer`]) with a state and with its rows' committed images ([`arena`]).
//!
//! 1. Before it changes a row it captures the row's image, under the leaf's latch. Nobody else touches
//!    those lines while no snapshot looks.
//! 2. Commit: state Committing → append COMMIT, which gives `c` → state Committed(`c`) → look which snapshots
//!    are open ([`registry`]) → keep the images that they need ([`kept`]) → release the locks, which leaves `c`
//!    in the lock table → drop the images.
//! 3. Rollback: undo → END → release the locks → drop the images.
//!
//! **A snapshot** opens by storing PENDING in the registry, then reading the tail. It reads a row so:
//!
//! 0. Read the leaf at one version, without a latch. If its `page_lsn` is below the [`horizon`], all in it
//!    is as in the page.
//! 1. Glance at the lock table: if nobody may change the key, and the newest commit noted there is below
//!    `S`, the row is as in the page.
//! 2. Else look, under the latches of the queues, who has the lock to change it, of the row or of the table; then for a kept version with the
//!    smallest `c >= S`: its image is the row.
//! 3. No such version. If the holder is another transaction, look at its slot, under the mutex: its state
//!    is Committing: begin anew; Committed below `S`: as in the page; it has captured the row: that image.
//!    If the slot is not that transaction's and the lock still is, it has changed nothing: as in the page;
//!    if the lock is not either, begin anew. In all other cases, as in the page.
//! 4. Check that the leaf has not changed since 0, and that the snapshot was not ended by policy.
//!
//! # Why this is right
//! The page is the same from step 0 to step 4, so all looks lie in one moment of the page.
//!
//! 1. *What is visible is in the page.* Who commits at `c < S` has changed its pages before it moved the tail
//!    beyond `c`, and the snapshot read the tail behind `c` before it read the page.
//! 2. *Nobody may change the key, and the last commit is below `S`*: whoever changed what is in the page has
//!    released its lock, after leaving its commit in the bucket (B2 of `lock`), where positions only grow;
//!    or has taken its change back, and then the page was changed back before.
//! 3. *The lock is looked at before the versions.* Whoever is found to hold it, all earlier writers of the
//!    row have released it, so what they had to keep is kept. So if no kept version lies above `S`, the row's
//!    committed state at the time of the look at the lock is the one that `S` sees; and that is the
//!    holder's image of it, or the page if the holder has not captured it: capture precedes the change of
//!    the page, under its latch, and the page that was read is still the same.
//! 4. *What had to be kept is kept* (V2): a snapshot that the writer did not see in the registry stored PENDING
//!    after the writer looked, hence read the tail after the writer moved it: it sees the writer. One seen
//!    as PENDING counts as any position.
//! 5. *Active means not visible* (V3): with `c < S` the snapshot has seen the tail behind `c`, and with it
//!    Committing, which was stored before. Committing lasts for the moment until the record has its place.
//! 6. *A slot that was given to another transaction* shows another number under its mutex. Then the lock was
//!    released between the two looks, or else nothing was captured yet when the slot was looked at; the
//!    second look at the lock tells which, for no transaction takes a lock again after releasing it.
//! 7. *Rollback*: a transaction that is being rolled back is Active, its images are the committed states, to
//!    the end. A statement or savepoint taken back leaves images that are still right: they are what the row
//!    was before the *transaction*. For the same reason a row's oldest image counts.
//! 8. *Own changes*: a transaction that reads a snapshot and has captured a row itself reads the page.
//! 9. *The first updater wins*: who has got the lock finds the row changed since `S` exactly if a version at or
//!    above `S` is kept, because its own snapshot was open when the first such commit looked.
//! 10. *Ghosts* are the slots by which a range read finds rows deleted after `S`. One may be purged when every
//!     open snapshot sees the commit that deleted it, or a later one in the bucket (`Registry::all_see`);
//!     snapshots that open later do so too, for the tail has passed it. It may be purged earlier when nobody may
//!     change the row ([`past`]): what snapshots see of it is kept then, by 3 and 4, so if nothing is kept,
//!     all see that it is not there; and if something is, its key is listed ([`removed`]) before the
//!     leaf changes, where a scan that misses the slot finds it. Only while images of a commit are missing (13)
//!     ghosts stay: a scan that meets one gives up. *Chains* that a row no longer refers to are freed when all
//!     snapshots see the commit that has enlisted them, the last of their row of the GARBAGE tree.
//! 11. *Splits and merges* move rows and change `page_lsn`s upwards, never what is looked up here, and step 4
//!     finds them out.
//! 12. *Ended by policy*: versions are dropped, ghosts purged, after the word says DOOMED, both under a mutex or
//!     latch that the reader takes, or sees released, afterwards; step 4 looks at the word last.
//! 13. *Incomplete images*: a writer that ran out of budget says so in its slot, and at its commit raises
//!     `incomplete`, before it releases its locks. A snapshot below that, which comes past step 1 for a row
//!     whose bucket has seen a commit since, gives up: SnapshotTooOld.
//!
//! # Durability of answers
//! A reader depends on the commits that it may have seen, as under locks: those noted in the buckets, what
//! the writers of images had seen, and what the horizon vouches for. A bucket may name a later commit; then
//! the dependency is cut to `S`, which no visible commit reaches.
//!
//! # Isolation
//! | level | reads | changes |
//! |---|---|---|
//! | serializable | locks on rows and gaps | exclusive locks, to the end |
//! | serializable, read-only | one snapshot | none |
//! | snapshot | one snapshot, and own changes | exclusive locks; a row changed since the snapshot is a [`WriteConflict`](crate::TxnError::WriteConflict) |
//! | read committed | a snapshot for each statement (a cursor is one), and own changes | exclusive locks, on the newest state |
//!
//! A serializable writer protects what it has read from all others, whatever their level; writers of the
//! lower levels do not protect what they have read from anybody.
//!
//! # Invariants
//! V1. A row's image is captured before the page changes, once at least, by whoever holds its lock.
//! V2. A writer that does not see a snapshot in the registry is seen by that snapshot.
//! V3. A transaction found Active is not visible to the snapshot that looks.
//! V4. The kept versions of a row ascend in the order of commits.
//! V5. For an open snapshot, the kept version with the smallest `c >= S` is what it sees; without one, the row
//!     has not been changed by any commit from `S` on.
//! V6. A row that an open snapshot sees has a slot in its leaf, or is listed with its image kept; its chain is
//!     not freed.
//! V7. Memory for images stays within the budget, but for what a commit adds until the policy has acted.
//!
//! # Order
//! Page latch → bucket latch, writer's mutex, or mutex of the list of rows removed: one of them at a time. Mutex of
//! the list → shard's mutex.
//!
//! # Source
//! Bernstein and Goodman (1983) for multiversion two-phase locking, mixed: read-only by timestamp, writers by
//! locks. Hekaton and HyPer for versions in memory that are dropped as their readers end. We differ: the
//! rows lie in place, images are found by name and not by chains from the row, and nothing is shared between
//! writers as long as nobody reads a snapshot.

mod arena;
mod budget;
mod horizon;
mod image;
mod kept;
mod past;
mod policy;
mod read;
mod registry;
mod removed;
mod rows;
mod shelf;
mod stats;
mod writer;

#[cfg(all(test, loom))]
mod loom_tests;

pub use policy::{LongReaders, VersionOptions};
pub use registry::SnapshotView;
pub use stats::VersionStats;

pub(crate) use arena::Arena;
pub(crate) use horizon::Found;
pub(crate) use image::{Image, ImageBuffer, RowRef};
pub(crate) use past::Past;
pub(crate) use policy::{Patience, Room, Shortage};
pub(crate) use read::Seen;
pub(crate) use registry::Origin;

use crate::lock::{CommitLevel, Dependency};
use crossbeam_utils::CachePadded;
use horizon::Horizon;
use longshore_base::sync::Mutex;
use longshore_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use longshore_base::{Environment, Lsn, StoreId};
use stats::Counters;
use std::collections::HashSet;
use std::sync::Arc;
use writer::Writer;

/// Who may see what of the past.
pub(crate) struct Versions {
    past: Arc<Past>,
    writers: Box<[CachePadded<Writer>]>,
    pub horizon: Horizon,
    options: VersionOptions,
    /// The strictest level that any commit has asked for.
    strictest: AtomicU64,
    /// Apart, as it is large.
    counters: Box<Counters>,
    env: Arc<dyn Environment>,
    /// Held by the one who ends snapshots.
    relieving: Mutex<()>,
    /// Reads take what is in the page. Written by tests only.
    ignores_versions: AtomicBool,
    /// Updaters overwrite what has changed since their snapshot. Written by tests only.
    ignores_conflicts: AtomicBool,
}

/// An open snapshot. Its holder closes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Snapshot {
    index: usize,
    /// Commits below this are visible.
    pub at: Lsn,
    /// Pages last changed below this are as this snapshot sees them.
    pub low: Lsn,
    /// What readers of those depend on.
    pub covers: Dependency,
}

impl Snapshot {
    /// The dependency without what this snapshot does not see.
    pub fn cut(&self, dependency: Dependency) -> Dependency {
        if dependency.lsn() < self.at {
            return dependency;
        }
        Dependency::new(Lsn::new(self.at.get() - 8), dependency.level())
    }
}

impl Versions {
    /// For `writers` transactions at a time.
    pub fn new(writers: usize, options: VersionOptions, env: Arc<dyn Environment>) -> Versions {
        Versions {
            // A transaction may read several snapshots, one for each cursor.
            past: Arc::new(Past::new(2 * writers, options.bytes_max)),
            writers: (0..writers).map(|_| CachePadded::default()).collect(),
            horizon: Horizon::default(),
            options,
            strictest: AtomicU64::new(0),
            counters: Box::default(),
            env,
            relieving: Mutex::new(()),
            ignores_versions: AtomicBool::new(false),
            ignores_conflicts: AtomicBool::new(false),
        }
    }

    pub fn past(&self) -> &Arc<Past> {
        &self.past
    }

    /// Opens a snapshot at the log's tail; `None` when there are too many.
    #[inline]
    pub fn open(&self, tail: impl FnOnce() -> Lsn) -> Option<Snapshot> {
        // Before the tail is read: see `horizon`.
        let Found { low, covers } = self.horizon.get();
        let opened = self.past.registry.open(tail)?;
        Some(Snapshot {
            index: opened.index,
            at: opened.at,
            low,
            covers,
        })
    }

    /// Closes it. What only it needed is dropped if nobody else reads a snapshot, and by the next sweep
    /// otherwise.
    #[inline]
    pub fn close(&self, snapshot: Snapshot, tail: impl FnOnce() -> Lsn) {
        self.past.registry.close(snapshot.index);
        if !self.past.is_empty() {
            self.sweep_if_last(tail);
        }
    }

    #[cold]
    fn sweep_if_last(&self, tail: impl FnOnce() -> Lsn) {
        let open = self.past.registry.open_ones(tail);
        if open.is_empty() {
            self.past.sweep(&open);
        }
    }

    /// Whether the snapshot was ended by policy; to be asked after everything was looked up.
    #[inline]
    pub fn is_doomed(&self, snapshot: &Snapshot) -> bool {
        self.past.registry.is_doomed(snapshot.index)
    }

    /// Says for views whose the snapshot is.
    pub fn describe(&self, snapshot: &Snapshot, origin: Origin) {
        self.past.registry.describe(snapshot.index, origin);
    }

    // ---- a writer's part ------------------------------------------------------------------------

    /// Appends the image of a row that `slot` is about to change, under the latch of its leaf (V1). Room
    /// was made before.
    #[inline]
    pub fn capture(&self, slot: usize, row: RowRef<'_>, image: Image<'_>, seen: Dependency) {
        let mut arena = self.writers[slot].arena();
        arena.capture(row, image);
        arena.seen = seen;
    }

    /// The stores and names of the rows of which the writer in `slot` has images.
    pub fn captured(&self, slot: usize) -> HashSet<(StoreId, u64)> {
        let arena = self.writers[slot].arena();
        let entries = arena.entries();
        entries.map(|entry| (entry.store, entry.hash)).collect()
    }

    /// The commit record of `slot` is about to be placed, which will have asked for `level`.
    #[inline]
    pub fn begin_commit(&self, slot: usize, level: CommitLevel) {
        // Relaxed: read after the writer's position was found taken back, which is SeqCst and later.
        if self.strictest.load(Ordering::Relaxed) < level as u64 {
            self.strictest.fetch_max(level as u64, Ordering::Relaxed);
        }
        self.writers[slot].begin_commit();
    }

    /// There will be no commit record after all.
    #[cold]
    pub fn give_up_commit(&self, slot: usize) {
        self.writers[slot].give_up_commit();
    }

    /// The commit record of `slot` is at `lsn`: keeps what open snapshots need. All locks are held.
    #[inline]
    pub fn committed(&self, slot: usize, lsn: Lsn, level: CommitLevel, tail: impl FnOnce() -> Lsn) {
        let writer = &self.writers[slot];
        writer.committed(lsn, level);
        let open = self.past.registry.open_ones(tail);
        if !open.is_empty() {
            self.keep(writer, lsn, &open);
        }
    }

    #[cold]
    fn keep(&self, writer: &Writer, lsn: Lsn, open: &registry::Open) {
        let arena = writer.arena();
        if arena.is_incomplete {
            self.past.note_incomplete(lsn);
            return;
        }
        let kept = &self.past.kept;
        let bytes = kept.keep(arena.entries(), lsn, arena.seen, open);
        if bytes > 0 {
            self.past.budget.charge(bytes);
        }
    }

    /// `slot` has released its locks: drops its images, and sweeps if that is due.
    #[inline]
    pub fn end(&self, slot: usize, tail: &dyn Fn() -> Lsn) {
        let freed = self.writers[slot].end();
        if freed > 0 {
            self.past.budget.refund(freed);
        }
        if self.past.kept.is_due() {
            self.sweep_if_useful(tail);
        }
        if self.past.budget.is_tight() {
            self.relieve_after_commit(tail);
        }
    }

    /// Sweeps if the oldest snapshot has closed since the last call. What others needed that have closed waits
    /// until the table has doubled, so that one old snapshot does not make each round walk over all.
    pub fn maintain(&self, tail: impl FnOnce() -> Lsn) {
        if self.past.is_empty() {
            return;
        }
        let open = self.past.registry.open_ones(tail);
        if self.past.is_oldest_new(&open) {
            self.past.sweep(&open);
        }
    }

    #[cold]
    fn sweep_if_useful(&self, tail: impl FnOnce() -> Lsn) {
        let open = self.past.registry.open_ones(tail);
        if !self.past.kept.put_off(&open) {
            self.past.sweep(&open);
        }
    }

    /// Drops what no snapshot needs.
    #[cold]
    pub fn sweep(&self, tail: impl FnOnce() -> Lsn) {
        let open = self.past.registry.open_ones(tail);
        self.past.sweep(&open);
    }

    /// The strictest level that any commit has asked for.
    pub fn strictest(&self) -> CommitLevel {
        // Relaxed: see `begin_commit`.
        match self.strictest.load(Ordering::Relaxed) {
            0 => CommitLevel::None,
            1 => CommitLevel::Os,
            _ => CommitLevel::Sync,
        }
    }

    // ---- negative controls ----------------------------------------------------------------------

    pub fn ignore_versions(&self) {
        // Relaxed: set before the test starts its threads.
        self.ignores_versions.store(true, Ordering::Relaxed);
    }

    pub fn ignore_conflicts(&self) {
        // Relaxed: set before the test starts its threads.
        self.ignores_conflicts.store(true, Ordering::Relaxed);
    }
}
