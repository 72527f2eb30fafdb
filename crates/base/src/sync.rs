//! Atomics, locks and threads, with a door for the model checker.
//!
//! Code that loom is to explore takes these from here. Built with `--cfg loom` they are loom's, and
//! every interleaving of a small test is run; otherwise they are the standard library's.
//!
//! A panic while a [`Mutex`] is held does not poison it: what it guards is kept consistent at every
//! step, or the panic ends the process's use of it anyway.

#[cfg(loom)]
pub use loom::{hint, sync::Arc, sync::atomic, thread};
#[cfg(not(loom))]
pub use std::{hint, sync::Arc, sync::atomic, thread};

#[cfg(loom)]
use loom::sync as imp;
#[cfg(not(loom))]
use std::sync as imp;

use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

/// The guard of a [`Mutex`].
pub type MutexGuard<'a, T> = imp::MutexGuard<'a, T>;

/// Mutual exclusion without poisoning.
#[derive(Debug, Default)]
pub struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    /// A mutex around `value`.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(imp::Mutex::new(value))
    }

    /// A mutex around `value`.
    #[cfg(loom)]
    pub fn new(value: T) -> Mutex<T> {
        Mutex(imp::Mutex::new(value))
    }

    /// Waits for the mutex.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the mutex if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The value, when nobody else can reach it.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value through an exclusive reference.
    #[cfg(not(loom))]
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The guard of a reader of an [`RwLock`].
pub type ReadGuard<'a, T> = imp::RwLockReadGuard<'a, T>;

/// The guard of the one who changes what an [`RwLock`] guards.
pub type WriteGuard<'a, T> = imp::RwLockWriteGuard<'a, T>;

/// One who changes or many who read, without poisoning.
#[derive(Debug, Default)]
pub struct RwLock<T>(imp::RwLock<T>);

impl<T> RwLock<T> {
    /// A lock around `value`.
    pub fn new(value: T) -> RwLock<T> {
        RwLock(imp::RwLock::new(value))
    }

    /// Waits for the lock, to share it with other readers.
    pub fn read(&self) -> ReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the lock, to have it alone.
    pub fn write(&self) -> WriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place to wait for a change of what a [`Mutex`] guards.
#[derive(Debug, Default)]
pub struct Condvar(imp::Condvar);

impl Condvar {
    /// A condition that nobody waits for.
    #[cfg(not(loom))]
    pub const fn new() -> Condvar {
        Condvar(imp::Condvar::new())
    }

    /// A condition that nobody waits for.
    #[cfg(loom)]
    pub fn new() -> Condvar {
        Condvar(imp::Condvar::new())
    }

    /// Releases the guard's mutex, sleeps until woken (or spuriously), and takes it again.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Like [`Condvar::wait`], for at most `limit`; true when the time ran out.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        let (guard, result) = self
            .0
            .wait_timeout(guard, limit)
            .unwrap_or_else(PoisonError::into_inner);
        (guard, result.timed_out())
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
