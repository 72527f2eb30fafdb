//! Locks on rows with key-range protection, on tables and on the database, until the transaction ends.
//!
//! # Protocol
//! A lock is on a [`LockName`]: a key together with the open gap between it and the boundary below.
//! Boundaries are the keys of all slots of a leaf, ghosts included, the upper fence of each leaf, and
//! the end of the tree (the supremum). A [`Mode`] has a part for the key and a part for the gap.
//!
//! | statement | locks |
//! |---|---|
//! | read a key, present or not | key S on its own name |
//! | read a key to change it later | key U on its own name |
//! | change or delete a row | key X on its own name |
//! | insert a key that has no slot | key X on its own name; then, under the leaf's latch, nobody else may hold gap S on the next boundary |
//! | insert a key that has a ghost | key X on its own name: no gap is split |
//! | read a range | key S and gap S on each boundary in the range, gap S on the first boundary above it |
//! | let a boundary vanish | under the leaf's latch, nobody may hold or await anything on its name |
//!
//! All of these are taken under an intent on the table and one on the database, or not at all when the
//! table is held in a mode that covers them: see `table`, `intent` and `escalation`.
//!
//! No wait ever happens under a latch: a statement that finds itself blocked in a leaf drops the latch,
//! waits, and searches the leaf again. An insert that had to wait for the gap keeps what it waited for
//! (gap I) to the end of its transaction, so that readers cannot starve it between wait and retry.
//!
//! Who waits is served in order, conversions first, but newcomers who run may pass a waiter who sleeps, a
//! bounded number of times: see `queue`. Waits end by a grant, by time, by a deadlock or by another thread:
//! see `wait` and `deadlock`.
//!
//! # Why this is serializable
//! Locks are held until the commit record is in the log (strict two-phase locking), so it is enough
//! that any two statements of different transactions that do not commute meet on a lock.
//!
//! 1. *Same key.* Each names the key; reading takes S, changing takes X. That covers point reads of
//!    absent keys, since an insert takes X on the same name whether or not a slot exists.
//! 2. *Range read, then an insert into it.* The range is cut by boundaries into gaps, each locked through
//!    the boundary above it. If the key has no slot, it lies in one of those gaps and its next boundary
//!    is the one locked, so the insert finds gap S. If it has a ghost, the scan has key S on it.
//! 3. *Insert, then a range read over it.* While the inserter is active its key has a slot, a row or
//!    (after a rollback in part) a ghost, which the scan meets as a boundary: key S against X.
//! 4. *Insert while a scan is under way in the same leaf.* The insert holds the leaf's latch, then looks
//!    at the gap; the scan locks the gap, then validates the leaf. Both put a SeqCst fence between, so
//!    either the insert sees the lock or the scan sees that the leaf is latched or has changed, and
//!    repeats. Hence the insert's lock on the gap need not outlive the look (its duration is *instant*).
//! 5. *Own gap.* A transaction that has read a gap and inserts key `k` into it splits the gap: the part
//!    below `k` is named `k` from then on. It therefore takes gap S on `k` under the same latch. Nobody
//!    else can hold the gap, or the insert would have been blocked.
//! 6. *Splits.* A separator is a key of the leaf that is split, so it names the same gap as a fence as it
//!    did as a slot: no gap changes its name. *Merges and purges* remove a boundary `b` between `a` and
//!    `c`: the gap below `c` grows by the gap below `b`. As nobody holds a lock on `b`, nobody's range
//!    loses protection; a holder of `c` has more than it needs. Rule 4's fences also order a purge, which
//!    looks at the lock under the latch, with a scan that locks and then validates.
//! 7. *A fence that is no slot.* Its name protects the gap in the leaf below it. The gap between the fence
//!    and the first slot of the next leaf, the fence's own key included, is named by that slot, and a
//!    scan that goes on into that leaf locks it.
//!
//! 8. *Tables.* A lock that a table's lock makes needless excludes, at the table, all who would conflict
//!    with it at the row: they need an intent first. That holds for gaps too.
//!
//! Names that collide only make locks conflict that need not.
//!
//! # Early release
//! A transaction that has appended its commit record releases its locks before the record is durable.
//! The buckets in which it gives up key X remember the record (`last_commit`), and whoever takes a lock
//! there, or reads there without one, [depends](Dependency) on it: its own answer waits until the
//! record is durable. A lock on the whole table spares the lock on the row, not this look at its bucket. Only reads need this, for a writer's own commit record is later in the log. A row
//! deleted by a commit that is not durable keeps its ghost, for without the boundary a range read would
//! not come by the bucket: `may_remove` says no until then.
//!
//! # Order
//! page latch, then bucket latch, then the mutex of an owner's slot. One bucket latch at a time. The map
//! of exceptions to escalation is taken alone.
//!
//! # Source
//! Graefe, "A survey of B-tree locking techniques" (2010), for orthogonal key and gap modes and ghosts;
//! Shore-MT §7.5 for a latch per bucket instead of one for the table. We differ: a gap lies below
//! its key, not above it; inserts leave no lock on the gap.

mod boundaries;
mod bucket;
mod budget;
mod deadlock;
mod dependency;
mod error;
mod escalation;
mod held;
mod intent;

mod manager;
mod mode;
mod name;
mod owner;
mod queue;
mod snapshots;
mod stats;
mod table;
mod table_word;
mod views;
mod wait;
mod wakes;

pub use dependency::{CommitLevel, Dependency};
pub use error::LockError;
pub use escalation::Escalation;
pub use manager::{GapCheck, LockManager, LockOptions};
pub use mode::{GapMode, KeyMode, Mode, TableMode};
pub use name::LockName;
pub use owner::Owner;
pub use stats::LockStats;
pub use views::{LockHold, LockWait};
pub use wait::Wait;
