//! The papers' experiments on replacement, on the real pool: ours beside the paper's values.
//!
//! # Protocol
//! An experiment is a function of a [`Bench`], which runs cases in interleaved rounds and gives the median of each; it
//! returns [`Findings`]: tables with a column for each setting and a row for each rival, and relations that should hold
//! between them. `present` prints them in any form, and draws each table as the paper does. What the papers found is in
//! `paper`, and nowhere else.

mod batching;
mod bench;
mod blocking;
mod fill;
mod findings;
mod hit_ratio;
mod paper;
mod present;
mod rival;
mod threads;
mod throughput;
mod weight;

pub use bench::{Bench, Plan};
pub use fill::fill;
pub use findings::{Findings, Relation, Row, Table};
pub use present::{figure, markdown, objects, print};

use crate::error::LabError;

/// What is told about an experiment.
pub struct About {
    /// As on the command line.
    pub name: &'static str,
    /// The paper, and its figure.
    pub source: &'static str,
    /// What it asks.
    pub asks: &'static str,
    run: fn(&mut Bench<'_>) -> Result<Findings, LabError>,
}

/// All experiments.
pub static EXPERIMENTS: &[About] = &[
    About {
        name: "nbg-fig7",
        source: "Nb-GCLOCK, Fig. 7",
        asks: "hit ratio by capacity, simulated and live",
        run: hit_ratio::run,
    },
    About {
        name: "nbg-fig8",
        source: "Nb-GCLOCK, Fig. 8",
        asks: "throughput by hit ratio",
        run: throughput::run,
    },
    About {
        name: "nbg-fig9",
        source: "Nb-GCLOCK, Fig. 9 and Table III",
        asks: "blocking and optimistic reads: throughput, redundant reads, processor time",
        run: blocking::run,
    },
    About {
        name: "nbg-fig10",
        source: "Nb-GCLOCK, Fig. 10",
        asks: "throughput by threads, all pages resident",
        run: threads::resident,
    },
    About {
        name: "nbg-fig12",
        source: "Nb-GCLOCK, Fig. 12",
        asks: "throughput by threads, with reads",
        run: threads::with_reads,
    },
    About {
        name: "nbg-fig13",
        source: "Nb-GCLOCK, Fig. 13",
        asks: "weight cap, pool laid out",
        run: weight::run,
    },
    About {
        name: "bpw-lock",
        source: "BP-Wrapper, lock time by batch size",
        asks: "time of acquiring and holding the lock, and acquisitions, per access",
        run: batching::by_batch,
    },
    About {
        name: "bpw-threads",
        source: "BP-Wrapper, contention and throughput",
        asks: "blocked acquisitions per million accesses, and throughput, by threads",
        run: batching::by_threads,
    },
];

impl About {
    /// The experiment of this name.
    pub fn of(name: &str) -> Option<&'static About> {
        EXPERIMENTS.iter().find(|about| about.name == name)
    }

    /// Runs it.
    ///
    /// # Errors
    /// A setting that it cannot have; a pool that does not serve.
    pub fn run(&self, bench: &mut Bench<'_>) -> Result<Findings, LabError> {
        bench.begin(self.name);
        let mut findings = (self.run)(bench)?;
        findings.conditions = bench.conditions();
        Ok(findings)
    }
}
