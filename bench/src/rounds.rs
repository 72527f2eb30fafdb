//! Runs a workload over several engines in turn, in rounds, so that what the machine does besides
//! falls on all of them alike.
//!
//! # Protocol
//! For each round, for each number of threads, each engine in turn. A store that is read or updated
//! is filled once and kept for all runs; one that is inserted into is new in each run, so that no run
//! inherits the size of the former.

use crate::disk_rate::{SyncRate, sync_rate};
use crate::error::BenchError;
use crate::figure::Sketch;
use crate::process::bring_in_memory;
use crate::progress::Progress;
use crate::report::{Line, Report, rounded};
use crate::settings::{Level, Name, Settings};
use crate::store::{Engine, Store, fill};
use crate::summary;
use crate::workloads;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// Runs one workload over `engines` and reports each run; then the medians, if there were several
/// rounds or engines. The first engine is the one that the others are compared with.
///
/// # Errors
/// What stopped the benchmark: settings, an engine's failure, the disk.
pub fn run_engines(
    engines: &[&dyn Engine],
    settings: &Settings,
    report: &mut Report<impl Write>,
) -> Result<(), BenchError> {
    let settings = &settings.checked()?;
    let sketch = Sketch::begin(settings)?;
    let scratch = settings.scratch()?;
    let progress = Progress::new();
    let mut subjects: Vec<Subject> = engines
        .iter()
        .map(|engine| Subject::new(*engine, settings, scratch.path()))
        .collect();
    let mut lines = Vec::new();
    for round in 1..=settings.rounds {
        for &clients in &settings.threads {
            for subject in &mut subjects {
                let (name, engine) = (settings.name.as_str(), subject.engine.name());
                progress.say(format_args!(
                    "{name}: {engine}, {clients} clients, round {round}"
                ));
                let mut line = subject.measure(clients)?;
                if settings.rounds > 1 {
                    line = line.with("round", round);
                }
                progress.clear();
                report.write(&line)?;
                lines.push(line);
            }
        }
    }
    let medians = summary::medians(&lines);
    if settings.rounds > 1 || engines.len() > 1 {
        medians.iter().try_for_each(|line| report.write(line))?;
    }
    sketch.map_or(Ok(()), |sketch| sketch.finish(&medians))
}

/// Memory that is brought in before each run of inserts, for every engine alike: about what such a
/// run fills.
const INSERT_MEMORY_BYTES: usize = 1 << 30;

/// An engine in the rounds, with the store that it keeps.
struct Subject<'a> {
    engine: &'a dyn Engine,
    settings: &'a Settings,
    scratch: &'a Path,
    kept: Option<Site>,
}

/// A store and its folder. Fields are dropped in order: first the store, then what it stands on.
struct Site {
    store: Box<dyn Store>,
    _folder: TempDir,
}

impl<'a> Subject<'a> {
    fn new(engine: &'a dyn Engine, settings: &'a Settings, scratch: &'a Path) -> Subject<'a> {
        Subject {
            engine,
            settings,
            scratch,
            kept: None,
        }
    }

    fn measure(&mut self, clients: usize) -> Result<Line, BenchError> {
        let site = match self.kept.take() {
            Some(site) => site,
            None => self.site()?,
        };
        let (engine, settings) = (self.engine.name(), self.settings);
        let syncs_before = self.disk_syncs()?;
        let (mut line, measured) =
            workloads::measure(engine, &*site.store, settings, clients).map_err(self.failed())?;
        // The disk is not the same at all times: the better of before and after is the yardstick.
        if let Some((before, after)) = syncs_before.zip(self.disk_syncs()?) {
            let rate = before.max(after);
            let commits = measured.operations_per_second();
            line = line
                .with("syncs_per_second", rounded(rate.per_second))
                .with("commits_per_sync", rounded(commits / rate.per_second))
                .with(
                    "syncs_undisturbed_per_second",
                    rounded(rate.undisturbed_per_second),
                )
                .with(
                    "commits_per_sync_undisturbed",
                    rounded(commits / rate.undisturbed_per_second),
                );
        }
        if settings.name != Name::Insert {
            self.kept = Some(site);
        }
        Ok(line)
    }

    /// The disk's own rate of syncs, where it matters.
    fn disk_syncs(&self) -> Result<Option<SyncRate>, BenchError> {
        let settings = self.settings;
        if settings.name != Name::Update || settings.durability != Level::Sync {
            return Ok(None);
        }
        let duration = settings.duration().min(Duration::from_secs(1));
        sync_rate(self.scratch, duration).map(Some)
    }

    fn site(&self) -> Result<Site, BenchError> {
        let prefix = format!("{}-", self.engine.name());
        let mut builder = tempfile::Builder::new();
        let folder = builder
            .prefix(&prefix)
            .tempdir_in(self.scratch)
            .map_err(BenchError::file("create a folder in", self.scratch))?;
        let clients = self.settings.threads_max();
        let store = self
            .engine
            .create(folder.path(), self.settings, clients)
            .map_err(self.failed())?;
        if self.settings.name == Name::Insert {
            bring_in_memory(INSERT_MEMORY_BYTES.min(self.settings.pool_mib() << 20));
        } else {
            fill(&*store, self.settings.rows).map_err(self.failed())?;
        }
        Ok(Site {
            store,
            _folder: folder,
        })
    }

    fn failed(&self) -> impl Fn(crate::store::StoreError) -> BenchError + use<> {
        BenchError::engine(self.engine.name(), self.settings.name.as_str())
    }
}
