//! How fast one tree is, without transactions, locks or durability: rows of about a hundred bytes
//! inserted in ascending and in random order, and read at random.
//!
//! `cargo run --release -p longshore-access --example tree_speed -- [ROWS] [THREADS]`

use longshore_access::{Access, LeafHint, LogContext, RowFlags, Slot, Tree, Unlocked, WriteError};
use longshore_base::{PageSize, StoreId, SystemEnvironment, TxnId};
use longshore_disk::{Disk, MemoryDisk, OpenMode};
use longshore_log::{Level, Log, LogOptions};
use longshore_pool::{DoubleWrite, Pool, PoolOptions};
use std::hint::black_box;
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

const VALUE: [u8; 84] = [7; 84];
/// Rows between two points at which the log may forget.
const TXN_ROWS: u64 = 1_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |or: u64| {
        arguments
            .next()
            .map_or(or, |text| text.parse().expect("a number"))
    };
    let (rows, threads) = (number(1_000_000), number(1));
    let (access, log) = world(rows * threads);

    let trees: Vec<Tree> = (0..threads).map(|t| create(&access, &log, t)).collect();
    let time = parallel(threads, |t| {
        insert(&access, &log, &trees[t as usize], 0..rows)
    });
    report("insert, ascending, private trees", rows, time);
    let time = parallel(threads, |t| read(&access, &trees[t as usize], rows, t));
    report("read, random, private trees", rows, time);
    let time = parallel(threads, |t| read(&access, &trees[0], rows, t));
    report("read, random, one tree", rows, time);
    let shared = create(&access, &log, threads);
    let time = parallel(threads, |t| {
        let order = (0..rows).map(|i| scatter(i * threads + t));
        insert(&access, &log, &shared, order);
    });
    report("insert, random, one tree", rows, time);
}

fn world(rows: u64) -> (Arc<Access>, Arc<Log>) {
    let env = Arc::new(SystemEnvironment::new());
    let disk = Arc::new(MemoryDisk::new());
    let data = disk.open("data", OpenMode::Create).expect("a new file");
    let log_options = LogOptions {
        bytes_max: 64 << 30,
        ..LogOptions::default()
    };
    let log = Log::create(disk, log_options, 1, env.clone()).expect("a new log");
    let pool_options = PoolOptions {
        page_size: PageSize::DEFAULT,
        bytes_max: (rows as usize * 400).max(64 << 20),
        double_write: DoubleWrite::Off,
        ..PoolOptions::default()
    };
    let durability = Arc::clone(&log) as _;
    let pool = Pool::new(pool_options, data, None, durability, env).expect("a pool");
    let access = Access::new(pool, Arc::clone(&log), Arc::new(Unlocked));
    let mut cx = access.system_context(0).expect("log space");
    access.format(&mut cx).expect("an empty file");
    (access, log)
}

fn create(access: &Access, log: &Log, number: u64) -> Tree {
    let mut cx = LogContext::new(TxnId::new(1), log.claim(0).expect("log space"));
    Tree::create(access, &mut cx, StoreId::new(16 + number as u32)).expect("a tree")
}

fn insert(access: &Access, log: &Log, tree: &Tree, keys: impl IntoIterator<Item = u64>) {
    let mut cx = LogContext::new(TxnId::new(1), log.claim(0).expect("log space"));
    let mut hint = LeafHint::NONE;
    for (done, key) in (1u64..).zip(keys) {
        put(access, &mut cx, tree, &mut hint, &key_of(key));
        if done.is_multiple_of(TXN_ROWS) {
            log.flush(cx.last, Level::Os).expect("a log in memory");
            log.truncate(cx.last).expect("a log in memory");
            cx = LogContext::new(TxnId::new(done), log.claim(0).expect("log space"));
        }
    }
}

fn put(access: &Access, cx: &mut LogContext, tree: &Tree, hint: &mut LeafHint, key: &[u8]) {
    loop {
        let mut leaf = tree.write_leaf_near(access, hint, key).expect("a leaf");
        match leaf.insert(cx, key, RowFlags::NONE, &VALUE) {
            Ok(_) | Err(WriteError::RowExists) => return,
            Err(WriteError::NoRoom) => drop(leaf),
            Err(other) => panic!("{other}"),
        }
        tree.make_room(access, cx, key, VALUE.len()).expect("room");
    }
}

fn read(access: &Access, tree: &Tree, rows: u64, seed: u64) {
    let mut value = Vec::new();
    for i in 0..rows {
        let key = key_of(scatter(i + (seed << 40)) % rows);
        let leaf = tree.read_leaf(access, &key).expect("a leaf");
        if let Slot::Present(slot) = leaf.find(&key) {
            leaf.value_into(slot, &mut value);
        }
        assert!(leaf.validate().is_ok(), "nobody writes");
        assert_eq!(black_box(&value).len(), VALUE.len());
    }
}

fn key_of(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Multiplication by an odd constant, and a fold: a number for a number, in no order.
fn scatter(number: u64) -> u64 {
    let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    spread ^ (spread >> 29)
}

/// Runs the work on every thread; the mean of the processor time that a thread took, which other
/// programs on the machine do not add to.
fn parallel(threads: u64, work: impl Fn(u64) + Sync) -> Duration {
    thread::scope(|scope| {
        let run = |t| {
            let work = &work;
            scope.spawn(move || {
                let start = processor_time();
                work(t);
                processor_time() - start
            })
        };
        let running: Vec<_> = (0..threads).map(run).collect();
        let total: Duration = running
            .into_iter()
            .map(|t| t.join().expect("no panic"))
            .sum();
        total / threads as u32
    })
}

/// Processor time of this thread where Linux tells it, or else the time of day.
fn processor_time() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|text| text.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| EPOCH.elapsed(), Duration::from_nanos)
}

static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

fn report(what: &str, rows: u64, time: Duration) {
    println!("{what}: {} ns a row", time.as_nanos() / u128::from(rows));
}
