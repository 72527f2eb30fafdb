//! Locks on tables and on the database, and what a row's lock needs above it.
//!
//! # Protocol
//! A row is locked under an intent on its table, and a table under an intent on the database; both are
//! taken when they are first needed. Who holds all of a table, in a mode that covers what it does to a
//! row, needs no lock on the row. Intents are taken by a word where that is possible (`intent`); all
//! else goes through the queue of the table's name, beside those of the rows.
//!
//! # Readers without locks, and boundaries
//! A row changed under a table's X has no lock of its own, so whoever reads without locks, or lets a
//! boundary vanish, looks at the table's word after the bucket: one who escalates has the table before
//! it lets go of the rows. A commit under X is left in the table's word, before the lock goes. Whoever
//! takes an intent depends on it, and so does whoever reads without a lock.
//!
//! A gap that was read under a table's S needs no look by an insert: the insert is under IX, which
//! excludes S, so either came after the other had ended.

use super::dependency::Dependency;
use super::error::LockError;
use super::manager::LockManager;
use super::mode::{Mode, TableMode};
use super::name::LockName;
use super::owner::Owner;
use super::queue::Acquired;
use super::wait::Wait;
use super::wakes::Wakes;
use longshore_base::{Lsn, StoreId};

/// What a transaction holds on a table, or on the database.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableHold {
    pub store: StoreId,
    pub mode: Mode,
    pub place: Place,
    /// Locks on rows of the table.
    pub rows: u32,
    /// With how many of them to try for the whole table.
    pub escalate_at: u32,
}

/// Where others can see what a transaction holds on a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// In this word of the owner's slot.
    Word(u8),
    /// In the queue of the table's name.
    Queue,
}

impl LockManager {
    /// Gives `owner` the table `store` in `mode`, beside what it holds; waits as `wait` says.
    ///
    /// To be called with no latch held unless `wait` is [`Wait::No`].
    ///
    /// # Errors
    /// [`LockError`]; what the owner held before it still holds.
    pub fn lock_table(
        &self,
        owner: &mut Owner,
        store: StoreId,
        mode: TableMode,
        wait: Wait,
    ) -> Result<(), LockError> {
        let mode = Mode::table(mode);
        for (level, mode) in [(StoreId::NONE, mode.intent()), (store, mode)] {
            if !self.lock_level(owner, level, mode, wait)? {
                return Err(self.refused(owner, LockName::of_table(level), mode));
            }
        }
        Ok(())
    }

    /// Gives `owner` the whole database in `mode`. Like [`LockManager::lock_table`].
    ///
    /// # Errors
    /// Those of [`LockManager::lock_table`].
    pub fn lock_database(
        &self,
        owner: &mut Owner,
        mode: TableMode,
        wait: Wait,
    ) -> Result<(), LockError> {
        let mode = Mode::table(mode);
        match self.lock_level(owner, StoreId::NONE, mode, wait)? {
            true => Ok(()),
            false => Err(self.refused(owner, LockName::of_database(), mode)),
        }
    }

    /// Takes what must be held on the database and the table before a row is locked in mode `row`;
    /// the name that is not to be had, if there is one.
    pub(super) fn lock_above(
        &self,
        owner: &mut Owner,
        store: StoreId,
        row: Mode,
        wait: Wait,
    ) -> Result<Option<(LockName, Mode)>, LockError> {
        let intent = row.intent();
        if !self.lock_level(owner, StoreId::NONE, intent, wait)? {
            return Ok(Some((LockName::of_database(), intent)));
        }
        // Who has the database needs no locks on rows; the whole table is to be had.
        let database = owner.mode_on(StoreId::NONE);
        let mode = match (database.covers_row(row), intent == Mode::INTENT_SHARED) {
            (false, _) => intent,
            (true, true) => Mode::table(TableMode::Shared),
            (true, false) => database,
        };
        let is_had = self.lock_level(owner, store, mode, wait)?;
        Ok((!is_had).then_some((LockName::of_table(store), mode)))
    }

    /// Gives `owner` `mode` on one table, or on the database, beside what it holds there; false if
    /// others are in the way and it is not to wait.
    #[inline]
    pub(super) fn lock_level(
        &self,
        owner: &mut Owner,
        store: StoreId,
        mode: Mode,
        wait: Wait,
    ) -> Result<bool, LockError> {
        let held = owner.mode_on(store);
        let wanted = held.supremum(mode);
        if wanted == held || wanted.is_intent() && self.intend(owner, store, wanted) {
            return Ok(true);
        }
        self.ask_for_table(owner, store, wanted, wait)
    }

    /// Asks the queue of the table's name.
    #[cold]
    fn ask_for_table(
        &self,
        owner: &mut Owner,
        store: StoreId,
        wanted: Mode,
        wait: Wait,
    ) -> Result<bool, LockError> {
        if owner.tables.len() == owner.tables.capacity() {
            self.grow_tables(owner)?;
        }
        if let Some(at) = owner.position(store) {
            self.leave_word(owner, at)?;
        }
        if wanted.is_intent() {
            return self.ask_queue(owner, store, wanted, wait);
        }
        let word = self.tables.of(store);
        let is_raised = owner.mode_on(store).is_strong();
        if !is_raised {
            word.raise();
        }
        let outcome = self
            .transfer_all(owner.index, store, wanted)
            .and_then(|()| self.ask_queue(owner, store, wanted, wait));
        if !is_raised && outcome != Ok(true) {
            word.lower();
        }
        outcome
    }

    fn ask_queue(
        &self,
        owner: &mut Owner,
        store: StoreId,
        wanted: Mode,
        wait: Wait,
    ) -> Result<bool, LockError> {
        self.counters().intents_queued.add(1);
        let name = LockName::of_table(store);
        let is_had = self.request(owner, name, wanted)? != Acquired::Blocked
            || match wait {
                Wait::For(limit) if !limit.is_zero() => {
                    self.lock_waiting(owner, name, wanted, limit)?;
                    true
                }
                _ => false,
            };
        if is_had {
            owner.depend_on(self.tables.of(store).glance().1);
            let escalate_at = self.escalate_at(store);
            owner.note_table(store, wanted, escalate_at);
        }
        Ok(is_had)
    }

    /// Ends what is held on a table or the database. Whoever comes to a table that could be changed
    /// as a whole depends on `commit`.
    #[inline]
    pub(super) fn release_table(
        &self,
        owner: &Owner,
        hold: &TableHold,
        commit: Dependency,
        wakes: &mut Wakes,
    ) {
        match hold.place {
            Place::Word(index) if self.clear_word(owner.index, index) => {}
            _ => self.release_queued(owner, hold.store, commit, wakes),
        }
    }

    #[cold]
    fn release_queued(&self, owner: &Owner, store: StoreId, commit: Dependency, wakes: &mut Wakes) {
        let name = LockName::of_table(store);
        let word = self.tables.of(store);
        let mut latched = self.latch(name.hash());
        let held = latched.release(name, owner.index).unwrap_or(Mode::NONE);
        if held.writes_table() && commit.lsn() != Lsn::ZERO {
            // Before the request is seen to be gone, and before `lower` (H5).
            word.raise_last_commit(|before| self.merge(before, commit));
        }
        self.serve(&mut latched, name, wakes);
        drop(latched);
        if held.is_strong() {
            word.lower();
        }
    }

    /// Whether nobody may change rows of `store` without locking them, and whose commit a reader of the
    /// table depends on. To be asked after the bucket of a row.
    #[inline]
    pub(super) fn table_for_read(&self, store: StoreId) -> Option<Dependency> {
        let mut dependency = Dependency::NONE;
        for store in [store, StoreId::NONE] {
            let (is_wanted, last_commit) = self.tables.of(store).glance();
            dependency = dependency.and(last_commit);
            if is_wanted {
                dependency = dependency.and(self.look_closer(store)?);
            }
        }
        Some(dependency)
    }

    #[cold]
    fn look_closer(&self, store: StoreId) -> Option<Dependency> {
        let name = LockName::of_table(store);
        let latched = self.latch(name.hash());
        let is_free = !latched.of(name).any(|r| r.held.writes_table());
        // After the latch: who has left the queue has left its commit (H5).
        is_free.then(|| self.tables.of(store).glance().1)
    }
}
