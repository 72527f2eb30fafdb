//! Restart: repeat history, then take back what never committed (ARIES).
//!
//! # Protocol
//!
//! | step | reads | does |
//! |---|---|---|
//! | torn pages | double-write area | puts pages back that a crash tore |
//! | analysis | log from `scan_lsn` | finds the losers, and each page's last reset |
//! | redo | log from `redo_lsn` | applies each change that its page lacks, losers' too: see [`redo`](crate::redo) |
//! | prepared | chain of each | takes its locks and images again: see [`prepared`](crate::prepared) |
//! | undo | each loser's chain | reverses its rows, logging a CLR for each |
//! | checkpoint | | so that the next restart need not do this again |
//!
//! A *reset* is a change that needs nothing of the page's former content (a new node, a new link of
//! a chain). Earlier changes of that page are skipped: the page may since have been another tree's,
//! and its old bytes may be damaged for all we care.
//!
//! As long as what is to be redone fits one batch, analysis keeps it, and the log is read once for both.
//!
//! # Invariants
//! I1. Redo changes a page only when the page's LSN is below the record's, so doing it twice, or
//! after a crash in the middle, is the same as doing it once.
//! I2. Undo goes down each loser's chain and never crosses a structure change, which stays.
//!
//! # Failure
//! Damage ends the restart with an error that names file, page and cause; the files stay as they
//! are, and the next attempt starts at the same place.
//!
//! # Source
//! C. Mohan et al., ARIES, TODS 17(1), 1992. We differ: no dirty page table; a page that is not
//! changed by redo is read, compared and left alone. Structure changes are single records, so there
//! are no nested top actions to skip.

use crate::checkpoint::CHECKPOINT;
use crate::control::Control;
use crate::engine::{Engine, Storage};
use crate::error::{Error, Result};
use crate::prepared;
use crate::redo::{self, Batch};
use longshore_access::record::{self, PageChange};
use longshore_base::{Lsn, PageId, TxnId, crash_point};
use longshore_log::Record;
use longshore_txn::{Adopted, record as txn_record};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// The last record, from `redo_lsn` on, that resets each page.
pub(crate) type Resets = HashMap<PageId, Lsn, BuildHasherDefault<NumberHasher>>;

type Losers = HashMap<TxnId, Lsn, BuildHasherDefault<NumberHasher>>;

/// What the log says about the time before the crash.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    /// Transactions without an end, and the last record of each.
    losers: Losers,
    /// Those among them that were prepared.
    prepared: HashSet<TxnId, BuildHasherDefault<NumberHasher>>,
    resets: Resets,
    /// A number above that of every transaction seen.
    pub(crate) next_txn: u64,
}

/// Brings the pages to the state that they had in memory when the log ended.
pub(crate) fn repeat_history(storage: &Storage, control: &Control) -> Result<History> {
    storage.pool.recover_double_write()?;
    crash_point("restart.pages_restored");
    let mut history = History::default();
    let mut kept = Some(Batch::default());
    let bytes_max = Batch::bytes_max(storage);
    for record in storage.log.scan(control.scan_lsn) {
        let record = record?;
        history.see(&record, control.redo_lsn)?;
        if record.lsn < control.redo_lsn {
            continue;
        }
        if let Some(batch) = &mut kept {
            batch.push(record)?;
            if batch.bytes() >= bytes_max {
                kept = None;
            }
        }
    }
    crash_point("restart.analysed");
    match kept {
        Some(batch) => redo::redo_batch(storage, batch, &history.resets)?,
        None => redo::redo_log(storage, control.redo_lsn, &history.resets)?,
    }
    storage.access.attach()?;
    crash_point("restart.redone");
    Ok(history)
}

/// A transaction that was prepared, and never resolved.
pub(crate) struct InDoubt {
    pub(crate) txn: TxnId,
    /// Its PREPARE record.
    pub(crate) last: Lsn,
}

/// Takes over what was prepared, undoes what never committed, and takes a checkpoint.
/// Returns what has been taken over.
pub(crate) fn take_back(engine: &Engine, mut history: History) -> Result<Vec<Adopted>> {
    let in_doubt = history.in_doubt();
    let adopted = prepared::adopt(engine, in_doubt)?;
    engine.manager.restart_undo(sorted(history.losers))?;
    crash_point("restart.undone");
    engine.checkpoint()?;
    Ok(adopted)
}

fn sorted(losers: Losers) -> Vec<(TxnId, Lsn)> {
    let mut losers: Vec<_> = losers.into_iter().collect();
    losers.sort_unstable();
    losers
}

impl History {
    /// Those that were prepared, which are no losers.
    fn in_doubt(&mut self) -> Vec<InDoubt> {
        let mut in_doubt = Vec::new();
        for txn in std::mem::take(&mut self.prepared) {
            if let Some(last) = self.losers.remove(&txn) {
                in_doubt.push(InDoubt { txn, last });
            }
        }
        in_doubt.sort_unstable_by_key(|doubt| doubt.last);
        in_doubt
    }

    fn see(&mut self, record: &Record, redo_lsn: Lsn) -> Result<()> {
        self.next_txn = self.next_txn.max(record.txn.get() + 1);
        match record.kind {
            record::ROW | record::CLR => {
                self.losers.insert(record.txn, record.lsn);
                // A rollback that was decided.
                self.prepared.remove(&record.txn);
                self.see_changes(record, redo_lsn)
            }
            record::SMO => self.see_changes(record, redo_lsn),
            txn_record::COMMIT | txn_record::END => {
                self.losers.remove(&record.txn);
                self.prepared.remove(&record.txn);
                Ok(())
            }
            txn_record::LOCKS => {
                self.losers.insert(record.txn, record.lsn);
                Ok(())
            }
            txn_record::PREPARE => {
                self.losers.insert(record.txn, record.lsn);
                self.prepared.insert(record.txn);
                Ok(())
            }
            CHECKPOINT => Ok(()),
            kind => Err(unreadable(record, &format!("kind {kind} is unknown"))),
        }
    }

    fn see_changes(&mut self, record: &Record, redo_lsn: Lsn) -> Result<()> {
        if record.lsn < redo_lsn {
            return Ok(());
        }
        for change in changes(record)? {
            if change
                .resets_page()
                .map_err(|why| unreadable(record, &why))?
            {
                self.resets.insert(change.page, record.lsn);
            }
        }
        Ok(())
    }
}

pub(crate) fn changes(record: &Record) -> Result<impl Iterator<Item = PageChange<'_>>> {
    record::changes(record.kind, &record.body)
        .map(IntoIterator::into_iter)
        .map_err(|why| unreadable(record, &why))
}

/// A record with the right checksum that says nothing we understand.
fn unreadable(record: &Record, why: &dyn std::fmt::Display) -> Error {
    let reason = format!("the record at LSN {} cannot be read: {why}", record.lsn);
    Error::corrupt("log", reason)
}

/// Hashes the numbers of pages and transactions: one multiplication, for nobody chooses them to collide.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        // The map takes its bucket from the low bits, which multiplying alone would leave poor.
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        /// 2^64 over the golden ratio.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        self.0 = (self.0 ^ number).wrapping_mul(SPREAD);
    }
}
