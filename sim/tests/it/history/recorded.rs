//! Histories of the store itself: 32 threads keep to their level, and when a safeguard is switched off, the
//! checker says so.

use longshore::{Database, Options, TransactionOptions};
use longshore_bench::{HistoryPlan, Isolation, Workload, record_history};
use sim::history::{Level, Order, Report, check};
use std::time::Duration;

const WORKLOADS: [Workload; 4] = [
    Workload::Append,
    Workload::Register,
    Workload::Bank,
    Workload::Predicate,
];

fn recorded(
    workload: Workload,
    options: TransactionOptions,
    duration: Duration,
    switch_off: impl FnOnce(&Database),
) -> Vec<u8> {
    let db = Options::new()
        .pool_bytes(64 << 20)
        .in_memory()
        .expect("a database in memory");
    switch_off(&db);
    let folder = tempfile::tempdir().expect("a folder");
    let plan = HistoryPlan {
        workload,
        clients: 32,
        duration,
        options,
    };
    let mut history = Vec::new();
    let recorded = record_history(&db, &plan, folder.path(), &mut history);
    println!("{workload:?}: {:?}", recorded.expect("a history"));
    history
}

fn judged(history: &[u8], level: Level) -> Report {
    check(history, level, Order::Strict).expect("a history that can be judged")
}

fn assert_kept(isolation: Isolation, level: Level) {
    for workload in WORKLOADS {
        let duration = Duration::from_millis(400);
        let history = recorded(workload, isolation.options(), duration, |_| ());
        let report = judged(&history, level);
        assert!(report.valid, "{workload:?}:\n{report}");
        println!("{report}");
    }
}

/// Records longer and longer histories until the checker finds what it must.
fn assert_found(
    workload: Workload,
    isolation: Isolation,
    level: Level,
    switch_off: impl Fn(&Database),
) -> Report {
    for millis in [200, 400, 800, 1600, 3200, 6400] {
        let duration = Duration::from_millis(millis);
        let history = recorded(workload, isolation.options(), duration, &switch_off);
        let report = judged(&history, level);
        if !report.valid {
            return report;
        }
    }
    panic!("{workload:?}: nothing was found though a safeguard was off");
}

#[test]
fn serializable_transactions_of_32_threads_are_serializable() {
    assert_kept(Isolation::Serializable, Level::Serializable);
}

#[test]
fn snapshot_transactions_of_32_threads_keep_to_their_snapshots() {
    assert_kept(Isolation::Snapshot, Level::Snapshot);
}

#[test]
fn read_committed_transactions_of_32_threads_see_what_was_committed() {
    assert_kept(Isolation::ReadCommitted, Level::ReadCommitted);
}

#[test]
fn without_the_check_of_versions_the_checker_finds_lost_updates() {
    let (isolation, level) = (Isolation::Snapshot, Level::Snapshot);
    let report = assert_found(Workload::Bank, isolation, level, Database::ignore_conflicts);
    assert!(
        report
            .violations()
            .any(|found| found.anomaly == "lost-update"),
        "{report}"
    );
}

#[test]
fn without_versions_the_checker_finds_read_skew() {
    let (isolation, level) = (Isolation::Snapshot, Level::Snapshot);
    let report = assert_found(Workload::Bank, isolation, level, Database::ignore_versions);
    assert!(
        report.violations().any(|found| found.anomaly == "G-single"),
        "{report}"
    );
}

#[test]
fn without_gap_locks_the_checker_finds_phantoms() {
    let report = assert_found(
        Workload::Predicate,
        Isolation::Serializable,
        Level::Serializable,
        Database::ignore_gaps,
    );
    let names: Vec<&str> = report.violations().map(|found| &*found.anomaly).collect();
    assert!(names.iter().any(|name| name.starts_with('G')), "{report}");
}
