//! Eight threads of random transactions, replayed one after the other in the order of their commits.
//!
//! Every result that a committed transaction got, ranges included, must be what it would have got had
//! it run alone at its place in the order: that of its commit record, or for one that changed nothing,
//! the end of the log just before it let go of its locks. A read outside of transactions must fit some
//! place between its begin and its end. The negative control switches the protection of gaps off, and
//! the same checker must then find a phantom.

use crate::scans::{self, Row};
use crate::world::{World, WorldOptions};
use longshore_access::Tree;
use longshore_base::Lsn;
use longshore_log::Level;
use longshore_txn::{Direction, Result, Savepoint, Transaction, TxnError};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const THREADS: u64 = 8;

#[derive(Clone, Copy)]
struct Mix {
    transactions: usize,
    operations: usize,
    keys: u16,
    value_bytes: usize,
    /// Out of a hundred operations, how many are scans and how many inserts of rows.
    scans: u32,
    inserts: u32,
}

/// What a transaction did and what it was told.
#[derive(Clone, Debug)]
enum Event {
    Get(usize, Vec<u8>, Option<Vec<u8>>),
    Insert(usize, Vec<u8>, Vec<u8>, bool),
    Put(usize, Vec<u8>, Vec<u8>),
    Update(usize, Vec<u8>, Vec<u8>, bool),
    Delete(usize, Vec<u8>, bool),
    DeleteRange(usize, Bound<Vec<u8>>, Bound<Vec<u8>>, u64),
    Scan(usize, Bound<Vec<u8>>, Bound<Vec<u8>>, Direction, Vec<Row>),
    Savepoint,
    RollbackTo(usize),
}

#[derive(Clone, Debug)]
struct Committed {
    /// Its place: before the record that starts there, or at it.
    place: (Lsn, bool),
    events: Vec<Event>,
}

/// A read outside of transactions, and the ends of the log around it.
struct Alone {
    table: usize,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
    from: Lsn,
    to: Lsn,
}

#[derive(Default)]
struct History {
    committed: Vec<Committed>,
    alone: Vec<Alone>,
}

/// The values that each key had, with the place from which it had them.
type Versions = BTreeMap<Vec<u8>, Vec<(Lsn, Option<Vec<u8>>)>>;

type Tables = [BTreeMap<Vec<u8>, Vec<u8>>; 2];

fn run(world: &Arc<World>, seed: u64, mix: Mix) -> History {
    let stop = Arc::new(AtomicBool::new(false));
    let purger = {
        let (world, stop) = (Arc::clone(world), Arc::clone(&stop));
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                world.manager.purge(20).unwrap();
                std::thread::yield_now();
            }
        })
    };
    let threads: Vec<_> = (0..THREADS)
        .map(|n| {
            let world = Arc::clone(world);
            std::thread::spawn(move || worker(&world, seed * 100 + n, mix))
        })
        .collect();
    let mut history = History::default();
    for thread in threads {
        let mut part = thread.join().unwrap();
        history.committed.append(&mut part.committed);
        history.alone.append(&mut part.alone);
    }
    stop.store(true, Ordering::Relaxed);
    purger.join().unwrap();
    history
}

fn worker(world: &World, seed: u64, mix: Mix) -> History {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut history = History::default();
    for _ in 0..mix.transactions {
        if rng.random_ratio(1, 4) {
            history.alone.push(read_alone(world, &mut rng, mix));
            continue;
        }
        let mut txn = world.begin();
        let mut script = Script {
            world,
            rng: &mut rng,
            mix,
            events: Vec::new(),
            savepoints: Vec::new(),
        };
        match script.play(&mut txn) {
            Ok(()) if script.rng.random_ratio(9, 10) => {
                let events = std::mem::take(&mut script.events);
                let before = world.log.tail();
                let commit = txn.commit(Level::None).unwrap();
                let place = commit.lsn.map_or((before, false), |lsn| (lsn, true));
                commit.handle.wait().unwrap();
                history.committed.push(Committed { place, events });
            }
            Ok(()) => txn.rollback().unwrap(),
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
    history
}

fn read_alone(world: &World, rng: &mut SmallRng, mix: Mix) -> Alone {
    let table = rng.random_range(0..2);
    let key = rng.random_range(0..mix.keys).to_be_bytes().to_vec();
    loop {
        let from = world.log.tail();
        match world.manager.get(world.tables[table], &key) {
            Ok(value) => {
                let to = world.log.tail();
                return Alone {
                    table,
                    key,
                    value,
                    from,
                    to,
                };
            }
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
}

struct Script<'a> {
    world: &'a World,
    rng: &'a mut SmallRng,
    mix: Mix,
    events: Vec<Event>,
    savepoints: Vec<Savepoint>,
}

impl Script<'_> {
    fn play(&mut self, txn: &mut Transaction) -> Result<()> {
        for _ in 0..self.rng.random_range(1..=self.mix.operations) {
            let event = self.step(txn)?;
            self.events.push(event);
            if self.rng.random_ratio(1, 3) {
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    fn step(&mut self, txn: &mut Transaction) -> Result<Event> {
        let table = self.rng.random_range(0..2);
        let tree = self.world.tables[table];
        let key = self.key();
        let dice = self.rng.random_range(0..100);
        if dice < self.mix.scans {
            return self.scan(txn, table, tree);
        }
        if dice < self.mix.scans + self.mix.inserts {
            let value = self.value();
            let done = match txn.insert(tree, &key, &value) {
                Err(TxnError::KeyExists) => false,
                outcome => outcome.map(|()| true)?,
            };
            return Ok(Event::Insert(table, key, value, done));
        }
        Ok(match self.rng.random_range(0..20) {
            0..6 => {
                let value = txn.get(tree, &key)?;
                Event::Get(table, key, value)
            }
            6..8 => {
                let value = txn.get_for_update(tree, &key)?;
                Event::Get(table, key, value)
            }
            8..11 => {
                let value = self.value();
                txn.put(tree, &key, &value)?;
                Event::Put(table, key, value)
            }
            11..13 => {
                let value = self.value();
                let done = txn.update(tree, &key, &value)?;
                Event::Update(table, key, value, done)
            }
            13..17 => {
                let done = txn.delete(tree, &key)?;
                Event::Delete(table, key, done)
            }
            17 => {
                let (low, high) = self.bounds(4);
                let count = txn.delete_range(tree, slice(&low), slice(&high))?;
                Event::DeleteRange(table, low, high, count)
            }
            18 => {
                self.savepoints.push(txn.savepoint());
                Event::Savepoint
            }
            _ if self.savepoints.is_empty() => Event::Get(table, key.clone(), txn.get(tree, &key)?),
            _ => {
                let at = self.rng.random_range(0..self.savepoints.len());
                txn.rollback_to(&self.savepoints[at])?;
                self.savepoints.truncate(at + 1);
                Event::RollbackTo(at)
            }
        })
    }

    fn scan(&mut self, txn: &mut Transaction, table: usize, tree: Tree) -> Result<Event> {
        let (low, high) = self.bounds(self.mix.keys / 4);
        let direction = match self.rng.random_bool(0.5) {
            true => Direction::Forward,
            false => Direction::Reverse,
        };
        let rows_max = [3, usize::MAX][self.rng.random_range(0..2)];
        let rows = scans::range(txn, tree, slice(&low), slice(&high), direction, rows_max)?;
        Ok(Event::Scan(table, low, high, direction, rows))
    }

    fn key(&mut self) -> Vec<u8> {
        self.rng
            .random_range(0..self.mix.keys)
            .to_be_bytes()
            .to_vec()
    }

    fn value(&mut self) -> Vec<u8> {
        let mut value = self.rng.random::<u64>().to_be_bytes().to_vec();
        value.resize(self.rng.random_range(8..=self.mix.value_bytes), 0);
        value
    }

    fn bounds(&mut self, width: u16) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let low = self.rng.random_range(0..self.mix.keys);
        let high = low + self.rng.random_range(0..=width);
        let mut bound = |n: u16| {
            let key = n.to_be_bytes().to_vec();
            match self.rng.random_range(0..5) {
                0..2 => Bound::Included(key),
                2..4 => Bound::Excluded(key),
                _ => Bound::Unbounded,
            }
        };
        (bound(low), bound(high))
    }
}

fn slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// Replays the history; what first contradicts it, if anything does.
fn check(mut history: History) -> std::result::Result<Tables, String> {
    history.committed.sort_by_key(|c| c.place);
    let mut tables = Tables::default();
    let mut versions: [Versions; 2] = Default::default();
    for committed in &history.committed {
        let before = tables.clone();
        replay(&mut tables, &committed.events)
            .map_err(|why| format!("at {:?}: {why}\n{committed:?}", committed.place))?;
        for table in 0..2 {
            let keys = before[table].keys().chain(tables[table].keys());
            for key in keys {
                let value = tables[table].get(key);
                if before[table].get(key) != value {
                    let known = versions[table].entry(key.clone()).or_default();
                    known.push((committed.place.0, value.cloned()));
                }
            }
        }
    }
    for alone in &history.alone {
        let empty = Vec::new();
        let known = versions[alone.table].get(&alone.key).unwrap_or(&empty);
        if !fits(known, alone) {
            return Err(format!(
                "{:?} = {:?} was read alone between {} and {}, but it was {known:?}",
                alone.key, alone.value, alone.from, alone.to
            ));
        }
    }
    Ok(tables)
}

/// Whether the key had that value at some place in the span.
fn fits(known: &[(Lsn, Option<Vec<u8>>)], alone: &Alone) -> bool {
    let before = known.iter().rev().find(|(lsn, _)| *lsn < alone.from);
    let at_begin = before.map_or(&None, |(_, value)| value);
    let during = known
        .iter()
        .filter(|(lsn, _)| *lsn >= alone.from && *lsn < alone.to);
    std::iter::once(at_begin)
        .chain(during.map(|(_, value)| value))
        .any(|value| *value == alone.value)
}

fn replay(tables: &mut Tables, events: &[Event]) -> std::result::Result<(), String> {
    let mut savepoints = Vec::new();
    for event in events {
        let agrees = match event {
            Event::Get(t, key, value) => tables[*t].get(key) == value.as_ref(),
            Event::Insert(t, key, value, done) => {
                let is_new = !tables[*t].contains_key(key);
                if is_new {
                    tables[*t].insert(key.clone(), value.clone());
                }
                is_new == *done
            }
            Event::Put(t, key, value) => {
                tables[*t].insert(key.clone(), value.clone());
                true
            }
            Event::Update(t, key, value, done) => {
                let old = tables[*t].get_mut(key);
                let was_there = old.is_some();
                if let Some(old) = old {
                    old.clone_from(value);
                }
                was_there == *done
            }
            Event::Delete(t, key, done) => tables[*t].remove(key).is_some() == *done,
            Event::DeleteRange(t, low, high, count) => {
                let before = tables[*t].len();
                tables[*t].retain(|key, _| !contains(low, high, key));
                (before - tables[*t].len()) as u64 == *count
            }
            Event::Scan(t, low, high, direction, rows) => {
                let mut expected: Vec<Row> = tables[*t]
                    .iter()
                    .filter(|(key, _)| contains(low, high, key))
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
                if *direction == Direction::Reverse {
                    expected.reverse();
                }
                expected == *rows
            }
            Event::Savepoint => {
                savepoints.push(tables.clone());
                true
            }
            Event::RollbackTo(at) => {
                savepoints.truncate(at + 1);
                tables.clone_from(&savepoints[*at]);
                true
            }
        };
        if !agrees {
            return Err(format!("{event:?} contradicts {tables:?}"));
        }
    }
    Ok(())
}

fn contains(low: &Bound<Vec<u8>>, high: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    (match low {
        Bound::Included(low) => key >= low.as_slice(),
        Bound::Excluded(low) => key > low.as_slice(),
        Bound::Unbounded => true,
    }) && (match high {
        Bound::Included(high) => key <= high.as_slice(),
        Bound::Excluded(high) => key < high.as_slice(),
        Bound::Unbounded => true,
    })
}

/// Runs and checks; the violation found, if any.
fn violation(seed: u64, mix: Mix, prepare: impl Fn(&World)) -> Option<String> {
    let world = Arc::new(World::with(WorldOptions::default()));
    prepare(&world);
    let history = run(&world, seed, mix);
    let committed = history.committed.len();
    match check(history) {
        Err(why) => Some(format!("seed {seed}: {why}")),
        Ok(tables) => {
            assert!(committed > 100, "{committed}");
            for (tree, model) in world.tables.iter().zip(&tables) {
                assert_eq!(world.rows(*tree), *model, "seed {seed}");
            }
            world.verify();
            assert_eq!(world.manager.active(), 0);
            assert!(world.locks().waits().is_empty());
            None
        }
    }
}

/// Rows over several leaves, which split, merge and lose their ghosts all the time.
const WIDE: Mix = Mix {
    transactions: 120,
    operations: 8,
    keys: 120,
    value_bytes: 300,
    scans: 15,
    inserts: 20,
};

/// Few keys, many conflicts.
const NARROW: Mix = Mix {
    transactions: 150,
    operations: 6,
    keys: 12,
    value_bytes: 16,
    scans: 20,
    inserts: 20,
};

/// Little else than ranges read and rows inserted into them.
const PHANTOMS: Mix = Mix {
    transactions: 100,
    operations: 4,
    keys: 40,
    value_bytes: 40,
    scans: 45,
    inserts: 45,
};

#[test]
fn commits_replay_in_their_order_over_many_leaves() {
    for seed in 1..=4 {
        assert_eq!(violation(seed, WIDE, |_| ()), None);
    }
}

#[test]
fn commits_replay_in_their_order_under_conflict() {
    for seed in 11..=14 {
        assert_eq!(violation(seed, NARROW, |_| ()), None);
    }
}

#[test]
fn commits_replay_in_their_order_with_ranges_and_inserts() {
    for seed in 21..=26 {
        assert_eq!(violation(seed, PHANTOMS, |_| ()), None);
    }
}

/// The negative control: without the protection of gaps the checker sees phantoms.
#[test]
fn without_gap_locks_the_checker_finds_a_phantom() {
    let found = (31..=60).find_map(|seed| violation(seed, PHANTOMS, |w| w.locks().ignore_gaps()));
    let found = found.expect("the checker found no phantom in 30 runs without gap locks");
    assert!(found.contains("contradicts"), "{found}");
}
