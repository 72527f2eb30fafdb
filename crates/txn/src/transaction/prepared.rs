//! Two-phase commit: transactions that can no longer fail, and wait for somebody else's decision.
//!
//! # Protocol
//! A coordinator that spans several databases asks each to *prepare* its part under a name, the gid. Who has
//! answered yes has given up the right to say no: the part commits or rolls back as it is told, whatever
//! crashes come between.
//!
//! | step | log | locks |
//! |---|---|---|
//! | `prepare` | PREPARE with the gid, chained to the transaction's records; as durable as asked | all kept |
//! | `commit_prepared` | COMMIT | released as ever |
//! | `rollback_prepared` | CLRs, END | released as ever |
//!
//! The transaction itself moves into the manager's list, with its slot: its position there keeps the log that
//! undo needs, its images stay for snapshots, and it counts as open. Its locks on what it has read are kept
//! as well: it takes its place in the serial order with COMMIT, and what it has read must still be so then.
//!
//! # Restart
//! Analysis finds the transactions whose last record is PREPARE. Each is *adopted* before the losers are
//! undone, and before anybody else begins: it gets a slot under its own number, publishes its first record's
//! position, and its chain of records, less what was undone before it was prepared, is walked for the rows it
//! has changed. These it locks again, and captures what they were, which the records tell: see [`Former`].
//! What it had only read is not in the log, so after a restart nobody keeps that from being changed.
//!
//! A rollback that a crash cut off has left CLRs behind PREPARE: then the decision was made, and the
//! transaction is a loser like others.
//!
//! # Invariants
//! P1. A gid names one transaction in the list from before its PREPARE is logged until after its COMMIT or END
//!     is: no two in the log without an end have the same.
//! P2. A prepared transaction needs no more log space, locks or memory to end either way.

use super::manager::{Core, TransactionManager};
use super::work::Work;
use super::{Commit, CommitHandle, State, Transaction, commit, undo};
use crate::error::{Result, TxnError};
use crate::lock::{Dependency, Escalation, LockName, Mode};
use crate::record::PREPARE;
use longshore_access::record::{CLR, ROW, RowRecord};
use longshore_access::{LogContext, Patience, RowFlags, RowOp, Slot, Tree, ValueKind};
use longshore_base::sync::Mutex;
use longshore_base::{Lsn, StoreId, TxnId, crash_point};
use longshore_log::{Level, Log};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The longest gid, in bytes.
pub const GID_BYTES_MAX: usize = 255;

/// The prepared transactions by gid.
#[derive(Default)]
pub(crate) struct PreparedOnes {
    /// Without a transaction while it is on its way in or out (P1).
    by_gid: Mutex<BTreeMap<Vec<u8>, Option<Waiting>>>,
}

struct Waiting {
    transaction: Transaction,
    since: Duration,
}

/// A prepared transaction, for views.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedView {
    /// Its name.
    pub gid: Vec<u8>,
    /// Its number.
    pub txn: TxnId,
    /// How long it has been prepared, or known to be since the restart.
    pub age: Duration,
}

impl PreparedOnes {
    fn reserve(&self, gid: &[u8]) -> Result<()> {
        let mut by_gid = self.by_gid.lock();
        if by_gid.contains_key(gid) {
            return Err(TxnError::AlreadyPrepared { gid: gid.into() });
        }
        by_gid.insert(gid.to_vec(), None);
        Ok(())
    }

    fn put(&self, gid: &[u8], transaction: Transaction, since: Duration) {
        let waiting = Waiting { transaction, since };
        self.by_gid.lock().insert(gid.to_vec(), Some(waiting));
    }

    /// Takes the transaction out and keeps its gid.
    fn take(&self, gid: &[u8]) -> Result<Transaction> {
        let mut by_gid = self.by_gid.lock();
        let waiting = by_gid.get_mut(gid).and_then(Option::take);
        waiting
            .map(|waiting| waiting.transaction)
            .ok_or_else(|| TxnError::NotPrepared { gid: gid.into() })
    }

    fn forget(&self, gid: &[u8]) {
        self.by_gid.lock().remove(gid);
    }

    /// Lets go of all of them, without ending them: the next restart finds them again.
    pub fn abandon(&self) {
        let all = std::mem::take(&mut *self.by_gid.lock());
        for waiting in all.into_values().flatten() {
            let mut transaction = waiting.transaction;
            transaction.state = State::Gone;
            drop(transaction);
        }
    }
}

impl TransactionManager {
    /// Prepares a transaction under a name of 1 to [`GID_BYTES_MAX`] bytes; the handle tells when that may be
    /// answered. After an error it was rolled back.
    ///
    /// # Errors
    /// [`TxnError::AlreadyPrepared`]; [`TxnError::GidLength`]; those of
    /// [`Transaction::commit`](super::Transaction::commit), and of a full log.
    pub fn prepare(
        &self,
        mut transaction: Transaction,
        gid: &[u8],
        level: Level,
    ) -> Result<CommitHandle> {
        let core = self.core();
        transaction.may_end()?;
        if !(1..=GID_BYTES_MAX).contains(&gid.len()) {
            return Err(TxnError::GidLength {
                length: gid.len(),
                max: GID_BYTES_MAX,
            });
        }
        core.prepared.reserve(gid)?;
        match transaction.work.log_prepare(core, gid) {
            Ok(lsn) => {
                let own = Dependency::new(lsn, level);
                let seen = transaction.work.owner.dependency();
                core.prepared.put(gid, transaction, core.locks.env().now());
                crash_point("prepare.kept");
                Ok(commit::handle(core, own, seen))
            }
            Err(error) => {
                core.prepared.forget(gid);
                Err(error)
            }
        }
    }

    /// The prepared transactions, in the order of their names.
    pub fn prepared(&self) -> Vec<PreparedView> {
        let core = self.core();
        let now = core.locks.env().now();
        let by_gid = core.prepared.by_gid.lock();
        let views = by_gid.iter().filter_map(|(gid, waiting)| {
            waiting.as_ref().map(|waiting| PreparedView {
                gid: gid.clone(),
                txn: waiting.transaction.id(),
                age: now.saturating_sub(waiting.since),
            })
        });
        views.collect()
    }

    /// Commits a prepared transaction.
    ///
    /// # Errors
    /// [`TxnError::NotPrepared`]; [`TxnError::Failed`].
    pub fn commit_prepared(&self, gid: &[u8], level: Level) -> Result<Commit> {
        let core = self.core();
        core.check()?;
        let mut transaction = core.prepared.take(gid)?;
        transaction.state = State::Gone;
        crash_point("prepare.decided");
        // It must not be rolled back any more, whatever fails.
        let lsn = transaction.work.place_commit(core, level);
        let lsn = lsn.map_err(|error| core.fail(error))?;
        core.prepared.forget(gid);
        Ok(commit::finish(core, &mut transaction.work, lsn, level))
    }

    /// Rolls a prepared transaction back.
    ///
    /// # Errors
    /// [`TxnError::NotPrepared`]; [`TxnError::Failed`].
    pub fn rollback_prepared(&self, gid: &[u8]) -> Result<()> {
        let core = self.core();
        core.check()?;
        let transaction = core.prepared.take(gid)?;
        transaction.rollback()?;
        core.prepared.forget(gid);
        crash_point("prepare.rolled_back");
        Ok(())
    }

    /// Takes over a prepared transaction of the last run, whose PREPARE is the record at `last`; returns the
    /// stores that it has changed. To be called after redo and before anybody begins.
    ///
    /// # Errors
    /// Those of reading the log and pages; [`TxnError::Lock`] and [`TxnError::TooManyTransactions`] when there
    /// is less room than before.
    pub fn adopt_prepared(&self, txn: TxnId, last: Lsn) -> Result<Vec<StoreId>> {
        let core = self.core();
        let record = core.log.read(last)?;
        let gid = &record.body;
        let mut transaction = self.begin_as(txn)?;
        // If this fails, the restart fails: nothing may be undone.
        transaction.state = State::Gone;
        let stores = transaction.work.adopt(core, txn, last)?;
        transaction.state = State::Active;
        core.prepared.reserve(gid)?;
        core.prepared.put(gid, transaction, core.locks.env().now());
        crash_point("prepare.adopted");
        Ok(stores)
    }
}

impl Work {
    /// Logs that the transaction is prepared. What it reads by is closed.
    fn log_prepare(&mut self, core: &Core, gid: &[u8]) -> Result<Lsn> {
        let cx = self.context(core)?;
        cx.claim
            .ensure(cx.undo_bytes + Log::record_bytes(gid.len()))?;
        let body = [gid];
        cx.last = (core.log).append(&mut cx.claim, PREPARE, cx.txn, cx.last, &body)?;
        let lsn = cx.last;
        crash_point("prepare.logged");
        if let Some(ended) = &self.ended {
            // Release: pairs with the Acquire in value readers.
            ended.store(true, Ordering::Release);
        }
        self.close_snapshots(core);
        self.time_limit = None;
        Ok(lsn)
    }

    /// Becomes what the transaction was when it was prepared.
    fn adopt(&mut self, core: &Core, txn: TxnId, last: Lsn) -> Result<Vec<StoreId>> {
        let mut cx = LogContext::new(txn, core.log.claim_reserve());
        cx.last = last;
        self.cx = Some(cx);
        let (rows, first) = changed_rows(core, last)?;
        core.slots.publish_first(self.slot, first);
        let mut stores = Vec::new();
        for ((store, key), row) in &rows {
            if stores.last() != Some(store) {
                // Another that is adopted later may have rows of the same table.
                core.locks.set_escalation(*store, Some(Escalation::Never));
                stores.push(*store);
            }
            let name = LockName::of_key(*store, key);
            self.lock(core, name, Mode::WRITE)?;
            let tree = Tree {
                store: *store,
                root: row.root,
            };
            self.prepare_capture(core, tree, key)?;
            let before = row.former.image(core, tree, key, &mut self.value_buffer)?;
            self.capture(core, tree, name, key, before);
        }
        for store in &stores {
            core.locks.set_escalation(*store, None);
        }
        Ok(stores)
    }
}

/// What a slot of a leaf was before a record.
enum Former {
    /// What it is in the page now, row or ghost, for all that is known of it, but for that: a row, not a ghost.
    Revived,
    /// There was none.
    Nothing,
    /// This.
    Held(RowFlags, Vec<u8>),
}

impl Former {
    /// What was before `record`, given what is known to have been after it.
    fn before(after: Option<Former>, record: &RowRecord<'_>) -> Former {
        match record.op {
            RowOp::Insert => Former::Nothing,
            RowOp::Update => Former::Held(record.old_flags, record.old_value.to_vec()),
            // It keeps its value.
            RowOp::Ghost => match after {
                Some(Former::Held(flags, value)) => Former::Held(flags.without_ghost(), value),
                _ => Former::Revived,
            },
            RowOp::Revive => after.unwrap_or(Former::Nothing),
        }
    }

    /// The row's image, its value in `value`.
    fn image(
        &self,
        core: &Core,
        tree: Tree,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<Option<ValueKind>> {
        value.clear();
        match self {
            Former::Nothing => Ok(None),
            Former::Held(flags, _) if flags.is_ghost() => Ok(None),
            Former::Held(flags, held) => {
                value.extend_from_slice(held);
                Ok(Some(match flags.is_overflow() {
                    true => ValueKind::Overflow,
                    false => ValueKind::Inline,
                }))
            }
            Former::Revived => {
                let mut patience = Patience::new();
                let leaf = tree.read_leaf_patiently(&core.access, key, &mut patience)?;
                // Nobody else is at work.
                Ok(match leaf.find(key) {
                    Slot::Ghost(slot) | Slot::Present(slot) => Some(leaf.value_into(slot, value)),
                    Slot::Absent(_) => None,
                })
            }
        }
    }
}

struct ChangedRow {
    root: longshore_base::PageId,
    former: Former,
}

type ChangedRows = BTreeMap<(StoreId, Vec<u8>), ChangedRow>;

/// The rows that the chain of records up to `last` has changed, and where the chain begins.
fn changed_rows(core: &Core, last: Lsn) -> Result<(ChangedRows, Lsn)> {
    let mut rows = ChangedRows::new();
    let (mut next, mut first) = (last, last);
    while next != Lsn::ZERO {
        let record = core.log.read(next)?;
        first = first.min(next);
        next = match record.kind {
            CLR => {
                let (undo_next, _) = RowRecord::decode_clr(&record.body)
                    .map_err(|why| undo::unreadable(&record, &why))?;
                undo_next
            }
            _ => record.prev,
        };
        if record.kind == ROW {
            let row =
                RowRecord::decode(&record.body).map_err(|why| undo::unreadable(&record, &why))?;
            let at = (row.store, row.key.to_vec());
            let after = rows.remove(&at).map(|changed| changed.former);
            let former = Former::before(after, &row);
            let root = row.root;
            rows.insert(at, ChangedRow { root, former });
        }
    }
    Ok((rows, first))
}
