//! A log, a disk, a lock table or a budget for versions that is full in the middle of transactions: each
//! change that finds no room is an error, and the transaction can be ended in either way all the same.
//!
//! Several transactions of all levels work in turn, on rows that lie side by side in the same leaves:
//! inserts, deletes, and updates that make rows longer and shorter, so that undo finds others' rows where
//! its own were. Or two work that each have a table to themselves, for which they trade their rows.

use crate::scans;
use crate::world::{World, WorldOptions};
use longshore_access::AccessError;
use longshore_disk::{Disk, SimDisk, SimOptions};
use longshore_log::{FullCause, Level, LogError};
use longshore_pool::PoolError;
use longshore_txn::{
    Begin, Escalation, Isolation, LockError, LongReaders, Transaction, TxnError, VersionOptions,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const CLIENTS: u32 = 6;
/// Keys of all clients together; those of one are a residue class.
const KEYS: u32 = 1200;
const VALUE_BYTES_MAX: usize = 500;
/// Refusals after which a client ends its transaction.
const REFUSALS: u32 = 3;
const SEEDS: u64 = 20;

/// The committed rows of both tables.
type Rows = [BTreeMap<Vec<u8>, Vec<u8>>; 2];

/// Where the clients work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Share {
    /// All in one table.
    OneTable,
    /// Each in its own, of which it takes the whole.
    TableEach,
}

struct Client {
    number: u32,
    table: usize,
    txn: Transaction,
    /// What its rows are if it commits; nothing for those that it deleted.
    changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    refusals: u32,
}

impl Client {
    /// Changes a random row of its own. What is refused has no effect.
    fn step(&mut self, world: &World, rng: &mut SmallRng) -> Option<TxnError> {
        let number = rng.random_range(0..KEYS / CLIENTS) * CLIENTS + self.number;
        let key = number.to_be_bytes().to_vec();
        let tree = world.tables[self.table];
        let (outcome, value) = if rng.random_ratio(1, 5) {
            (self.txn.delete(tree, &key).map(drop), None)
        } else {
            let value = vec![rng.random(); rng.random_range(0..VALUE_BYTES_MAX)];
            (self.txn.put(tree, &key, &value), Some(value))
        };
        match outcome {
            Ok(()) => {
                self.changes.insert(key, value);
                None
            }
            Err(error) => {
                self.refusals += 1;
                Some(error)
            }
        }
    }

    /// Ends the transaction in one way or the other.
    fn end(self, rows: &mut Rows, rng: &mut SmallRng) {
        if rng.random() {
            let commit = self.txn.commit(Level::Sync).expect("room was set aside");
            commit.handle.wait().expect("room was set aside");
            for (key, value) in self.changes {
                match value {
                    Some(value) => drop(rows[self.table].insert(key, value)),
                    None => drop(rows[self.table].remove(&key)),
                }
            }
        } else {
            self.txn.rollback().expect("room for undo was set aside");
        }
    }
}

/// Rows of half of the keys.
fn fill(world: &World) -> Rows {
    let mut rows = Rows::default();
    let mut txn = world.begin();
    for (tree, rows) in world.tables.into_iter().zip(&mut rows) {
        for number in (0..KEYS).filter(|number| (number / CLIENTS).is_multiple_of(2)) {
            let (key, value) = (number.to_be_bytes().to_vec(), vec![7; VALUE_BYTES_MAX / 2]);
            txn.put(tree, &key, &value).unwrap();
            rows.insert(key, value);
        }
    }
    let commit = txn.commit(Level::Sync).unwrap();
    commit.handle.wait().unwrap();
    rows
}

/// Has the clients work until every one has been refused often enough, and ends them in random order.
/// Returns the refusals.
fn work_until_full(
    world: &World,
    rows: &mut Rows,
    rng: &mut SmallRng,
    share: Share,
) -> Vec<TxnError> {
    let count = match share {
        Share::OneTable => CLIENTS,
        Share::TableEach => 2,
    };
    let first: usize = rng.random_range(0..3);
    let mut clients: Vec<Client> = (0..count)
        .map(|number| Client {
            number,
            table: match share {
                Share::OneTable => 0,
                Share::TableEach => number as usize,
            },
            txn: begin(world, LEVELS[(first + number as usize) % 3], false),
            changes: BTreeMap::new(),
            refusals: 0,
        })
        .collect();
    let mut refusals = Vec::new();
    for step in 0.. {
        assert!(step < 100_000, "it is never full");
        let mut working: Vec<_> = clients
            .iter_mut()
            .filter(|client| client.refusals < REFUSALS)
            .collect();
        if working.is_empty() {
            break;
        }
        let chosen = rng.random_range(0..working.len());
        refusals.extend(working[chosen].step(world, rng));
    }
    while !clients.is_empty() {
        let chosen = rng.random_range(0..clients.len());
        clients.swap_remove(chosen).end(rows, rng);
    }
    refusals
}

/// The rows are what was committed, now and after a restart.
fn check(world: &World, disk: &SimDisk, options: WorldOptions, rows: &Rows) {
    assert_eq!(&rows_of(world), rows);
    world.verify();
    disk.set_capacity(None);
    let image = Arc::new(disk.crash_image(1));
    // A rollback at the end of the log may be lost with it; it is undone again then.
    let (world, _) = world.restart(image, options);
    assert_eq!(&rows_of(&world), rows);
    world.verify();
}

fn rows_of(world: &World) -> Rows {
    world.tables.map(|tree| {
        // There may be less room for locks than there are rows.
        world
            .locks()
            .set_escalation(tree.store, Some(Escalation::At(10)));
        world.rows(tree)
    })
}

const LEVELS: [Isolation; 3] = [
    Isolation::Serializable,
    Isolation::Snapshot,
    Isolation::ReadCommitted,
];

fn begin(world: &World, isolation: Isolation, is_read_only: bool) -> Transaction {
    let label = "a client";
    let begin = Begin {
        isolation,
        is_read_only,
        label,
    };
    world.manager.begin_with(begin).unwrap()
}

/// Whether and when rows of the clients' tables are traded.
fn set_escalation(world: &World, share: Share) {
    let escalation = match share {
        Share::OneTable => Escalation::Never,
        Share::TableEach => Escalation::At(20),
    };
    for tree in world.tables {
        world.locks().set_escalation(tree.store, Some(escalation));
    }
}

const SHARES: [Share; 2] = [Share::OneTable, Share::TableEach];

#[test]
fn full_log_refuses_changes_and_lets_every_transaction_end() {
    for (seed, share) in (0..SEEDS).zip(SHARES.into_iter().cycle()) {
        let options = WorldOptions {
            log_segment_bytes: 64 << 10,
            log_bytes_max: 1 << 20,
            ..WorldOptions::default()
        };
        let disk = Arc::new(SimDisk::new(seed, SimOptions::default()));
        let world = World::on(Arc::<SimDisk>::clone(&disk), options);
        let mut rows = fill(&world);
        let mut rng = SmallRng::seed_from_u64(seed);
        set_escalation(&world, share);
        let refusals = work_until_full(&world, &mut rows, &mut rng, share);
        assert_eq!(
            world.locks().stats().escalations > 0,
            share == Share::TableEach
        );
        for error in refusals {
            assert!(is_full_log(&error), "seed {seed}: {error}");
        }
        let bytes = log_bytes(&disk);
        assert!(bytes <= options.log_bytes_max, "seed {seed}: {bytes} bytes");
        check(&world, &disk, options, &rows);
    }
}

#[test]
fn full_disk_refuses_changes_and_lets_every_transaction_end() {
    let (mut of_data, mut of_log) = (0, 0);
    for seed in 0..SEEDS {
        let options = WorldOptions {
            log_segment_bytes: 64 << 10,
            // Pages are written and read again while the disk is full.
            pool_bytes: 300 << 10,
            ..WorldOptions::default()
        };
        let disk = Arc::new(SimDisk::new(seed, SimOptions::default()));
        let world = World::on(Arc::<SimDisk>::clone(&disk), options);
        let mut rows = fill(&world);
        let mut rng = SmallRng::seed_from_u64(seed);
        let room = rng.random_range(0..2_000_000);
        disk.set_capacity(Some(disk.used_bytes() + room));
        for error in work_until_full(&world, &mut rows, &mut rng, Share::OneTable) {
            assert!(is_full_disk(&error), "seed {seed}: {error}");
            match error {
                TxnError::Access(AccessError::Pool(_)) => of_data += 1,
                _ => of_log += 1,
            }
        }
        check(&world, &disk, options, &rows);
    }
    assert!(of_data > 0 && of_log > 0, "{of_data} {of_log}");
}

#[test]
fn full_lock_table_refuses_changes_and_lets_every_transaction_end() {
    for seed in 0..SEEDS {
        let options = WorldOptions {
            lock_bytes_max: 28 << 10,
            lock_wait: Duration::ZERO,
            transactions_max: 16,
            ..WorldOptions::default()
        };
        let disk = Arc::new(SimDisk::new(seed, SimOptions::default()));
        let world = World::on(Arc::<SimDisk>::clone(&disk), options);
        let mut rows = fill(&world);
        set_escalation(&world, Share::OneTable);
        let mut rng = SmallRng::seed_from_u64(seed);
        for error in work_until_full(&world, &mut rows, &mut rng, Share::OneTable) {
            let is_full = matches!(error, TxnError::Lock(LockError::TableFull { .. }));
            assert!(is_full, "seed {seed}: {error}");
        }
        assert!(world.locks().holds(10).is_empty(), "seed {seed}");
        check(&world, &disk, options, &rows);
    }
}

/// A reader needs what rows were, and there is no room left to keep it.
#[test]
fn full_version_budget_refuses_changes_and_lets_every_transaction_end() {
    for (seed, share) in (0..SEEDS).zip(SHARES.into_iter().cycle()) {
        let options = WorldOptions {
            lock_wait: Duration::ZERO,
            versions: VersionOptions {
                bytes_max: 64 << 10,
                long_readers: LongReaders::RefuseGrowth,
            },
            ..WorldOptions::default()
        };
        let disk = Arc::new(SimDisk::new(seed, SimOptions::default()));
        let world = World::on(Arc::<SimDisk>::clone(&disk), options);
        let mut rows = fill(&world);
        let before = rows.clone();
        let mut stays = begin(&world, Isolation::Serializable, true);
        set_escalation(&world, share);
        let mut rng = SmallRng::seed_from_u64(seed);
        for error in work_until_full(&world, &mut rows, &mut rng, share) {
            let is_full = matches!(error, TxnError::VersionsFull { .. });
            assert!(is_full, "seed {seed}: {error}");
        }
        assert_eq!(
            world.locks().stats().escalations > 0,
            share == Share::TableEach
        );
        for (tree, before) in world.tables.into_iter().zip(before) {
            assert_eq!(scans::all(&mut stays, tree), before, "seed {seed}");
        }
        drop(stays);
        check(&world, &disk, options, &rows);
    }
}

fn log_bytes(disk: &SimDisk) -> u64 {
    let names = disk.list().unwrap();
    let segments = names.iter().filter(|name| name.starts_with("log-"));
    segments
        .map(|name| disk.contents(name).unwrap().len() as u64)
        .sum()
}

fn full_cause(error: &TxnError) -> Option<&FullCause> {
    match error {
        TxnError::Log(LogError::Full { cause, .. })
        | TxnError::Access(AccessError::Log(LogError::Full { cause, .. })) => Some(cause),
        _ => None,
    }
}

fn is_full_log(error: &TxnError) -> bool {
    matches!(full_cause(error), Some(FullCause::Limit { .. }))
}

fn is_full_disk(error: &TxnError) -> bool {
    match error {
        TxnError::Access(AccessError::Pool(PoolError::Disk(disk))) => disk.is_full(),
        error => matches!(full_cause(error), Some(FullCause::Disk(disk)) if disk.is_full()),
    }
}
