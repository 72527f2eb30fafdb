//! A client: invokes a transaction, runs it, and tells how it ended.

use super::keys::{Keys, Use};
use super::operation::Operation;
use super::spool::{Kind, Spool};
use super::steps::{Steps, Tables};
use super::{HistoryPlan, Recorded};
use crate::store::Outcome;
use longshore::{Database, TransactionOptions};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

/// One transaction in so many takes back all it did, of its own accord.
const TAKEN_BACK: u32 = 32;

/// What all clients share. The atomics count, and order nothing: Relaxed.
pub(super) struct Shared<'a> {
    db: &'a Database,
    tables: Tables,
    options: TransactionOptions,
    pub(super) keys: Keys,
    clock: Instant,
    next_value: AtomicI64,
    next_process: AtomicU64,
    ended: [AtomicU64; 3],
}

impl<'a> Shared<'a> {
    pub(super) fn new(db: &'a Database, plan: &HistoryPlan) -> Outcome<Shared<'a>> {
        Ok(Shared {
            db,
            tables: Tables::create(db)?,
            options: plan.options,
            keys: Keys::new(),
            clock: Instant::now(),
            next_value: AtomicI64::new(1),
            next_process: AtomicU64::new(plan.clients as u64 + 1),
            ended: Default::default(),
        })
    }

    /// How transactions have ended so far.
    pub(super) fn counts(&self) -> Recorded {
        let ended = |how: Ended| self.ended[how as usize].load(Ordering::Relaxed);
        Recorded {
            ok: ended(Ended::Ok),
            fail: ended(Ended::Fail),
            info: ended(Ended::Info),
            ..Recorded::default()
        }
    }
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Ok,
    Fail,
    Info,
}

/// A client with the process that it is at the moment.
pub(super) struct Client<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) random: SmallRng,
    process: u64,
    spool: MutexGuard<'a, Spool>,
}

impl<'a> Client<'a> {
    pub(super) fn new(
        shared: &'a Shared<'a>,
        number: u64,
        spool: MutexGuard<'a, Spool>,
    ) -> Client<'a> {
        Client {
            shared,
            random: SmallRng::seed_from_u64(number),
            process: number,
            spool,
        }
    }

    /// A key that is in use.
    pub(super) fn take_key(&mut self) -> Use {
        self.shared.keys.take(self.random.random())
    }

    /// A number that nobody else gets.
    pub(super) fn unique(&self) -> i64 {
        self.shared.next_value.fetch_add(1, Ordering::Relaxed)
    }

    /// Runs a transaction that only reads. Half of them say so to the store.
    pub(super) fn read(
        &mut self,
        intended: &[Operation],
        body: impl FnOnce(&mut Steps) -> longshore::Result<()>,
    ) -> Outcome<Ended> {
        let options = self.shared.options;
        let options = if self.random.random() {
            options.read_only()
        } else {
            options
        };
        self.attempt(intended, options, body)
    }

    /// Runs a transaction.
    pub(super) fn change(
        &mut self,
        intended: &[Operation],
        body: impl FnOnce(&mut Steps) -> longshore::Result<()>,
    ) -> Outcome<Ended> {
        self.attempt(intended, self.shared.options, body)
    }

    /// Runs a transaction once.
    ///
    /// # Errors
    /// Those of the store that no other attempt would mend.
    fn attempt(
        &mut self,
        intended: &[Operation],
        options: TransactionOptions,
        body: impl FnOnce(&mut Steps) -> longshore::Result<()>,
    ) -> Outcome<Ended> {
        self.note(Kind::Invoke, intended)?;
        let (ended, done, error) = self.run(options, body);
        let kind = match ended {
            Ended::Ok => Kind::Ok,
            Ended::Fail => Kind::Fail,
            Ended::Info => Kind::Info,
        };
        self.note(kind, &done)?;
        self.shared.ended[ended as usize].fetch_add(1, Ordering::Relaxed);
        if ended == Ended::Info {
            self.process = self.shared.next_process.fetch_add(1, Ordering::Relaxed);
        }
        match error {
            Some(error) if !error.is_retryable() => Err(error.into()),
            _ => Ok(ended),
        }
    }

    fn run(
        &mut self,
        options: TransactionOptions,
        body: impl FnOnce(&mut Steps) -> longshore::Result<()>,
    ) -> (Ended, Vec<Operation>, Option<longshore::Error>) {
        let takes_back = self.random.random_ratio(1, TAKEN_BACK);
        let transaction = match self.shared.db.begin_with(options) {
            Ok(transaction) => transaction,
            Err(error) => return (Ended::Fail, Vec::new(), Some(error)),
        };
        let random = SmallRng::seed_from_u64(self.random.random());
        let next_value = &self.shared.next_value;
        let mut steps = Steps::new(&transaction, &self.shared.tables, next_value, random);
        let outcome = body(&mut steps);
        let done = steps.into_done();
        match outcome {
            // Without a commit it has not committed, whatever the roll back says.
            Err(error) => {
                drop(transaction);
                (Ended::Fail, done, Some(error))
            }
            Ok(()) if takes_back => (Ended::Fail, done, transaction.rollback().err()),
            Ok(()) => match transaction.commit() {
                Ok(()) => (Ended::Ok, done, None),
                Err(error) => (Ended::Info, done, Some(error)),
            },
        }
    }

    fn note(&mut self, kind: Kind, operations: &[Operation]) -> Outcome {
        let time = self.shared.clock.elapsed().as_nanos() as u64;
        Ok(self.spool.note(self.process, time, kind, operations)?)
    }
}
