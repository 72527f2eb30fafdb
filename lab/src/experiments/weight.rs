//! Nb-GCLOCK, Fig. 13: the weight cap, and the pool laid out; 8 threads, all pages resident.
//!
//! Our weights end at 15, so that is what stands for the paper's weights without a bound. Our frames' headers always lie
//! on lines of their own, which is what the paper calls laid out: what we measure with a cap of 3 stands there.

use plot::Scale;

use super::bench::{Bench, Capacity, Case, millions, rows};
use super::findings::{Column, Findings, Relation, Row, Table};
use super::paper::FIG13;
use super::rival::Rival;
use crate::error::LabError;

const THREADS: usize = 8;
const HERE: &str = "here";
const MACHINES: [&str; 3] = [HERE, "Xeon E5420", "Opteron 880"];
/// As in `crates/pool`.
const WEIGHT_MAX: u8 = 15;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<Findings, LabError> {
    let threads = bench.threads(THREADS)?;
    let workload = bench.workload(super::threads::NBG);
    let mut rivals = Rival::locked_and_native();
    rivals[3].weight_max = WEIGHT_MAX;
    rivals.push(Rival::new("Nb-GCLOCK3 (laid out)", "nb-gclock"));
    let case = |rival| Case::timed(rival, &workload, Capacity::All, threads);
    let cases: Vec<Case> = rivals.iter().map(case).collect();
    let measured = bench.measure(&cases)?;
    let columns = Column::kinds(MACHINES);
    let mut rows = rows(&rivals, &columns[..1], &FIG13, &measured, millions);
    rows.insert(
        4,
        Row {
            name: "Nb-GCLOCK3".to_string(),
            ours: vec![None],
            paper: Vec::new(),
        },
    );
    for row in &mut rows {
        row.ours.resize(MACHINES.len(), None);
        row.paper = FIG13.row(&row.name, &columns);
    }
    let table = Table {
        title: format!("{threads} threads, all pages resident"),
        unit: "million accesses/s",
        across: "machine",
        columns,
        rows,
        drawn: Some(Scale::Linear),
    };
    let native = "Nb-GCLOCK3 (laid out)";
    let others = [
        table.ratios(native, "LRU", &[HERE]),
        table.ratios(native, "2Q", &[HERE]),
    ];
    let relations = [
        Relation::of(
            "A5",
            "resident, 8 threads: Nb-GCLOCK does 2.8 times what locked GCLOCK does",
            table.ratios(native, "GCLOCK", &[HERE]),
            |ratio| ratio >= 2.8,
        ),
        Relation::of(
            "A5",
            "and 3.6 times what LRU and 2Q do",
            others.concat(),
            |ratio| ratio >= 3.6,
        ),
        Relation::of(
            "Fig. 13",
            "a weight cap of 3 is no slower than one of 15",
            table.ratios(native, "Nb-GCLOCK", &[HERE]),
            |ratio| ratio >= 0.97,
        ),
    ];
    Ok(Findings {
        relations: relations.into_iter().flatten().collect(),
        tables: vec![table],
        ..Findings::default()
    })
}
