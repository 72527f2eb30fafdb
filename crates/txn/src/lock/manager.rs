//! The lock table: buckets, owners' slots, and the budget over both.

use super::bucket::{Bucket, Latched};
use super::budget::Use;
use super::dependency::Dependency;
use super::error::LockError;
use super::escalation::Escalation;
use super::mode::{Above, Mode};
use super::name::LockName;
use super::owner::{Owner, OwnerSlot};
use super::queue::{Acquired, OWNERS_MAX, OwnerIndex};
use super::stats::Counters;
use super::table::TableHold;
use super::table_word::TableWords;
use super::wait::Wait;
use super::wakes::Wakes;
use crate::version::Past;
use longshore_base::sync::Mutex;
use longshore_base::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
use longshore_base::{Durability, Environment, Lsn, StoreId, TxnId};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How large a lock manager is and how it waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockOptions {
    /// Memory for buckets, requests and lists of locks held.
    pub bytes_max: usize,
    /// Transactions that may be open at a time; at most 65,536.
    pub owners_max: usize,
    /// How often a waiting transaction looks for deadlocks again.
    pub search_interval: Duration,
    /// When locks on rows are traded for one on their table, unless a table has its own rule.
    pub escalation: Escalation,
}

impl Default for LockOptions {
    fn default() -> Self {
        LockOptions {
            bytes_max: 32 << 20,
            owners_max: 1024,
            search_interval: Duration::from_millis(50),
            escalation: Escalation::At(10_000),
        }
    }
}

/// The part of the budget that goes to buckets, as a divisor.
const BUCKETS_SHARE: usize = 32;
/// Buckets that even the smallest table has.
const BUCKETS_MIN: usize = if cfg!(loom) { 1 } else { 64 };
/// Buckets that even the largest table has; a handful under the model checker.
const BUCKETS_MAX: usize = if cfg!(loom) { 1 } else { 1 << 24 };
/// The locks of one database.
pub struct LockManager {
    buckets: Box<[Bucket]>,
    slots: Box<[OwnerSlot]>,
    /// Slots from here on were never used. Only grows.
    owners_seen: AtomicU32,
    pub(super) tables: TableWords,
    /// Tables with a rule of their own for escalation.
    pub(super) exceptions: Mutex<HashMap<StoreId, Escalation>>,
    options: LockOptions,
    /// The time in nanoseconds, as somebody saw it lately: a hint, for views.
    lately: AtomicU64,
    /// Bytes charged. Touched only when something grows or shrinks.
    pub(super) bytes_used: AtomicUsize,
    counters: Counters,
    /// No boundary may vanish. Written while nobody else is there, read under page latches.
    pins_boundaries: AtomicBool,
    /// Inserts pay no heed to gaps that others have read. Written by tests only.
    ignores_gaps: AtomicBool,
    log: Arc<dyn Durability>,
    pub(super) env: Arc<dyn Environment>,
    /// What snapshots may need. Set before anybody works.
    pub(super) past: OnceLock<Arc<Past>>,
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
    ///
    /// # Panics
    /// If `owners_max` is above its bound.
    pub fn new(
        options: LockOptions,
        log: Arc<dyn Durability>,
        env: Arc<dyn Environment>,
    ) -> Arc<LockManager> {
        assert!(options.owners_max <= OWNERS_MAX, "requests number them");
        let share = options.bytes_max / BUCKETS_SHARE / size_of::<Bucket>();
        let buckets = (share.clamp(BUCKETS_MIN, BUCKETS_MAX) + 1).next_power_of_two() / 2;
        let now = env.now().as_nanos() as u64;
        Arc::new(LockManager {
            buckets: (0..buckets).map(|_| Bucket::default()).collect(),
            slots: (0..options.owners_max)
                .map(|_| OwnerSlot::default())
                .collect(),
            owners_seen: AtomicU32::new(0),
            tables: TableWords::new(),
            exceptions: Mutex::new(HashMap::new()),
            bytes_used: AtomicUsize::new(
                buckets * size_of::<Bucket>()
                    + options.owners_max * size_of::<OwnerSlot>()
                    + TableWords::bytes(),
            ),
            options,
            lately: AtomicU64::new(now),
            counters: Counters::default(),
            pins_boundaries: AtomicBool::new(false),
            ignores_gaps: AtomicBool::new(false),
            log,
            env,
            past: OnceLock::new(),
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
        // Relaxed: a hint, see `note_time`.
        let since = Duration::from_nanos(self.lately.load(Ordering::Relaxed));
        self.slots[index].register(txn, since);
        let index = OwnerIndex::try_from(index).expect("fewer than 2^32 owners");
        // Relaxed: as a word is ordered against whoever looks for it, so is this, which comes before.
        if index >= self.owners_seen.load(Ordering::Relaxed) {
            self.owners_seen.fetch_max(index + 1, Ordering::Relaxed);
        }
        Owner::new(index, txn)
    }

    /// Gives `owner` the lock `mode` on the row `name`, beside what it holds there, and what it needs
    /// on the table; waits as `wait` says.
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
        match self.try_lock(owner, name, mode) {
            Ok(true) => Ok(()),
            outcome => self.lock_blocked(owner, name, mode, wait, outcome),
        }
    }

    /// Gives `owner` the lock on the row, and what it needs on the table, if nobody is in the way.
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
        match owner.above(name.store(), mode) {
            Above::Covers => {
                self.depend_on_row(owner, name);
                return Ok(true);
            }
            Above::Permits if owner.held.len() < owner.held.capacity() => {}
            _ => return self.try_lock_with_room(owner, name, mode),
        }
        let hash = name.hash();
        let mut latched = self.latch(hash);
        let acquired = latched.acquire(name, owner.index, mode);
        match acquired {
            Acquired::Blocked => return Ok(false),
            Acquired::Full => {
                drop(latched);
                return self.try_lock_with_room(owner, name, mode);
            }
            _ => {}
        }
        owner.depend_on(latched.last_commit());
        drop(latched);
        self.note_granted(owner, hash, acquired);
        Ok(true)
    }

    /// A lock above the row spares the one on it, not the wait for those who changed it before: they
    /// have left their commits in the bucket, or in the table's word, before their locks above went.
    #[inline]
    fn depend_on_row(&self, owner: &mut Owner, name: LockName) {
        owner.depend_on(self.bucket(name.hash()).glance().1);
        owner.depend_on(self.tables.of(name.store()).glance().1);
    }

    /// Like `try_lock`, for one who needs more on the table or more memory first.
    #[cold]
    fn try_lock_with_room(
        &self,
        owner: &mut Owner,
        name: LockName,
        mode: Mode,
    ) -> Result<bool, LockError> {
        let store = name.store();
        if owner.above(store, mode) == Above::Lacks
            && self.lock_above(owner, store, mode, Wait::No)?.is_some()
        {
            return Ok(false);
        }
        match owner.above(store, mode) {
            Above::Covers => {
                self.depend_on_row(owner, name);
                return Ok(true);
            }
            Above::Permits => {}
            Above::Lacks => unreachable!("it was just taken"),
        }
        let acquired = match self.ask_with_room(owner, name, mode) {
            Err(full @ LockError::TableFull { .. }) => match self.relieve(owner, Wait::No)? {
                true => self.ask_with_room(owner, name, mode)?,
                false => return Err(full),
            },
            outcome => outcome?,
        };
        if acquired == Acquired::Blocked {
            return Ok(false);
        }
        self.note_granted(owner, name.hash(), acquired);
        if self.is_pressed() {
            self.relieve(owner, Wait::No)?;
        }
        Ok(true)
    }

    fn ask_with_room(
        &self,
        owner: &mut Owner,
        name: LockName,
        mode: Mode,
    ) -> Result<Acquired, LockError> {
        if owner.above(name.store(), mode) == Above::Covers {
            self.depend_on_row(owner, name);
            return Ok(Acquired::Covered);
        }
        if owner.held.len() == owner.held.capacity() {
            self.grow_list(owner)?;
        }
        self.request(owner, name, mode)
    }

    /// Asks the queue of `name`, making room where there is none.
    pub(super) fn request(
        &self,
        owner: &mut Owner,
        name: LockName,
        mode: Mode,
    ) -> Result<Acquired, LockError> {
        let mut latched = self.latch(name.hash());
        let mut acquired = latched.acquire(name, owner.index, mode);
        if acquired == Acquired::Full {
            self.make_room(&mut latched, Use::of(name))?;
            acquired = latched.acquire(name, owner.index, mode);
        }
        if acquired != Acquired::Blocked {
            owner.depend_on(latched.last_commit());
        }
        Ok(acquired)
    }

    /// What follows an attempt that did not succeed.
    #[cold]
    fn lock_blocked(
        &self,
        owner: &mut Owner,
        name: LockName,
        mode: Mode,
        wait: Wait,
        attempt: Result<bool, LockError>,
    ) -> Result<(), LockError> {
        if let Err(full) = attempt {
            // Waiting for a table may free what is missing.
            return match matches!(full, LockError::TableFull { .. }) && self.relieve(owner, wait)? {
                true => self.lock(owner, name, mode, wait),
                false => Err(full),
            };
        }
        let Wait::For(limit) = wait else {
            return Err(self.refused_row(owner, name, mode));
        };
        if limit.is_zero() {
            return Err(self.refused_row(owner, name, mode));
        }
        let store = name.store();
        if owner.above(store, mode) == Above::Lacks {
            self.lock_above(owner, store, mode, wait)?;
            return self.lock(owner, name, mode, wait);
        }
        self.lock_waiting(owner, name, mode, limit)
    }

    /// The error of one who does not wait for a row.
    fn refused_row(&self, owner: &mut Owner, name: LockName, mode: Mode) -> LockError {
        match owner.above(name.store(), mode) {
            Above::Lacks => {
                let table = LockName::of_table(name.store());
                self.refused(owner, table, mode.intent())
            }
            _ => self.refused(owner, name, mode),
        }
    }

    /// The error of one who does not wait.
    pub(super) fn refused(&self, owner: &Owner, name: LockName, mode: Mode) -> LockError {
        self.counters.timeouts.add(1);
        LockError::Timeout {
            name,
            waited: Duration::ZERO,
            holder: self.first_in_the_way_of(name, mode, owner.index),
        }
    }

    /// Ends all of `owner`'s locks. Whoever takes over a key that it changed depends on `commit`.
    ///
    /// `commit` is [`Dependency::NONE`] for a transaction that has changed nothing or undone it all.
    pub fn release_all(&self, owner: &mut Owner, commit: Dependency) {
        let mut wakes = Wakes::default();
        for &hash in &owner.held {
            self.release_row(owner.index, hash, commit, &mut wakes);
        }
        if owner.held.spilled() {
            self.give_back(owner.held.capacity() * size_of::<u64>());
        }
        owner.held = SmallVec::new();
        self.release_tables(owner, commit, &mut wakes);
        self.counters.acquired.add(owner.acquired);
        owner.acquired = 0;
        self.slot(owner.index).leave();
        self.wake(wakes);
    }

    /// Ends what `owner` holds on tables, those taken last first.
    #[inline]
    fn release_tables(&self, owner: &mut Owner, commit: Dependency, wakes: &mut Wakes) {
        for hold in owner.tables.iter().rev() {
            self.release_table(owner, hold, commit, wakes);
        }
        if owner.tables.spilled() {
            self.give_back(owner.tables.capacity() * size_of::<TableHold>());
        }
        owner.forget_tables();
    }

    /// Ends one lock on a row.
    #[inline]
    fn release_row(&self, owner: OwnerIndex, hash: u64, commit: Dependency, wakes: &mut Wakes) {
        let mut latched = self.latch(hash);
        let Some(released) = latched.release_any(hash, owner) else {
            return;
        };
        if released.held.writes_key() && commit.lsn() != Lsn::ZERO {
            let before = latched.last_commit();
            latched.raise_last_commit(self.merge(before, commit));
        }
        self.serve(&mut latched, released.name(), wakes);
    }

    /// Sees to those whom nothing blocks any more, after a request has left.
    #[inline]
    pub(super) fn serve(&self, latched: &mut Latched<'_>, name: LockName, wakes: &mut Wakes) {
        if latched.has_waiters(name) {
            latched.serve(name, |index, turn| self.tell(index, turn, wakes));
        }
        if latched.is_spilled() {
            self.tidy(latched);
        }
    }

    /// Whether nobody is changing the key `name`, and if so, whose commit a reader of it depends on.
    ///
    /// Stores nothing to shared memory unless a change in the same bucket makes it look closer. The
    /// caller reads the row's page before and checks afterwards that it has not changed.
    #[inline]
    pub fn unlocked_for_read(&self, name: LockName) -> Option<Dependency> {
        let row = self.bucket(name.hash()).unlocked_for_read(name)?;
        let table = self.table_for_read(name.store())?;
        Some(row.and(table))
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
        for request in latched.of(boundary) {
            if request.owner() != owner.index && !request.held.is_compatible(Mode::INSERT) {
                return GapCheck::Blocked;
            }
            if request.owner() == owner.index && request.held.reads_gap() {
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

    /// Whether nobody holds or awaits `name`, which is that of `key`, nobody who did has a commit still to
    /// become durable, and open snapshots find the row as it was before without a slot.
    ///
    /// The caller holds the latch of the page in which the boundary disappears.
    #[inline]
    pub(crate) fn is_free(&self, name: LockName, key: &[u8]) -> bool {
        // Relaxed: set while nobody else works.
        if self.pins_boundaries.load(Ordering::Relaxed) {
            return false;
        }
        // SeqCst: page latch, fence, look; against lock, fence, look at the page in `publish_locks`.
        fence(Ordering::SeqCst);
        let (summary, row) = self.bucket(name.hash()).glance();
        if !summary.is_empty() && self.latch(name.hash()).of(name).next().is_some() {
            return false;
        }
        // A row changed under a lock on its table must keep its ghost too.
        let Some(table) = self.table_for_read(name.store()) else {
            return false;
        };
        let dependency = row.and(table);
        (dependency.is_none() || self.log.is_durable(dependency.lsn()))
            && self.snapshots_let_go(name, key, dependency.lsn())
    }

    #[inline]
    pub(super) fn latch(&self, hash: u64) -> Latched<'_> {
        let bucket = self.bucket(hash);
        match bucket.try_latch() {
            Some(latched) => latched,
            None => self.latch_contended(bucket),
        }
    }

    #[cold]
    fn latch_contended<'a>(&self, bucket: &'a Bucket) -> Latched<'a> {
        self.counters.latches_contended.add(1);
        bucket.latch()
    }

    #[inline]
    pub(super) fn bucket(&self, hash: u64) -> &Bucket {
        // The count is a power of two. Two neighbouring names share a bucket, which holds two requests
        // within its line.
        &self.buckets[(hash >> 1) as usize & (self.buckets.len() - 1)]
    }

    pub(super) fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    pub(super) fn options(&self) -> &LockOptions {
        &self.options
    }

    /// Owners from this number on have never been.
    pub(super) fn owners_seen(&self) -> OwnerIndex {
        // Relaxed: ordered as the words of the owners are; see `register`.
        self.owners_seen.load(Ordering::Relaxed)
    }

    /// Looks at the clock, so that transactions that begin from now on know how late it is: the ages
    /// that views show are as exact as this is called often.
    pub fn note_time(&self) -> Duration {
        let now = self.now();
        // Relaxed: a hint.
        self.lately.store(now.as_nanos() as u64, Ordering::Relaxed);
        now
    }

    /// Whether the transaction has been told to end by [`LockManager::cancel`].
    #[inline]
    pub fn is_cancelled(&self, owner: &Owner) -> bool {
        self.slot(owner.index).is_cancelled(owner.txn)
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
        if acquired == Acquired::Covered {
            return;
        }
        owner.acquired += 1;
        if acquired == Acquired::Granted {
            owner.held.push(hash);
            let hold = &mut owner.tables[owner.current];
            hold.rows += 1;
            if hold.rows >= hold.escalate_at {
                self.escalate_by_count(owner);
            }
        }
    }

    /// The dependency that a bucket has after `commit` released a lock there. Its position only grows.
    pub(super) fn merge(&self, before: Dependency, commit: Dependency) -> Dependency {
        let both = before.and(commit);
        // Do not let an old strict commit make those who depend on lax ones wait for a sync.
        if before.level() > commit.level() && self.log.is_durable(before.lsn()) {
            return both.at(commit.level());
        }
        both
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
