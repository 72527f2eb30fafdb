//! Restart: repeat history, then take back what never committed (ARIES).
//!
//! # Protocol
//!
//! | step | reads | does |
//! |---|---|---|
//! | torn pages | double-write area | puts pages back that a crash tore |
//! | analysis | log from `scan_lsn` | finds the losers, and each page's last reset |
//! | redo | log from `redo_lsn` | applies each change that its page lacks, losers' too |
//! | undo | each loser's chain | reverses its rows, logging a CLR for each |
//! | checkpoint | | so that the next restart need not do this again |
//!
//! A *reset* is a change that needs nothing of the page's former content (a new node, a new link of
//! a chain). Earlier changes of that page are skipped: the page may since have been another tree's,
//! and its old bytes may be damaged for all we care.
//!
//! Redo is the same for each page alone, so with much to redo the pages are shared out over a few
//! threads: one reads the log and hands records on in batches, every worker takes its own pages.
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
use longshore_access::Access;
use longshore_access::record::{self, PageChange};
use longshore_base::{Lsn, PageId, TxnId, crash_point};
use longshore_log::{Log, Record};
use longshore_txn::record as txn_record;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Log to redo, in bytes, from which on several threads share the work.
const PARALLEL_BYTES: u64 = 8 << 20;
/// Most threads that apply records.
const WORKERS_MAX: usize = 8;
/// Records handed on at a time.
const BATCH: usize = 512;
/// Batches on their way to a worker.
const BATCHES_AHEAD: usize = 8;

/// What the log says about the time before the crash.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    /// Transactions without an end, and the last record of each.
    losers: HashMap<TxnId, Lsn>,
    /// The last record, from `redo_lsn` on, that resets the page.
    resets: HashMap<PageId, Lsn>,
    /// A number above that of every transaction seen.
    pub(crate) next_txn: u64,
}

/// Brings the pages to the state that they had in memory when the log ended.
pub(crate) fn repeat_history(storage: &Storage, control: &Control) -> Result<History> {
    storage.pool.recover_double_write()?;
    crash_point("restart.pages_restored");
    let mut history = History::default();
    for record in storage.log.scan(control.scan_lsn) {
        history.see(&record?, control.redo_lsn)?;
    }
    crash_point("restart.analysed");
    redo(storage, control.redo_lsn, &history.resets)?;
    storage.access.attach()?;
    crash_point("restart.redone");
    Ok(history)
}

/// Undoes what never committed, and takes a checkpoint.
pub(crate) fn take_back(engine: &Engine, history: History) -> Result<()> {
    engine.manager.restart_undo(sorted(history.losers))?;
    crash_point("restart.undone");
    engine.checkpoint()
}

fn sorted(losers: HashMap<TxnId, Lsn>) -> Vec<(TxnId, Lsn)> {
    let mut losers: Vec<_> = losers.into_iter().collect();
    losers.sort_unstable();
    losers
}

impl History {
    fn see(&mut self, record: &Record, redo_lsn: Lsn) -> Result<()> {
        self.next_txn = self.next_txn.max(record.txn.get() + 1);
        match record.kind {
            record::ROW | record::CLR => {
                self.losers.insert(record.txn, record.lsn);
                self.see_changes(record, redo_lsn)
            }
            record::SMO => self.see_changes(record, redo_lsn),
            txn_record::COMMIT | txn_record::END => {
                self.losers.remove(&record.txn);
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

/// Applies the log from `from` on.
fn redo(storage: &Storage, from: Lsn, resets: &HashMap<PageId, Lsn>) -> Result<()> {
    let bytes = storage.log.tail().get().saturating_sub(from.get());
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get().min(WORKERS_MAX));
    if bytes >= PARALLEL_BYTES && workers > 1 {
        return redo_shared_out(storage, from, resets, workers);
    }
    let mut alone = Worker::new(&storage.access, resets, 0, 1);
    for record in storage.log.scan(from) {
        alone.apply(&record?)?;
    }
    Ok(())
}

/// One thread reads, `workers` threads apply, each the pages of its own.
fn redo_shared_out(
    storage: &Storage,
    from: Lsn,
    resets: &HashMap<PageId, Lsn>,
    workers: usize,
) -> Result<()> {
    std::thread::scope(|scope| {
        let mut senders = Vec::new();
        let mut threads = Vec::new();
        for index in 0..workers {
            let (sender, receiver) = sync_channel(BATCHES_AHEAD);
            let worker = Worker::new(&storage.access, resets, index as u64, workers as u64);
            senders.push(sender);
            threads.push(scope.spawn(move || worker.run(&receiver)));
        }
        let read = hand_on(&storage.log, from, &senders);
        drop(senders);
        let outcomes = threads
            .into_iter()
            .map(|thread| thread.join().expect("a redo worker panicked"));
        // A worker that failed is why handing on ended early: its error comes first.
        outcomes.fold(Ok(()), Result::and).and(read)
    })
}

/// Reads the log and gives every worker every batch; ends early when a worker has gone.
fn hand_on(log: &Log, from: Lsn, workers: &[SyncSender<Arc<Vec<Record>>>]) -> Result<()> {
    let mut records = log.scan(from);
    loop {
        let batch = (records.by_ref().take(BATCH)).collect::<std::result::Result<Vec<_>, _>>()?;
        if batch.is_empty() {
            return Ok(());
        }
        let batch = Arc::new(batch);
        for worker in workers {
            if worker.send(Arc::clone(&batch)).is_err() {
                return Ok(());
            }
        }
    }
}

/// Applies the changes of a share of the pages, in log order.
struct Worker<'a> {
    access: &'a Access,
    resets: &'a HashMap<PageId, Lsn>,
    index: u64,
    workers: u64,
}

impl<'a> Worker<'a> {
    fn new(
        access: &'a Access,
        resets: &'a HashMap<PageId, Lsn>,
        index: u64,
        workers: u64,
    ) -> Worker<'a> {
        Worker {
            access,
            resets,
            index,
            workers,
        }
    }

    fn run(mut self, batches: &Receiver<Arc<Vec<Record>>>) -> Result<()> {
        for batch in batches {
            for record in batch.iter() {
                self.apply(record)?;
            }
        }
        Ok(())
    }

    fn apply(&mut self, record: &Record) -> Result<()> {
        if !matches!(record.kind, record::ROW | record::CLR | record::SMO) {
            return Ok(());
        }
        for change in changes(record)? {
            if self.is_mine(change.page) && !self.is_reset_later(change.page, record.lsn) {
                self.access.redo_page(record.lsn, &change)?;
            }
        }
        Ok(())
    }

    fn is_mine(&self, page: PageId) -> bool {
        page.get() % self.workers == self.index
    }

    fn is_reset_later(&self, page: PageId, lsn: Lsn) -> bool {
        self.resets.get(&page).is_some_and(|reset| lsn < *reset)
    }
}

fn changes(record: &Record) -> Result<impl Iterator<Item = PageChange<'_>>> {
    record::changes(record.kind, &record.body)
        .map(IntoIterator::into_iter)
        .map_err(|why| unreadable(record, &why))
}

/// A record with the right checksum that says nothing we understand.
fn unreadable(record: &Record, why: &dyn std::fmt::Display) -> Error {
    let reason = format!("the record at LSN {} cannot be read: {why}", record.lsn);
    Error::corrupt("log", reason)
}
