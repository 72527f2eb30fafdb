//! A tree with everything that it stands on, and the operations that the storey above makes of it.

use longshore_access::{
    Access, AccessError, Boundaries, LeafHint, LeafWrite, LogContext, PageSet, Patience, RowFlags,
    RowRecord, Slot, Tree, TreeReport, Unlocked, WriteError, record,
};
use longshore_base::{Lsn, PageId, PageSize, SeededEnvironment, StoreId, TxnId};
use longshore_disk::{Disk, MemoryDisk, OpenMode};
use longshore_log::{Log, LogError, LogOptions, Record};
use longshore_pool::{Pool, PoolError, PoolOptions};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub const STORE: StoreId = StoreId::FIRST_USER;

/// What a test stands on.
pub struct World {
    pub log: Arc<Log>,
    pub access: Arc<Access>,
    next_txn: AtomicU64,
}

/// A log in memory that is never full.
pub fn roomy_log() -> Arc<Log> {
    let options = LogOptions {
        bytes_max: 8 << 30,
        ..LogOptions::default()
    };
    create_log(Arc::new(MemoryDisk::new()), options).unwrap()
}

pub fn create_log(disk: Arc<dyn Disk>, options: LogOptions) -> Result<Arc<Log>, LogError> {
    Log::create(disk, options, 1, Arc::new(SeededEnvironment::new(7)))
}

/// A pool on an empty data file in memory.
pub fn pool_on(log: &Arc<Log>, page_size: PageSize, frames: usize) -> Arc<Pool> {
    let unlocked = Arc::new(Unlocked);
    let access = access_on(&MemoryDisk::new(), log, page_size, frames, unlocked).unwrap();
    Arc::clone(access.pool())
}

/// Access to the data file on `disk`, which may be new, through `frames` frames.
pub fn access_on(
    disk: &dyn Disk,
    log: &Arc<Log>,
    page_size: PageSize,
    frames: usize,
    boundaries: Arc<dyn Boundaries>,
) -> Result<Arc<Access>, AccessError> {
    let open = |name| {
        disk.open(name, OpenMode::OpenOrCreate)
            .map_err(PoolError::Disk)
    };
    let options = PoolOptions {
        page_size,
        bytes_max: frames * (page_size.bytes() + 512) + (1 << 20),
        ..PoolOptions::default()
    };
    let env = Arc::new(SeededEnvironment::new(1));
    let (data, double_write) = (open("data")?, open("double-write")?);
    let durability = Arc::clone(log) as _;
    let pool = Pool::new(options, data, Some(double_write), durability, env)?;
    Ok(Access::new(pool, Arc::clone(log), boundaries))
}

impl World {
    /// A formatted file without trees.
    pub fn new(page_size: PageSize, frames: usize) -> World {
        World::with_boundaries(page_size, frames, Arc::new(Unlocked))
    }

    pub fn with_boundaries(
        page_size: PageSize,
        frames: usize,
        boundaries: Arc<dyn Boundaries>,
    ) -> World {
        let log = roomy_log();
        let access = access_on(&MemoryDisk::new(), &log, page_size, frames, boundaries).unwrap();
        let world = World::on(access, log);
        world.access.format(&mut world.begin()).unwrap();
        world
    }

    /// What there is, formatted or not.
    pub fn on(access: Arc<Access>, log: Arc<Log>) -> World {
        World {
            log,
            access,
            next_txn: AtomicU64::new(1),
        }
    }

    /// A transaction of one's own.
    pub fn begin(&self) -> LogContext {
        let txn = TxnId::new(self.next_txn.fetch_add(1, Ordering::Relaxed));
        LogContext::new(txn, self.log.claim(0).unwrap())
    }

    pub fn create(&self, store: StoreId) -> Tree {
        Tree::create(&self.access, &mut self.begin(), store).unwrap()
    }

    /// Inserts or updates; panics unless that works.
    pub fn put(&self, tree: &Tree, cx: &mut LogContext, key: &[u8], value: &[u8]) -> Lsn {
        self.try_put(tree, cx, key, value).unwrap()
    }

    /// Inserts or updates.
    pub fn try_put(
        &self,
        tree: &Tree,
        cx: &mut LogContext,
        key: &[u8],
        value: &[u8],
    ) -> Result<Lsn, AccessError> {
        loop {
            let mut leaf = self.latch(tree, key)?;
            let done = match leaf.find(key) {
                Slot::Present(_) => leaf.update(cx, key, RowFlags::NONE, value),
                Slot::Ghost(_) | Slot::Absent(_) => leaf.insert(cx, key, RowFlags::NONE, value),
            };
            drop(leaf);
            match done {
                Ok(lsn) => return Ok(lsn),
                Err(WriteError::NoRoom) => {
                    tree.make_room(&self.access, cx, key, value.len())?;
                }
                Err(WriteError::Failed(error)) => return Err(error),
                Err(other) => panic!("{other}"),
            }
        }
    }

    /// Latches the leaf of `key` with the hint of this thread, which may be of another time or world.
    fn latch(&self, tree: &Tree, key: &[u8]) -> Result<LeafWrite<'_>, AccessError> {
        thread_local!(static HINT: Cell<LeafHint> = const { Cell::new(LeafHint::NONE) });
        let mut hint = HINT.get();
        let leaf = tree.write_leaf_near(&self.access, &mut hint, key);
        HINT.set(hint);
        leaf
    }

    /// Deletes; false when there is no such row. Panics unless that works.
    pub fn delete(&self, tree: &Tree, cx: &mut LogContext, key: &[u8]) -> bool {
        self.try_delete(tree, cx, key).unwrap()
    }

    /// Deletes; false when there is no such row.
    pub fn try_delete(
        &self,
        tree: &Tree,
        cx: &mut LogContext,
        key: &[u8],
    ) -> Result<bool, AccessError> {
        let mut leaf = self.latch(tree, key)?;
        match leaf.ghost(cx, key) {
            Ok(_) => Ok(true),
            Err(WriteError::RowMissing) => Ok(false),
            Err(WriteError::Failed(error)) => Err(error),
            Err(other) => panic!("{other}"),
        }
    }

    pub fn get(&self, tree: &Tree, key: &[u8]) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        tree.get(&self.access, key, &mut value)
            .unwrap()
            .map(|_| value)
    }

    /// Up to `limit` rows from `from` on, leaf by leaf.
    pub fn scan(&self, tree: &Tree, from: &[u8], limit: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut rows = Vec::new();
        let mut at = from.to_vec();
        let mut patience = Patience::for_scan();
        while rows.len() < limit {
            let leaf = tree
                .read_leaf_patiently(&self.access, &at, &mut patience)
                .unwrap();
            let mut batch = Vec::new();
            for slot in leaf.find(&at).index()..leaf.count() {
                if !leaf.is_ghost(slot) {
                    let (mut key, mut value) = (Vec::new(), Vec::new());
                    leaf.key_into(slot, &mut key);
                    leaf.value_into(slot, &mut value);
                    batch.push((key, value));
                }
            }
            let mut upper = Vec::new();
            let goes_on = leaf.upper_fence_into(&mut upper);
            if leaf.validate().is_err() {
                patience.lost();
                continue;
            }
            rows.extend(batch);
            if !goes_on {
                break;
            }
            at = upper;
        }
        rows.truncate(limit);
        rows
    }

    /// Up to `limit` rows below `bound` (`None`: from the end), in descending order.
    pub fn scan_back(
        &self,
        tree: &Tree,
        bound: Option<&[u8]>,
        limit: usize,
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut rows = Vec::new();
        let mut at = bound.map(<[u8]>::to_vec);
        let mut patience = Patience::new();
        while rows.len() < limit && at.as_ref().is_none_or(|at| !at.is_empty()) {
            let leaf = match &at {
                Some(bound) => tree
                    .read_leaf_before(&self.access, bound, &mut patience)
                    .unwrap(),
                None => tree.read_leaf_last(&self.access, &mut patience).unwrap(),
            };
            let end = at
                .as_ref()
                .map_or(leaf.count(), |bound| leaf.find(bound).index());
            let mut batch = Vec::new();
            for slot in (0..end).rev() {
                if !leaf.is_ghost(slot) {
                    let (mut key, mut value) = (Vec::new(), Vec::new());
                    leaf.key_into(slot, &mut key);
                    leaf.value_into(slot, &mut value);
                    batch.push((key, value));
                }
            }
            let mut low = Vec::new();
            leaf.low_fence_into(&mut low);
            if leaf.validate().is_err() {
                patience.lost();
                continue;
            }
            rows.extend(batch);
            at = Some(low);
        }
        rows.truncate(limit);
        rows
    }

    /// Undoes everything that `cx` logged after `until`, newest first.
    pub fn roll_back(&self, cx: &mut LogContext, until: Lsn) -> Result<(), AccessError> {
        let mut next = cx.last;
        while next > until {
            let record = self.log.read(next)?;
            match record.kind {
                record::ROW => {
                    let row = RowRecord::decode(&record.body).unwrap();
                    Tree::of_record(&row).undo(&self.access, cx, &row, record.prev)?;
                    next = record.prev;
                }
                record::CLR => {
                    next = RowRecord::decode_clr(&record.body).unwrap().0;
                }
                kind => panic!("a transaction has no records of kind {kind}"),
            }
        }
        Ok(())
    }

    /// Verifies trees and space; panics unless all is sound.
    pub fn verify(&self, trees: &[Tree]) -> Vec<TreeReport> {
        let mut pages = PageSet::new();
        let reports: Vec<_> = trees
            .iter()
            .map(|tree| tree.verify(&self.access, &mut pages).unwrap())
            .collect();
        for report in &reports {
            assert!(report.is_sound(), "{:#?}", report.problems);
        }
        let space = self.access.verify_space(&pages).unwrap();
        assert!(space.is_sound(), "{space:?}");
        reports
    }
}

/// A key of varying length that sorts like its number.
pub fn key(number: u32) -> Vec<u8> {
    let mut key = format!("key-{number:08}").into_bytes();
    key.resize(key.len() + (number as usize * 37) % 60, b'x');
    key
}

/// A key long enough that few fit a page, so that few rows make a deep tree.
pub fn long_key(number: u32) -> Vec<u8> {
    let mut key = format!("{number:06}").into_bytes();
    key.resize(300 + (number as usize * 97) % 700, b'y');
    key
}

/// Redoes the whole log, skipping for each page what precedes its last reset.
pub fn redo_all(access: &Access, log: &Log) -> Result<Vec<Record>, AccessError> {
    let records = log.scan(Lsn::ZERO).collect::<Result<Vec<_>, _>>()?;
    let mut reset = HashMap::<PageId, Lsn>::new();
    for one in records.iter().filter(|one| Access::has_redo(one.kind)) {
        for change in record::changes(one.kind, &one.body).unwrap() {
            if change.resets_page().unwrap() {
                reset.insert(change.page, one.lsn);
            }
        }
    }
    for one in records.iter().filter(|one| Access::has_redo(one.kind)) {
        access.redo(one, |page| {
            reset.get(&page).is_none_or(|lsn| *lsn <= one.lsn)
        })?;
    }
    Ok(records)
}
