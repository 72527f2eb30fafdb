//! Records what transactions saw, so that a checker can tell whether they kept to their isolation level.
//!
//! # Protocol
//! Clients run transactions of one workload, each once: what had to give way is told as `fail` and not
//! repeated. Every client writes down, in a file of its own (`spool`), that a transaction is invoked before
//! it begins, and how it ended after it has; one clock serves all. At the end every key is read once more,
//! and the files are merged by time into one history.
//!
//! # Rules of a history
//! - A process has one transaction open at a time. After an `info` its number is never used again.
//! - `fail` is told only where the commit was not even asked for. Whatever goes wrong in a commit is `info`.
//! - No value is written twice.
//! - A key is left for another after [`keys::USES`] uses.
//! - A history in which nothing has committed fails the run.
//!
//! What the lines mean is told in the README of `sim`, whose checker reads them.

mod client;
mod edn;
mod keys;
mod operation;
mod spool;
mod steps;
mod workloads;

use crate::error::BenchError;
use crate::harness::{Done, Measured, Plan, run as run_clients};
use crate::ours::{NAME, counts, options};
use crate::progress::Progress;
use crate::report::{Line, Report};
use crate::settings::{Settings, Workload};
use client::{Client, Ended, Shared};
use longshore::{Database, TransactionOptions};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// How a history is recorded.
#[derive(Clone, Copy, Debug)]
pub struct HistoryPlan {
    /// What transactions do.
    pub workload: Workload,
    /// Clients, a thread each.
    pub clients: usize,
    /// How long they work.
    pub duration: Duration,
    /// What each transaction is begun with: its isolation.
    pub options: TransactionOptions,
}

/// What a recorded history holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorded {
    /// Transactions that committed.
    pub ok: u64,
    /// Transactions that surely did not.
    pub fail: u64,
    /// Transactions of which nobody knows.
    pub info: u64,
    /// Keys that were used.
    pub keys: u64,
    /// Lines.
    pub lines: u64,
}

/// Runs a workload on `db` and writes its history to `out` as JSON lines; `folder` holds files meanwhile.
///
/// # Errors
/// [`BenchError::Engine`]: the engine failed, or nothing has committed. [`BenchError::File`],
/// [`BenchError::Output`].
pub fn record_history(
    db: &Database,
    plan: &HistoryPlan,
    folder: &Path,
    out: &mut impl Write,
) -> Result<Recorded, BenchError> {
    record(db, plan, folder, out).map(|(recorded, _)| recorded)
}

fn record(
    db: &Database,
    plan: &HistoryPlan,
    folder: &Path,
    out: &mut impl Write,
) -> Result<(Recorded, Measured), BenchError> {
    let failed = || BenchError::engine(NAME, plan.workload.as_str());
    let shared = Shared::new(db, plan).map_err(failed())?;
    // One for each client, and one for the reads at the end.
    let spools = (0..=plan.clients).map(|number| spool::Spool::create(folder, number));
    let spools: Vec<Mutex<spool::Spool>> = spools
        .map(|spool| spool.map(Mutex::new))
        .collect::<Result<_, _>>()?;
    let client = |number: usize| {
        let spool = spools[number].lock().expect("clients do not panic");
        Client::new(&shared, number as u64, spool)
    };
    let harness = Plan {
        clients: plan.clients,
        warm_up: Duration::ZERO,
        duration: plan.duration,
        sample: 1,
    };
    let work = |number| {
        let mut client = client(number);
        move || {
            let ended = workloads::transaction(plan.workload, &mut client)?;
            Ok(Some(Done {
                aborts: u64::from(ended != Ended::Ok),
                ..Done::operations(u64::from(ended == Ended::Ok))
            }))
        }
    };
    let measured = run_clients(&harness, work, || ()).map_err(failed())?;
    let counts = shared.counts();
    if counts.ok == 0 {
        let empty = "the history is empty: no transaction has committed";
        return Err(failed()(empty.into()));
    }
    workloads::read_all(plan.workload, &mut client(plan.clients)).map_err(failed())?;
    let spools = spools
        .into_iter()
        .map(|spool| spool.into_inner().expect("clients do not panic"));
    let lines = spool::merge(spools, out)?;
    let recorded = Recorded {
        lines,
        keys: shared.keys.used().len() as u64,
        ..shared.counts()
    };
    Ok((recorded, measured))
}

/// Runs the benchmark.
pub(crate) fn run(
    settings: &Settings,
    report: &mut Report<impl Write>,
    progress: &Progress,
) -> Result<(), BenchError> {
    let path = settings.out.as_deref().expect("checked");
    let plan = HistoryPlan {
        workload: settings.workload,
        clients: settings.threads[0],
        duration: settings.duration(),
        options: settings.isolation.options(),
    };
    let workload = plan.workload.as_str();
    progress.say(format_args!(
        "history: {workload}, {} clients",
        plan.clients
    ));
    let folder = settings.scratch()?;
    let failed = |error: longshore::Error| BenchError::engine(NAME, workload)(error.into());
    let db = options(settings)
        .create(folder.path().join("db"))
        .map_err(failed)?;
    let create = |path: &Path| File::create(path).map_err(BenchError::file("write", path));
    let mut out = BufWriter::new(create(path)?);
    let before = counts(&db.stats());
    let (recorded, measured) = record(&db, &plan, folder.path(), &mut out)?;
    let after = counts(&db.stats());
    out.flush()?;
    if let Some(edn) = &settings.edn {
        translate(path, &mut BufWriter::new(create(edn)?))?;
    }
    progress.clear();
    let line = Line::of(
        NAME,
        settings.name.as_str(),
        plan.clients,
        settings.durability,
        &measured,
    )
    .with_counts(&before, &after, &measured)
    .with("of", workload)
    .with("isolation", settings.isolation.as_str())
    .with("ok", recorded.ok)
    .with("fail", recorded.fail)
    .with("info", recorded.info)
    .with("keys", recorded.keys)
    .with("lines", recorded.lines);
    Ok(report.write(&line)?)
}

/// Writes the history in `path` as EDN.
fn translate(path: &Path, out: &mut impl Write) -> Result<(), BenchError> {
    let source = File::open(path).map_err(BenchError::file("read", path))?;
    for line in BufReader::new(source).lines() {
        edn::write(&line?, out)?;
    }
    Ok(out.flush()?)
}
