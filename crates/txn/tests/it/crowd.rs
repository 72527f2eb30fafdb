//! Threads that move money under locks of all kinds, at all levels; they time out, fall victim to
//! deadlocks and are cancelled by another thread. Beside them, readers who lock nothing are never
//! refused, and all who may see the whole see the same sum.

use crate::scans;
use crate::world::{World, WorldOptions};
use longshore_access::Tree;
use longshore_base::{Environment, SystemEnvironment, TxnId};
use longshore_log::Level;
use longshore_txn::{
    Begin, Direction, Escalation, Isolation, LockError, TableMode, Transaction, TxnError,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const ACCOUNTS: u32 = 60;
const START: u64 = 100;
const WRITERS: u64 = 6;
const TRANSFERS: u32 = 250;
/// Rows with which a writer tries for the table; some use more, most use fewer.
const ESCALATE_AT: u32 = 6;
const MANY: u32 = 10;

struct Crowd {
    world: World,
    tree: Tree,
    /// The numbers of the writers' transactions.
    at_work: [AtomicU64; WRITERS as usize],
    is_over: AtomicBool,
    refused: AtomicU64,
    cancelled: AtomicU64,
}

impl Crowd {
    fn new() -> Crowd {
        let world = World::with(WorldOptions::default());
        let tree = world.tables[0];
        let mut txn = world.begin();
        for account in 0..ACCOUNTS {
            txn.insert(tree, &account.to_be_bytes(), &START.to_be_bytes())
                .unwrap();
        }
        let _ = txn.commit(Level::None).unwrap();
        let escalation = Escalation::At(ESCALATE_AT);
        world.locks().set_escalation(tree.store, Some(escalation));
        Crowd {
            world,
            tree,
            at_work: Default::default(),
            is_over: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
        }
    }

    fn begin(&self, isolation: Isolation, is_read_only: bool) -> Transaction {
        let label = "one of the crowd";
        let begin = Begin {
            isolation,
            is_read_only,
            label,
        };
        self.world.manager.begin_with(begin).unwrap()
    }

    /// Moves a little from some accounts to the next ones.
    fn transfer(&self, n: u64, random: &mut SmallRng) -> longshore_txn::Result<()> {
        let levels = [
            Isolation::Serializable,
            Isolation::Snapshot,
            Isolation::ReadCommitted,
        ];
        let mut txn = self.begin(levels[random.random_range(0..3)], false);
        self.at_work[n as usize].store(txn.id().get(), Ordering::Relaxed);
        txn.set_lock_wait(Duration::from_millis(random.random_range(0..4)));
        let mode = match random.random_range(0..8) {
            0 => Some(TableMode::Shared),
            1 => Some(TableMode::Update),
            2 => Some(TableMode::SharedIntentExclusive),
            3 => Some(TableMode::Exclusive),
            _ => None,
        };
        if let Some(mode) = mode {
            txn.lock_table(self.tree, mode)?;
        }
        let first = random.random_range(0..ACCOUNTS);
        let count = [2, 2, 3, MANY][random.random_range(0..4)];
        for account in first..first + count {
            let from = (account % ACCOUNTS).to_be_bytes();
            let to = ((account + 1) % ACCOUNTS).to_be_bytes();
            let [a, b] = [self.read(&mut txn, from)?, self.read(&mut txn, to)?];
            if a > 0 {
                txn.put(self.tree, &from, &(a - 1).to_be_bytes())?;
                txn.put(self.tree, &to, &(b + 1).to_be_bytes())?;
            }
        }
        match random.random_ratio(1, 5) {
            true => txn.rollback(),
            false => txn.commit(Level::None).map(drop),
        }
    }

    fn read(&self, txn: &mut Transaction, account: [u8; 4]) -> longshore_txn::Result<u64> {
        let value = txn.get_for_update(self.tree, &account)?;
        Ok(amount(&value.expect("accounts stay")))
    }

    fn write(&self, n: u64, seed: u64) {
        let mut random = SmallRng::seed_from_u64(seed + n);
        for _ in 0..TRANSFERS {
            match self.transfer(n, &mut random) {
                Ok(()) => {}
                Err(TxnError::Lock(LockError::Cancelled)) => {
                    self.cancelled.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => {
                    assert!(error.is_retryable(), "seed {seed}: {error}");
                    self.refused.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    fn cancel(&self, seed: u64) {
        let mut random = SmallRng::seed_from_u64(seed);
        while !self.is_over.load(Ordering::Relaxed) {
            let n = random.random_range(0..self.at_work.len());
            let txn = TxnId::new(self.at_work[n].load(Ordering::Relaxed));
            self.world.locks().cancel(txn);
            thread::sleep(Duration::from_micros(500));
        }
    }

    /// The sum of all accounts, seen by one statement.
    fn sum(&self, txn: &mut Transaction) -> longshore_txn::Result<u64> {
        let (low, high) = (Bound::Unbounded, Bound::Unbounded);
        let statement = txn.begin_statement()?;
        let rows = scans::range_of(txn, statement, self.tree, low, high, Direction::Forward, 9)?;
        if let Some(statement) = statement {
            txn.end_statement(statement);
        }
        Ok(rows.iter().map(|(_, value)| amount(value)).sum())
    }

    /// Reads until the writers are done.
    fn look(&self, seed: u64) {
        let total = u64::from(ACCOUNTS) * START;
        let mut stays = self.begin(Isolation::Serializable, true);
        let mut by_statement = self.begin(Isolation::ReadCommitted, false);
        while !self.is_over.load(Ordering::Relaxed) {
            let mut passes = self.begin(Isolation::Snapshot, false);
            for txn in [&mut stays, &mut by_statement, &mut passes] {
                let seen = self.sum(txn).expect("who locks nothing is not refused");
                assert_eq!(seen, total, "seed {seed}");
            }
            let mut locks = self.begin(Isolation::Serializable, false);
            match self.sum(&mut locks) {
                Ok(seen) => assert_eq!(seen, total, "seed {seed}"),
                Err(error) => assert!(error.is_retryable(), "seed {seed}: {error}"),
            }
        }
    }
}

fn amount(value: &[u8]) -> u64 {
    u64::from_be_bytes(value.try_into().unwrap())
}

#[test]
fn the_sum_stays_whatever_locks_move_the_money_and_however_they_end() {
    let seed = SystemEnvironment::new().random() >> 32;
    println!("seed {seed}");
    let crowd = Crowd::new();
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|n| {
                let crowd = &crowd;
                scope.spawn(move || crowd.write(n, seed))
            })
            .collect();
        scope.spawn(|| crowd.cancel(seed));
        scope.spawn(|| crowd.look(seed));
        let ends = writers.into_iter().map(thread::ScopedJoinHandle::join);
        let ends: Vec<_> = ends.collect();
        crowd.is_over.store(true, Ordering::Relaxed);
        ends.into_iter().for_each(Result::unwrap);
    });
    let stats = crowd.world.locks().stats();
    println!(
        "{} refused, {} cancelled, {} escalations, {} deadlocks, {} waits",
        crowd.refused.load(Ordering::Relaxed),
        crowd.cancelled.load(Ordering::Relaxed),
        stats.escalations,
        stats.deadlocks,
        stats.blocked
    );
    assert!(crowd.world.locks().holds(10).is_empty());
    crowd.world.verify();
}
