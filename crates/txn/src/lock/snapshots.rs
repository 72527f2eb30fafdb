//! What snapshots ask of the lock table, and it of them.

use super::bucket::Latched;
use super::dependency::Dependency;
use super::manager::LockManager;
use super::mode::Mode;
use super::name::LockName;
use crate::version::{Past, RowRef};
use longshore_base::{Environment, Lsn, StoreId, TxnId};
use std::sync::Arc;

/// What the lock table says of a key at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyWriter {
    /// Who has the right to change it: the slot and the transaction.
    pub holder: Option<(usize, TxnId)>,
    /// The newest commit that gave up the right to change it, or other keys of its bucket or table.
    pub last_commit: Dependency,
}

impl LockManager {
    /// Looks who has the right to change the key `name`, by a lock on it, on its table or on the database.
    ///
    /// In this order: one who escalates has the table before it lets go of its rows.
    pub(crate) fn key_writer(&self, name: LockName) -> KeyWriter {
        let (holder, mut last_commit) = {
            let latched = self.latch(name.hash());
            let holder = self.holder(&latched, name, Mode::writes_key);
            (holder, latched.last_commit())
        };
        let mut found = holder;
        for store in [name.store(), StoreId::NONE] {
            if found.is_none() && self.tables.of(store).glance().0 {
                let table = LockName::of_table(store);
                found = self.holder(&self.latch(table.hash()), table, Mode::writes_table);
            }
            // After the queue: who has left it has left its commit (H5).
            last_commit = last_commit.and(self.tables.of(store).glance().1);
        }
        KeyWriter {
            holder: found,
            last_commit,
        }
    }

    /// Whether no snapshot, open or to come, needs the slot of `key` to find the state before the commit
    /// at `lsn`. See [`Past::let_go`].
    pub(super) fn snapshots_let_go(&self, name: LockName, key: &[u8], lsn: Lsn) -> bool {
        let past = self.past.get();
        past.is_none_or(|past| past.let_go(RowRef::new(name, key), lsn))
    }

    /// Asks `past` from now on, too, before a ghost goes.
    pub(crate) fn keep_for(&self, past: &Arc<Past>) {
        // A second manager of transactions is a mistake that nothing depends on.
        let _ = self.past.set(Arc::clone(past));
    }

    pub(crate) fn env(&self) -> &Arc<dyn Environment> {
        &self.env
    }

    fn holder(
        &self,
        latched: &Latched<'_>,
        name: LockName,
        writes: impl Fn(Mode) -> bool,
    ) -> Option<(usize, TxnId)> {
        let request = latched.of(name).find(|r| writes(r.held))?;
        Some((request.owner() as usize, self.slot(request.owner()).txn()))
    }
}
