//! Several transactions of all levels, their statements interleaved at random in one thread, against the
//! sequential account of what each may see, and of what each has been granted: rows, tables asked for, and
//! tables that many rows have become. Some are cancelled. Nobody waits for a lock: who would have to is
//! rolled back.

use crate::claims::Claims;
use crate::scans;
use crate::world::{World, WorldOptions};
use longshore_access::Tree;
use longshore_log::Level;
use longshore_txn::{
    Begin, Direction, Escalation, Isolation, LockError, Mode, Savepoint, TableMode, Transaction,
    TxnError,
};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

const ACTORS: usize = 4;

#[derive(Clone, Debug)]
enum Op {
    Get(u8),
    GetForUpdate(u8),
    Put(u8, usize),
    Insert(u8, usize),
    Delete(u8),
    DeleteRange(u8, u8),
    Scan(u8, u8, bool, usize),
    LockTable(TableMode),
    /// Tells an actor to end.
    Cancel(usize),
    Savepoint,
    RollbackTo,
    Commit,
    Rollback,
    Purge,
}

fn op() -> impl Strategy<Value = Op> {
    let len = prop_oneof![12 => 0..700usize, 1 => 5_000..9_000usize];
    let key = 0..40u8;
    prop_oneof![
        6 => key.clone().prop_map(Op::Get),
        1 => key.clone().prop_map(Op::GetForUpdate),
        6 => (key.clone(), len.clone()).prop_map(|(k, n)| Op::Put(k, n)),
        2 => (key.clone(), len).prop_map(|(k, n)| Op::Insert(k, n)),
        4 => key.clone().prop_map(Op::Delete),
        1 => (key.clone(), 0..6u8).prop_map(|(k, n)| Op::DeleteRange(k, k + n)),
        4 => (key.clone(), key, any::<bool>(), 1..30usize).prop_map(|(a, b, r, n)| Op::Scan(a, b, r, n)),
        1 => table_mode().prop_map(Op::LockTable),
        1 => (0..ACTORS).prop_map(Op::Cancel),
        1 => Just(Op::Savepoint),
        1 => Just(Op::RollbackTo),
        4 => Just(Op::Commit),
        1 => Just(Op::Rollback),
        1 => Just(Op::Purge),
    ]
}

fn table_mode() -> impl Strategy<Value = TableMode> {
    prop::sample::select(vec![
        TableMode::IntentShared,
        TableMode::IntentExclusive,
        TableMode::Shared,
        TableMode::Update,
        TableMode::SharedIntentExclusive,
        TableMode::Exclusive,
    ])
}

fn kind() -> impl Strategy<Value = (Isolation, bool)> {
    prop_oneof![
        1 => Just((Isolation::Serializable, false)),
        2 => Just((Isolation::Serializable, true)),
        3 => Just((Isolation::Snapshot, false)),
        2 => Just((Isolation::ReadCommitted, false)),
    ]
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
/// What a transaction has made of rows.
type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// What has been committed, in order.
#[derive(Default)]
struct History {
    states: Vec<Map>,
    /// The number of the last commit that touched a row.
    touched: BTreeMap<Vec<u8>, usize>,
}

impl History {
    fn now(&self) -> usize {
        self.states.len() - 1
    }

    fn commit(&mut self, changes: &Changes, touched: &BTreeSet<Vec<u8>>) {
        let mut state = self.states.last().unwrap().clone();
        apply(&mut state, changes);
        self.states.push(state);
        for key in touched {
            self.touched.insert(key.clone(), self.now());
        }
    }
}

fn apply(state: &mut Map, changes: &Changes) {
    for (key, value) in changes {
        match value {
            Some(value) => drop(state.insert(key.clone(), value.clone())),
            None => drop(state.remove(key)),
        }
    }
}

/// One transaction, and what it should see.
struct Actor {
    txn: Transaction,
    isolation: Isolation,
    is_read_only: bool,
    /// Commits that it sees, if it reads one snapshot.
    sees: usize,
    changes: Changes,
    touched: BTreeSet<Vec<u8>>,
    save: Option<(Savepoint, Changes)>,
    claims: Claims,
    is_cancelled: bool,
}

impl Actor {
    fn begin(
        world: &World,
        history: &History,
        (isolation, is_read_only): (Isolation, bool),
    ) -> Actor {
        let mut txn = world
            .manager
            .begin_with(Begin {
                isolation,
                is_read_only,
                label: "an actor",
            })
            .unwrap();
        txn.set_lock_wait(Duration::ZERO);
        Actor {
            txn,
            isolation,
            is_read_only,
            sees: history.now(),
            changes: Changes::new(),
            touched: BTreeSet::new(),
            save: None,
            claims: Claims::none(),
            is_cancelled: false,
        }
    }

    fn reads_one_snapshot(&self) -> bool {
        self.is_read_only || self.isolation == Isolation::Snapshot
    }

    fn reads_locked(&self) -> bool {
        !self.is_read_only && self.isolation == Isolation::Serializable
    }

    /// What it should see now.
    fn view(&self, history: &History) -> Map {
        let at = match self.reads_one_snapshot() {
            true => self.sees,
            false => history.now(),
        };
        let mut state = history.states[at].clone();
        apply(&mut state, &self.changes);
        state
    }

    /// The newest state, with its own changes: what a change is applied to.
    fn newest(&self, history: &History) -> Map {
        let mut state = history.states[history.now()].clone();
        apply(&mut state, &self.changes);
        state
    }

    /// Whether a change of `key` comes too late.
    fn is_late(&self, history: &History, key: &[u8]) -> bool {
        self.reads_one_snapshot() && history.touched.get(key).is_some_and(|&at| at > self.sees)
    }

    /// What it has read nobody changes before it ends, if it locks what it reads.
    fn has_read<'a>(
        &mut self,
        others: impl Iterator<Item = &'a Claims> + Clone,
        keys: std::ops::Range<u8>,
    ) {
        if self.reads_locked() {
            self.claims.rows(others, keys, Mode::READ);
        }
    }

    /// Its next statement tells that it was cancelled.
    fn finds_out(&mut self, tree: Tree) {
        let refused = self.txn.get(tree, &[0]).expect_err("it was cancelled");
        assert!(matches!(refused, TxnError::Lock(LockError::Cancelled)));
    }

    fn change(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.touched.insert(key.clone());
        self.changes.insert(key, value);
    }
}

/// What became of a statement.
enum Outcome {
    GoesOn,
    /// It had to give way, and was rolled back.
    GaveWay,
}

struct Play {
    world: World,
    tree: Tree,
    history: History,
}

/// What the locks of a statement that went well are held against.
type Others<'a> = &'a [Option<Actor>];

fn claims(others: Others<'_>) -> impl Iterator<Item = &Claims> + Clone {
    others.iter().flatten().map(|other| &other.claims)
}

impl Play {
    fn step(&mut self, actor: &mut Actor, others: Others<'_>, op: &Op, n: usize) -> Outcome {
        let others = claims(others);
        let tree = self.tree;
        let value = |len: usize| {
            let mut value = vec![n as u8; len];
            value.extend_from_slice(&n.to_be_bytes());
            value
        };
        let view = actor.view(&self.history);
        let newest = actor.newest(&self.history);
        match *op {
            Op::Get(k) => match actor.txn.get(tree, &[k]) {
                Ok(found) => {
                    assert_eq!(found, view.get(&vec![k]).cloned(), "{k} in step {n}");
                    actor.has_read(others, k..k + 1);
                }
                Err(error) => return gave_way_reading(actor, error),
            },
            Op::GetForUpdate(k) if !actor.is_read_only => {
                match actor.txn.get_for_update(tree, &[k]) {
                    Ok(found) => {
                        assert!(!actor.is_late(&self.history, &[k]), "{k} in step {n}");
                        assert_eq!(found, newest.get(&vec![k]).cloned());
                        actor.claims.rows(others, [k], Mode::UPDATE);
                    }
                    Err(error) => return self.gave_way(actor, error, k..k + 1),
                }
            }
            Op::Put(k, len) if !actor.is_read_only => {
                match actor.txn.put(tree, &[k], &value(len)) {
                    Ok(()) => {
                        assert!(!actor.is_late(&self.history, &[k]), "{k} in step {n}");
                        actor.change(vec![k], Some(value(len)));
                        actor.claims.rows(others, [k], Mode::WRITE);
                    }
                    Err(error) => return self.gave_way(actor, error, k..k + 1),
                }
            }
            Op::Insert(k, len) if !actor.is_read_only => {
                match actor.txn.insert(tree, &[k], &value(len)) {
                    Ok(()) => {
                        assert!(!actor.is_late(&self.history, &[k]), "{k} in step {n}");
                        assert!(!newest.contains_key(&vec![k]));
                        actor.change(vec![k], Some(value(len)));
                        actor.claims.rows(others, [k], Mode::WRITE);
                    }
                    Err(TxnError::KeyExists) => assert!(newest.contains_key(&vec![k])),
                    Err(error) => return self.gave_way(actor, error, k..k + 1),
                }
            }
            Op::Delete(k) if !actor.is_read_only => match actor.txn.delete(tree, &[k]) {
                Ok(was_there) => {
                    assert!(!actor.is_late(&self.history, &[k]), "{k} in step {n}");
                    assert_eq!(was_there, newest.contains_key(&vec![k]));
                    if was_there {
                        actor.change(vec![k], None);
                        actor.claims.rows(others, [k], Mode::WRITE);
                    }
                }
                Err(error) => return self.gave_way(actor, error, k..k + 1),
            },
            Op::DeleteRange(a, b) if !actor.is_read_only => {
                let (low, high) = (Bound::Included(&[a][..]), Bound::Excluded(&[b][..]));
                match actor.txn.delete_range(tree, low, high) {
                    Ok(count) => {
                        let keys: Vec<u8> =
                            (a..b).filter(|&k| view.contains_key(&vec![k])).collect();
                        let there = keys.iter().filter(|&&k| newest.contains_key(&vec![k]));
                        assert_eq!(count as usize, there.count(), "step {n}");
                        actor.has_read(others.clone(), a..b);
                        for k in keys {
                            if newest.contains_key(&vec![k]) {
                                actor.change(vec![k], None);
                                actor.claims.rows(others.clone(), [k], Mode::WRITE);
                            }
                        }
                    }
                    Err(error) => return self.gave_way(actor, error, a..b),
                }
            }
            Op::Scan(a, b, reverse, rows_max) => {
                let (low, high) = (Bound::Included(&[a][..]), Bound::Included(&[b][..]));
                let direction = match reverse {
                    true => Direction::Reverse,
                    false => Direction::Forward,
                };
                match scan(actor, tree, low, high, direction, rows_max) {
                    Ok(rows) => {
                        let keys = |(k, v): (&Vec<u8>, &Vec<u8>)| (k.clone(), v.clone());
                        let mut expected: Vec<_> = view
                            .iter()
                            .filter(|(k, _)| (a..=b).contains(&k[0]))
                            .map(keys)
                            .collect();
                        if reverse {
                            expected.reverse();
                        }
                        assert_eq!(rows, expected, "step {n}");
                        actor.has_read(others, a..b.saturating_add(1));
                    }
                    Err(error) => return gave_way_reading(actor, error),
                }
            }
            Op::LockTable(mode) if !actor.is_read_only => match actor.txn.lock_table(tree, mode) {
                Ok(()) => actor.claims.table(others, Mode::table(mode)),
                Err(error) => return self.gave_way(actor, error, 0..0),
            },
            Op::Savepoint => actor.save = Some((actor.txn.savepoint(), actor.changes.clone())),
            Op::RollbackTo => {
                if let Some((save, changes)) = &actor.save {
                    actor.txn.rollback_to(save).unwrap();
                    actor.changes.clone_from(changes);
                }
            }
            Op::Purge => drop(self.world.manager.purge(20).unwrap()),
            _ => {}
        }
        Outcome::GoesOn
    }

    /// A change was refused: because somebody has the row, or because it comes too late.
    fn gave_way(&self, actor: &Actor, error: TxnError, mut keys: std::ops::Range<u8>) -> Outcome {
        match error {
            TxnError::Lock(LockError::Timeout { .. }) => {}
            TxnError::WriteConflict { .. } => {
                assert!(
                    keys.any(|k| actor.is_late(&self.history, &[k])),
                    "a conflict with nobody"
                );
            }
            other => panic!("{other}"),
        }
        Outcome::GaveWay
    }
}

/// A scan as one statement, whatever the level.
fn scan(
    actor: &mut Actor,
    tree: Tree,
    low: Bound<&[u8]>,
    high: Bound<&[u8]>,
    direction: Direction,
    rows_max: usize,
) -> longshore_txn::Result<Vec<scans::Row>> {
    let statement = actor.txn.begin_statement()?;
    let rows = scans::range_of(
        &mut actor.txn,
        statement,
        tree,
        low,
        high,
        direction,
        rows_max,
    );
    if let Some(statement) = statement {
        actor.txn.end_statement(statement);
    }
    rows
}

fn gave_way_reading(actor: &Actor, error: TxnError) -> Outcome {
    assert!(
        actor.reads_locked(),
        "a read of a snapshot gave way: {error}"
    );
    assert!(matches!(error, TxnError::Lock(LockError::Timeout { .. })));
    Outcome::GaveWay
}

/// A statement of one of the actors, who begins a transaction of this kind if it has none.
type Step = (usize, Op, (Isolation, bool));

/// What happens, and with how many rows one tries for the table.
fn steps() -> impl Strategy<Value = (Vec<Step>, u32)> {
    let steps = prop::collection::vec((0..ACTORS, op(), kind()), 1..200);
    (steps, 2..16u32)
}

/// Plays it; returns how often rows became a table, and how many transactions were cancelled.
fn play((steps, escalate_at): &(Vec<Step>, u32), prepare: impl Fn(&World)) -> [u64; 2] {
    let world = World::with(WorldOptions {
        pool_bytes: 1 << 20,
        ..WorldOptions::default()
    });
    prepare(&world);
    let [tree, _] = world.tables;
    let locks = world.locks();
    locks.set_escalation(tree.store, Some(Escalation::At(*escalate_at)));
    let mut cancelled = 0;
    let mut play = Play {
        world,
        tree,
        history: History::default(),
    };
    play.history.states.push(Map::new());
    let mut actors: Vec<Option<Actor>> = (0..ACTORS).map(|_| None).collect();
    for (n, (who, op, kind)) in steps.iter().enumerate() {
        let mut actor = actors[*who]
            .take()
            .unwrap_or_else(|| Actor::begin(&play.world, &play.history, *kind));
        match op {
            Op::Commit => {
                let commit = actor.txn.commit(Level::None).unwrap();
                commit.handle.wait().unwrap();
                assert_eq!(commit.lsn.is_some(), !actor.touched.is_empty());
                if commit.lsn.is_some() {
                    play.history.commit(&actor.changes, &actor.touched);
                }
            }
            Op::Rollback => actor.txn.rollback().unwrap(),
            Op::Cancel(whom) => {
                if let Some(other) = &mut actors[*whom] {
                    assert!(play.world.locks().cancel(other.txn.id()));
                    other.is_cancelled = true;
                }
                actors[*who] = Some(actor);
            }
            _ if actor.is_cancelled => {
                actor.finds_out(tree);
                cancelled += 1;
            }
            op => {
                if let Outcome::GoesOn = play.step(&mut actor, &actors, op, n) {
                    actors[*who] = Some(actor);
                }
            }
        }
    }
    drop(actors);
    let Play { world, history, .. } = play;
    assert_eq!(world.rows(tree), history.states[history.now()]);
    while world.manager.purge(1000).unwrap() > 0 {}
    assert!(world.rows(world.garbage).is_empty());
    assert!(world.manager.snapshots().is_empty());
    assert_eq!(world.manager.stats().versions.kept, 0);
    assert!(world.locks().holds(10).is_empty());
    world.verify();
    [world.locks().stats().escalations, cancelled]
}

#[test]
fn everybody_sees_what_the_level_promises() {
    let config = ProptestConfig {
        cases: 200,
        source_file: Some(file!()),
        test_name: Some(concat!(
            module_path!(),
            "::everybody_sees_what_the_level_promises"
        )),
        ..ProptestConfig::default()
    };
    let (escalations, cancelled) = (Cell::new(0), Cell::new(0));
    let outcome = TestRunner::new(config).run(&steps(), |steps| {
        let [rows, txns] = play(&steps, |_| ());
        escalations.set(escalations.get() + rows);
        cancelled.set(cancelled.get() + txns);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    assert!(escalations.get() > 0 && cancelled.get() > 0);
}

/// Whether the account above finds fault with what happens.
fn is_found_out(prepare: impl Fn(&World)) -> bool {
    let config = ProptestConfig {
        cases: 200,
        max_shrink_iters: 0,
        ..ProptestConfig::default()
    };
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    runner
        .run(&steps(), |steps| {
            play(&steps, &prepare);
            Ok(())
        })
        .is_err()
}

#[test]
fn without_versions_the_model_finds_what_snapshots_should_not_see() {
    assert!(is_found_out(|world| world.manager.ignore_versions()));
}

#[test]
fn without_the_first_updater_rule_the_model_finds_a_lost_update() {
    assert!(is_found_out(|world| world.manager.ignore_conflicts()));
}
