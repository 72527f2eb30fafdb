//! Two-phase commit: transactions that can no longer fail, and wait for somebody else's decision.
//!
//! # Protocol
//! A coordinator that spans several databases asks each to *prepare* its part under a name, the gid. Who has
//! answered yes has given up the right to say no: the part commits or rolls back as it is told, whatever
//! crashes come between.
//!
//! | step | log | locks |
//! |---|---|---|
//! | `prepare` | PREPARE with the gid and the locks that the other records do not tell of, chained to them; as durable as asked | all kept |
//! | `commit_prepared` | COMMIT | released as ever |
//! | `rollback_prepared` | CLRs, END | released as ever |
//!
//! The transaction itself moves into the manager's list, with its slot: its position there keeps the log that
//! undo needs, its images stay for snapshots, and it counts as open. Its locks on what it has read are kept
//! as well: it takes its place in the serial order with COMMIT, and what it has read must still be so then.
//!
//! Whoever prepares may claim the log space for it first (`claim_prepare`), and again after a checkpoint if
//! there was none: nothing has happened yet. How much it is depends on the locks, so it cannot be set aside with
//! the first change, as the room for COMMIT is.
//!
//! # Restart
//! Analysis finds the transactions whose last record is PREPARE. Each is *adopted* before the losers are
//! undone, and before anybody else begins: it gets a slot under its own number, publishes its first record's
//! position, and its chain of records, less what was undone before it was prepared, is walked for the rows it
//! has changed. These it locks again, and captures what they were, which the records tell: see [`Former`].
//! Before them it takes all other locks that it had, which are in PREPARE: see `kept_locks`.
//!
//! All of them are to be had: prepared transactions held them at the same time, for whatever one of them has let go
//! of, its COMMIT or END is in the log before the PREPARE of whoever took it over. They still protect what they
//! did: a gap has the name of the boundary above it, which is in the tree as it was, or was there before a change
//! that the log lost, when the gap was cut into smaller ones that nobody had read.
//!
//! A rollback that a crash cut off has left CLRs behind PREPARE: then the decision was made, and the
//! transaction is a loser like others.
//!
//! # Invariants
//! P1. A gid names one transaction in the list from before its PREPARE is logged until after its COMMIT or END
//!     is: no two in the log without an end have the same.
//! P2. A prepared transaction needs no more log space, locks or memory to end either way. Log space for that
//!     is claimed by `prepare`, and at adoption again; only where the log is too full for that, as after a
//!     restart with less of it allowed, does it come from the log's reserve like that of losers.

use super::former::Former;
use super::manager::{Core, TransactionManager};
use super::work::{LAST_RECORD, Work};
use super::{Commit, CommitHandle, State, Transaction, commit, kept_locks, undo};
use crate::error::{Result, TxnError};
use crate::lock::{Dependency, Escalation, LockName, Mode};
use crate::record::{LOCKS, PREPARE};
use longshore_access::record::{CLR, ROW, RowRecord};
use longshore_access::{LogContext, Tree};
use longshore_base::sync::Mutex;
use longshore_base::{Lsn, StoreId, TxnId, crash_point};
use longshore_log::{Level, Log, Record};
use std::collections::{BTreeMap, BTreeSet, HashSet};
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

    /// Takes over a prepared transaction of the last run, whose PREPARE is the record at `last`. To be called
    /// after redo and before anybody begins.
    ///
    /// # Errors
    /// Those of reading the log and pages; [`TxnError::Lock`] and [`TxnError::TooManyTransactions`] when there
    /// is less room than before.
    pub fn adopt_prepared(&self, txn: TxnId, last: Lsn) -> Result<Adopted> {
        let core = self.core();
        let mut transaction = self.begin_as(txn)?;
        // If this fails, the restart fails: nothing may be undone.
        transaction.state = State::Gone;
        let adopted = transaction.work.adopt(core, txn, last)?;
        transaction.state = State::Active;
        core.prepared.reserve(&adopted.gid)?;
        let now = core.locks.env().now();
        core.prepared.put(&adopted.gid, transaction, now);
        crash_point("prepare.adopted");
        Ok(adopted)
    }
}

/// A prepared transaction of the last run that was taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopted {
    /// Its name.
    pub gid: Vec<u8>,
    /// The stores that it has locked something of.
    pub used: BTreeSet<StoreId>,
    /// Those among them that it has changed.
    pub changed: BTreeSet<StoreId>,
}

impl Transaction {
    /// Sets aside the log space that preparing this transaction under a name of `gid_bytes` takes as it is now.
    /// Without it [`TransactionManager::prepare`] claims the space itself, and has one attempt.
    ///
    /// # Errors
    /// That of a full log, after which it may be called again; [`TxnError::Ended`].
    pub fn claim_prepare(&mut self, gid_bytes: usize) -> Result<()> {
        self.check()?;
        let core = &self.door.core;
        let portions = kept_locks::encode(self.work.kept_locks(core));
        self.work.claim_prepare(core, gid_bytes, &portions)
    }
}

impl Work {
    /// Logs that the transaction is prepared. What it reads by is closed.
    fn log_prepare(&mut self, core: &Core, gid: &[u8]) -> Result<Lsn> {
        let portions = kept_locks::encode(self.kept_locks(core));
        self.claim_prepare(core, gid.len(), &portions)?;
        let cx = self.context(core)?;
        let (last, others) = portions.split_last().expect("there is a last portion");
        for portion in others {
            cx.last = (core.log).append(&mut cx.claim, LOCKS, cx.txn, cx.last, &[portion])?;
        }
        let gid_bytes = [u8::try_from(gid.len()).expect("it was checked")];
        let body = [&gid_bytes[..], gid, last];
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

    fn claim_prepare(&mut self, core: &Core, gid_bytes: usize, portions: &[Vec<u8>]) -> Result<()> {
        let records = portions
            .iter()
            .map(|portion| Log::record_bytes(portion.len()));
        // The last has the gid, and its length, before the locks.
        let bytes = records.sum::<u64>() + Log::record_bytes(1 + gid_bytes);
        let cx = self.context(core)?;
        Ok(cx.claim.ensure(cx.undo_bytes + bytes)?)
    }

    /// Its locks, but for those that its records of rows imply.
    fn kept_locks(&self, core: &Core) -> Vec<(LockName, Mode)> {
        let implied = match self.locks_more_than_it_changed {
            false => core.versions.captured(self.slot),
            true => HashSet::new(),
        };
        let mut locks = core.locks.held_by(&self.owner);
        let is_implied = |name: &LockName| implied.contains(&(name.store(), name.hash()));
        locks.retain(|(name, mode)| *mode != Mode::WRITE || !is_implied(name));
        locks
    }

    /// Becomes what the transaction was when it was prepared.
    fn adopt(&mut self, core: &Core, txn: TxnId, last: Lsn) -> Result<Adopted> {
        let chain = Chain::read(core, last)?;
        let claim = core.log.claim(chain.undo_bytes);
        let mut cx = LogContext::new(txn, claim.unwrap_or_else(|_| core.log.claim_reserve()));
        cx.last = last;
        cx.undo_bytes = chain.undo_bytes;
        self.cx = Some(cx);
        core.slots.publish_first(self.slot, chain.first);
        let locked = chain.locks.iter().map(|(name, _)| name.store());
        let locked = locked.filter(|store| *store != StoreId::NONE);
        let changed: BTreeSet<StoreId> = chain.rows.keys().map(|(store, _)| *store).collect();
        let used: BTreeSet<StoreId> = locked.chain(changed.iter().copied()).collect();
        for store in &used {
            // Another that is adopted later may have rows of the same table.
            core.locks.set_escalation(*store, Some(Escalation::Never));
        }
        for (name, mode) in &chain.locks {
            self.lock_again(core, *name, *mode)?;
        }
        for ((store, key), row) in &chain.rows {
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
        for store in &used {
            core.locks.set_escalation(*store, None);
        }
        Ok(Adopted {
            gid: chain.gid,
            used,
            changed,
        })
    }

    fn lock_again(&mut self, core: &Core, name: LockName, mode: Mode) -> Result<()> {
        match mode.as_table() {
            None => self.lock(core, name, mode),
            Some(mode) if name == LockName::of_database() => self.lock_database(core, mode),
            Some(mode) => self.lock_table(core, name.store(), mode),
        }
    }
}

struct ChangedRow {
    root: longshore_base::PageId,
    former: Former,
}

type ChangedRows = BTreeMap<(StoreId, Vec<u8>), ChangedRow>;

/// What the records of a prepared transaction say.
struct Chain {
    gid: Vec<u8>,
    /// The rows that it has changed, less what was undone.
    rows: ChangedRows,
    /// The locks that these do not imply.
    locks: Vec<(LockName, Mode)>,
    /// Where the chain begins.
    first: Lsn,
    /// Log space to end it, either way.
    undo_bytes: u64,
}

impl Chain {
    /// Reads the chain of records up to the PREPARE at `last`.
    fn read(core: &Core, last: Lsn) -> Result<Chain> {
        let mut chain = Chain {
            gid: Vec::new(),
            rows: ChangedRows::new(),
            locks: Vec::new(),
            first: last,
            undo_bytes: LAST_RECORD,
        };
        let mut next = last;
        while next != Lsn::ZERO {
            let record = core.log.read(next)?;
            chain.first = chain.first.min(next);
            next = chain.see(&record)?;
        }
        // Tables before their rows: intents that are less than was held would be raised one by one.
        chain.locks.sort_by_key(|(name, _)| !name.is_table());
        Ok(chain)
    }

    /// Takes in one record, after all later ones; returns the next.
    fn see(&mut self, record: &Record) -> Result<Lsn> {
        let unreadable = |why: &dyn std::fmt::Display| undo::unreadable(record, why);
        let locks = match record.kind {
            CLR => {
                let decoded = RowRecord::decode_clr(&record.body);
                return Ok(decoded.map_err(|why| unreadable(&why))?.0);
            }
            ROW => {
                let row = RowRecord::decode(&record.body).map_err(|why| unreadable(&why))?;
                self.see_row(&row);
                return Ok(record.prev);
            }
            PREPARE => {
                let parts = kept_locks::split(&record.body);
                let (gid, locks) = parts.ok_or_else(|| unreadable(&"it ends early"))?;
                self.gid = gid.to_vec();
                locks
            }
            LOCKS => &record.body,
            _ => return Ok(record.prev),
        };
        kept_locks::decode(locks, &mut self.locks).map_err(|why| unreadable(&why))?;
        Ok(record.prev)
    }

    fn see_row(&mut self, row: &RowRecord<'_>) {
        self.undo_bytes += Log::record_bytes(row.undo_body_bytes_max());
        let at = (row.store, row.key.to_vec());
        let after = self.rows.remove(&at).map(|changed| changed.former);
        let former = Former::before(after, row);
        let root = row.root;
        self.rows.insert(at, ChangedRow { root, former });
    }
}
