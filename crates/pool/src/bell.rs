//! The bell by which misses call whoever runs `maintain`.

use longshore_base::sync::atomic::{AtomicBool, Ordering};
use longshore_base::sync::{Condvar, Mutex};
use std::time::Duration;

/// By which a pool calls whoever runs `maintain`.
pub(crate) struct WorkBell {
    rung: AtomicBool,
    ringing: Mutex<()>,
    heard: Condvar,
}

impl WorkBell {
    pub(crate) fn new() -> WorkBell {
        WorkBell {
            rung: AtomicBool::new(false),
            ringing: Mutex::new(()),
            heard: Condvar::new(),
        }
    }

    /// Says that there is work.
    pub(crate) fn ring(&self) {
        // Relaxed, and a load before the swap: mostly it is rung already, and the line stays shared. The
        // mutex orders what matters, a change from false to true.
        if !self.rung.load(Ordering::Relaxed) && !self.rung.swap(true, Ordering::Relaxed) {
            let _guard = self.ringing.lock();
            self.heard.notify_all();
        }
    }

    /// Waits until there is work, for at most `limit`; true if there is.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let mut guard = self.ringing.lock();
        // Relaxed: ordered by the mutex; who sets it takes that afterwards.
        if !self.rung.load(Ordering::Relaxed) {
            guard = self.heard.wait_timeout(guard, limit).0;
        }
        drop(guard);
        // Relaxed: ordered by the mutex.
        self.rung.swap(false, Ordering::Relaxed)
    }
}
