//! Redo: applying the log to the pages, one page at a time.
//!
//! # Protocol
//! Records are gathered in batches, in log order. Of each batch, the changes are sorted by page, those of
//! one page staying in log order, and applied page after page: a page is fetched once for all that a
//! batch does to it, pages come from the file in its order, and are in the processor's cache while they are
//! worked on. With much to redo the pages are shared out over a few threads: one reads the log and hands
//! batches on, every worker takes its own pages of each.
//!
//! # Invariants
//! R1. The changes of one page are applied in log order. Different pages in any order: no change looks at
//! a second page.
//! R2. Nothing before a page's last reset is applied to it.
//!
//! # Memory
//! A batch takes an eighth of the pool, at most [`BATCH_BYTES_MAX`]. Three are alive at most: one that the
//! slowest worker is at, one that waits for it, and one that is being read.

use crate::engine::Storage;
use crate::error::Result;
use crate::recovery::{Resets, changes};
use longshore_access::Access;
use longshore_base::{Lsn, PageId};
use longshore_log::{Record, Scan};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Log to redo, in bytes, from which on several threads share the work.
const PARALLEL_BYTES: u64 = 8 << 20;
/// Most bytes of a batch.
const BATCH_BYTES_MAX: usize = 8 << 20;
/// Batches on their way to a worker.
const BATCHES_AHEAD: usize = 1;
/// Most threads that apply records.
const WORKERS_MAX: usize = 8;
/// What a record takes besides its body, with the allocator's share.
const RECORD_BYTES: usize = size_of::<Record>() + size_of::<Place>() + 16;

/// Records that follow each other, and which pages they change.
#[derive(Default)]
pub(crate) struct Batch {
    records: Vec<Record>,
    /// In log order.
    places: Vec<Place>,
    bytes: usize,
}

/// Where a change of a page is found.
#[derive(Clone, Copy)]
struct Place {
    page: PageId,
    /// Index among the batch's records.
    record: u32,
    /// Index among the record's changes.
    change: u32,
}

impl Batch {
    /// The size from which on no record should be added.
    pub(crate) fn bytes_max(storage: &Storage) -> usize {
        (storage.pool.options().bytes_max / 8).min(BATCH_BYTES_MAX)
    }

    /// Bytes that it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the next record; those that change no page are left out.
    pub(crate) fn push(&mut self, record: Record) -> Result<()> {
        if !Access::has_redo(record.kind) {
            return Ok(());
        }
        let index = self.records.len() as u32;
        let places = changes(&record)?.zip(0..).map(|(change, number)| Place {
            page: change.page,
            record: index,
            change: number,
        });
        self.places.extend(places);
        self.bytes += RECORD_BYTES + record.body.len();
        self.records.push(record);
        Ok(())
    }

    /// The places by worker.
    fn shares(&self, workers: usize) -> Vec<Vec<Place>> {
        let mut shares = vec![Vec::with_capacity(self.places.len() / workers); workers];
        for place in &self.places {
            shares[(place.page.get() % workers as u64) as usize].push(*place);
        }
        shares
    }
}

/// Applies one batch that is all there is to redo.
pub(crate) fn redo_batch(storage: &Storage, batch: Batch, resets: &Resets) -> Result<()> {
    Worker::new(storage, resets).apply(&batch.records, batch.places)
}

/// Reads the log from `from` on, and applies it.
pub(crate) fn redo_log(storage: &Storage, from: Lsn, resets: &Resets) -> Result<()> {
    let bytes = storage.log.tail().get().saturating_sub(from.get());
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get().min(WORKERS_MAX));
    let mut batches = Batches {
        records: storage.log.scan(from),
        bytes_max: Batch::bytes_max(storage),
    };
    if bytes >= PARALLEL_BYTES && workers > 1 {
        return redo_shared_out(storage, batches, resets, workers);
    }
    batches.try_for_each(|batch| redo_batch(storage, batch?, resets))
}

/// One thread reads, `workers` threads apply, each the pages of its own.
fn redo_shared_out(
    storage: &Storage,
    batches: Batches,
    resets: &Resets,
    workers: usize,
) -> Result<()> {
    std::thread::scope(|scope| {
        let mut senders = Vec::new();
        let mut threads = Vec::new();
        for _ in 0..workers {
            let (sender, receiver) = sync_channel(BATCHES_AHEAD);
            let worker = Worker::new(storage, resets);
            senders.push(sender);
            threads.push(scope.spawn(move || worker.run(&receiver)));
        }
        let read = hand_on(batches, &senders);
        drop(senders);
        let outcomes = threads
            .into_iter()
            .map(|thread| thread.join().expect("a redo worker panicked"));
        // A worker that failed is why handing on ended early: its error comes first.
        outcomes.fold(Ok(()), Result::and).and(read)
    })
}

/// The log, cut into batches.
struct Batches {
    records: Scan,
    bytes_max: usize,
}

impl Batches {
    fn read(&mut self) -> Result<Batch> {
        let mut batch = Batch::default();
        while batch.bytes < self.bytes_max
            && let Some(record) = self.records.next()
        {
            batch.push(record?)?;
        }
        Ok(batch)
    }
}

impl Iterator for Batches {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        let batch = self.read();
        let is_end = batch.as_ref().is_ok_and(|batch| batch.records.is_empty());
        (!is_end).then_some(batch)
    }
}

/// The records of a batch, and the places that are one worker's.
type Share = (Arc<Vec<Record>>, Vec<Place>);

/// Gives every worker its share of each batch; ends early when a worker has gone.
fn hand_on(batches: Batches, workers: &[SyncSender<Share>]) -> Result<()> {
    for batch in batches {
        let batch = batch?;
        let shares = batch.shares(workers.len());
        let records = Arc::new(batch.records);
        for (worker, places) in workers.iter().zip(shares) {
            if worker.send((Arc::clone(&records), places)).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Applies the changes of a share of the pages.
struct Worker<'a> {
    access: &'a Access,
    resets: &'a Resets,
}

impl<'a> Worker<'a> {
    fn new(storage: &'a Storage, resets: &'a Resets) -> Worker<'a> {
        Worker {
            access: &storage.access,
            resets,
        }
    }

    fn run(self, shares: &Receiver<Share>) -> Result<()> {
        for (records, places) in shares {
            self.apply(&records, places)?;
        }
        Ok(())
    }

    fn apply(&self, records: &[Record], mut places: Vec<Place>) -> Result<()> {
        // Stable: the places of one page stay in log order (R1).
        places.sort_by_key(|place| place.page);
        for of_page in places.chunk_by(|one, next| one.page == next.page) {
            self.apply_to_page(records, of_page)?;
        }
        Ok(())
    }

    fn apply_to_page(&self, records: &[Record], places: &[Place]) -> Result<()> {
        let reset = self.resets.get(&places[0].page).copied();
        let from = reset.unwrap_or(Lsn::ZERO);
        for place in places {
            let record = &records[place.record as usize];
            if record.lsn < from {
                continue;
            }
            let mut changes = changes(record)?;
            let change = changes.nth(place.change as usize).expect("counted before");
            self.access.redo_page(record.lsn, &change)?;
        }
        Ok(())
    }
}
