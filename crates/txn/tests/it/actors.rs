//! Threads that take locks on command, so that a test tells who does what and when.

use longshore_base::{Durability, DurabilityLost, Lsn, StoreId, SystemEnvironment, TxnId};
use longshore_txn::{
    Dependency, LockError, LockManager, LockName, LockOptions, Mode, Owner, TableMode, Wait,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Long enough that a test that reaches it has failed.
pub const LONG: Duration = Duration::from_secs(20);

/// A log of which a test says how far it is durable.
#[derive(Debug, Default)]
pub struct FakeLog(pub AtomicU64);

impl Durability for FakeLog {
    fn is_durable(&self, lsn: Lsn) -> bool {
        lsn == Lsn::ZERO || lsn.get() < self.0.load(Ordering::Relaxed)
    }

    fn make_durable(&self, lsn: Lsn) -> Result<(), DurabilityLost> {
        self.0.fetch_max(lsn.get() + 1, Ordering::Relaxed);
        Ok(())
    }
}

pub fn manager(options: LockOptions) -> Arc<LockManager> {
    LockManager::new(
        options,
        Arc::new(FakeLog::default()),
        Arc::new(SystemEnvironment::new()),
    )
}

/// The table of all keys.
pub const TABLE: StoreId = StoreId::new(16);

/// The lock on the key `key`.
pub fn name(key: &str) -> LockName {
    LockName::of_key(TABLE, key.as_bytes())
}

enum Command {
    Lock(LockName, Mode, Wait),
    Table(StoreId, TableMode, Wait),
    Release(Dependency),
}

/// One transaction in a thread of its own.
pub struct Actor {
    locks: Arc<LockManager>,
    txn: TxnId,
    commands: Option<Sender<Command>>,
    answers: Receiver<(Result<(), LockError>, Dependency)>,
    thread: Option<JoinHandle<()>>,
}

impl Actor {
    pub fn new(locks: &Arc<LockManager>, number: usize) -> Actor {
        let txn = TxnId::new(number as u64);
        let owner = locks.register(number, txn);
        let (commands, inbox) = channel();
        let (outbox, answers) = channel();
        let theirs = Arc::clone(locks);
        let thread = std::thread::spawn(move || act(&theirs, owner, &inbox, &outbox));
        Actor {
            locks: Arc::clone(locks),
            txn,
            commands: Some(commands),
            answers,
            thread: Some(thread),
        }
    }

    fn send(&self, command: Command) {
        self.commands.as_ref().unwrap().send(command).unwrap();
    }

    /// Takes a lock that must be free.
    pub fn takes(&self, key: &str, mode: Mode) {
        self.send(Command::Lock(name(key), mode, Wait::No));
        self.answer().unwrap();
    }

    /// Asks for a lock that must not be free, without waiting.
    pub fn is_refused(&self, key: &str, mode: Mode) -> LockError {
        self.send(Command::Lock(name(key), mode, Wait::No));
        self.answer().unwrap_err()
    }

    /// Asks for a lock, and waits.
    pub fn asks_for(&self, key: &str, mode: Mode, limit: Duration) {
        self.send(Command::Lock(name(key), mode, Wait::For(limit)));
    }

    /// Asks for a lock, and waits; returns once it is in the queue.
    pub fn waits_for(&self, key: &str, mode: Mode) {
        self.asks_for(key, mode, LONG);
        self.is_waiting();
    }

    /// Returns once the actor is in the queue.
    pub fn is_waiting(&self) {
        let start = Instant::now();
        while !self
            .locks
            .waits()
            .iter()
            .any(|w| w.waiter == self.txn && !w.waits_for.is_empty())
        {
            assert!(start.elapsed() < LONG, "{:?} does not wait", self.txn);
            std::thread::yield_now();
        }
    }

    /// Takes the whole table, which must be free for that. [`StoreId::NONE`] is the database.
    pub fn takes_table(&self, store: StoreId, mode: TableMode) {
        self.send(Command::Table(store, mode, Wait::No));
        self.answer().unwrap();
    }

    /// Asks for the whole table, which must not be free for that, without waiting.
    pub fn is_refused_table(&self, store: StoreId, mode: TableMode) -> LockError {
        self.send(Command::Table(store, mode, Wait::No));
        self.answer().unwrap_err()
    }

    /// Asks for the whole table, and waits.
    pub fn asks_for_table(&self, store: StoreId, mode: TableMode, limit: Duration) {
        self.send(Command::Table(store, mode, Wait::For(limit)));
    }

    /// Asks for the whole table, and waits; returns once it is in the queue.
    pub fn waits_for_table(&self, store: StoreId, mode: TableMode) {
        self.asks_for_table(store, mode, LONG);
        self.is_waiting();
    }

    pub fn answer(&self) -> Result<(), LockError> {
        self.answers.recv_timeout(LONG).expect("an answer").0
    }

    /// Whether the command under way is still without answer.
    pub fn is_silent(&self) -> bool {
        self.answers.try_recv().is_err()
    }

    /// Ends with the commit `commit`; returns what it depended on.
    pub fn ends(&self, commit: Dependency) -> Dependency {
        self.send(Command::Release(commit));
        self.answers.recv_timeout(LONG).expect("an answer").1
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.commands = None;
        let result = self.thread.take().unwrap().join();
        assert!(result.is_ok() || std::thread::panicking());
    }
}

fn act(
    locks: &LockManager,
    mut owner: Owner,
    commands: &Receiver<Command>,
    answers: &Sender<(Result<(), LockError>, Dependency)>,
) {
    for command in commands {
        let result = match command {
            Command::Lock(name, mode, wait) => locks.lock(&mut owner, name, mode, wait),
            Command::Table(StoreId::NONE, mode, wait) => {
                locks.lock_database(&mut owner, mode, wait)
            }
            Command::Table(store, mode, wait) => locks.lock_table(&mut owner, store, mode, wait),
            Command::Release(commit) => {
                locks.release_all(&mut owner, commit);
                Ok(())
            }
        };
        if answers.send((result, owner.dependency())).is_err() {
            break;
        }
    }
    locks.release_all(&mut owner, Dependency::NONE);
}
