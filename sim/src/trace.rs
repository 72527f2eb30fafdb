//! What happens in a run, step by step on standard error, for whoever looks for the cause of a failure.

use std::sync::atomic::{AtomicBool, Ordering};

static ENABLED: AtomicBool = AtomicBool::new(false);

/// Has all further steps printed.
pub fn enable() {
    // Relaxed: set once, before any step.
    ENABLED.store(true, Ordering::Relaxed);
}

/// Prints a step, if steps are printed.
pub fn trace(step: impl FnOnce() -> String) {
    // Relaxed: see `enable`.
    if ENABLED.load(Ordering::Relaxed) {
        eprintln!("{}", step());
    }
}
