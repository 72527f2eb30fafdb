//! More rows than memory: does the process stay within its budget, and what is written for a byte?
//!
//! # Protocol
//! Clients load rows until there are `--data-mib` of them, each a share of its own in ascending
//! order; a checkpoint writes out the rest, so that everything written is counted. Then rows are read
//! at random, then updated at random, each for `--seconds`.

use crate::error::BenchError;
use crate::harness::{Measured, Plan};
use crate::ours::{LOCK_BYTES_MAX, LOG_BUFFER_BYTES, Longshore, NAME, options};
use crate::process;
use crate::progress::Progress;
use crate::report::{Line, Report, mib, rounded};
use crate::settings::Settings;
use crate::store::{Outcome, ROW_BYTES, Store};
use crate::workloads::{load, plan, read, uniform, update, with_counts};
use longshore::Stats;
use std::io::Write;

/// Runs the benchmark once for each number of threads.
pub(crate) fn run(
    settings: &Settings,
    report: &mut Report<impl Write>,
    progress: &Progress,
) -> Result<(), BenchError> {
    let rows = ((settings.data_mib() << 20) / ROW_BYTES).max(1);
    let failed = BenchError::engine(NAME, settings.name.as_str());
    for &clients in &settings.threads {
        let folder = settings.scratch()?;
        let resident_before = process::memory();
        let store = Longshore::open(folder.path(), options(settings), 0).map_err(&failed)?;
        let bench = Bench {
            store: &store,
            settings,
            clients,
            rows,
            resident_before,
        };
        for step in [Step::Load, Step::Read, Step::Update] {
            progress.say(format_args!("{}: {clients} clients", step.name()));
            let line = bench.measure(step).map_err(&failed)?;
            progress.clear();
            report.write(&line)?;
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Load,
    Read,
    Update,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Step::Load => "memory-load",
            Step::Read => "memory-read",
            Step::Update => "memory-update",
        }
    }
}

struct Bench<'a> {
    store: &'a Longshore,
    settings: &'a Settings,
    clients: usize,
    rows: u64,
    resident_before: Option<u64>,
}

impl Bench<'_> {
    fn measure(&self, step: Step) -> Outcome<Line> {
        process::reset_peak();
        let before = Moment::now(self.store);
        let counts = self.store.counts();
        let measured = self.step(step)?;
        let line = Line::of(
            NAME,
            step.name(),
            self.clients,
            self.settings.durability,
            &measured,
        );
        let line = with_counts(line, counts, self.store.counts(), &measured);
        if step != Step::Read {
            // Pages that are still in memory will be written too.
            self.store.checkpoint()?;
        }
        let line = self.with_memory(line);
        if step == Step::Read {
            return Ok(line);
        }
        let written = Written::between(&before, &Moment::now(self.store));
        Ok(written.told_in(line, measured.total.operations * ROW_BYTES))
    }

    fn step(&self, step: Step) -> Outcome<Measured> {
        // Without a warm-up: whatever is written is counted.
        let plan = Plan {
            warm_up: std::time::Duration::ZERO,
            ..plan(self.settings, self.clients)
        };
        match step {
            Step::Load => load(self.store, self.clients, self.rows, || ()),
            Step::Read => read(
                self.store,
                &plan,
                |client| uniform(client, self.rows),
                || (),
            ),
            Step::Update => update(self.store, &plan, self.rows, || ()),
        }
    }

    fn with_memory(&self, line: Line) -> Line {
        let budget = (self.settings.pool_mib() << 20) + LOG_BUFFER_BYTES + LOCK_BYTES_MAX;
        let peak = process::memory_peak();
        let own = self
            .resident_before
            .zip(peak)
            .map(|(before, peak)| peak.saturating_sub(before));
        line.with("budget_mib", mib(budget as u64))
            .with_some("rss_before_mib", self.resident_before.map(mib))
            .with_some("rss_peak_mib", peak.map(mib))
            .with_some(
                "rss_share_of_budget",
                own.map(|own| rounded(own as f64 / budget as f64)),
            )
            .with("rows_mib", mib(self.rows * ROW_BYTES))
    }
}

/// What had been written at one moment.
struct Moment {
    by_process: Option<u64>,
    stats: Stats,
}

impl Moment {
    fn now(store: &Longshore) -> Moment {
        Moment {
            by_process: process::bytes_written(),
            stats: store.stats(),
        }
    }
}

/// Bytes written between two moments.
struct Written {
    by_process: Option<u64>,
    log: u64,
    pages: u64,
}

impl Written {
    fn between(before: &Moment, after: &Moment) -> Written {
        Written {
            by_process: before.by_process.zip(after.by_process).map(|(b, a)| a - b),
            log: after.stats.log.bytes - before.stats.log.bytes,
            pages: after.stats.pool.page_writes - before.stats.pool.page_writes,
        }
    }

    /// `committed`: bytes of the rows that were inserted or changed.
    fn told_in(&self, line: Line, committed: u64) -> Line {
        let per_byte = |bytes: u64| rounded(bytes as f64 / committed.max(1) as f64);
        line.with_some(
            "bytes_written_per_byte_committed",
            self.by_process.map(per_byte),
        )
        .with("log_bytes_per_byte_committed", per_byte(self.log))
        .with(
            "page_writes_per_mib_committed",
            rounded(self.pages as f64 / mib(committed.max(1 << 10))),
        )
        .with("written_mib", self.by_process.map_or(0.0, mib))
    }
}
