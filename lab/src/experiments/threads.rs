//! Nb-GCLOCK, Fig. 10 and 12: throughput by threads, with all pages resident and with reads; two kinds of clock hand.

use longshore_pool::HandKind;
use plot::Scale;

use super::bench::{Bench, Capacity, Case, millions, rows};
use super::findings::{Column, Findings, Relation, Table};
use super::paper::{FIG10, FIG12_8192, FIG12_16384, Published};
use super::rival::Rival;
use crate::error::LabError;
use crate::report::count;

/// The paper's workload, one cycle of it: threads go round.
pub(super) const NBG: &str = "nbg:requests=1000000";
const THREADS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

/// The rivals, and Nb-GCLOCK with the paper's hand.
fn rivals() -> Vec<Rival> {
    let mut rivals = Rival::locked_and_native();
    rivals.push(Rival {
        hand: HandKind::Striped,
        ..Rival::new("Nb-GCLOCK (striped)", "nb-gclock")
    });
    rivals
}

/// Throughput by threads, at one capacity.
fn table(
    bench: &mut Bench<'_>,
    title: String,
    capacity: Capacity,
    published: &Published,
) -> Result<Table, LabError> {
    let threads = bench.series_of_threads(&THREADS);
    let workload = bench.workload(NBG);
    let rivals = rivals();
    let numbers: Vec<u64> = threads.iter().map(|&threads| threads as u64).collect();
    let columns = Column::numbers(&numbers);
    let cases: Vec<Case> = rivals
        .iter()
        .flat_map(|rival| threads.iter().map(move |&threads| (rival, threads)))
        .map(|(rival, threads)| Case::timed(rival, &workload, capacity, threads))
        .collect();
    let measured = bench.measure(&cases)?;
    Ok(Table {
        title,
        unit: "million accesses/s",
        across: "threads",
        rows: rows(&rivals, &columns, published, &measured, millions),
        columns,
        drawn: Some(Scale::Log),
    })
}

pub(super) fn resident(bench: &mut Bench<'_>) -> Result<Findings, LabError> {
    let table = table(
        bench,
        "All pages resident".to_string(),
        Capacity::All,
        &FIG10,
    )?;
    let native = "Nb-GCLOCK";
    let relations = [
        Relation::of(
            "A5",
            "resident, 8 threads: Nb-GCLOCK does 2.8 times what locked GCLOCK does",
            table.ratios(native, "GCLOCK", &["8"]),
            |ratio| ratio >= 2.8,
        ),
        Relation::of(
            "A5",
            "and 3.6 times what LRU and 2Q do",
            [
                table.ratios(native, "LRU", &["8"]),
                table.ratios(native, "2Q", &["8"]),
            ]
            .concat(),
            |ratio| ratio >= 3.6,
        ),
        Relation::of(
            "A6",
            "Nb-GCLOCK does 6 times as much with 64 threads as with 8 (on 64 cores)",
            growth(&table, native, "8", "64"),
            |ratio| ratio >= 6.0,
        ),
        no_collapse(&table, native),
    ];
    Ok(Findings {
        relations: relations.into_iter().flatten().collect(),
        tables: vec![table],
        ..Findings::default()
    })
}

pub(super) fn with_reads(bench: &mut Bench<'_>) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    for capacity in bench.capacities(&[8192, 16_384]) {
        let published = match capacity {
            8192 => &FIG12_8192,
            16_384 => &FIG12_16384,
            _ => &Published::NOTHING,
        };
        let title = format!("{} pages", count(capacity.into()));
        let table = table(bench, title, Capacity::Pages(capacity), published)?;
        let claim = "Nb-GCLOCK is ahead of the others under locks";
        let others = ["LRU", "2Q", "GCLOCK"];
        let ratios = others
            .map(|other| table.ratios("Nb-GCLOCK", other, &[]))
            .concat();
        let ahead = Relation::of("Fig. 12", claim, ratios, |ratio| ratio > 1.0);
        findings.relations.extend(ahead);
        findings.relations.extend(no_collapse(&table, "Nb-GCLOCK"));
        findings.tables.push(table);
    }
    Ok(findings)
}

/// By how much a rival does more with so many threads than with others.
fn growth(table: &Table, rival: &str, from: &str, to: &str) -> Vec<(String, f64)> {
    let ratio = || Some(table.ours(rival, to)? / table.ours(rival, from)?);
    let told = |ratio| (format!("{rival}, {to} threads against {from}"), ratio);
    ratio().map(told).into_iter().collect()
}

/// That more threads than cores do not make it slow.
pub(super) fn no_collapse(table: &Table, rival: &str) -> Option<Relation> {
    Relation::of(
        "A8",
        "no collapse: 32 threads do at least 0.6 times what 2 do",
        growth(table, rival, "2", "32"),
        |ratio| ratio >= 0.6,
    )
}
