//! Snapshots: what they see, what they keep, what ends them, and when their readers are answered.

use crate::gate_disk::{GateDisk, Syncs};
use crate::scans;
use crate::world::{World, WorldOptions};
use longshore_access::Tree;
use longshore_base::{Environment, SystemEnvironment};
use longshore_log::Level;
use longshore_txn::{
    Begin, Direction, Isolation, LongReaders, Transaction, TxnError, VersionOptions,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

fn begin(world: &World, isolation: Isolation, is_read_only: bool) -> Transaction {
    let label = "a test";
    world
        .manager
        .begin_with(Begin {
            isolation,
            is_read_only,
            label,
        })
        .unwrap()
}

fn reader(world: &World) -> Transaction {
    begin(world, Isolation::Serializable, true)
}

fn put(world: &World, tree: Tree, key: &[u8], value: &[u8]) {
    let mut txn = world.begin();
    txn.put(tree, key, value).unwrap();
    let _ = txn.commit(Level::None).unwrap();
}

fn delete(world: &World, tree: Tree, key: &[u8]) {
    let mut txn = world.begin();
    assert!(txn.delete(tree, key).unwrap());
    let _ = txn.commit(Level::None).unwrap();
}

fn purge_all(world: &World) {
    while world.manager.purge(1000).unwrap() > 0 {}
}

#[test]
fn a_snapshot_sees_neither_what_is_under_way_nor_what_commits_later() {
    let world = World::new();
    let [tree, _] = world.tables;
    put(&world, tree, b"a", b"1");
    put(&world, tree, b"b", b"1");
    let mut writer = world.begin();
    writer.put(tree, b"a", b"2").unwrap();
    let mut early = reader(&world);
    writer.insert(tree, b"c", b"2").unwrap();
    writer.delete(tree, b"b").unwrap();
    writer.put(tree, b"a", b"3").unwrap();
    let mut late = reader(&world);
    for txn in [&mut early, &mut late] {
        assert_eq!(txn.get(tree, b"a").unwrap().unwrap(), b"1");
        assert_eq!(scans::all(txn, tree).len(), 2);
    }
    let _ = writer.commit(Level::None).unwrap();
    let mut after = reader(&world);
    for txn in [&mut early, &mut late] {
        assert_eq!(txn.get(tree, b"a").unwrap().unwrap(), b"1");
        assert_eq!(txn.get(tree, b"b").unwrap().unwrap(), b"1");
        assert_eq!(txn.get(tree, b"c").unwrap(), None);
        assert!(txn.contains(tree, b"b").unwrap());
        assert_eq!(scans::all(txn, tree).len(), 2);
    }
    assert_eq!(after.get(tree, b"a").unwrap().unwrap(), b"3");
    assert_eq!(scans::all(&mut after, tree).len(), 2);
    drop((early, late, after));
    assert_eq!(world.manager.stats().versions.kept, 0);
}

#[test]
fn what_is_taken_back_was_never_there() {
    let world = World::new();
    let [tree, _] = world.tables;
    put(&world, tree, b"a", b"1");
    let mut writer = world.begin();
    writer.put(tree, b"a", b"2").unwrap();
    let save = writer.savepoint();
    writer.delete(tree, b"a").unwrap();
    writer.insert(tree, b"b", b"2").unwrap();
    let mut early = reader(&world);
    writer.rollback_to(&save).unwrap();
    writer.insert(tree, b"b", b"3").unwrap();
    assert_eq!(early.get(tree, b"a").unwrap().unwrap(), b"1");
    assert_eq!(early.get(tree, b"b").unwrap(), None);
    writer.rollback().unwrap();
    assert_eq!(early.get(tree, b"a").unwrap().unwrap(), b"1");
    assert_eq!(scans::all(&mut early, tree).len(), 1);
}

/// One image per row serves one snapshot, however often the row changes.
#[test]
fn a_row_that_changes_often_is_kept_once_for_a_snapshot() {
    let world = World::new();
    let [tree, _] = world.tables;
    put(&world, tree, b"a", b"0");
    let mut first = reader(&world);
    for n in 1..100u8 {
        put(&world, tree, b"a", &[n]);
    }
    assert_eq!(world.manager.stats().versions.kept, 1);
    let mut second = reader(&world);
    for n in 100..200u8 {
        put(&world, tree, b"a", &[n]);
    }
    assert_eq!(world.manager.stats().versions.kept, 2);
    assert_eq!(first.get(tree, b"a").unwrap().unwrap(), b"0");
    assert_eq!(second.get(tree, b"a").unwrap().unwrap(), [99]);
    let seen: Vec<_> = world.manager.snapshots();
    assert_eq!(seen.len(), 2);
    assert_eq!((seen[0].txn, seen[0].label), (first.id(), "a test"));
    assert!(seen[0].position < seen[1].position);
}

#[test]
fn rows_and_chains_outlive_their_ghosts_until_nobody_needs_them() {
    let world = World::new();
    let [tree, _] = world.tables;
    let long = vec![7; 20_000];
    for key in 0..50u8 {
        put(&world, tree, &[key], &[key; 100]);
    }
    put(&world, tree, b"long", &long);
    let mut old = reader(&world);
    for key in 0..50u8 {
        delete(&world, tree, &[key]);
    }
    put(&world, tree, b"long", b"short");
    let purged = || world.manager.stats().purged;
    let before = purged();
    purge_all(&world);
    assert!(
        purged() > before,
        "ghosts go though a snapshot sees the rows"
    );
    // Some have a slot again, and some of these none once more.
    for key in (0..50u8).step_by(3) {
        put(&world, tree, &[key], b"new");
    }
    for key in (0..50u8).step_by(6) {
        delete(&world, tree, &[key]);
    }
    purge_all(&world);
    let all = scans::all(&mut old, tree);
    assert_eq!(all.len(), 51);
    assert!((0..50u8).all(|key| all[&vec![key]] == [key; 100]));
    let (low, high) = (Bound::Unbounded, Bound::Unbounded);
    let back = scans::range(&mut old, tree, low, high, Direction::Reverse, 7).unwrap();
    assert!(back.into_iter().rev().eq(all));
    let (low, high) = (Bound::Excluded(&[7][..]), Bound::Excluded(&[30][..]));
    let part = scans::range(&mut old, tree, low, high, Direction::Forward, 4).unwrap();
    assert!(part.iter().map(|row| row.0[0]).eq(8..30));
    assert_eq!(old.get(tree, b"long").unwrap().unwrap(), long);
    assert_eq!(scans::all(&mut reader(&world), tree).len(), 1 + 8);
    assert!(!world.rows(world.garbage).is_empty());
    drop(old);
    purge_all(&world);
    assert!(world.rows(world.garbage).is_empty());
    world.verify();
}

#[test]
fn the_first_updater_wins() {
    let world = World::new();
    let [tree, _] = world.tables;
    put(&world, tree, b"a", b"1");
    let mut first = begin(&world, Isolation::Snapshot, false);
    let mut second = begin(&world, Isolation::Snapshot, false);
    let mut third = begin(&world, Isolation::Snapshot, false);
    assert_eq!(second.get(tree, b"a").unwrap().unwrap(), b"1");
    first.put(tree, b"a", b"2").unwrap();
    assert_eq!(first.get(tree, b"a").unwrap().unwrap(), b"2");
    let _ = first.commit(Level::None).unwrap();
    assert_eq!(second.get(tree, b"a").unwrap().unwrap(), b"1");
    let error = second.put(tree, b"a", b"3").unwrap_err();
    assert!(matches!(error, TxnError::WriteConflict { .. }), "{error}");
    assert!(error.is_retryable());
    assert!(matches!(
        second.get(tree, b"a"),
        Err(TxnError::Ended { .. })
    ));
    // One that is taken back is no conflict.
    put(&world, tree, b"b", b"1");
    let mut fourth = begin(&world, Isolation::Snapshot, false);
    let mut undone = world.begin();
    undone.put(tree, b"b", b"2").unwrap();
    undone.rollback().unwrap();
    fourth.put(tree, b"b", b"3").unwrap();
    assert!(third.delete(tree, b"a").is_err());
}

#[test]
fn read_committed_sees_each_commit_with_its_next_statement() {
    let world = World::new();
    let [tree, _] = world.tables;
    for key in 0..5u8 {
        put(&world, tree, &[key], b"1");
    }
    let mut txn = begin(&world, Isolation::ReadCommitted, false);
    let statement = txn.begin_statement().unwrap();
    let mut writer = world.begin();
    writer.put(tree, &[1], b"2").unwrap();
    writer.delete(tree, &[2]).unwrap();
    assert_eq!(txn.get(tree, &[1]).unwrap().unwrap(), b"1");
    let _ = writer.commit(Level::None).unwrap();
    assert_eq!(txn.get(tree, &[1]).unwrap().unwrap(), b"2");
    txn.put(tree, &[3], b"own").unwrap();
    let (low, high) = (Bound::Unbounded, Bound::Unbounded);
    let direction = Direction::Forward;
    let rows = scans::range_of(&mut txn, statement, tree, low, high, direction, 2).unwrap();
    let values: Vec<&[u8]> = rows.iter().map(|(_, value)| value.as_slice()).collect();
    assert_eq!(values, [&b"1"[..], b"1", b"1", b"own", b"1"]);
    txn.end_statement(statement.unwrap());
    assert_eq!(scans::all(&mut txn, tree).len(), 4);
    let _ = txn.commit(Level::None).unwrap();
    assert!(world.manager.snapshots().is_empty());
}

fn small(long_readers: LongReaders) -> World {
    World::with(WorldOptions {
        versions: VersionOptions {
            bytes_max: 64 << 10,
            long_readers,
        },
        lock_wait: Duration::from_millis(30),
        ..WorldOptions::default()
    })
}

#[test]
fn the_oldest_snapshot_is_ended_when_memory_runs_out() {
    let world = small(LongReaders::EndOldest);
    let [tree, _] = world.tables;
    put(&world, tree, b"a", b"1");
    put(&world, tree, b"untouched", b"1");
    let mut old = reader(&world);
    for n in 0..2000u32 {
        put(&world, tree, &n.to_be_bytes(), &[1; 300]);
        let used = world.manager.stats().versions.bytes_used;
        assert!(used <= 64 << 10, "{used} bytes");
    }
    let mut young = reader(&world);
    put(&world, tree, b"a", b"2");
    let error = old.get(tree, b"a").unwrap_err();
    assert!(matches!(error, TxnError::SnapshotTooOld), "{error}");
    assert!(error.is_retryable());
    assert_eq!(young.get(tree, b"a").unwrap().unwrap(), b"1");
    assert_eq!(world.manager.stats().versions.too_old, 1);
}

#[test]
fn writers_are_refused_where_readers_come_first() {
    let world = small(LongReaders::RefuseGrowth);
    let [tree, _] = world.tables;
    let mut old = reader(&world);
    let mut count = 0u32;
    let mut writer = world.begin();
    let error = loop {
        match writer.put(tree, &count.to_be_bytes(), &[1; 300]) {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
        if count.is_multiple_of(4) {
            let _ = std::mem::replace(&mut writer, world.begin())
                .commit(Level::None)
                .unwrap();
        }
    };
    assert!(matches!(error, TxnError::VersionsFull { .. }), "{error}");
    assert!(world.manager.stats().versions.bytes_used <= 64 << 10);
    // Rolling back needs no room, and the reader sees what it saw.
    writer.rollback().unwrap();
    assert!(scans::all(&mut old, tree).is_empty());
    drop(old);
    put(&world, tree, b"a", b"1");
    assert_eq!(world.manager.stats().versions.kept, 0);
}

/// A transaction with more images than its share leaves them out: who needs them is told.
#[test]
fn a_large_transaction_ends_only_the_snapshots_that_need_it() {
    let world = small(LongReaders::EndOldest);
    let [tree, other] = world.tables;
    put(&world, tree, b"a", b"1");
    put(&world, other, b"a", b"1");
    let mut old = reader(&world);
    let mut writer = world.begin();
    for n in 0..1000u32 {
        writer.put(tree, &n.to_be_bytes(), &[1; 300]).unwrap();
    }
    writer.put(tree, b"a", b"2").unwrap();
    assert_eq!(old.get(other, b"a").unwrap().unwrap(), b"1");
    let _ = writer.commit(Level::None).unwrap();
    assert_eq!(old.get(other, b"a").unwrap().unwrap(), b"1");
    assert!(matches!(old.get(tree, b"a"), Err(TxnError::SnapshotTooOld)));
    assert_eq!(reader(&world).get(tree, b"a").unwrap().unwrap(), b"2");
    assert_eq!(world.manager.stats().versions.incomplete, 1);
}

/// Of a row whose image was not kept the ghost stays: it tells a scan that something is missing.
#[test]
fn ghosts_without_images_stay_until_nobody_needs_them() {
    let world = small(LongReaders::EndOldest);
    let [tree, other] = world.tables;
    put(&world, tree, b"a", b"1");
    let mut old = reader(&world);
    let mut writer = world.begin();
    for n in 0..1000u32 {
        writer.put(other, &n.to_be_bytes(), &[1; 300]).unwrap();
    }
    assert!(writer.delete(tree, b"a").unwrap());
    let _ = writer.commit(Level::None).unwrap();
    purge_all(&world);
    assert_eq!(world.manager.stats().versions.incomplete, 1);
    let (low, high) = (Bound::Unbounded, Bound::Unbounded);
    let rows = scans::range(&mut old, tree, low, high, Direction::Forward, 7);
    assert!(matches!(rows, Err(TxnError::SnapshotTooOld)));
}

#[test]
fn a_reader_of_a_snapshot_is_answered_when_what_it_saw_is_durable() {
    let disk = GateDisk::new();
    let world = World::on(disk.clone(), WorldOptions::default());
    let [tree, _] = world.tables;
    let write = |key: &[u8]| {
        let mut txn = world.begin();
        txn.put(tree, key, b"1").unwrap();
        txn.commit(Level::Sync).unwrap().handle
    };
    write(b"old").wait().unwrap();
    disk.set(Syncs::Wait);
    let seen = write(b"seen");
    let mut txn = reader(&world);
    assert!(txn.contains(tree, b"seen").unwrap());
    let mut other = reader(&world);
    let unseen = write(b"unseen");
    let _ = other.get(tree, b"old").unwrap();
    let answer = txn.commit(Level::Sync).unwrap().handle;
    assert!(!answer.is_done());
    disk.set(Syncs::Pass);
    answer.wait().unwrap();
    assert!(seen.is_done());
    unseen.wait().unwrap();
    assert!(other.commit(Level::Sync).unwrap().handle.is_done());
}

/// A seed for the run, printed.
fn seed() -> u64 {
    let seed = SystemEnvironment::new().random();
    println!("seed {seed}");
    seed
}

/// Money moves between accounts; the sum is the same in each snapshot, and at each level.
struct Bank {
    world: World,
    tree: Tree,
    accounts: u32,
    stop: AtomicBool,
    conflicts: AtomicU64,
}

const START: u64 = 1000;

impl Bank {
    fn new(options: WorldOptions, accounts: u32) -> Bank {
        let world = World::with(options);
        let tree = world.tables[0];
        let mut txn = world.begin();
        for account in 0..accounts {
            txn.insert(tree, &account.to_be_bytes(), &padded(START))
                .unwrap();
        }
        let _ = txn.commit(Level::None).unwrap();
        Bank {
            world,
            tree,
            accounts,
            stop: AtomicBool::new(false),
            conflicts: AtomicU64::new(0),
        }
    }

    fn transfer(&self, isolation: Isolation, random: &mut SmallRng) -> longshore_txn::Result<()> {
        let mut txn = begin(&self.world, isolation, false);
        let (from, to) = (
            random.random_range(0..self.accounts),
            random.random_range(0..self.accounts),
        );
        let read = |txn: &mut Transaction, account: u32| {
            let key = account.to_be_bytes();
            let value = match isolation {
                Isolation::Snapshot => txn.get(self.tree, &key)?,
                _ => txn.get_for_update(self.tree, &key)?,
            };
            Ok::<_, TxnError>(value.map_or(0, |value| amount(&value)))
        };
        let (a, b) = (read(&mut txn, from)?, read(&mut txn, to)?);
        if from == to || a == 0 {
            return Ok(());
        }
        let part = random.random_range(1..=a);
        // An account without money goes, and comes back with some.
        for (account, money) in [(from, a - part), (to, b + part)] {
            let key = account.to_be_bytes();
            match money {
                0 => drop(txn.delete(self.tree, &key)?),
                money => txn.put(self.tree, &key, &padded(money))?,
            }
        }
        if random.random_bool(0.1) {
            return txn.rollback();
        }
        let _ = txn.commit(Level::None)?;
        Ok(())
    }

    fn write(&self, isolation: Isolation, seed: u64) {
        let mut random = SmallRng::seed_from_u64(seed);
        while !self.stop.load(Ordering::Relaxed) {
            match self.transfer(isolation, &mut random) {
                Ok(()) => {}
                Err(error) if error.is_retryable() => {
                    self.conflicts.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn sum(&self, txn: &mut Transaction, direction: Direction) -> longshore_txn::Result<u64> {
        let (low, high) = (Bound::Unbounded, Bound::Unbounded);
        let rows = scans::range(txn, self.tree, low, high, direction, 10)?;
        Ok(rows.iter().map(|(_, value)| amount(value)).sum())
    }

    fn total(&self) -> u64 {
        u64::from(self.accounts) * START
    }

    /// Runs `reads` while accounts change, at all levels.
    fn run(&self, seed: u64, isolations: &[Isolation], reads: impl FnOnce()) {
        thread::scope(|scope| {
            for (n, &isolation) in isolations.iter().enumerate() {
                scope.spawn(move || self.write(isolation, seed + n as u64));
            }
            scope.spawn(|| {
                while !self.stop.load(Ordering::Relaxed) {
                    self.world.manager.purge(20).unwrap();
                    thread::yield_now();
                }
            });
            reads();
            self.stop.store(true, Ordering::Relaxed);
        });
    }
}

fn padded(money: u64) -> Vec<u8> {
    let mut value = vec![0; 8 + (money % 200) as usize];
    value[..8].copy_from_slice(&money.to_be_bytes());
    value
}

fn amount(value: &[u8]) -> u64 {
    u64::from_be_bytes(value[..8].try_into().unwrap())
}

const ALL: [Isolation; 4] = [
    Isolation::Serializable,
    Isolation::Snapshot,
    Isolation::ReadCommitted,
    Isolation::Snapshot,
];

#[test]
fn every_snapshot_has_the_same_sum_while_money_moves() {
    let seed = seed();
    let bank = Bank::new(WorldOptions::default(), 300);
    bank.run(seed, &ALL, || {
        for round in 0..150u64 {
            let mut txn = reader(&bank.world);
            let direction = match round % 2 {
                0 => Direction::Forward,
                _ => Direction::Reverse,
            };
            assert_eq!(
                bank.sum(&mut txn, direction).unwrap(),
                bank.total(),
                "seed {seed}"
            );
            let mut points = 0;
            for account in 0..bank.accounts {
                let value = txn.get(bank.tree, &account.to_be_bytes()).unwrap();
                points += value.map_or(0, |value| amount(&value));
            }
            assert_eq!(points, bank.total(), "seed {seed}");
        }
    });
    bank.world.verify();
    assert_eq!(bank.world.manager.stats().versions.kept, 0);
}

#[test]
fn a_reader_that_stays_sees_one_state_and_memory_stays_within_the_budget() {
    let seed = seed();
    let bank = Bank::new(WorldOptions::default(), 200);
    let mut stays = reader(&bank.world);
    let first = scans::all(&mut stays, bank.tree);
    bank.run(seed, &ALL, || {
        for _ in 0..40 {
            thread::sleep(Duration::from_millis(5));
            assert_eq!(scans::all(&mut stays, bank.tree), first, "seed {seed}");
            let versions = bank.world.manager.stats().versions;
            assert!(versions.bytes_used <= versions.bytes_max);
        }
    });
    assert_eq!(scans::all(&mut stays, bank.tree), first, "seed {seed}");
    assert!(
        bank.world.manager.stats().versions.kept >= 100,
        "much has changed"
    );
}

/// With a budget that is always used up, reads are right or refused.
#[test]
fn snapshots_that_end_by_policy_never_see_half_a_state() {
    let seed = seed();
    let options = WorldOptions {
        versions: VersionOptions {
            bytes_max: 48 << 10,
            long_readers: LongReaders::EndOldest,
        },
        ..WorldOptions::default()
    };
    let bank = Bank::new(options, 300);
    let mut ended = 0;
    bank.run(seed, &ALL, || {
        for _ in 0..300 {
            let mut txn = reader(&bank.world);
            thread::sleep(Duration::from_micros(300));
            match bank.sum(&mut txn, Direction::Forward) {
                Ok(sum) => assert_eq!(sum, bank.total(), "seed {seed}"),
                Err(TxnError::SnapshotTooOld) => ended += 1,
                Err(error) => panic!("{error}"),
            }
        }
    });
    println!("{ended} snapshots were ended");
    bank.world.verify();
}
