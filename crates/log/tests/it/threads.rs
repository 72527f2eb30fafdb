//! Many threads at once: every record once, in one order, none lost, nobody stuck.

use crate::support::*;
use longshore_base::{Lsn, TxnId};
use longshore_disk::{Fault, FaultError, FaultOn, FaultRepeat};
use longshore_log::{Level, Log, LogError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const THREADS: u64 = 8;

/// Stops the flusher thread when dropped, also by a failing test: a scope waits for its threads.
pub struct StopFlusher<'a>(pub &'a Log, pub &'a AtomicBool);

impl Drop for StopFlusher<'_> {
    fn drop(&mut self) {
        self.1.store(true, Ordering::SeqCst);
        self.0.nudge();
    }
}

/// Each thread appends numbered records of its own chain, flushing and truncating now and then.
fn append_chain(log: &Log, thread: u64, count: u64) -> Result<(), LogError> {
    let mut claim = log.claim(0)?;
    let mut prev = Lsn::ZERO;
    for number in 0..count {
        let filler = vec![thread as u8; (number * 37 % 300) as usize];
        let body = [&number.to_le_bytes()[..], &filler];
        prev = log.append(&mut claim, 1, TxnId::new(thread), prev, &body)?;
        match number % 64 {
            7 => log.flush(prev, Level::Os)?,
            47 => log.flush(prev, Level::Sync)?,
            3 => assert_eq!(log.read(prev)?.prev != Lsn::ZERO, number > 0),
            _ => {}
        }
    }
    log.flush(prev, Level::Sync)
}

fn check_chains(log: &Log, count: u64) {
    let mut last: BTreeMap<u64, (u64, Lsn)> = BTreeMap::new();
    for record in log.scan(Lsn::ZERO) {
        let record = record.unwrap();
        let number = u64::from_le_bytes(record.body[..8].try_into().unwrap());
        let thread = record.txn.get();
        assert!(
            record.body[8..]
                .iter()
                .all(|byte| u64::from(*byte) == thread)
        );
        let before = last.insert(thread, (number, record.lsn));
        let expected = before.map_or((0, Lsn::ZERO), |(number, lsn)| (number + 1, lsn));
        assert_eq!((number, record.prev), expected, "thread {thread}");
    }
    assert_eq!(last.len() as u64, THREADS);
    assert!(last.values().all(|(number, _)| *number == count - 1));
}

fn run(with_flusher: bool, count: u64) {
    let disk = sim();
    let options = longshore_log::LogOptions {
        bytes_max: 64 << 20,
        segment_bytes: 64 << 10,
        ..SMALL
    };
    let log = Log::create(shared(&disk), options, DATABASE, env()).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        if with_flusher {
            threads.spawn(|| log.run_flusher(&stop));
        }
        let _stop = StopFlusher(&log, &stop);
        let appenders: Vec<_> = (0..THREADS)
            .map(|thread| {
                let log = Arc::clone(&log);
                threads.spawn(move || append_chain(&log, thread, count))
            })
            .collect();
        appenders
            .into_iter()
            .for_each(|thread| thread.join().unwrap().unwrap());
    });
    check_chains(&log, count);
    let stats = log.stats();
    assert!(stats.waits_for_room > 0, "the ring is small: {stats:?}");
    drop(log);
    let image = disk.crash_image(5);
    let log = Log::open(
        shared(&image),
        options,
        DATABASE,
        Lsn::ZERO,
        longshore_log::Access::ReadWrite,
        env(),
    );
    check_chains(&log.unwrap(), count);
}

#[test]
fn records_of_many_threads_are_all_there_in_one_order() {
    run(false, 600);
}

#[test]
fn records_of_many_threads_are_all_there_with_a_flusher() {
    run(true, 600);
}

#[test]
fn one_sync_serves_many_threads() {
    let disk = sim();
    let log = create(&disk).unwrap();
    std::thread::scope(|threads| {
        for thread in 0..THREADS {
            let log = &log;
            threads.spawn(move || {
                for _ in 0..20 {
                    let lsn = append(log, thread as u8 + 1, b"commit").unwrap();
                    log.flush(lsn, Level::Sync).unwrap();
                }
            });
        }
    });
    let stats = log.stats();
    assert!(stats.syncs <= THREADS * 20);
    assert_eq!(scan(&log, Lsn::ZERO).unwrap().len() as u64, THREADS * 20);
}

#[test]
fn a_failure_releases_every_waiter() {
    for n in 1..12 {
        let disk = sim();
        let log = create(&disk).unwrap();
        let error = FaultError::Io;
        disk.fail_at(
            n,
            Fault {
                error,
                repeat: FaultRepeat::ForEver,
                on: FaultOn::Any,
            },
        );
        let failures = std::thread::scope(|threads| {
            let appenders: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let log = Arc::clone(&log);
                    threads.spawn(move || append_chain(&log, thread, 200).is_err())
                })
                .collect();
            appenders
                .into_iter()
                .map(|t| t.join().unwrap())
                .filter(|f| *f)
                .count()
        });
        assert_eq!(
            failures as u64, THREADS,
            "everybody is told, nobody is stuck"
        );
        assert!(log.poison_cause().is_some() || disk.faults_hit() > 0);
    }
}
