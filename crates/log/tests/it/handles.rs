//! Promises of durability: asked, waited for, awaited.

use crate::support::*;
use crate::threads::StopFlusher;
use longshore_base::{Durability, Lsn};
use longshore_log::{DurableHandle, Level, Log};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll(handle: &mut DurableHandle, waker: &Waker) -> Poll<bool> {
    Pin::new(handle)
        .poll(&mut Context::from_waker(waker))
        .map(|result| result.is_ok())
}

#[test]
fn a_handle_is_done_when_its_level_is_reached() {
    let log = create(&sim()).unwrap();
    let lsn = append(&log, 1, b"x").unwrap();
    let [none, os, sync] =
        [Level::None, Level::Os, Level::Sync].map(|level| log.durable(lsn, level));
    assert_eq!(
        [none.is_done(), os.is_done(), sync.is_done()],
        [true, false, false]
    );
    os.wait().unwrap();
    assert_eq!(
        [os.is_done(), sync.is_done(), log.is_durable(lsn)],
        [true, false, false]
    );
    sync.wait().unwrap();
    assert!(sync.is_done() && log.is_durable(lsn));
    assert!(log.is_durable(Lsn::ZERO) && log.durable(Lsn::ZERO, Level::Sync).is_done());
}

#[test]
fn without_a_flusher_the_poll_does_the_work() {
    let log = create(&sim()).unwrap();
    let lsn = append(&log, 1, b"x").unwrap();
    let bell: Waker = Arc::new(Bell(AtomicUsize::new(0))).into();
    assert_eq!(
        poll(&mut log.durable(lsn, Level::Sync), &bell),
        Poll::Ready(true)
    );
}

#[test]
fn with_a_flusher_the_poll_returns_and_the_task_is_woken() {
    let log = create(&sim()).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| log.run_flusher(&stop));
        let _stop = StopFlusher(&log, &stop);
        wait_until(|| flusher_serves(&log));
    });
    // The flusher is gone: again the poll does it.
    let lsn = append(&log, 1, b"x").unwrap();
    let bell: Waker = Arc::new(Bell(AtomicUsize::new(0))).into();
    assert_eq!(
        poll(&mut log.durable(lsn, Level::Sync), &bell),
        Poll::Ready(true)
    );
}

/// Whether a poll was left to the flusher; waits for the bell then.
fn flusher_serves(log: &Arc<Log>) -> bool {
    let bell = Arc::new(Bell(AtomicUsize::new(0)));
    let waker: Waker = bell.clone().into();
    let mut handle = log.durable(append(log, 1, b"x").unwrap(), Level::Sync);
    let left_to_it = poll(&mut handle, &waker).is_pending();
    if left_to_it {
        wait_until(|| bell.0.load(Ordering::SeqCst) > 0);
        assert!(handle.is_done());
    }
    log.truncate(log.durable_lsn()).unwrap();
    left_to_it
}

fn wait_until(mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "nothing happens");
        std::thread::yield_now();
    }
}

#[test]
fn the_flusher_writes_what_nobody_waits_for() {
    let log = create(&sim()).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| log.run_flusher(&stop));
        let _stop = StopFlusher(&log, &stop);
        let lsn = append(&log, 1, b"x").unwrap();
        wait_until(|| log.durable(lsn, Level::Os).is_done());
    });
}
