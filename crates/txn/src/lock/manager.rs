//! The lock table: buckets, owners' slots, and the budget over both.

use super::bucket::{Bucket, Latched, Latching};
use super::dependency::Dependency;
use super::error::LockError;
use super::mode::Mode;
use super::name::LockName;
use super::owner::{Owner, OwnerSlot};
use super::queue::{Acquired, OwnerIndex, Request};
use super::stats::Counters;
use super::wait::Wait;
use longshore_base::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use longshore_base::{Durability, Environment, Lsn, TxnId};
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;

/// How large a lock manager is and how it waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockOptions {
    /// Memory for buckets, requests and lists of locks held.
    pub bytes_max: usize,
    /// Transactions that may be open at a time.
    pub owners_max: usize,
    /// How often a waiting transaction looks for deadlocks again.
    pub search_interval: Duration,
}

impl Default for LockOptions {
    fn default() -> Self {
        LockOptions {
            bytes_max: 32 << 20,
            owners_max: 1024,
            search_interval: Duration::from_millis(50),
        }
    }
}

/// The part of the budget that goes to buckets, as a divisor.
const BUCKETS_SHARE: usize = 32;
/// Buckets that even the smallest table has.
const BUCKETS_MIN: usize = if cfg!(loom) { 1 } else { 64 };
/// Buckets that even the largest table has; a handful under the model checker.
const BUCKETS_MAX: usize = if cfg!(loom) { 1 } else { 1 << 24 };
/// Bytes that a bucket keeps for its next rush when it becomes empty.
const SPILL_KEPT: usize = 8 * size_of::<Request>();

/// The locks of one database.
pub struct LockManager {
    buckets: Box<[Bucket]>,
    slots: Box<[OwnerSlot]>,
    options: LockOptions,
    /// Bytes charged. Touched only when something grows or shrinks.
    bytes_used: AtomicUsize,
    counters: Counters,
    /// No boundary may vanish. Written while nobody else is there, read under page latches.
    pins_boundaries: AtomicBool,
    /// Inserts pay no heed to gaps that others have read. Written by tests only.
    ignores_gaps: AtomicBool,
    log: Arc<dyn Durability>,
    env: Arc<dyn Environment>,
}

/// What an insert finds in the gap that it is about to split.
#[doc(hidden)]
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GapCheck {
    /// Nobody has read it.
    Free,
    /// The inserting transaction itself has read it, nobody else.
    Mine,
    /// Another transaction has read it.
    Blocked,
}

impl LockManager {
    /// A lock table without locks. `log` says which commits are durable.
    pub fn new(
        options: LockOptions,
        log: Arc<dyn Durability>,
        env: Arc<dyn Environment>,
    ) -> Arc<LockManager> {
        let share = options.bytes_max / BUCKETS_SHARE / size_of::<Bucket>();
        let buckets = (share.clamp(BUCKETS_MIN, BUCKETS_MAX) + 1).next_power_of_two() / 2;
        Arc::new(LockManager {
            buckets: (0..buckets).map(|_| Bucket::default()).collect(),
            slots: (0..options.owners_max)
                .map(|_| OwnerSlot::default())
                .collect(),
            bytes_used: AtomicUsize::new(
                buckets * size_of::<Bucket>() + options.owners_max * size_of::<OwnerSlot>(),
            ),
            options,
            counters: Counters::default(),
            pins_boundaries: AtomicBool::new(false),
            ignores_gaps: AtomicBool::new(false),
            log,
            env,
        })
    }

    /// Lets no boundary vanish until told otherwise.
    ///
    /// For restart: transactions still to be undone hold no locks that would keep their ghosts.
    pub(crate) fn pin_boundaries(&self, pinned: bool) {
        // Relaxed: nobody else works yet; those who do later are begun by this thread.
        self.pins_boundaries.store(pinned, Ordering::Relaxed);
    }

    /// Switches the protection of gaps off, so that a test can see its checker fail.
    #[doc(hidden)]
    pub fn ignore_gaps(&self) {
        // Relaxed: set before the test starts its threads.
        self.ignores_gaps.store(true, Ordering::Relaxed);
    }

    /// The owner in slot `index`, which no other open transaction has.
    ///
    /// # Panics
    /// If `index` is not below `owners_max`.
    pub fn register(&self, index: usize, txn: TxnId) -> Owner {
        self.slots[index].register(txn);
        Owner {
            index: OwnerIndex::try_from(index).expect("fewer than 2^32 owners"),
            txn,
            held: SmallVec::new(),
            dependency: Dependency::NONE,
            acquired: 0,
        }
    }

    /// Gives `owner` the lock `mode` on `name`, beside what it holds there; waits as `wait` says.
    ///
    /// To be called with no latch held unless `wait` is [`Wait::No`].
    ///
    /// # Errors
    /// [`LockError`]; what the owner held before it still holds.
    #[inline]
    pub fn lock(
        &self,
        owner: &mut Owner,
        name: LockName,
        mode: Mode,
        wait: Wait,
    ) -> Result<(), LockError> {
        if self.try_lock(owner, name, mode)? {
            return Ok(());
        }
        match wait {
            Wait::For(limit) if !limit.is_zero() => self.lock_waiting(owner, name, mode, limit),
            _ => {
                self.counters.timeouts.add(1);
                Err(LockError::Timeout {
                    name,
                    waited: Duration::ZERO,
                    holder: self.first_in_the_way_of(name, mode, owner.index),
                })
            }
        }
    }

    /// Gives `owner` the lock if nobody is in the way.
    ///
    /// # Errors
    /// [`LockError::TableFull`].
    #[inline]
    pub fn try_lock(
        &self,
        owner: &mut Owner,
        name: LockName,
        mode: Mode,
    ) -> Result<bool, LockError> {
        if owner.held.len() == owner.held.capacity() {
            self.grow_list(owner)?;
        }
        let hash = name.hash();
        let mut latched = self.latch(hash);
        let mut acquired = latched.acquire(hash, owner.index, mode);
        if acquired == Acquired::Full {
            self.make_room(&mut latched)?;
            acquired = latched.acquire(hash, owner.index, mode);
        }
        if acquired == Acquired::Blocked {
            return Ok(false);
        }
        owner.depend_on(latched.last_commit());
        drop(latched);
        self.note_granted(owner, hash, acquired);
        Ok(true)
    }

    /// Ends all of `owner`'s locks. Whoever takes over a key that it changed depends on `commit`.
    ///
    /// `commit` is [`Dependency::NONE`] for a transaction that has changed nothing or undone it all.
    pub fn release_all(&self, owner: &mut Owner, commit: Dependency) {
        for &hash in &owner.held {
            let mut latched = self.latch(hash);
            let held = latched.release(hash, owner.index).unwrap_or(Mode::NONE);
            if held.writes_key() && commit.lsn() != Lsn::ZERO {
                let before = latched.last_commit();
                latched.raise_last_commit(self.merge(before, commit));
            }
            if latched.has_waiters(hash) {
                latched.grant(hash, |index| self.slot(index).grant());
            }
            self.tidy(&mut latched);
        }
        if owner.held.spilled() {
            self.give_back(owner.held.capacity() * size_of::<u64>());
        }
        owner.held = SmallVec::new();
        self.counters.acquired.add(owner.acquired);
        owner.acquired = 0;
    }

    /// Whether nobody is changing the key `name`, and if so, whose commit a reader of it depends on.
    ///
    /// Stores nothing to shared memory unless a change in the same bucket makes it look closer. The
    /// caller reads the row's page before and checks afterwards that it has not changed.
    #[inline]
    pub fn unlocked_for_read(&self, name: LockName) -> Option<Dependency> {
        let (summary, dependency) = self.bucket(name.hash()).glance();
        if !summary.has_writers() {
            return Some(dependency);
        }
        let latched = self.latch(name.hash());
        let is_free = !latched.of(name.hash()).any(|r| r.held.writes_key());
        is_free.then(|| latched.last_commit())
    }

    /// Whether `owner` may insert into the gap below `boundary`. The caller holds the page's latch.
    #[doc(hidden)]
    #[inline]
    pub fn check_gap(&self, owner: &Owner, boundary: LockName) -> GapCheck {
        // SeqCst: page latch, fence, look; against lock, fence, look at the page in `publish_locks`.
        fence(Ordering::SeqCst);
        if !self.bucket(boundary.hash()).glance().0.has_gaps() {
            return GapCheck::Free;
        }
        // Relaxed: set before anybody works, if at all.
        if self.ignores_gaps.load(Ordering::Relaxed) {
            return GapCheck::Free;
        }
        let latched = self.latch(boundary.hash());
        let mut check = GapCheck::Free;
        for request in latched.of(boundary.hash()) {
            if request.owner != owner.index && !request.held.is_compatible(Mode::INSERT) {
                return GapCheck::Blocked;
            }
            if request.owner == owner.index && request.held.reads_gap() {
                check = GapCheck::Mine;
            }
        }
        check
    }

    /// Makes sure that a page looked at from now on shows the changes of all who missed our locks.
    ///
    /// A scan calls it after its last lock on a leaf and before it validates the leaf.
    #[doc(hidden)]
    #[inline]
    pub fn publish_locks(&self) {
        // SeqCst: the other side of `check_gap` and `is_free`.
        fence(Ordering::SeqCst);
    }

    /// Whether nobody holds or awaits `name`, and nobody who did has a commit still to become durable.
    ///
    /// The caller holds the latch of the page in which the boundary disappears.
    #[inline]
    pub(crate) fn is_free(&self, name: LockName) -> bool {
        // Relaxed: set while nobody else works.
        if self.pins_boundaries.load(Ordering::Relaxed) {
            return false;
        }
        // SeqCst: page latch, fence, look; against lock, fence, look at the page in `publish_locks`.
        fence(Ordering::SeqCst);
        let (summary, dependency) = self.bucket(name.hash()).glance();
        (summary.is_empty() || self.latch(name.hash()).of(name.hash()).next().is_none())
            && (dependency.is_none() || self.log.is_durable(dependency.lsn()))
    }

    /// Bytes of memory in use.
    pub fn bytes_used(&self) -> usize {
        // Relaxed: a count.
        self.bytes_used.load(Ordering::Relaxed)
    }

    /// Bytes of memory allowed.
    pub fn bytes_max(&self) -> usize {
        self.options.bytes_max
    }

    #[inline]
    pub(super) fn latch(&self, hash: u64) -> Latched<'_> {
        let (latched, how) = self.bucket(hash).latch();
        if how == Latching::Contended {
            self.counters.latches_contended.add(1);
        }
        latched
    }

    #[inline]
    pub(super) fn bucket(&self, hash: u64) -> &Bucket {
        // The count is a power of two. Two neighbouring names share a bucket, which holds two requests
        // within its line.
        &self.buckets[(hash >> 1) as usize & (self.buckets.len() - 1)]
    }

    pub(super) fn slot(&self, index: OwnerIndex) -> &OwnerSlot {
        &self.slots[index as usize]
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Transactions that may be open at a time.
    pub fn owners_max(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn search_interval(&self) -> Duration {
        self.options.search_interval
    }

    pub(super) fn now(&self) -> Duration {
        self.env.now()
    }

    /// Takes note of a granted request; `try_lock` or `line_up` has made room in the list.
    #[inline]
    pub(super) fn note_granted(&self, owner: &mut Owner, hash: u64, acquired: Acquired) {
        if acquired == Acquired::Granted {
            owner.held.push(hash);
        }
        if acquired != Acquired::Covered {
            owner.acquired += 1;
        }
    }

    /// Doubles the room in a bucket.
    #[cold]
    pub(super) fn make_room(&self, latched: &mut Latched<'_>) -> Result<(), LockError> {
        let before = latched.bytes_spilled();
        // What the bucket had inside itself becomes part of what it has outside.
        let guess = (2 * before).max(4 * size_of::<Request>());
        self.charge(guess)?;
        latched.grow();
        self.give_back(guess + before - latched.bytes_spilled());
        Ok(())
    }

    /// Gives back what a rush has left in an empty bucket.
    fn tidy(&self, latched: &mut Latched<'_>) {
        let spilled = latched.bytes_spilled();
        if spilled > SPILL_KEPT && latched.iter().next().is_none() {
            latched.shrink();
            self.give_back(spilled - latched.bytes_spilled());
        }
    }

    #[cold]
    fn grow_list(&self, owner: &mut Owner) -> Result<(), LockError> {
        let before = owner.held.capacity();
        let inside = if owner.held.spilled() { before } else { 0 };
        self.charge((2 * before - inside) * size_of::<u64>())?;
        owner.held.reserve_exact(2 * before - owner.held.len());
        Ok(())
    }

    fn charge(&self, bytes: usize) -> Result<(), LockError> {
        let bytes_max = self.options.bytes_max;
        // Relaxed: a count; nothing is published through it.
        let before = self.bytes_used.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > bytes_max {
            self.give_back(bytes);
            return Err(LockError::TableFull { bytes_max });
        }
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        // Relaxed: a count; nothing is published through it.
        self.bytes_used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The dependency that a bucket has after `commit` released a lock there. Its position only grows.
    fn merge(&self, before: Dependency, commit: Dependency) -> Dependency {
        let both = before.and(commit);
        // Do not let an old strict commit make those who depend on lax ones wait for a sync.
        if before.level() > commit.level() && self.log.is_durable(before.lsn()) {
            return both.at(commit.level());
        }
        both
    }

    /// One of those that `owner`'s waiting request waits for.
    pub(super) fn first_in_the_way(&self, owner: &Owner, name: LockName) -> Option<TxnId> {
        let mut owners = Vec::new();
        self.latch(name.hash())
            .waits_for(name.hash(), owner.index, &mut owners);
        owners.first().map(|&index| self.slot(index).txn())
    }

    /// One of those that would stand in the way of a new request.
    fn first_in_the_way_of(&self, name: LockName, mode: Mode, me: OwnerIndex) -> Option<TxnId> {
        let latched = self.latch(name.hash());
        let index = latched
            .of(name.hash())
            .find(|r| r.owner != me && !r.wanted.is_compatible(mode))?
            .owner;
        Some(self.slot(index).txn())
    }
}

impl std::fmt::Debug for LockManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockManager")
            .field("buckets", &self.buckets.len())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
