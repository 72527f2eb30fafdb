//! What must be done from time to time, by threads of the database's own or by whoever asks.
//!
//! | thread       | does                                              | wakes                    |
//! |--------------|---------------------------------------------------|--------------------------|
//! | flusher      | writes and syncs the log for waiting commits      | when somebody waits      |
//! | cleaner      | writes dirty pages, keeps frames and memory ahead | when the pool asks       |
//! | checkpointer | moves the log's start forward                     | every quarter of the log |
//! | purger       | frees what deletes and drops have left; tells how | ten times a second       |
//! |              | late it is, for the ages in the views of locks    |                          |
//!
//! # Protocol
//! [`Threads::start`] gives each thread an `Arc` of the engine; [`Threads::stop`] raises a flag that
//! each looks at between two rounds, wakes them, and waits until all have ended. With
//! [`crate::Background::Off`] there are no threads: [`round`] does all the work of one round where it
//! is called, and the operations that cannot go on without it do their part themselves.
//!
//! # Failure
//! A round that fails is tried again after a pause; the failure is kept for `stats()`. A failure that
//! poisons the database ends the threads' work, not the threads: `stop` ends those.

use crate::engine::Engine;
use crate::error::{Error, Result};
use longshore_base::sync::atomic::{AtomicBool, Ordering};
use longshore_base::sync::{Condvar, Mutex};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest time between two looks at the pool.
const CLEANER_PAUSE: Duration = Duration::from_millis(50);
/// Time between two looks at the log's length.
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(100);
/// Time between two rounds of the purger that found nothing.
const PURGE_PAUSE: Duration = Duration::from_millis(100);
/// Time after a round that failed.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);
/// Most pages that one round of the cleaner writes.
pub(crate) const CLEAN_PAGES: usize = 256;
/// Most things that one round of the purger frees.
pub(crate) const PURGE_STEPS: usize = 64;

/// What one round of [`crate::Database::maintain`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Maintained {
    /// Dirty pages written.
    pub pages_written: u64,
    /// Ghost rows, chains and pages of dropped tables freed.
    pub freed: u64,
    /// Whether a checkpoint was due and taken.
    pub checkpoint: bool,
}

impl Maintained {
    /// Whether there was nothing to do.
    pub fn is_idle(&self) -> bool {
        *self == Maintained::default()
    }
}

/// One round of everything, in the calling thread.
pub(crate) fn round(engine: &Engine) -> Result<Maintained> {
    engine.manager.locks().note_time();
    engine.check_log()?;
    let checkpoint = engine.is_checkpoint_due();
    if checkpoint {
        engine.checkpoint()?;
    }
    Ok(Maintained {
        pages_written: engine.clean()?,
        freed: engine.purge()?,
        checkpoint,
    })
}

/// The threads of an open database.
pub(crate) struct Threads {
    stop: Arc<Stop>,
    engine: Arc<Engine>,
    running: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts one thread for each job.
    ///
    /// # Errors
    /// When the system gives no thread; those already started have been stopped.
    pub(crate) fn start(engine: &Arc<Engine>) -> Result<Threads> {
        let mut threads = Threads {
            stop: Arc::default(),
            engine: Arc::clone(engine),
            running: Vec::new(),
        };
        let outcome = threads
            .spawn("flusher", |engine, stop| {
                engine.log.run_flusher(&stop.raised)
            })
            .and_then(|()| threads.spawn("cleaner", clean))
            .and_then(|()| threads.spawn("checkpointer", take_checkpoints))
            .and_then(|()| threads.spawn("purger", purge));
        if outcome.is_err() {
            threads.stop();
        }
        outcome.map(|()| threads)
    }

    /// Ends all threads and waits for them.
    pub(crate) fn stop(&mut self) {
        self.stop.raise();
        self.engine.log.nudge();
        for thread in self.running.drain(..) {
            // A thread that panicked has told so on stderr, and is as ended as the others.
            let _ = thread.join();
        }
    }

    fn spawn(&mut self, name: &str, job: fn(&Engine, &Stop)) -> Result<()> {
        let (engine, stop) = (Arc::clone(&self.engine), Arc::clone(&self.stop));
        let thread = std::thread::Builder::new()
            .name(format!("longshore-{name}"))
            .spawn(move || job(&engine, &stop))?;
        self.running.push(thread);
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop();
    }
}

fn clean(engine: &Engine, stop: &Stop) {
    while !stop.is_raised() {
        engine.pool.wait_for_work(CLEANER_PAUSE);
        stop.pause_after(engine, engine.clean());
    }
}

fn take_checkpoints(engine: &Engine, stop: &Stop) {
    while !stop.wait(CHECKPOINT_PAUSE) {
        stop.pause_after(engine, engine.check_log());
        if engine.is_checkpoint_due() {
            stop.pause_after(engine, engine.checkpoint());
        }
    }
}

fn purge(engine: &Engine, stop: &Stop) {
    while !stop.is_raised() {
        engine.manager.locks().note_time();
        let freed = stop.pause_after(engine, engine.purge());
        if freed.unwrap_or(0) == 0 {
            stop.wait(PURGE_PAUSE);
        }
    }
}

/// A flag that ends the threads, and a place to wait for it.
#[derive(Default)]
struct Stop {
    /// Raised once; read by all threads.
    raised: AtomicBool,
    sleep: Mutex<()>,
    wake: Condvar,
}

impl Stop {
    fn is_raised(&self) -> bool {
        // Acquire: pairs with `raise`.
        self.raised.load(Ordering::Acquire)
    }

    fn raise(&self) {
        let _sleep = self.sleep.lock();
        // Release: pairs with `is_raised`. Under `sleep`, so that no waiter misses it.
        self.raised.store(true, Ordering::Release);
        self.wake.notify_all();
    }

    /// Waits for at most `limit`; true when the flag is up.
    fn wait(&self, limit: Duration) -> bool {
        let sleep = self.sleep.lock();
        if !self.is_raised() {
            let _ = self.wake.wait_timeout(sleep, limit);
        }
        self.is_raised()
    }

    /// Keeps a failure for `stats()`, and waits a while before the next round.
    fn pause_after<T>(&self, engine: &Engine, outcome: Result<T>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(Error::Closed) => {
                self.wait(FAILURE_PAUSE);
                None
            }
            Err(error) => {
                engine.keep_background_error(error);
                self.wait(FAILURE_PAUSE);
                None
            }
        }
    }
}
