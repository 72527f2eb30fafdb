//! Sleeping and being woken: a thread that parks, or a task with its waker.

use longshore_base::sync::{Condvar, Mutex};
use std::sync::Arc;
use std::task::{Wake, Waker};

/// How a waiter is woken.
pub enum Waking {
    /// A blocked thread, which will certainly enter again.
    Thread(Arc<Parker>),
    /// A task, which may be gone.
    Task(Waker),
}

impl Waking {
    pub(crate) fn wake(self) {
        match self {
            Waking::Thread(parker) => parker.unpark(),
            Waking::Task(waker) => waker.wake(),
        }
    }
}

/// A place for one thread to sleep. A wake that comes first is not lost.
#[derive(Default)]
pub struct Parker {
    is_woken: Mutex<bool>,
    condition: Condvar,
}

impl Parker {
    /// Sleeps until woken; consumes one wake.
    pub fn park(&self) {
        let mut is_woken = self.is_woken.lock();
        while !*is_woken {
            is_woken = self.condition.wait(is_woken);
        }
        *is_woken = false;
    }

    /// Whether a sleeper would wake at once.
    #[cfg(test)]
    pub(crate) fn is_woken(&self) -> bool {
        *self.is_woken.lock()
    }

    /// Wakes the sleeper, or the next one to sleep.
    pub fn unpark(&self) {
        *self.is_woken.lock() = true;
        self.condition.notify_one();
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }
}
