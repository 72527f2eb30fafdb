//! Two-phase commit: prepared transactions, and what they keep of the engine.
//!
//! What it means to be prepared is told in `txn` (`transaction/prepared.rs`). Here is what it means for
//! tables: a prepared transaction stays inside the gates of the tables that it has used, so nobody drops or
//! loads them; after a restart it enters those of the tables that it has changed, before anybody else can.
//!
//! A database is closed with prepared transactions open as after a crash: its state stays "in use", and the
//! next opening recovers them. The log is kept from their first record on.
//!
//! # Order
//! `gates` is held while a transaction is prepared, and taken after one was resolved; the manager's own list
//! is taken under it.

use crate::ddl;
use crate::engine::Engine;
use crate::error::Result;
use crate::gate::Entered;
use crate::lease::Lease;
use crate::options::Durability;
use crate::recovery::InDoubt;
use crate::table::TableState;
use longshore_base::sync::Mutex;
use longshore_base::{StoreId, TxnId};
pub use longshore_txn::PreparedView;
use longshore_txn::{CommitHandle, Transaction};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The tables that somebody is inside of.
pub(crate) type Inside = Vec<(Arc<TableState>, Entered)>;

/// What prepared transactions keep.
#[derive(Default)]
pub(crate) struct Gates {
    /// By gid.
    inside: Mutex<HashMap<Vec<u8>, Inside>>,
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
    txn: Transaction,
    inside: &mut Inside,
    gid: &[u8],
    durability: Durability,
) -> Result<(Prepared, CommitHandle)> {
    let engine = &lease.engine;
    let id = txn.id();
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
    let commit = engine.note(engine.manager.commit_prepared(gid, level))?;
    engine.gates.leave(gid);
    engine.note(commit.handle.wait())
}

/// Rolls a prepared transaction back.
pub(crate) fn rollback(engine: &Engine, gid: &[u8]) -> Result<()> {
    engine.condition.check()?;
    engine.note(engine.manager.rollback_prepared(gid))?;
    engine.gates.leave(gid);
    Ok(())
}

/// Takes over what was prepared before a restart: rows and images.
pub(crate) fn adopt(engine: &Engine, in_doubt: Vec<InDoubt>) -> Result<Vec<Adopted>> {
    let adopt = |doubt: InDoubt| {
        let stores = engine.note(engine.manager.adopt_prepared(doubt.txn, doubt.last))?;
        let gid = doubt.gid;
        Ok(Adopted { gid, stores })
    };
    in_doubt.into_iter().map(adopt).collect()
}

/// A prepared transaction that has its locks again.
pub(crate) struct Adopted {
    gid: Vec<u8>,
    stores: Vec<StoreId>,
}

impl Adopted {
    /// Whether it has changed something there.
    pub(crate) fn has_changed(&self, store: StoreId) -> bool {
        self.stores.contains(&store)
    }
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
            if all.any(|store| adopted.has_changed(store)) {
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
