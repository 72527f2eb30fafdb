//! A storage manager in memory, small enough to make one for each test, that can be crashed.

use longshore_access::record::{CLR, ROW};
use longshore_access::{Access, PageSet, Tree};
use longshore_base::{Environment, Lsn, PageSize, StoreId, SystemEnvironment, TxnId};
use longshore_disk::{Disk, MemoryDisk, OpenMode};
use longshore_log::{Access as LogAccess, Level, Log, LogOptions};
use longshore_pool::{DoubleWrite, Pool, PoolOptions};
use longshore_txn::record::{COMMIT, END};
use longshore_txn::{
    LockManager, LockOptions, Transaction, TransactionManager, TxnOptions, VersionOptions,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Stores of the tables that a world has.
const TABLES: [u32; 2] = [16, 17];

pub struct World {
    pub log: Arc<Log>,
    pub access: Arc<Access>,
    pub manager: Arc<TransactionManager>,
    pub garbage: Tree,
    pub tables: [Tree; 2],
}

#[derive(Clone, Copy)]
pub struct WorldOptions {
    pub page_size: usize,
    pub pool_bytes: usize,
    pub log_segment_bytes: u64,
    pub log_bytes_max: u64,
    pub lock_wait: Duration,
    pub lock_bytes_max: usize,
    pub transactions_max: usize,
    pub versions: VersionOptions,
}

impl Default for WorldOptions {
    fn default() -> Self {
        WorldOptions {
            page_size: 4096,
            pool_bytes: 4 << 20,
            log_segment_bytes: 1 << 20,
            log_bytes_max: 64 << 20,
            lock_wait: Duration::from_secs(10),
            lock_bytes_max: 4 << 20,
            transactions_max: 64,
            versions: VersionOptions::default(),
        }
    }
}

struct Parts {
    pool: Arc<Pool>,
    access: Arc<Access>,
    locks: Arc<LockManager>,
}

fn log_options(options: WorldOptions) -> LogOptions {
    LogOptions {
        segment_bytes: options.log_segment_bytes,
        buffer_bytes: 256 << 10,
        bytes_max: options.log_bytes_max,
    }
}

impl World {
    pub fn new() -> World {
        World::with(WorldOptions::default())
    }

    pub fn with(options: WorldOptions) -> World {
        World::on(Arc::new(MemoryDisk::new()), options)
    }

    /// A new world on `disk`.
    pub fn on(disk: Arc<dyn Disk>, options: WorldOptions) -> World {
        let env: Arc<dyn Environment> = Arc::new(SystemEnvironment::new());
        let log = Log::create(Arc::clone(&disk), log_options(options), 7, env.clone()).unwrap();
        let parts = parts(&*disk, &log, env, options);
        let mut cx = parts.access.system_context(64 << 10).unwrap();
        parts.access.format(&mut cx).unwrap();
        let mut create = |store| Tree::create(&parts.access, &mut cx, StoreId::new(store)).unwrap();
        let garbage = create(StoreId::GARBAGE.get());
        let tables = TABLES.map(&mut create);
        log.flush_all(Level::Sync).unwrap();
        parts.finish(log, garbage, tables, options)
    }

    /// The world that comes back after a crash of `self`, given what of its disk is left: redo from the
    /// beginning of the log, then undo of the losers. Returns how many losers there were.
    pub fn restart(&self, disk: Arc<dyn Disk>, options: WorldOptions) -> (World, usize) {
        let env: Arc<dyn Environment> = Arc::new(SystemEnvironment::new());
        let mode = LogAccess::ReadWrite;
        let log = Log::open(
            disk.clone(),
            log_options(options),
            7,
            Log::FIRST,
            mode,
            env.clone(),
        );
        let log = log.unwrap();
        let parts = parts(&*disk, &log, env, options);
        parts.pool.recover_double_write().unwrap();
        let mut losers = BTreeMap::new();
        for record in log.scan(Log::FIRST) {
            let record = record.unwrap();
            match record.kind {
                ROW | CLR => drop(losers.insert(record.txn, record.lsn)),
                COMMIT | END => drop(losers.remove(&record.txn)),
                _ => {}
            }
            if Access::has_redo(record.kind) {
                parts.access.redo(&record, |_| true).unwrap();
            }
        }
        parts.access.attach().unwrap();
        let world = parts.finish(log, self.garbage, self.tables, options);
        let losers: Vec<(TxnId, Lsn)> = losers.into_iter().collect();
        let undone = world.manager.restart_undo(losers).unwrap();
        (world, undone)
    }

    pub fn begin(&self) -> Transaction {
        self.manager.begin().unwrap()
    }

    pub fn locks(&self) -> &LockManager {
        self.manager.locks()
    }

    /// Every committed row of a table, in order. Nobody else may be at work.
    pub fn rows(&self, tree: Tree) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut txn = self.begin();
        let rows = crate::scans::all(&mut txn, tree);
        txn.commit(Level::None).unwrap().handle.wait().unwrap();
        rows
    }

    /// The trees are sound.
    pub fn verify(&self) {
        for tree in self.tables.iter().chain([&self.garbage]) {
            tree.verify(&self.access, &mut PageSet::new()).unwrap();
        }
    }
}

fn parts(
    disk: &dyn Disk,
    log: &Arc<Log>,
    env: Arc<dyn Environment>,
    options: WorldOptions,
) -> Parts {
    let data = disk.open("data", OpenMode::OpenOrCreate).unwrap();
    let double = disk.open("double-write", OpenMode::OpenOrCreate).unwrap();
    let pool_options = PoolOptions {
        page_size: PageSize::new(options.page_size).unwrap(),
        wait: Duration::from_secs(5),
        double_write: DoubleWrite::On,
        ..PoolOptions::with_bytes(options.pool_bytes)
    };
    let durability = Arc::clone(log) as Arc<dyn longshore_base::Durability>;
    let pool = Pool::new(
        pool_options,
        data,
        Some(double),
        durability.clone(),
        env.clone(),
    )
    .unwrap();
    let lock_options = LockOptions {
        bytes_max: options.lock_bytes_max,
        owners_max: options.transactions_max,
        search_interval: Duration::from_millis(20),
        ..LockOptions::default()
    };
    let locks = LockManager::new(lock_options, durability, env);
    let access = Access::new(pool.clone(), Arc::clone(log), locks.clone());
    Parts {
        pool,
        access,
        locks,
    }
}

impl Parts {
    fn finish(
        self,
        log: Arc<Log>,
        garbage: Tree,
        tables: [Tree; 2],
        options: WorldOptions,
    ) -> World {
        let txn_options = TxnOptions {
            lock_wait: options.lock_wait,
            garbage,
            first_txn: 1,
            versions: options.versions,
        };
        let Parts { access, locks, .. } = self;
        let manager = TransactionManager::new(access.clone(), log.clone(), locks, txn_options);
        World {
            log,
            access,
            manager,
            garbage,
            tables,
        }
    }
}
