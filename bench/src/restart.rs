//! Opening after a crash: how long until the first read is answered?
//!
//! # Protocol
//! Clients write until the log has grown by `--data-mib`, without a checkpoint and without a cleaner:
//! every page must be redone, the worst case. The log is handed to the system, the disk cut off, the
//! database dropped. Then it is opened again and one row read, the last one committed.
//!
//! Two ways to write: rows inserted in ascending order, and rows updated at random in a table that
//! was checkpointed before.

use crate::error::BenchError;
use crate::harness::{Done, Measured, Plan, Tally, run as run_clients};
use crate::ours::{Longshore, NAME, options};
use crate::progress::Progress;
use crate::report::{Line, Report, mib, rounded};
use crate::settings::Settings;
use crate::store::{Outcome, ROWS_PER_COMMIT, Store, fill};
use longshore::{Background, Options};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Runs the benchmark for each number of writing threads.
pub(crate) fn run(
    settings: &Settings,
    report: &mut Report<impl Write>,
    progress: &Progress,
) -> Result<(), BenchError> {
    let failed = BenchError::engine(NAME, settings.name.as_str());
    for &clients in &settings.threads {
        for kind in [Kind::Inserts, Kind::Updates] {
            let folder = settings.scratch()?;
            let bench = Bench {
                settings,
                clients,
                kind,
                folder: folder.path(),
            };
            progress.say(format_args!(
                "{}: {clients} clients write the log",
                kind.name()
            ));
            let crashed = bench.write_and_crash().map_err(&failed)?;
            progress.say(format_args!("{}: open again", kind.name()));
            let line = bench.restart(&crashed).map_err(&failed)?;
            progress.clear();
            report.write(&line)?;
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Kind {
    Inserts,
    Updates,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Inserts => "restart-inserts",
            Kind::Updates => "restart-updates",
        }
    }
}

struct Bench<'a> {
    settings: &'a Settings,
    clients: usize,
    kind: Kind,
    folder: &'a Path,
}

/// What is known about a database that crashed.
struct Crashed {
    /// Bytes of log since the last checkpoint.
    redo_bytes: u64,
    /// Rows changed since then.
    rows_changed: u64,
    log_bytes_per_row: f64,
}

/// The row committed last, beside all others.
const LAST_ROW: u64 = u64::MAX;

impl Bench<'_> {
    fn options(&self) -> Options {
        options(self.settings)
    }

    fn write_and_crash(&self) -> Outcome<Crashed> {
        let options = self.options().background(Background::Off);
        let store = Longshore::open(self.folder, options, self.clients)?;
        if matches!(self.kind, Kind::Updates) {
            fill(&store, self.settings.rows)?;
        }
        store.checkpoint()?;
        let before = store.stats().log.bytes;
        let enough = before + (self.settings.data_mib() << 20);
        let written = self.write_log(&store, enough)?;
        store.hand_over_log(LAST_ROW)?;
        let stats = store.stats();
        Ok(Crashed {
            redo_bytes: stats.recovery_bytes,
            rows_changed: written.total.operations,
            log_bytes_per_row: (stats.log.bytes - before) as f64
                / written.total.operations.max(1) as f64,
        })
        // Dropping the store is the crash.
    }

    fn write_log(&self, store: &Longshore, enough: u64) -> Outcome<Measured> {
        /// Updates between two looks at the length of the log.
        const UPDATES_PER_CALL: u64 = 1000;
        let plan = Plan {
            clients: self.clients,
            warm_up: Duration::ZERO,
            duration: Duration::MAX,
            sample: 1,
        };
        let client = |client| {
            let mut random = SmallRng::seed_from_u64(client as u64);
            let mut first = 0;
            move || {
                if store.stats().log.bytes >= enough {
                    return Ok(None);
                }
                match self.kind {
                    Kind::Inserts => store.insert(client, first, ROWS_PER_COMMIT)?,
                    Kind::Updates => {
                        for _ in 0..UPDATES_PER_CALL {
                            let row = random.random_range(0..self.settings.rows);
                            store.update(row, random.random())?;
                        }
                    }
                }
                first += ROWS_PER_COMMIT;
                Ok(Some(Done::operations(ROWS_PER_COMMIT)))
            }
        };
        run_clients(&plan, client, || ())
    }

    fn restart(&self, crashed: &Crashed) -> Outcome<Line> {
        let start = Instant::now();
        let store = Longshore::open(self.folder, self.options(), 0)?;
        let opened = start.elapsed();
        let mut value = Vec::new();
        if !store.read(LAST_ROW, &mut value)? {
            return Err("the row committed last is gone".into());
        }
        let answered = start.elapsed();
        let measured = one_call(crashed.rows_changed, answered);
        let mut line = Line::of(
            NAME,
            self.kind.name(),
            self.clients,
            self.settings.durability,
            &measured,
        );
        // All that was counted since the opening.
        if let Some(after) = store.counts() {
            line = line.with_counts(&after.at_zero(), &after, &measured);
        }
        line.log_bytes_per_op = Some(rounded(crashed.log_bytes_per_row));
        let redo_mib = mib(crashed.redo_bytes);
        Ok(line
            .with("first_read_ms", rounded(answered.as_secs_f64() * 1e3))
            .with("open_ms", rounded(opened.as_secs_f64() * 1e3))
            .with("redo_mib", redo_mib)
            .with(
                "redo_mib_per_second",
                rounded(redo_mib / answered.as_secs_f64()),
            ))
    }
}

/// A run of one call that did so many operations.
fn one_call(operations: u64, elapsed: Duration) -> Measured {
    let mut total = Tally::new();
    total.operations = operations;
    total.latency.saturating_record(elapsed.as_nanos() as u64);
    Measured::of(total, elapsed, None)
}
