//! Who keeps a database open, and what happens when nobody does any more.
//!
//! # Protocol
//! Handles, transactions and cursors keep the database open through a [`Lease`]; when the last one
//! goes, [`Keeper`] stops the threads and closes the database cleanly. The threads themselves hold
//! the [`Engine`] only, so they never keep it open.
//!
//! There are several leases, and a transaction clones the one of its thread's stripe: beginning and
//! ending a transaction moves no counter that all threads share.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::maintenance::Threads;
use crate::options::{Access, Background};
use longshore_base::metrics::{STRIPES, thread_number};
use longshore_base::sync::Mutex;
use std::sync::Arc;

/// Keeps a database open. On a cache line of its own, with its count of holders.
#[repr(align(128))]
pub(crate) struct Lease {
    pub(crate) engine: Arc<Engine>,
    _keeper: Arc<Keeper>,
}

/// The leases of one database, one per stripe of threads.
pub(crate) struct Leases {
    stripes: [Arc<Lease>; STRIPES],
    keeper: Arc<Keeper>,
}

impl Leases {
    /// Takes charge of an open engine, and starts its threads if it is to have any.
    pub(crate) fn new(engine: Arc<Engine>) -> Result<Leases> {
        let threads = match (engine.options.background, engine.options.access) {
            (Background::On, Access::ReadWrite) => Some(Threads::start(&engine)?),
            _ => None,
        };
        let keeper = Arc::new(Keeper {
            engine: Arc::clone(&engine),
            threads: Mutex::new(threads),
        });
        let stripes = std::array::from_fn(|_| {
            Arc::new(Lease {
                engine: Arc::clone(&engine),
                _keeper: Arc::clone(&keeper),
            })
        });
        Ok(Leases { stripes, keeper })
    }

    /// The lease of the calling thread's stripe.
    #[inline]
    pub(crate) fn mine(&self) -> Arc<Lease> {
        Arc::clone(&self.stripes[thread_number() % STRIPES])
    }

    /// Closes the database, whoever else holds a lease.
    pub(crate) fn close(&self) -> Result<()> {
        self.keeper.close()
    }
}

/// Closes the database when the last lease goes.
struct Keeper {
    engine: Arc<Engine>,
    threads: Mutex<Option<Threads>>,
}

impl Keeper {
    fn close(&self) -> Result<()> {
        let engine = &self.engine;
        match engine.condition.close() {
            Ok(()) => {}
            Err(Error::Closed) => return Ok(()),
            Err(poisoned) => {
                self.stop_threads();
                engine.release();
                return Err(poisoned);
            }
        }
        if let Err(in_use) = self.check_unused() {
            engine.condition.reopen();
            return Err(in_use);
        }
        self.stop_threads();
        let outcome = match engine.options.access {
            Access::ReadWrite => engine.checkpoint_clean(),
            Access::ReadOnly => Ok(()),
        };
        engine.condition.closed();
        engine.release();
        outcome
    }

    /// Fails while transactions are active; those that begin later see that the database is closing.
    fn check_unused(&self) -> Result<()> {
        // The purger's own transactions are not meant.
        let _purging = self.engine.purging.lock();
        let manager = &self.engine.manager;
        // Those that are prepared wait for the next opening.
        match manager.active() - manager.prepared().len() {
            0 => Ok(()),
            transactions => Err(Error::StillInUse { transactions }),
        }
    }

    fn stop_threads(&self) {
        // Dropping them waits until they have ended.
        drop(self.threads.lock().take());
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Who wants to see the error calls `close`; reopening recovers in any case.
        let _ = self.close();
    }
}
