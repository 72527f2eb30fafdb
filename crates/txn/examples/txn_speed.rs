//! What transactions add to the tree below them: rows of about a hundred bytes inserted in ascending
//! order, committed by the thousand without waiting for the disk; rows read at random, alone and
//! within transactions; and transactions of one small change, with a reader that stays open and without.
//!
//! `cargo run --release -p longshore-txn --example txn_speed -- [ROWS] [THREADS] [ONLY]`

use longshore_access::{Access, PageSet, Tree};
use longshore_base::{StoreId, SystemEnvironment};
use longshore_disk::{Disk, MemoryDisk, OpenMode};
use longshore_log::{Level, Log, LogOptions};
use longshore_pool::{DoubleWrite, Pool, PoolOptions};
use longshore_txn::{
    Begin, LockManager, LockOptions, TransactionManager, TxnOptions, VersionOptions,
};
use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const VALUE: [u8; 84] = [7; 84];
/// Rows of one transaction.
const TXN_ROWS: u64 = 1_000;

struct World {
    log: Arc<Log>,
    access: Arc<Access>,
    manager: Arc<TransactionManager>,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |or: u64| {
        arguments
            .next()
            .map_or(or, |text| text.parse().expect("a number"))
    };
    let (rows, threads) = (number(1_000_000), number(1));
    let world = world(rows * threads);
    let trees: Vec<Tree> = (0..threads).map(|t| create(&world, t)).collect();
    let tree = |t: u64| trees[t as usize];
    let only = std::env::args().nth(3).unwrap_or_default();
    let measure = |what: &str, work: &(dyn Fn(u64) + Sync)| {
        if what.contains(&only) || what.starts_with("insert") {
            let time = parallel(threads, work);
            println!(
                "{what:34} {:7.0} ns a row",
                time.as_nanos() as f64 / rows as f64
            );
        }
    };
    measure("insert, ascending, private trees", &|t| {
        insert(&world, tree(t), rows)
    });
    measure("get alone, random, private trees", &|t| {
        get_alone(&world, tree(t), rows)
    });
    measure("get alone, random, one tree", &|_| {
        get_alone(&world, tree(0), rows)
    });
    measure("get ten a transaction, random", &|t| {
        get_locked(&world, tree(t), rows)
    });
    measure("get in one snapshot, random", &|t| {
        get_snapshot(&world, tree(t), rows, rows)
    });
    measure("get one a snapshot, random", &|t| {
        get_snapshot(&world, tree(t), rows, 1)
    });
    measure("update one a transaction, random", &|t| {
        update(&world, tree(t), rows)
    });
    measure("update one, beside a reader", &|t| {
        update_beside_reader(&world, tree(t), rows)
    });
    let rows_found = trees[0]
        .verify(&world.access, &mut PageSet::new())
        .expect("a sound tree");
    println!("{rows_found:?}\n{:?}", world.manager.stats());
}

fn world(rows: u64) -> World {
    let env = Arc::new(SystemEnvironment::new());
    let disk = Arc::new(MemoryDisk::new());
    let data = disk.open("data", OpenMode::Create).expect("a new file");
    let log_options = LogOptions {
        bytes_max: 64 << 30,
        ..LogOptions::default()
    };
    let log = Log::create(disk, log_options, 1, env.clone()).expect("a new log");
    let pool_options = PoolOptions {
        bytes_max: (rows as usize * 400).max(64 << 20),
        double_write: DoubleWrite::Off,
        ..PoolOptions::default()
    };
    let pool = Pool::new(pool_options, data, None, log.clone(), env.clone()).expect("a pool");
    let locks = LockManager::new(LockOptions::default(), log.clone(), env);
    let access = Access::new(pool, log.clone(), locks.clone());
    let mut cx = access.system_context(64 << 10).expect("log space");
    access.format(&mut cx).expect("a format");
    let garbage = Tree::create(&access, &mut cx, StoreId::GARBAGE).expect("a tree");
    let options = TxnOptions {
        lock_wait: Duration::from_secs(5),
        garbage,
        first_txn: 1,
        versions: VersionOptions {
            bytes_max: (rows as usize * 400).max(64 << 20),
            ..VersionOptions::default()
        },
    };
    let manager = TransactionManager::new(access.clone(), log.clone(), locks, options);
    World {
        log,
        access,
        manager,
    }
}

fn create(world: &World, thread: u64) -> Tree {
    let mut txn = world.manager.begin().expect("a slot");
    let tree = txn
        .create_tree(StoreId::new(16 + thread as u32))
        .expect("a tree");
    let _ = txn.commit(Level::None).expect("a commit");
    tree
}

/// Kept apart, so that callgrind can collect it alone (`--toggle-collect=txn_speed::insert`).
#[inline(never)]
fn insert(world: &World, tree: Tree, rows: u64) {
    for first in (0..rows).step_by(TXN_ROWS as usize) {
        let mut txn = world.manager.begin().expect("a slot");
        for row in first..rows.min(first + TXN_ROWS) {
            // As lengths that are known only when it runs, as a caller's are.
            let (key, value) = (row.to_be_bytes(), VALUE);
            txn.insert(tree, black_box(&key[..]), black_box(&value[..]))
                .expect("a new key");
        }
        let commit = txn.commit(Level::None).expect("a commit");
        // The log of this run is never needed; without this it fills the memory.
        if first % (TXN_ROWS * 100) == 0 {
            let lsn = commit.lsn.expect("rows were inserted");
            world.log.flush(lsn, Level::Os).expect("a flush");
            world.log.truncate(lsn).expect("segments to recycle");
        }
    }
}

fn get_alone(world: &World, tree: Tree, rows: u64) {
    let mut value = Vec::new();
    for row in 0..rows {
        let key = scatter(row, rows).to_be_bytes();
        assert!(
            world
                .manager
                .get_into(tree, &key, &mut value)
                .expect("a read")
        );
        black_box(&value);
    }
}

fn get_locked(world: &World, tree: Tree, rows: u64) {
    let mut value = Vec::new();
    for first in (0..rows).step_by(10) {
        let mut txn = world.manager.begin().expect("a slot");
        for row in first..rows.min(first + 10) {
            let key = scatter(row, rows).to_be_bytes();
            assert!(txn.get_into(tree, &key, &mut value).expect("a read"));
            black_box(&value);
        }
        let _ = txn.commit(Level::None).expect("a commit");
    }
}

/// Reads `each` rows in each snapshot.
fn get_snapshot(world: &World, tree: Tree, rows: u64, each: u64) {
    let mut value = Vec::new();
    for first in (0..rows).step_by(each as usize) {
        let begin = Begin {
            is_read_only: true,
            ..Begin::default()
        };
        let mut txn = world.manager.begin_with(begin).expect("a slot");
        for row in first..first + each {
            let key = scatter(row, rows).to_be_bytes();
            assert!(txn.get_into(tree, &key, &mut value).expect("a read"));
            black_box(&value);
        }
        let _ = txn.commit(Level::None).expect("a commit");
    }
}

fn update(world: &World, tree: Tree, rows: u64) {
    for row in 0..rows {
        let mut txn = world.manager.begin().expect("a slot");
        let key = scatter(row, rows).to_be_bytes();
        txn.put(tree, &key, &VALUE).expect("an update");
        let commit = txn.commit(Level::None).expect("a commit");
        if row % 100_000 == 0 {
            let lsn = commit.lsn.expect("a row was changed");
            world.log.flush(lsn, Level::Os).expect("a flush");
            world.log.truncate(lsn).expect("segments to recycle");
        }
    }
}

/// A snapshot sees each row as it was before, so what it was is kept.
fn update_beside_reader(world: &World, tree: Tree, rows: u64) {
    let begin = Begin {
        is_read_only: true,
        ..Begin::default()
    };
    let mut reader = world.manager.begin_with(begin).expect("a slot");
    let mut value = Vec::new();
    let key = scatter(0, rows).to_be_bytes();
    assert!(reader.get_into(tree, &key, &mut value).expect("a read"));
    update(world, tree, rows);
    let _ = reader.commit(Level::None).expect("a commit");
}

/// A permutation of `0..rows`, near enough, in no order.
fn scatter(row: u64, rows: u64) -> u64 {
    (row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % rows
}

fn parallel(threads: u64, work: impl Fn(u64) + Sync) -> Duration {
    let start = Instant::now();
    thread::scope(|scope| {
        for t in 0..threads {
            let work = &work;
            scope.spawn(move || work(t));
        }
    });
    start.elapsed()
}
