//! Two-phase commit: prepared transactions, and what they keep of the engine.
//!
//! What it means to be prepared is told in `txn` (`transaction/prepared.rs`). Here is what it means for
//! tables: a prepared transaction stays inside the gates of the tables that it has used; after a restart it enters
//! those of the tables in which it has locks, before anybody else can. Nobody knows when it will leave, so
//! whoever needs such a gate closed waits as for any transaction, and is then told its gid:
//!
//! | what | while a transaction is prepared that uses the table |
//! |---|---|
//! | drop or load the table, create or drop an index of it | [`Error::TablePrepared`] |
//! | verify | done, as it stands; whoever resolves one waits meanwhile, as for a lock |
//! | rename the table | done: a transaction knows tables by number |
//! | build an index, begun before | waits for its locks, and fails like any other when it has not got them in time |
//! | take away an index whose building has failed | put off: the index stays, failed, and can be dropped, or created anew, afterwards |
//! | the same when opening after a crash | put off only if its entries were changed |
//!
//! A database is closed with prepared transactions open as after a crash: its state stays "in use", and the
//! next opening recovers them. The log is kept from their first record on.
//!
//! # Order
//! Whoever resolves a transaction enters the gate `deciding` for that, which is closed behind those of tables.
//! `gates` is held while a transaction is prepared, and taken after one was resolved; the manager's own list
//! is taken under it.

use crate::ddl;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::gate::{Closed, Entered, Gate};
use crate::lease::Lease;
use crate::options::Durability;
use crate::recovery::InDoubt;
use crate::table::{Table, TableState};
use longshore_base::TxnId;
use longshore_base::sync::Mutex;
pub use longshore_txn::PreparedView;
use longshore_txn::{Adopted, CommitHandle, Transaction};
use std::collections::BTreeMap;
use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

/// The tables that somebody is inside of.
pub(crate) type Inside = Vec<(Arc<TableState>, Entered)>;

/// What prepared transactions keep.
pub(crate) struct Gates {
    /// By gid.
    inside: Mutex<BTreeMap<Vec<u8>, Inside>>,
    /// Inside is who resolves one of them.
    deciding: Gate,
}

/// A transaction that is prepared, and waits for a decision. Dropping it decides nothing.
///
/// ```
/// use longshore::Database;
/// # fn main() -> longshore::Result<()> {
/// let [here, there] = [Database::in_memory()?, Database::in_memory()?];
/// let [from, to] = [here.create_table("money")?, there.create_table("money")?];
/// let (debit, credit) = (here.begin()?, there.begin()?);
/// debit.put(&from, "ada", "90")?;
/// credit.put(&to, "grace", "10")?;
///
/// // Both or neither: whoever cannot promise says so here, and nothing has happened yet.
/// let debit = debit.prepare(b"transfer 7")?;
/// let credit = credit.prepare(b"transfer 7")?;
/// debit.commit()?;
/// drop(credit);
/// // By name, also after a restart.
/// assert_eq!(there.prepared()[0].gid, b"transfer 7");
/// there.commit_prepared(b"transfer 7")?;
/// assert!(there.get(&to, "grace")?.is_some());
/// # Ok(()) }
/// ```
#[must_use = "the transaction keeps its locks until it is committed or rolled back"]
pub struct Prepared {
    lease: Arc<Lease>,
    gid: Vec<u8>,
    id: TxnId,
    durability: Durability,
}

impl Prepared {
    /// Its name.
    pub fn gid(&self) -> &[u8] {
        &self.gid
    }

    /// The transaction's number.
    pub fn id(&self) -> TxnId {
        self.id
    }

    /// Commits it, as durable as its transaction would have been.
    ///
    /// # Errors
    /// Those of [`Database::commit_prepared`](crate::Database::commit_prepared).
    pub fn commit(self) -> Result<()> {
        commit(&self.lease.engine, &self.gid, self.durability)
    }

    /// Rolls it back.
    ///
    /// # Errors
    /// Those of [`Database::rollback_prepared`](crate::Database::rollback_prepared).
    pub fn rollback(self) -> Result<()> {
        rollback(&self.lease.engine, &self.gid)
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prepared({}, \"{}\")", self.id, self.gid.escape_ascii())
    }
}

/// Prepares `txn`, which is inside the gates of `inside`. If that fails it was rolled back, and has left them.
pub(crate) fn prepare(
    lease: &Arc<Lease>,
    mut txn: Transaction,
    inside: &mut Inside,
    gid: &[u8],
    durability: Durability,
) -> Result<(Prepared, CommitHandle)> {
    let engine = &lease.engine;
    let id = txn.id();
    // A checkpoint may make the room that there is not.
    engine.with_log_space(|| engine.note(txn.claim_prepare(gid.len())))?;
    let mut gates = engine.gates.inside.lock();
    let level = Engine::level(durability);
    let prepared = engine.manager.prepare(txn, gid, level);
    let handle = engine.note(prepared)?;
    gates.insert(gid.to_vec(), std::mem::take(inside));
    let prepared = Prepared {
        lease: Arc::clone(lease),
        gid: gid.to_vec(),
        id,
        durability,
    };
    Ok((prepared, handle))
}

/// Commits a prepared transaction.
pub(crate) fn commit(engine: &Engine, gid: &[u8], durability: Durability) -> Result<()> {
    engine.condition.check()?;
    let level = Engine::level(durability);
    let commit = decide(engine, gid, || engine.manager.commit_prepared(gid, level))?;
    engine.note(commit.handle.wait())
}

/// Rolls a prepared transaction back.
pub(crate) fn rollback(engine: &Engine, gid: &[u8]) -> Result<()> {
    engine.condition.check()?;
    decide(engine, gid, || engine.manager.rollback_prepared(gid))
}

fn decide<T>(
    engine: &Engine,
    gid: &[u8],
    resolve: impl FnOnce() -> longshore_txn::Result<T>,
) -> Result<T> {
    let (deciding, limit) = (&engine.gates.deciding, engine.options.lock_wait);
    let entered = deciding.enter(&*engine.env, limit);
    let entered = entered.map_err(|_| Error::Verifying { waited: limit })?;
    let resolved = engine.note(resolve());
    if resolved.is_ok() {
        engine.gates.leave(gid);
    }
    deciding.leave(entered);
    resolved
}

/// Takes over what was prepared before a restart: rows, locks and images.
pub(crate) fn adopt(engine: &Engine, in_doubt: Vec<InDoubt>) -> Result<Vec<Adopted>> {
    let adopt = |doubt: InDoubt| engine.manager.adopt_prepared(doubt.txn, doubt.last);
    let adopted = in_doubt.into_iter().map(adopt);
    adopted.map(|one| engine.note(one)).collect()
}

/// Enters the tables of those taken over, once the catalog can be read.
pub(crate) fn enter_tables(engine: &Engine, adopted: Vec<Adopted>) -> Result<()> {
    if adopted.is_empty() {
        return Ok(());
    }
    let tables = ddl::tables(engine)?;
    for adopted in adopted {
        let mut inside = Inside::new();
        for (name, row) in &tables {
            let entries = row.indexes.iter().map(|index| index.tree.store);
            let mut all = entries.chain([row.tree.store]);
            if all.any(|store| adopted.used.contains(&store)) {
                let state = Arc::clone(&ddl::open(engine, name)?.state);
                let entered = state.enter(&*engine.env, Duration::ZERO)?;
                inside.push((state, entered));
            }
        }
        engine.gates.inside.lock().insert(adopted.gid, inside);
    }
    Ok(())
}

impl Gates {
    pub(crate) fn new() -> Gates {
        Gates {
            inside: Mutex::default(),
            deciding: Gate::new(),
        }
    }

    /// Closes the tables' gates to all but the prepared transactions inside, and has these keep still.
    pub(crate) fn close_beside<'a>(
        engine: &'a Engine,
        tables: &'a [Table],
    ) -> Result<Vec<Closed<'a>>> {
        let (gates, limit) = (&engine.gates, engine.options.lock_wait);
        let mut all = Vec::with_capacity(tables.len() + 1);
        for table in tables {
            let state = &*table.state;
            let staying = || gates.inside_of(state);
            let closed = state.gate.close_beside(&*engine.env, limit, staying);
            all.push(closed.map_err(|(refused, others)| state.refusal(refused, others, limit))?);
        }
        let decided = gates.deciding.close(&*engine.env, limit);
        all.push(decided.map_err(|_| Error::Verifying { waited: limit })?);
        Ok(all)
    }

    /// How many prepared transactions are inside of `table`.
    fn inside_of(&self, table: &TableState) -> u64 {
        let all = self.inside.lock();
        let of_table = |(state, _): &&(Arc<TableState>, Entered)| ptr::eq(&**state, table);
        all.values().flatten().filter(of_table).count() as u64
    }

    /// The first name of a prepared transaction that is inside of `table`, if there is one.
    pub(crate) fn one_inside(&self, table: &TableState) -> Option<Arc<[u8]>> {
        let inside = self.inside.lock();
        let is_inside = |(state, _): &(Arc<TableState>, Entered)| ptr::eq(&**state, table);
        let mut all = inside.iter();
        let found = all.find(|(_, tables)| tables.iter().any(is_inside));
        found.map(|(gid, _)| gid.as_slice().into())
    }

    fn leave(&self, gid: &[u8]) {
        let inside = self.inside.lock().remove(gid);
        leave(&mut inside.unwrap_or_default());
    }
}

/// Leaves the gates.
pub(crate) fn leave(inside: &mut Inside) {
    for (table, entered) in inside.drain(..) {
        table.gate.leave(entered);
    }
}
