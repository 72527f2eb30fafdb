//! A tree with everything that it stands on, and the operations that the storey above makes of it.

use longshore_access::{
    Access, AccessError, Boundaries, LogContext, PageSet, Patience, RowFlags, Slot, Tree,
    TreeReport, Unlocked, WriteError,
};
use longshore_base::{Lsn, PageSize, SeededEnvironment, StoreId, TxnId};
use longshore_disk::{Disk, MemoryDisk, OpenMode};
use longshore_log::{Log, LogOptions};
use longshore_pool::{Pool, PoolOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub const STORE: StoreId = StoreId::FIRST_USER;

/// What a test stands on.
pub struct World {
    pub log: Arc<Log>,
    pub access: Arc<Access>,
    next_txn: AtomicU64,
}

pub fn pool_on(log: &Arc<Log>, page_size: PageSize, frames: usize) -> Arc<Pool> {
    let disk = MemoryDisk::new();
    let data = disk.open("data", OpenMode::Create).unwrap();
    let double_write = disk.open("double-write", OpenMode::Create).unwrap();
    let options = PoolOptions {
        page_size,
        bytes_max: frames * (page_size.bytes() + 512) + (1 << 20),
        ..PoolOptions::default()
    };
    let env = Arc::new(SeededEnvironment::new(1));
    Pool::new(options, data, Some(double_write), Arc::clone(log) as _, env).unwrap()
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
        let env = Arc::new(SeededEnvironment::new(7));
        let options = LogOptions {
            bytes_max: 8 << 30,
            ..LogOptions::default()
        };
        let log = Log::create(Arc::new(MemoryDisk::new()), options, 1, env.clone()).unwrap();
        let pool = pool_on(&log, page_size, frames);
        let access = Access::new(pool, Arc::clone(&log), boundaries, env);
        access
            .format(&mut access.system_context(0).unwrap())
            .unwrap();
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

    /// Inserts or updates.
    pub fn put(&self, tree: &Tree, cx: &mut LogContext, key: &[u8], value: &[u8]) -> Lsn {
        loop {
            let mut leaf = tree.write_leaf(&self.access, key).unwrap();
            let done = match leaf.find(key) {
                Slot::Present(_) => leaf.update(cx, key, RowFlags::NONE, value),
                Slot::Ghost(_) | Slot::Absent(_) => leaf.insert(cx, key, RowFlags::NONE, value),
            };
            drop(leaf);
            match done {
                Ok(lsn) => return lsn,
                Err(WriteError::NoRoom) => {
                    tree.make_room(&self.access, cx, key, value.len()).unwrap();
                }
                Err(other) => panic!("{other}"),
            }
        }
    }

    /// Deletes; false when there is no such row.
    pub fn delete(&self, tree: &Tree, cx: &mut LogContext, key: &[u8]) -> bool {
        let mut leaf = tree.write_leaf(&self.access, key).unwrap();
        match leaf.ghost(cx, key) {
            Ok(_) => true,
            Err(WriteError::RowMissing) => false,
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
        let mut patience = Patience::new();
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
                longshore_access::record::ROW => {
                    let row = longshore_access::RowRecord::decode(&record.body).unwrap();
                    Tree::of_record(&row).undo(&self.access, cx, &row, record.prev)?;
                    next = record.prev;
                }
                longshore_access::record::CLR => {
                    next = longshore_access::RowRecord::decode_clr(&record.body)
                        .unwrap()
                        .0;
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
