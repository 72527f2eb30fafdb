//! Taking back a part of a transaction: to a savepoint, or what several statements did as one.
//!
//! A savepoint is the transaction's last record at that time. Going back undoes what is after it, by
//! key, so it does not matter where splits have moved the rows meanwhile; what else the log says of
//! pages stays. Locks are kept, and so is what was captured for snapshots: it is what the rows were.

use super::{State, Transaction};
use crate::error::{Result, TxnError};
use longshore_base::{Lsn, TxnId};

/// A position in a transaction to which it can be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Savepoint {
    txn: TxnId,
    number: u64,
}

/// The positions that a transaction can be taken back to.
#[derive(Debug, Default)]
pub(super) struct Savepoints {
    /// Oldest first.
    positions: Vec<(u64, Lsn)>,
    next: u64,
}

impl Transaction {
    /// A position to which [`Transaction::rollback_to`] can take this transaction back.
    pub fn savepoint(&mut self) -> Savepoint {
        let number = self.savepoints.next;
        self.savepoints.next += 1;
        let position = (number, self.work.last_lsn());
        self.savepoints.positions.push(position);
        Savepoint {
            txn: self.id(),
            number,
        }
    }

    /// Undoes what was done since `savepoint`, which stays usable; later ones are gone. Locks are kept.
    ///
    /// # Errors
    /// [`TxnError::SavepointGone`]; those of a rollback.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        self.check()?;
        let at = self.find(savepoint)?;
        self.savepoints.positions.truncate(at + 1);
        let lsn = self.savepoints.positions[at].1;
        self.undo_to(lsn)
    }

    /// Forgets `savepoint` and those taken after it. What was done since stays.
    ///
    /// # Errors
    /// [`TxnError::SavepointGone`].
    pub fn release_savepoint(&mut self, savepoint: &Savepoint) -> Result<()> {
        self.check()?;
        let at = self.find(savepoint)?;
        self.savepoints.positions.truncate(at);
        Ok(())
    }

    /// Where the savepoint is among those of this transaction.
    fn find(&self, savepoint: &Savepoint) -> Result<usize> {
        let positions = &self.savepoints.positions;
        positions
            .binary_search_by_key(&savepoint.number, |(number, _)| *number)
            .ok()
            .filter(|_| savepoint.txn == self.id())
            .ok_or(TxnError::SavepointGone)
    }

    /// Runs several statements as one: when `body` fails, what it has changed is undone. Locks are kept.
    ///
    /// # Errors
    /// What `body` returned; those of a rollback.
    pub fn atomically<T, E: From<TxnError>>(
        &mut self,
        body: impl FnOnce(&mut Transaction) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        self.check()?;
        let before = self.work.last_lsn();
        let outcome = body(self);
        let is_active = matches!(self.state, State::Active);
        if outcome.is_err() && is_active && self.work.last_lsn() != before {
            self.undo_to(before)?;
        }
        outcome
    }
}
