//! How long a rollback takes while others commit: each thread inserts a row and commits it as safe as the
//! disk makes it, then updates rows and rolls back. Only the rollbacks are timed.
//!
//! `cargo run --release -p longshore-txn --example rollback -- DIRECTORY [ROUNDS]`

use longshore_access::{Access, Tree};
use longshore_base::{StoreId, SystemEnvironment};
use longshore_disk::{Disk, FileDisk, FileOptions, OpenMode};
use longshore_log::{Level, Log, LogOptions};
use longshore_pool::{DoubleWrite, Pool, PoolOptions};
use longshore_txn::{LockManager, LockOptions, TransactionManager, TxnOptions, VersionOptions};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const VALUE: [u8; 84] = [7; 84];
/// Rows that each thread has.
const ROWS: u64 = 100;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().expect("a directory for the log");
    let rounds = arguments
        .next()
        .map_or(200, |n| n.parse().expect("a number"));
    for threads in [1, 32] {
        for rows in [1, ROWS] {
            let place = Path::new(&directory).join(format!("rollback-{threads}-{rows}"));
            let mut times = measure(&place, threads, rows, rounds);
            times.sort();
            let at = |share: usize| times[(times.len() - 1) * share / 100].as_nanos() as f64 / 1e3;
            println!(
                "{threads:2} threads, {rows:3} rows: median {:9.1} us, 99 of 100 within {:9.1} us",
                at(50),
                at(99)
            );
            std::fs::remove_dir_all(&place).expect("a directory to remove");
        }
    }
}

/// The time of each rollback of `rows` rows.
fn measure(place: &Path, threads: u64, rows: u64, rounds: u64) -> Vec<Duration> {
    std::fs::create_dir_all(place).expect("a new directory");
    let (log, manager) = open(place);
    let mut txn = manager.begin().expect("a slot");
    let tree = txn.create_tree(StoreId::new(16)).expect("a tree");
    for key in 0..threads * ROWS {
        txn.insert(tree, &key.to_be_bytes(), &VALUE).expect("a row");
    }
    txn.commit(Level::Sync)
        .expect("a commit")
        .handle
        .wait()
        .expect("a sync");
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| log.run_flusher(&stop));
        let manager = &manager;
        let spawned: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || work(manager, tree, thread, rows, rounds)))
            .collect();
        let times = spawned
            .into_iter()
            .flat_map(|one| one.join().expect("no panic"))
            .collect();
        stop.store(true, Ordering::Relaxed);
        log.nudge();
        times
    })
}

fn work(
    manager: &Arc<TransactionManager>,
    tree: Tree,
    thread: u64,
    rows: u64,
    rounds: u64,
) -> Vec<Duration> {
    let mut times = Vec::new();
    for round in 0..rounds {
        let mut txn = manager.begin().expect("a slot");
        let key = [thread + 1, round].map(u64::to_be_bytes).concat();
        txn.insert(tree, &key, &VALUE).expect("a row");
        txn.commit(Level::Sync)
            .expect("a commit")
            .handle
            .wait()
            .expect("a sync");
        let mut txn = manager.begin().expect("a slot");
        for row in 0..rows {
            let key = (thread * ROWS + row).to_be_bytes();
            txn.update(tree, &key, &[round as u8; 84]).expect("a row");
        }
        let start = Instant::now();
        txn.rollback().expect("a rollback");
        times.push(start.elapsed());
    }
    times
}

fn open(place: &Path) -> (Arc<Log>, Arc<TransactionManager>) {
    let env = Arc::new(SystemEnvironment::new());
    let disk: Arc<dyn Disk> =
        Arc::new(FileDisk::open(place, FileOptions::default()).expect("a disk"));
    let data = disk.open("data", OpenMode::Create).expect("a new file");
    let log = Log::create(disk, LogOptions::default(), 1, env.clone()).expect("a new log");
    let options = PoolOptions {
        bytes_max: 64 << 20,
        double_write: DoubleWrite::Off,
        ..PoolOptions::default()
    };
    let pool = Pool::new(options, data, None, log.clone(), env.clone()).expect("a pool");
    let locks = LockManager::new(LockOptions::default(), log.clone(), env);
    let access = Access::new(pool, log.clone(), locks.clone());
    let mut cx = access.system_context(64 << 10).expect("log space");
    access.format(&mut cx).expect("a format");
    let garbage = Tree::create(&access, &mut cx, StoreId::GARBAGE).expect("a tree");
    let options = TxnOptions {
        lock_wait: Duration::from_secs(5),
        garbage,
        first_txn: 1,
        versions: VersionOptions::default(),
    };
    let manager = TransactionManager::new(access, log.clone(), locks, options);
    (log, manager)
}
