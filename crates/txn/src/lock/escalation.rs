//! From many locks on rows to one on their table.
//!
//! # Protocol
//! Each owner counts its locks on the rows of each table. When there are as many as the table's
//! threshold it tries for the whole table: S if it has only read, X otherwise, without waiting. If it is
//! granted, the locks on the rows are dropped; none is needed from then on. If others are in the way,
//! it goes on by rows and tries again at twice the number.
//!
//! When memory for locks runs short (seven eighths are in use) whoever needs more of it tries this with
//! the table of which it has most rows; when there is none left, it waits for that table, if it may.
//!
//! The engine's own trees are exempt, and each table may be: see [`LockManager::set_escalation`].

use super::error::LockError;
use super::manager::LockManager;
use super::mode::{Mode, TableMode};
use super::name::LockName;
use super::owner::Owner;
use super::queue::OwnerIndex;
use super::wait::Wait;
use super::wakes::Wakes;
use longshore_base::sync::atomic::Ordering;
use longshore_base::{StoreId, crash_point};

/// When a transaction trades its locks on rows for one on the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Escalation {
    /// With so many locks on rows of the table, or when memory for locks runs short.
    At(u32),
    /// Never.
    Never,
}

impl Escalation {
    fn rows(self) -> u32 {
        match self {
            Escalation::At(rows) => rows.clamp(1, NEVER - 1),
            Escalation::Never => NEVER,
        }
    }
}

const NEVER: u32 = u32::MAX;
/// Fewer locks than these are not worth a table when memory runs short.
const ROWS_MIN: u32 = 32;
/// Memory runs short when this part of it is in use.
const PRESSED: (usize, usize) = (7, 8);

impl LockManager {
    /// Gives one table another threshold; `None` gives it the common one again.
    ///
    /// For transactions that come to the table from now on.
    pub fn set_escalation(&self, store: StoreId, escalation: Option<Escalation>) {
        let mut exceptions = self.exceptions.lock();
        let before = match escalation {
            Some(escalation) => exceptions.insert(store, escalation),
            None => exceptions.remove(&store),
        };
        let count = &self.tables.of(store).exceptions;
        // Relaxed: a hint which tells that the map is worth a look; nothing else depends on it.
        match (before, escalation) {
            (None, Some(_)) => drop(count.fetch_add(1, Ordering::Relaxed)),
            (Some(_), None) => drop(count.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
    }

    /// The number of rows with which to try for the table.
    #[inline]
    pub(super) fn escalate_at(&self, store: StoreId) -> u32 {
        if store < StoreId::FIRST_USER {
            return NEVER;
        }
        // Relaxed: see `set_escalation`.
        if self.tables.of(store).exceptions.load(Ordering::Relaxed) != 0
            && let Some(escalation) = self.exceptions.lock().get(&store)
        {
            return escalation.rows();
        }
        self.options().escalation.rows()
    }

    /// Tries for the table of which `owner` has as many rows as the threshold says.
    #[cold]
    pub(super) fn escalate_by_count(&self, owner: &mut Owner) {
        let at = owner.current;
        // Whatever is in the way, the rows are locked.
        if !matches!(self.escalate(owner, at, Wait::No), Ok(true)) {
            let hold = &mut owner.tables[at];
            hold.escalate_at = hold.rows.saturating_mul(2).min(NEVER - 1);
        }
    }

    /// Tries for the table of which `owner` has most rows, to free memory; false if there is none
    /// that is worth it, or others are in the way.
    ///
    /// # Errors
    /// Those of waiting.
    #[cold]
    pub(super) fn relieve(&self, owner: &mut Owner, wait: Wait) -> Result<bool, LockError> {
        let holds = owner.tables.iter().enumerate();
        let most = holds
            .filter(|(_, hold)| hold.escalate_at != NEVER && hold.rows >= ROWS_MIN)
            .max_by_key(|(_, hold)| hold.rows);
        match most {
            Some((at, _)) => self.escalate(owner, at, wait),
            None => Ok(false),
        }
    }

    /// Trades the rows of the current table at once, for tests.
    #[doc(hidden)]
    pub fn escalate_now(&self, owner: &mut Owner) {
        let at = owner.current;
        assert_eq!(self.escalate(owner, at, Wait::No), Ok(true));
    }

    /// Whether memory for locks runs short.
    pub(super) fn is_pressed(&self) -> bool {
        self.bytes_used() / PRESSED.0 > self.bytes_max() / PRESSED.1
    }

    fn escalate(&self, owner: &mut Owner, at: usize, wait: Wait) -> Result<bool, LockError> {
        let hold = owner.tables[at];
        let whole = match hold.mode.permits_row(Mode::WRITE) {
            true => TableMode::Exclusive,
            false => TableMode::Shared,
        };
        let is_had = self.lock_level(owner, hold.store, Mode::table(whole), wait);
        let counters = self.counters();
        match is_had {
            Ok(true) => {
                counters.escalations.add(1);
                self.drop_rows(owner, at);
                crash_point("lock.escalated");
            }
            _ => counters.escalations_refused.add(1),
        }
        is_had
    }

    /// Releases the locks on the rows of a table that is held in a mode that covers them all.
    fn drop_rows(&self, owner: &mut Owner, at: usize) {
        let (store, index) = (owner.tables[at].store, owner.index);
        let mut wakes = Wakes::default();
        owner.held.retain(|hash| {
            let name = LockName::of_row_in(store, *hash);
            !name.is_some_and(|name| self.drop_row(index, name, &mut wakes))
        });
        owner.tables[at].rows = 0;
        self.shrink_list(owner);
        self.wake(wakes);
    }

    /// Releases the lock on a row; false if there is none, for the list has words that two stores share.
    ///
    /// The commit will be left in the table's word, not here.
    fn drop_row(&self, owner: OwnerIndex, name: LockName, wakes: &mut Wakes) -> bool {
        let mut latched = self.latch(name.hash());
        let is_held = latched.release(name, owner).is_some();
        self.serve(&mut latched, name, wakes);
        is_held
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::lock::{Dependency, LockOptions};
    use longshore_base::{Durability, DurabilityLost, Lsn, SystemEnvironment, TxnId};
    use std::sync::Arc;

    struct NoLog;

    impl Durability for NoLog {
        fn is_durable(&self, _: Lsn) -> bool {
            true
        }

        fn make_durable(&self, _: Lsn) -> Result<(), DurabilityLost> {
            Ok(())
        }
    }

    /// Rows of two tables whose names are one word: each has its lock, and keeps it when the other goes.
    #[test]
    fn rows_that_share_a_word_are_told_apart_by_the_rest_of_their_names() {
        let env = Arc::new(SystemEnvironment::new());
        let locks = LockManager::new(LockOptions::default(), Arc::new(NoLog), env);
        let word = LockName::of_key(StoreId::new(16), b"k").hash();
        let [a, b] = [0, 1].map(|rest| LockName::of_parts(word, rest));
        for (first, second) in [(a, b), (b, a)] {
            let mut owner = locks.register(0, TxnId::new(1));
            let mut other = locks.register(1, TxnId::new(2));
            for name in [first, second] {
                locks.lock(&mut owner, name, Mode::WRITE, Wait::No).unwrap();
            }
            assert_eq!(owner.locks_held(), 2);
            let at = owner.position(a.store()).unwrap();
            assert_eq!(locks.escalate(&mut owner, at, Wait::No), Ok(true));
            assert_eq!(owner.locks_held(), 1);
            let held = locks
                .holds(10)
                .into_iter()
                .filter(|hold| hold.row.is_some());
            assert!(held.map(|hold| hold.store).eq([b.store()]));
            assert!(!locks.try_lock(&mut other, b, Mode::READ).unwrap());
            locks.release_all(&mut owner, Dependency::NONE);
            assert!(locks.try_lock(&mut other, a, Mode::WRITE).unwrap());
            assert!(locks.try_lock(&mut other, b, Mode::WRITE).unwrap());
            locks.release_all(&mut other, Dependency::NONE);
        }
    }
}
