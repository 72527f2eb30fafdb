//! `longshore lab check`: our miss ratios against those that others published.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::error::LabError;
use crate::progress::Progress;
use crate::published::table::Tolerance;
use crate::published::{self, Comparison};
use crate::report::{count, rounded, table};

/// What `check` is told.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
DIR holds reference.csv, with the columns trace, cache_size_pages, policy, params, requests, misses, miss_ratio,
simulator, and the traces in folders arc, lirs, cloudphysics, cache2k and keys. Rows of policies that there are not here
are left out. Ends with exit code 1 when a row differs by more than it may.

Examples:
  longshore lab check ../shared/traces
  longshore lab check ../shared/traces --traces OLTP,multi1 --json")]
pub struct Settings {
    /// Directory of the traces and of reference.csv
    pub dir: PathBuf,
    /// Only these traces
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub traces: Vec<String>,
    /// Print JSON, an object for each comparison
    #[arg(long)]
    pub json: bool,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

/// Compares and prints.
///
/// # Errors
/// The files cannot be read; a row differs by more than it may.
pub fn run(settings: &Settings, out: &mut impl Write) -> Result<(), LabError> {
    let rows = published::rows(&settings.dir)?;
    let progress = Progress::new(!settings.quiet);
    let is_wanted = |trace: &str| {
        settings.traces.is_empty() || settings.traces.iter().any(|name| name == trace)
    };
    let comparisons = published::compare(&settings.dir, &rows, is_wanted, &progress)?;
    match settings.json {
        true => comparisons.iter().try_for_each(|comparison| {
            writeln!(out, "{}", object(comparison)).map_err(LabError::from)
        })?,
        false => print(&comparisons, out)?,
    }
    let deviations = comparisons
        .iter()
        .filter(|comparison| !comparison.holds())
        .count();
    match deviations {
        0 => Ok(()),
        deviations => Err(LabError::Deviates {
            deviations,
            rows: comparisons.len(),
        }),
    }
}

fn object(comparison: &Comparison) -> serde_json::Value {
    let theirs = comparison.rows.iter().map(|row| {
        json!({ "policy": row.policy, "params": row.params, "misses": row.misses, "miss_ratio": row.miss_ratio,
                "simulator": row.simulator })
    });
    json!({
        "trace": comparison.trace,
        "policy": comparison.ours,
        "size": comparison.size,
        "requests": comparison.outcome.requests,
        "misses": comparison.outcome.misses,
        "deviation_points": rounded(comparison.deviation(), 4),
        "holds": comparison.holds(),
        "others": theirs.collect::<Vec<_>>(),
    })
}

/// Prints a line for each policy, then one for each row that differs by more than it may.
///
/// # Errors
/// The output cannot be written.
pub fn print(comparisons: &[Comparison], out: &mut impl Write) -> Result<(), LabError> {
    let mut policies: Vec<&str> = Vec::new();
    for comparison in comparisons {
        if !policies.contains(&comparison.ours) {
            policies.push(comparison.ours);
        }
    }
    let head = [
        "policy",
        "rows",
        "mean deviation",
        "greatest",
        "allowed",
        "beyond",
    ];
    let mut lines = vec![head.map(str::to_string).to_vec()];
    for policy in policies {
        let of_it: Vec<&Comparison> = comparisons
            .iter()
            .filter(|comparison| comparison.ours == policy)
            .collect();
        let deviations = of_it.iter().map(|comparison| comparison.deviation());
        let (sum, greatest) =
            deviations.fold((0.0, 0f64), |(sum, max), each| (sum + each, max.max(each)));
        let beyond = of_it
            .iter()
            .filter(|comparison| !comparison.holds())
            .count();
        lines.push(vec![
            policy.to_string(),
            of_it.len().to_string(),
            format!("{:.3}", sum / of_it.len() as f64),
            format!("{greatest:.3}"),
            allowed(of_it[0].tolerance),
            beyond.to_string(),
        ]);
    }
    writeln!(
        out,
        "Deviations in points: hundredths of all requests, beside the lowest and the highest of others\n"
    )?;
    table(out, &lines)?;
    for comparison in comparisons.iter().filter(|comparison| !comparison.holds()) {
        let (trace, policy, size) = (
            &comparison.trace,
            comparison.ours,
            count(comparison.size.into()),
        );
        let ours = comparison.outcome.miss_ratio();
        write!(
            out,
            "\n{trace}, {policy}, {size} pages: ours {ours:.6} ({} misses); others",
            comparison.outcome.misses
        )?;
        for row in &comparison.rows {
            let (ratio, by) = (
                row.miss_ratio,
                row.simulator.split(' ').next().unwrap_or_default(),
            );
            write!(out, " {ratio} ({by})")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn allowed(tolerance: Tolerance) -> String {
    match tolerance {
        Tolerance::Exact => "none".to_string(),
        Tolerance::Points(points) => points.to_string(),
    }
}
