//! Nb-GCLOCK, Fig. 9 and Table III: what it costs that threads wait for reads.
//!
//! Three ways to read. *One at a time*: as `seek` and `read` of one open file must, the paper's blocking I/O. *One
//! loads*: many read at once, but never the same page; who wants that waits. *Optimistic*: who misses reads, and the
//! first wins, the paper's non-blocking I/O.

use longshore_pool::MissMode;
use plot::Scale;

use super::bench::{Bench, Capacity, Case, millions, rows};
use super::findings::{Column, Findings, Relation, Table};
use super::paper::{FIG9_BLOCKING, FIG9_OPTIMISTIC, Published, TABLE3_PROCESSOR, TABLE3_READS};
use super::rival::Rival;
use crate::error::LabError;
use crate::live::{Measured, Reads};

const CAPACITIES: [u32; 4] = [4096, 8192, 16_384, 32_768];
const THREADS: usize = 64;

/// A way to read: what it is called, and what the paper says of it.
struct Way {
    title: &'static str,
    reads: Reads,
    miss: MissMode,
    published: &'static Published,
}

const WAYS: [Way; 3] = [
    Way {
        title: "One at a time",
        reads: Reads::OneAtATime,
        miss: MissMode::OneLoads,
        published: &FIG9_BLOCKING,
    },
    Way {
        title: "One loads, others wait",
        reads: Reads::AsTheyCome,
        miss: MissMode::OneLoads,
        published: &Published::NOTHING,
    },
    Way {
        title: "Optimistic",
        reads: Reads::AsTheyCome,
        miss: MissMode::Optimistic,
        published: &FIG9_OPTIMISTIC,
    },
];

pub(super) fn run(bench: &mut Bench<'_>) -> Result<Findings, LabError> {
    let threads = bench.threads(THREADS)?;
    let capacities = bench.capacities(&CAPACITIES);
    let workload = bench.workload(super::threads::NBG);
    let columns = Column::numbers(&capacities);
    let rivals = Rival::locked_and_native();
    let case = |rival: &Rival, capacity: u32, way: &Way| Case {
        reads: way.reads,
        miss: way.miss,
        ..Case::timed(rival, &workload, Capacity::Pages(capacity), threads)
    };
    let mut cases = Vec::new();
    for way in &WAYS {
        for rival in &rivals {
            cases.extend(
                capacities
                    .iter()
                    .map(|&capacity| case(rival, capacity, way)),
            );
        }
    }
    let measured = bench.measure(&cases)?;
    let ways: Vec<&[Measured]> = measured.chunks(rivals.len() * columns.len()).collect();
    let table = |title: &str,
                 unit,
                 published: &Published,
                 measured: &[Measured],
                 drawn,
                 number: fn(&Measured) -> Option<f64>| Table {
        title: title.to_string(),
        unit,
        across: "capacity, pages",
        rows: rows(&rivals, &columns, published, measured, number),
        columns: columns.clone(),
        drawn,
    };
    let mut tables: Vec<Table> = WAYS
        .iter()
        .zip(&ways)
        .map(|(way, measured)| {
            table(
                way.title,
                "million accesses/s",
                way.published,
                measured,
                Some(Scale::Log),
                millions,
            )
        })
        .collect();
    let in_vain = |measured: &Measured| Some(measured.percent(measured.stats.loads_lost));
    let optimistic = ways[2];
    tables.push(table(
        "Optimistic: pages read in vain",
        "in 100 accesses",
        &TABLE3_READS,
        optimistic,
        None,
        in_vain,
    ));
    tables.push(table(
        "Optimistic: processor time",
        "% of all cores",
        &TABLE3_PROCESSOR,
        optimistic,
        None,
        Measured::processor_percent,
    ));
    tables.push(table(
        "One loads: waits for a page that another thread reads",
        "in 100 accesses",
        &Published::NOTHING,
        ways[1],
        None,
        |measured| Some(measured.percent(measured.stats.load_waits)),
    ));
    let relations = relations(&tables);
    Ok(Findings {
        tables,
        relations,
        ..Findings::default()
    })
}

fn relations(tables: &[Table]) -> Vec<Relation> {
    let of_native = |table: &Table, wanted: &[&str]| {
        let numbers = wanted
            .iter()
            .filter_map(|label| Some((format!("at {label}"), table.ours("Nb-GCLOCK", label)?)));
        numbers.collect::<Vec<_>>()
    };
    let gain = |label: &str| {
        let optimistic = tables[2].ours("Nb-GCLOCK", label)?;
        let blocking = tables[0].ours("Nb-GCLOCK", label)?;
        Some((format!("at {label}"), optimistic / blocking))
    };
    let labels = tables[0].columns.iter();
    let gains = labels.filter_map(|column| gain(&column.label)).collect();
    let relations = [
        Relation::of(
            "A7",
            "at 4,096 pages Nb-GCLOCK reads at most 1.7 % of pages in vain",
            of_native(&tables[3], &["4,096"]),
            |percent| percent <= 1.7,
        ),
        Relation::of(
            "A7",
            "from 8,192 pages on at most 0.1 %",
            of_native(&tables[3], &["8,192", "16,384", "32,768"]),
            |percent| percent <= 0.1,
        ),
        Relation::of(
            "Fig. 9",
            "Nb-GCLOCK is faster with optimistic reads than with one at a time",
            gains,
            |ratio| ratio > 1.0,
        ),
    ];
    relations.into_iter().flatten().collect()
}
