//! Whether the database may be used: open, closed, or stopped by a failure.
//!
//! | from | to       | by                                                    |
//! |------|----------|-------------------------------------------------------|
//! | open | closing  | [`Condition::close`]: no new transaction begins       |
//! | closing | open  | [`Condition::reopen`]: it could not be closed yet     |
//! | closing | closed | [`Condition::closed`]                                |
//! | any  | poisoned | [`Condition::poison`]: the first cause stays for good |
//!
//! # Ordering
//! The state is read before every call and written a few times in the life of a database. SeqCst on
//! closing pairs with `Engine::begin`, which registers its transaction and then looks again; the other steps are
//! SeqCst with it, and the store of POISONED carries the cause to whoever loads it.

use crate::error::{Error, Result};
use longshore_base::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

const OPEN: u8 = 0;
const CLOSING: u8 = 1;
const CLOSED: u8 = 2;
const POISONED: u8 = 3;

/// The state, and why it is what it is.
#[derive(Default)]
pub(crate) struct Condition {
    state: AtomicU8,
    /// Written once, before the state becomes `POISONED`.
    cause: OnceLock<Arc<str>>,
}

impl Condition {
    /// Fails unless the database is open.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        // SeqCst: see the header; a plain load on the machines we know.
        match self.state.load(Ordering::SeqCst) {
            OPEN => Ok(()),
            state => Err(self.refusal(state)),
        }
    }

    /// Fails only when the database is poisoned: what is left to do may be done while closing.
    pub(crate) fn check_poison(&self) -> Result<()> {
        // SeqCst: as in `check`; the cause comes with it.
        match self.state.load(Ordering::SeqCst) {
            POISONED => Err(self.refusal(POISONED)),
            _ => Ok(()),
        }
    }

    /// Refuses everything from now on, because of `cause` or whatever came first.
    pub(crate) fn poison(&self, cause: &Arc<str>) {
        self.cause.get_or_init(|| Arc::clone(cause));
        // SeqCst: pairs with the loads above, and stands in one order with the steps below.
        self.state.store(POISONED, Ordering::SeqCst);
    }

    /// Refuses new work while the database is closed; fails when it is not open.
    pub(crate) fn close(&self) -> Result<()> {
        // SeqCst: pairs with `check` in `Engine::begin`; see the header.
        match self
            .state
            .compare_exchange(OPEN, CLOSING, Ordering::SeqCst, Ordering::SeqCst)
        {
            Ok(_) => Ok(()),
            Err(state) => Err(self.refusal(state)),
        }
    }

    /// Takes back `close`.
    pub(crate) fn reopen(&self) {
        self.step(CLOSING, OPEN);
    }

    /// Closing is done.
    pub(crate) fn closed(&self) {
        self.step(CLOSING, CLOSED);
    }

    fn step(&self, from: u8, to: u8) {
        // A failure means that the database was poisoned meanwhile, which stays. SeqCst: as in `close`.
        let _ = self
            .state
            .compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst);
    }

    #[cold]
    fn refusal(&self, state: u8) -> Error {
        match (state, self.cause.get()) {
            (POISONED, Some(cause)) => Error::Poisoned {
                cause: Arc::clone(cause),
            },
            _ => Error::Closed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_can_be_taken_back() {
        let condition = Condition::default();
        condition.close().unwrap();
        assert!(matches!(condition.check(), Err(Error::Closed)));
        condition.reopen();
        condition.check().unwrap();
    }

    #[test]
    fn the_first_cause_stays() {
        let condition = Condition::default();
        condition.poison(&"first".into());
        condition.poison(&"second".into());
        condition.closed();
        condition.reopen();
        let message = condition.check().unwrap_err().to_string();
        assert!(message.ends_with("reopened: first"), "{message}");
        assert!(condition.check_poison().is_err());
    }
}
