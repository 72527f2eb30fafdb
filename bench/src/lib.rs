//! Workloads that measure Longshore, and its peers by the same code.
//!
//! [`run`] is what `longshore bench` calls. Five benchmarks know Longshore from inside (`pool`,
//! `memory`, `restart`, `history`, `tpcc`); the others speak to any [`Engine`], so the package `bench-peers` runs them
//! over other engines too, in turn with Longshore.
//!
//! # Protocol
//! [`Settings`] say what is measured; a benchmark runs clients by the `harness`, and hands each
//! result to the [`Report`] as a [`Line`]. Databases live in a scratch folder that is removed at the
//! end. What is measured, and in which units, is told in the README.

#![forbid(unsafe_code)]

mod crash_disk;
mod disk_rate;
mod error;
mod figure;
mod harness;
mod history;
mod memory;
mod ours;
mod pool;
mod process;
mod progress;
mod report;
mod restart;
mod rounds;
mod settings;
mod store;
mod summary;
mod tpcc;
mod workloads;

pub use error::BenchError;
pub use history::{HistoryPlan, Recorded, record_history};
pub use ours::LongshoreEngine;
pub use report::{Line, Report};
pub use rounds::run_engines;
pub use settings::{Isolation, Level, Name, Only, Settings, Workload};
pub use store::{Counts, Engine, Outcome, Store, StoreError, VALUE_BYTES, key, value};

use progress::Progress;
use std::io::Write;

/// Runs one benchmark of Longshore and writes what it measured to `out`, line by line as it comes.
///
/// Progress goes to standard error when that is a terminal.
///
/// # Errors
/// [`BenchError::Settings`] before anything is done; otherwise what stopped the benchmark. Lines
/// written before that hold.
pub fn run(settings: &Settings, out: &mut impl Write) -> Result<(), BenchError> {
    let settings = &settings.checked()?;
    let mut report = Report::new(out, settings.json);
    let progress = Progress::new();
    match settings.name {
        Name::Insert | Name::Read | Name::ReadUniform | Name::Update => {
            run_engines(&[&LongshoreEngine], settings, &mut report)
        }
        Name::Pool => pool::run(settings, &mut report, &progress),
        Name::Memory => memory::run(settings, &mut report, &progress),
        Name::Restart => restart::run(settings, &mut report, &progress),
        Name::History => history::run(settings, &mut report, &progress),
        Name::Tpcc => tpcc::run(settings, &mut report, &progress),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// The lines that a short run of `name` writes.
    fn lines(name: Name, change: impl FnOnce(&mut Settings)) -> Vec<Value> {
        let mut settings = Settings::of(name);
        settings.threads = vec![1, 2];
        settings.seconds = 0.05;
        settings.rows = 2000;
        settings.data_mib = Some(4);
        settings.json = true;
        change(&mut settings);
        let mut out = Vec::new();
        run(&settings, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .inspect(|line: &Value| {
                let blocked = &line["blocked_per_million_fixes"];
                assert!(blocked.is_number(), "blocked acquisitions in {line}");
            })
            .collect()
    }

    fn assert_complete(line: &Value, workload: &str) {
        assert_eq!(line["workload"], workload, "{line}");
        for field in ["threads", "ops_per_second", "p50_us", "p99_us", "aborts"] {
            assert!(line[field].is_number(), "{field} is missing in {line}");
        }
        assert!(line["ops_per_second"].as_f64() > Some(0.0), "{line}");
        for field in ["durability", "log_bytes_per_op"] {
            assert!(line.get(field).is_some(), "{field} is missing in {line}");
        }
    }

    #[test]
    fn insert_tells_all_fields_for_each_number_of_threads() {
        let lines = lines(Name::Insert, |_| ());
        assert_eq!(lines.len(), 2);
        for (line, threads) in lines.iter().zip([1, 2]) {
            assert_complete(line, "insert");
            assert_eq!(line["threads"], threads);
            assert!(line["log_bytes_per_op"].as_f64() > Some(100.0), "{line}");
        }
    }

    #[test]
    fn reads_write_no_log() {
        for (name, workload) in [(Name::Read, "read"), (Name::ReadUniform, "read-uniform")] {
            for line in lines(name, |_| ()) {
                assert_complete(&line, workload);
                assert_eq!(line["aborts"], 0);
            }
        }
    }

    #[test]
    fn synced_updates_are_compared_with_the_disk() {
        let lines = lines(Name::Update, |settings| settings.durability = Level::Sync);
        for line in lines {
            assert_complete(&line, "update");
            assert!(line["syncs_per_second"].as_f64() > Some(0.0), "{line}");
            assert!(line["commits_per_sync"].as_f64() > Some(0.0), "{line}");
        }
    }

    #[test]
    fn several_rounds_end_with_their_median() {
        let lines = lines(Name::Read, |settings| {
            settings.rounds = 3;
            settings.threads = vec![1];
        });
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[2]["round"], 3);
        assert_eq!(lines[3]["median_of"], 3);
    }

    #[test]
    fn the_pool_is_measured_over_the_touch() {
        let lines = lines(Name::Pool, |settings| {
            settings.threads = vec![1];
            settings.pool_mib = Some(8);
        });
        let of = |workload: &str| lines.iter().find(|line| line["workload"] == workload);
        for workload in ["pool-read", "pool-fix-shared", "pool-fix-exclusive"] {
            let line = of(workload).unwrap_or_else(|| panic!("{workload} is missing"));
            assert_complete(line, workload);
            assert!(line["ns_over_touch"].is_number(), "{line}");
        }
        assert!(of("pool-miss").unwrap()["misses_per_op"].as_f64() > Some(0.5));
        assert!(of("pool-sweep").unwrap()["ns_per_step"].as_f64() > Some(0.0));
    }

    #[test]
    fn memory_and_writes_are_told() {
        let lines = lines(Name::Memory, |settings| {
            settings.threads = vec![2];
            settings.pool_mib = Some(2);
        });
        let workloads: Vec<_> = lines.iter().map(|line| line["workload"].clone()).collect();
        assert_eq!(workloads, ["memory-load", "memory-read", "memory-update"]);
        for line in &lines {
            assert!(line["rss_peak_mib"].as_f64() > Some(0.0), "{line}");
        }
        assert!(lines[0]["bytes_written_per_byte_committed"].as_f64() > Some(1.0));
    }

    #[test]
    fn a_restart_loses_nothing_and_tells_its_time() {
        let lines = lines(Name::Restart, |settings| {
            settings.threads = vec![2];
            settings.data_mib = Some(2);
        });
        assert_eq!(lines.len(), 2);
        for line in lines {
            assert!(line["first_read_ms"].as_f64() > Some(0.0), "{line}");
            assert!(line["redo_mib"].as_f64() >= Some(2.0), "{line}");
        }
    }

    #[test]
    fn a_history_is_written_in_both_forms() {
        let folder = tempfile::tempdir().unwrap();
        let (out, edn) = (folder.path().join("h.jsonl"), folder.path().join("h.edn"));
        let lines = lines(Name::History, |settings| {
            settings.threads = vec![4];
            settings.out = Some(out.clone());
            settings.edn = Some(edn.clone());
        });
        assert_complete(&lines[0], "history");
        let written = std::fs::read_to_string(out).unwrap();
        let translated = std::fs::read_to_string(edn).unwrap();
        assert_eq!(lines[0]["lines"], written.lines().count());
        assert_eq!(translated.lines().count(), written.lines().count());
        let ended = ["ok", "fail", "info"].map(|kind| lines[0][kind].as_u64().unwrap());
        assert_eq!(
            2 * ended.iter().sum::<u64>(),
            written.lines().count() as u64
        );
        assert!(written.starts_with(r#"{"index":0,"process":"#), "{written}");
        assert!(translated.starts_with("{:index 0, :time "), "{translated}");
    }

    #[test]
    fn settings_out_of_range_are_refused_with_the_range() {
        let mut settings = Settings::of(Name::Insert);
        settings.threads = vec![0];
        let refused = run(&settings, &mut Vec::new()).unwrap_err().to_string();
        assert!(
            refused.contains("--threads") && refused.contains('1'),
            "{refused}"
        );
    }
}
