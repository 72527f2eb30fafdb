//! BP-Wrapper's three measures: the lock's time per access by batch size; contention per million accesses, and
//! throughput, by threads. All pages are resident, as in the paper.
//!
//! The paper notes each hit (`young=0`); ours leaves out those of young pages unless told otherwise. By threads both are run.
//!
//! The lock's times are from a clock that is looked at when the lock is asked for, had, and let go of. One look of three
//! lies in each time, so what batching takes off is a little overstated.

use plot::Scale;

use super::bench::{Bench, Capacity, Case, millions, rows};
use super::findings::{Column, Findings, Relation, Row, Table};
use super::paper::Published;
use super::rival::{Rival, TWO_QUEUES};
use crate::error::LabError;
use crate::live::Measured;

const BATCHES: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
const THREADS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// The paper's machine has so many processors.
const PROCESSORS: usize = 16;
const POLICIES: [(&str, &str); 3] = [("LRU", "lru"), ("2Q", TWO_QUEUES), ("LIRS", "lirs")];

pub(super) fn by_batch(bench: &mut Bench<'_>) -> Result<Findings, LabError> {
    let threads = bench.threads(PROCESSORS)?;
    let workload = bench.workload(super::threads::NBG);
    let case = |policy: &str, batch| {
        let rival = Rival::new("", &format!("bp-wrapper:batch={batch},young=0/{policy}"));
        Case {
            times_lock: true,
            ..Case::timed(&rival, &workload, Capacity::All, threads)
        }
    };
    let of_policy = |(_, policy): (&str, &str)| BATCHES.map(|batch| case(policy, batch));
    let cases = POLICIES.map(of_policy).concat();
    let measured = bench.measure(&cases)?;
    let columns = Column::numbers(&BATCHES);
    let table = |title: &str, unit, number: &dyn Fn(&Measured) -> Option<f64>| {
        let of_policy = POLICIES.iter().zip(measured.chunks(BATCHES.len()));
        let row = |((name, _), measured): (&(&str, _), &[Measured])| Row {
            name: format!("Bp{name}"),
            ours: measured.iter().map(number).collect(),
            paper: vec![None; BATCHES.len()],
        };
        Table {
            title: title.to_string(),
            unit,
            across: "hits in a batch",
            columns: columns.clone(),
            rows: of_policy.map(row).collect(),
            drawn: Some(Scale::Linear),
        }
    };
    let each = |measured: &Measured, count: u64| Some(count as f64 / measured.accesses as f64);
    let stats = |measured: &Measured| measured.stats.replacement;
    let acquisition = |measured: &Measured| each(measured, stats(measured).lock_wait_nanos);
    let holding = |measured: &Measured| each(measured, stats(measured).lock_held_nanos);
    let time = |measured: &Measured| Some(acquisition(measured)? + holding(measured)?);
    let acquisitions =
        |measured: &Measured| Some(measured.percent(stats(measured).lock_acquisitions));
    let alone = |title, number| Table {
        drawn: None,
        ..table(title, "ns per access", number)
    };
    let tables = vec![
        table(
            "Acquisition and holding of the lock",
            "ns per access",
            &time,
        ),
        table("Acquisitions of the lock", "in 100 accesses", &acquisitions),
        alone("Acquisition alone", &acquisition),
        alone("Holding alone", &holding),
    ];
    let rest = |table: &Table, name: &str| {
        let left = 100.0 * table.ours(name, "64")? / table.ours(name, "1")?;
        Some((format!("{name}, batch 64, % of batch 1"), left))
    };
    let names = ["BpLRU", "Bp2Q", "BpLIRS"];
    let left = |table| names.iter().filter_map(|name| rest(table, name)).collect();
    let relations = [
        Relation::of(
            "BP1",
            "batching takes off 90 % of the lock's time",
            left(&tables[0]),
            |left| left <= 10.0,
        ),
        Relation::of("BP1", "and of its acquisitions", left(&tables[1]), |left| {
            left <= 10.0
        }),
    ];
    Ok(Findings {
        tables,
        relations: relations.into_iter().flatten().collect(),
        ..Findings::default()
    })
}

pub(super) fn by_threads(bench: &mut Bench<'_>) -> Result<Findings, LabError> {
    let threads = bench.series_of_threads(&THREADS);
    let workload = bench.workload(super::threads::NBG);
    let form = |prefix: &'static str, form: &'static str| {
        POLICIES.map(|(name, policy)| {
            Rival::new(format!("{prefix}{name}"), &format!("{form}/{policy}"))
        })
    };
    let mut rivals = [
        form("Bp", "bp-wrapper"),
        form("all noted: Bp", "bp-wrapper:young=0"),
        form("mutex ", "mutex"),
        form("spin ", "spin"),
    ]
    .concat();
    rivals.push(Rival::native());
    let numbers: Vec<u64> = threads.iter().map(|&threads| threads as u64).collect();
    let columns = Column::numbers(&numbers);
    let cases: Vec<Case> = rivals
        .iter()
        .flat_map(|rival| threads.iter().map(move |&threads| (rival, threads)))
        .map(|(rival, threads)| Case::timed(rival, &workload, Capacity::All, threads))
        .collect();
    let measured = bench.measure(&cases)?;
    let table = |title: &str, unit, number: fn(&Measured) -> Option<f64>| Table {
        title: title.to_string(),
        unit,
        across: "threads",
        rows: rows(&rivals, &columns, &Published::NOTHING, &measured, number),
        columns: columns.clone(),
        drawn: Some(Scale::Log),
    };
    let contention = table(
        "Contention",
        "blocked acquisitions per million accesses",
        |measured| Some(measured.per_million(measured.stats.replacement.lock_blocked)),
    );
    let throughput = table("Throughput", "million accesses/s", millions);
    let mut relations = Vec::new();
    for (name, _) in POLICIES {
        let (wrapped, locked) = (format!("Bp{name}"), format!("mutex {name}"));
        let fewer = || {
            let (blocked, left) = (
                contention.ours(&locked, "32")?,
                contention.ours(&wrapped, "32")?,
            );
            // None at all in a million is fewer than one in all accesses of the run.
            Some(blocked / left.max(0.001))
        };
        let fewer = fewer().map(|ratio| (format!("{locked}/{wrapped}, 32"), ratio));
        relations.extend(Relation::of(
            "BP2",
            "contention falls 1,000-fold",
            fewer.into_iter().collect(),
            |ratio| ratio >= 1000.0,
        ));
        relations.extend(Relation::of(
            "BP3",
            "throughput is doubled",
            throughput.ratios(&wrapped, &locked, &["32"]),
            |ratio| ratio >= 2.0,
        ));
    }
    relations.extend(Relation::of(
        "BP3",
        "LIRS in BP-Wrapper does 0.85 times what Nb-GCLOCK does",
        throughput.ratios("BpLIRS", "Nb-GCLOCK", &["32"]),
        |ratio| ratio >= 0.85,
    ));
    relations.extend(super::threads::no_collapse(&throughput, "BpLRU"));
    Ok(Findings {
        tables: vec![contention, throughput],
        relations,
        ..Findings::default()
    })
}
