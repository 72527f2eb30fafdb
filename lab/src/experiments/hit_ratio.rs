//! Nb-GCLOCK, Fig. 7: hit ratio by capacity.
//!
//! The simulator takes the 64 streams in turn; one thread of the live run does the same, so that it must come to the
//! same; 64 threads take them as the system lets them run.

use plot::Scale;

use super::bench::{Bench, Capacity, Case, rows};
use super::findings::{Column, Findings, Relation, Row, Table};
use super::paper::{FIG7, LRU_ON_NBG, Published};
use super::rival::{NATIVE, Rival, TWO_QUEUES};
use crate::error::LabError;
use crate::live::Measured;

const CAPACITIES: [u32; 4] = [4096, 8192, 16_384, 32_768];
const THREADS: usize = 64;
const ONE: &str = "one thread";

pub(super) fn run(bench: &mut Bench<'_>) -> Result<Findings, LabError> {
    let capacities = bench.capacities(&CAPACITIES);
    let columns = Column::numbers(&capacities);
    let workload = bench.workload(match bench.is_quick() {
        true => "nbg:requests=1000000",
        false => "nbg",
    });
    let threads = bench.threads(THREADS)?;
    let rivals = Rival::locked_and_native();
    let simulated = bench.simulate(
        &workload,
        &["lru", TWO_QUEUES, "gclock", NATIVE],
        &capacities,
    )?;
    let simulated_rows = rivals.iter().zip(&simulated).map(|(rival, hits)| Row {
        name: rival.name.clone(),
        ours: hits.iter().copied().map(Some).collect(),
        paper: Published::NOTHING.row(&rival.name, &columns),
    });
    let table = |title: String, rows| Table {
        title,
        unit: "hits in 100 accesses",
        across: "capacity, pages",
        columns: columns.clone(),
        rows,
        drawn: Some(Scale::Linear),
    };
    let mut tables = vec![table("Simulated".to_string(), simulated_rows.collect())];
    for (threads, published) in [(1, &Published::NOTHING), (threads, &FIG7)] {
        let cases: Vec<Case> = rivals
            .iter()
            .flat_map(|rival| capacities.iter().map(move |&capacity| (rival, capacity)))
            .map(|(rival, capacity)| Case {
                once: true,
                ..Case::timed(rival, &workload, Capacity::Pages(capacity), threads)
            })
            .collect();
        let measured = bench.measure(&cases)?;
        let hits = |measured: &Measured| Some(measured.hit_percent());
        let live = rows(&rivals, &columns, published, &measured, hits);
        let threads = match threads {
            1 => ONE.to_string(),
            threads => format!("{threads} threads"),
        };
        let mut live = table(format!("Live, {threads}"), live);
        live.drawn = live.drawn.filter(|_| threads != ONE);
        tables.push(live);
    }
    let mut relations = between(&tables, bench);
    if !bench.has_own_workload() {
        relations.extend(with_scans(bench, &capacities)?);
    }
    Ok(Findings {
        tables,
        relations,
        ..Findings::default()
    })
}

fn between(tables: &[Table], bench: &Bench<'_>) -> Vec<Relation> {
    let [simulated, one, many] = tables else {
        return Vec::new();
    };
    let points = |one: (&Table, &str), other: (&Table, &str), wanted: &[&str]| {
        let labels = one.0.columns.iter().map(|column| column.label.as_str());
        let labels = labels.filter(|label| wanted.is_empty() || wanted.contains(label));
        let difference =
            |label: &str| Some(one.0.ours(one.1, label)? - other.0.ours(other.1, label)?);
        labels
            .filter_map(|label| Some((label.to_string(), difference(label)?)))
            .collect::<Vec<_>>()
    };
    let (lru, two_queues, gclock, native) = ("LRU", "2Q", "GCLOCK", "Nb-GCLOCK");
    let mut relations = Vec::new();
    if !bench.has_own_workload() {
        // Of a short run more is each page's first reference, which the known values do not have.
        if !bench.is_quick() {
            let known = ["4,096", "8,192", "16,384", "32,768"]
                .into_iter()
                .zip(LRU_ON_NBG);
            let differences = known.filter_map(|(label, known)| {
                Some((label.to_string(), simulated.ours(lru, label)? - known))
            });
            relations.push(Relation::of(
                "A1",
                "simulated LRU is within 0.5 points of 50.98, 61.88, 74.80, 89.86",
                differences.collect(),
                |points| points.abs() <= 0.5,
            ));
        }
        let gain = |label, least: f64| {
            Relation::of(
                "A2",
                format!("2Q is ahead of LRU by {least} points"),
                points((simulated, two_queues), (simulated, lru), &[label]),
                move |points| points >= least,
            )
        };
        relations.extend([gain("4,096", 4.0), gain("8,192", 3.0), gain("16,384", 1.0)]);
        relations.push(Relation::of(
            "A2",
            "at 32,768 2Q and LRU are within 2.5 points",
            points((simulated, two_queues), (simulated, lru), &["32,768"]),
            |points| points.abs() <= 2.5,
        ));
        relations.push(Relation::of(
            "A2",
            "at 32,768 GCLOCK is ahead of 2Q",
            points((simulated, gclock), (simulated, two_queues), &["32,768"]),
            |points| points > 0.0,
        ));
    }
    relations.push(Relation::of(
        "A3",
        "one thread of Nb-GCLOCK hits as sequential GCLOCK does, to 0.05 points",
        points((one, native), (simulated, native), &[]),
        |points| points.abs() <= 0.05,
    ));
    relations.push(Relation::of(
        "A3",
        "many threads of Nb-GCLOCK hit as sequential GCLOCK does, to 1 point",
        points((many, native), (simulated, native), &[]),
        |points| points.abs() <= 1.0,
    ));
    relations.push(Relation::of(
        "A4",
        "a weight of at most 3 costs at most 1 point",
        points((simulated, gclock), (simulated, native), &[]),
        |points| points <= 1.0,
    ));
    relations.into_iter().flatten().collect()
}

/// The order of policies where there are scans.
fn with_scans(bench: &mut Bench<'_>, capacities: &[u32]) -> Result<Vec<Relation>, LabError> {
    let workload = match bench.is_quick() {
        true => "nbg-scan:requests=1000000",
        false => "nbg-scan",
    };
    let small = capacities
        .iter()
        .copied()
        .filter(|&capacity| capacity <= 8192);
    let small: Vec<u32> = small.collect();
    if small.is_empty() {
        return Ok(Vec::new());
    }
    let hits = bench.simulate(workload, &["lru", "gclock", TWO_QUEUES], &small)?;
    let ahead = |one: usize, other: usize| {
        let each = hits[one].iter().zip(&hits[other]).zip(&small);
        each.map(|((one, other), size)| (format!("at {size}"), one - other))
            .collect()
    };
    let relations = [
        Relation::of(
            "A4b",
            "with scans 2Q is ahead of GCLOCK",
            ahead(2, 1),
            |points| points > 0.0,
        ),
        Relation::of(
            "A4b",
            "with scans GCLOCK is ahead of LRU",
            ahead(1, 0),
            |points| points > 0.0,
        ),
    ];
    Ok(relations.into_iter().flatten().collect())
}
