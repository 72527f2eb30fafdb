//! TPC-C embedded: the tables and transactions of the specification, revision 5.11, without terminals.
//!
//! # Protocol
//! The tables are filled, all rows drawn from the seed. For each number of threads clients draw transactions by
//! the standard mix, or run one kind only at a time, and run each until it is done. After every run the consistency
//! conditions 1 to 4 are checked; if one does not hold, that is the end. Where a reader stays open during the
//! run, it must see at the end what it saw at the begin.
//!
//! # What is not as specified
//! - No terminals, no think times, no queue for deliveries; nothing is shown.
//! - A client belongs to no warehouse: each transaction draws one.
//! - Random numbers have the distributions of the specification; the mix has its least shares.
//!
//! Order-Status and Stock-Level are read-only transactions at the isolation of the others; the specification
//! would be content with less for Stock-Level.

mod client;
mod consistency;
mod customer;
mod delivery;
mod figures;
mod index;
mod key;
mod layout;
mod load;
mod new_order;
mod order_status;
mod payment;
mod populate;
mod random;
mod scale;
mod schema;
mod stock_level;
mod tables;
#[cfg(test)]
mod tests;

use crate::crash_disk::CrashDisk;
use crate::error::BenchError;
use crate::figure::Sketch;
use crate::harness::{Measured, Plan, run as run_clients};
use crate::ours::{self, NAME, options};
use crate::progress::Progress;
use crate::report::{Line, Report};
use crate::settings::{Name, Settings};
use crate::store::Outcome;
use crate::summary;
use client::{Client, Shared, now_us};
use consistency::{State, Sums, Violation};
use longshore::{Database, Transaction, TransactionOptions};
use populate::Population;
use scale::Scale;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use tables::Tables;

/// Runs the benchmark.
pub(crate) fn run(
    settings: &Settings,
    report: &mut Report<impl Write>,
    progress: &Progress,
) -> Result<(), BenchError> {
    let sketch = Sketch::begin(settings)?;
    let folder = settings.scratch()?;
    let failed = || BenchError::engine(NAME, Name::Tpcc.as_str());
    let mut site = Site::create(folder.path(), settings, progress).map_err(failed())?;
    let mut lines = Vec::new();
    for round in 1..=settings.rounds {
        let runs = settings.each_alone().into_iter();
        let runs = runs.flat_map(|alone| {
            alone
                .threads
                .clone()
                .into_iter()
                .map(move |clients| (alone.clone(), clients))
        });
        for (settings, clients) in runs {
            let settings = &settings;
            progress.say(format_args!("tpcc: {clients} clients, round {round}"));
            let reader = settings.reader.then(|| site.reader());
            let reader = reader.transpose().map_err(failed())?;
            let mut line = site.measure(settings, clients).map_err(failed())?;
            if settings.rounds > 1 {
                line = line.with("round", round);
            }
            progress.say(format_args!("tpcc: checking"));
            let state = site.reader().map_err(failed())?.first;
            let seen = reader.map(|reader| reader.look_again(&site));
            let seen = seen.transpose().map_err(failed())?;
            progress.clear();
            report.write(&line)?;
            check(clients, &state.violations)?;
            if let Some((first, last)) = seen {
                check_unchanged(clients, first, last)?;
            }
            lines.push(line);
        }
    }
    let medians = summary::medians(&lines);
    if settings.rounds > 1 {
        medians.iter().try_for_each(|line| report.write(line))?;
    }
    sketch.map_or(Ok(()), |sketch| sketch.finish(&medians))
}

/// Refuses the first violations, and tells how many more there are.
fn check(clients: usize, violations: &[Violation]) -> Result<(), BenchError> {
    const TOLD: usize = 3;
    if violations.is_empty() {
        return Ok(());
    }
    let told = violations.iter().take(TOLD).map(Violation::to_string);
    let mut violations_told: Vec<String> = told.collect();
    let more = violations.len().saturating_sub(TOLD);
    if more > 0 {
        violations_told.push(format!("and {more} more"));
    }
    Err(BenchError::Inconsistent {
        clients,
        violations: violations_told.join("; "),
    })
}

/// Refuses a reader that saw changes.
fn check_unchanged(clients: usize, first: Sums, last: State) -> Result<(), BenchError> {
    check(clients, &last.violations)?;
    if first == last.sums {
        return Ok(());
    }
    let last = last.sums;
    Err(BenchError::Inconsistent {
        clients,
        violations: format!("a reader that stayed open saw first {first:?}, then {last:?}"),
    })
}

/// A transaction that reads, and what it saw at its begin.
struct Reader {
    tx: Transaction,
    first: State,
}

impl Reader {
    /// What it saw at its begin, and what it sees now.
    fn look_again(self, site: &Site) -> Outcome<(Sums, State)> {
        let last = consistency::state(&self.tx, &site.tables, site.scale)?;
        self.tx.commit()?;
        Ok((self.first.sums, last))
    }
}

/// A database that is filled.
struct Site {
    db: Database,
    disk: Arc<CrashDisk>,
    tables: Tables,
    scale: Scale,
    /// Clients so far: each has a number of its own.
    clients: u32,
}

impl Site {
    fn create(folder: &Path, settings: &Settings, progress: &Progress) -> Outcome<Site> {
        let scale = match settings.small {
            true => Scale::small(settings.warehouses),
            false => Scale::full(settings.warehouses),
        };
        let (db, disk) = ours::open(folder, options(settings))?;
        let tables = Tables::create(&db)?;
        let population = Population {
            scale,
            seed: settings.seed,
            date: now_us(),
        };
        load::load(&db, &tables, &population, progress)?;
        // What loading left in memory does not burden the run.
        db.checkpoint()?;
        Ok(Site {
            db,
            disk,
            tables,
            scale,
            clients: 0,
        })
    }

    /// What clients do by these settings.
    fn shared<'a>(&'a self, settings: &Settings) -> Shared<'a> {
        Shared {
            db: &self.db,
            tables: &self.tables,
            scale: self.scale,
            seed: settings.seed,
            options: settings.isolation.options(),
            only: settings.only.first().copied(),
        }
    }

    fn measure(&mut self, settings: &Settings, clients: usize) -> Outcome<Line> {
        let mut before = None;
        let at_start = || before = Some(ours::counts(&self.db.stats()));
        let measured = self.clients_work(settings, clients, at_start)?;
        self.clients += clients as u32;
        let after = ours::counts(&self.db.stats());
        let line = figures::line(settings, clients, &measured);
        Ok(match before {
            Some(before) => line.with_counts(&before, &after, &measured),
            None => line,
        })
    }

    fn clients_work(
        &self,
        settings: &Settings,
        clients: usize,
        at_start: impl FnOnce(),
    ) -> Outcome<Measured> {
        let plan = Plan {
            clients,
            warm_up: settings.warm_up(),
            duration: settings.duration(),
            sample: 1,
        };
        let shared = self.shared(settings);
        let client = |client: usize| {
            let mut client = Client::new(&shared, self.clients + client as u32 + 1);
            move || client.next().map(Some)
        };
        run_clients(&plan, client, at_start)
    }

    /// A transaction that reads, and has read the whole database.
    fn reader(&self) -> Outcome<Reader> {
        let options = TransactionOptions::new().read_only().label("tpcc reader");
        let tx = self.db.begin_with(options)?;
        let first = consistency::state(&tx, &self.tables, self.scale)?;
        Ok(Reader { tx, first })
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.disk.cut();
    }
}
