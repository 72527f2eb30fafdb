//! Nb-GCLOCK, Fig. 8: throughput by hit ratio, which capacity and skew determine. All read optimistically, outside of
//! locks: the paper's BP-Wrapper read under its lock, which is what its figure shows of it.

use plot::Scale;

use super::bench::{Bench, Capacity, Case, millions, rows};
use super::findings::{Column, Findings, Relation, Table};
use super::paper::{FIG8, FIG8_SETTINGS, Published};
use super::rival::{Rival, TWO_QUEUES};
use crate::error::LabError;
use crate::live::Measured;

const THREADS: usize = 64;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<Findings, LabError> {
    let threads = bench.threads(THREADS)?;
    let settings = settings(bench);
    let columns = Column::kinds(settings.iter().map(|(label, ..)| label.as_str()));
    let mut rivals = Rival::locked_and_native();
    rivals.insert(2, Rival::new("BpLRU", "bp-wrapper/lru"));
    rivals.insert(3, Rival::new("Bp2Q", &format!("bp-wrapper/{TWO_QUEUES}")));
    let cases: Vec<Case> = rivals
        .iter()
        .flat_map(|rival| settings.iter().map(move |setting| (rival, setting)))
        .map(|(rival, (_, capacity, workload))| {
            Case::timed(rival, workload, Capacity::Pages(*capacity), threads)
        })
        .collect();
    let measured = bench.measure(&cases)?;
    let throughput = Table {
        title: format!("Throughput, {threads} threads, optimistic reads"),
        unit: "million accesses/s",
        across: "capacity, pages (0.5: exponent of Zipf's law, else 0.86)",
        rows: rows(&rivals, &columns, &FIG8, &measured, millions),
        columns: columns.clone(),
        drawn: Some(Scale::Linear),
    };
    let hits = |measured: &Measured| Some(measured.hit_percent());
    let hits = Table {
        title: "Hit ratio meanwhile".to_string(),
        unit: "hits in 100 accesses",
        across: throughput.across,
        rows: rows(&rivals, &columns, &Published::NOTHING, &measured, hits),
        columns,
        drawn: None,
    };
    let at_least = |claim: &str, other: &str, wanted: &[&str], least: f64| {
        let ratios = throughput.ratios("Nb-GCLOCK", other, wanted);
        Relation::of("A5", claim, ratios, move |ratio| ratio >= least)
    };
    let relations = [
        at_least("Nb-GCLOCK is ahead of LRU everywhere", "LRU", &[], 1.0),
        at_least("Nb-GCLOCK is ahead of 2Q everywhere", "2Q", &[], 1.0),
        at_least(
            "Nb-GCLOCK does 2.0 times what locked GCLOCK does (on 8 cores or more)",
            "GCLOCK",
            &[],
            2.0,
        ),
        at_least(
            "Nb-GCLOCK does 2.1 times what LRU does at 4,096 (on 8 cores or more)",
            "LRU",
            &["4,096"],
            2.1,
        ),
        at_least(
            "Nb-GCLOCK does 5 times what LRU does at 32,768 (on 8 cores or more)",
            "LRU",
            &["32,768"],
            5.0,
        ),
    ];
    Ok(Findings {
        tables: vec![throughput, hits],
        relations: relations.into_iter().flatten().collect(),
        ..Findings::default()
    })
}

/// Label, capacity and workload of each setting.
fn settings(bench: &Bench<'_>) -> Vec<(String, u32, String)> {
    if bench.has_own_workload() || bench.has_own_capacities() {
        let capacities = bench.capacities(&[4096, 8192, 16_384, 32_768]);
        let workload = bench.workload(super::threads::NBG);
        let labels = Column::numbers(&capacities)
            .into_iter()
            .map(|column| column.label);
        return labels
            .zip(capacities)
            .map(|(label, capacity)| (label, capacity, workload.clone()))
            .collect();
    }
    let workload = |alpha| match alpha {
        "0.86" => super::threads::NBG.to_string(),
        alpha => format!("nbg:alpha={alpha},requests=1000000"),
    };
    FIG8_SETTINGS
        .into_iter()
        .map(|(label, capacity, alpha)| (label.to_string(), capacity, workload(alpha)))
        .collect()
}
