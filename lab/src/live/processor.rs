//! Processor time, as the system tells it; nothing where it does not.

use std::fs;
use std::time::Duration;

/// Processor time that the living threads of this process have used so far.
pub(super) fn time() -> Option<Duration> {
    let threads = fs::read_dir("/proc/self/task").ok()?;
    let times = threads.filter_map(|thread| {
        // A thread may end meanwhile.
        let stat = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        used(&stat)
    });
    Some(times.sum())
}

/// Processor time that this thread has used so far.
pub(super) fn time_of_thread() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    used(&stat)
}

fn used(stat: &str) -> Option<Duration> {
    let nanoseconds = stat.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}
