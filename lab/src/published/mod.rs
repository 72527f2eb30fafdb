//! Miss ratios that others published, against ours.
//!
//! # Protocol
//! `reference.csv`, beside the traces, has a row for each trace, size and policy of several simulators; [`table`] says
//! which of our policies each of them is, how close it must come, and adds rows from papers. Rows of one trace, size
//! and policy of ours form a [`Comparison`]: ours must lie between the lowest and the highest, or beside them by no
//! more than the tolerance. A policy that the catalogue does not have is left out.

pub mod table;

use std::path::{Path, PathBuf};

use longshore_policy::SpecError;
use longshore_policy::simulator::{Contender, Outcome};

use crate::error::LabError;
use crate::input::Input;
use crate::progress::Progress;
use crate::simulate::{self, Job};
use table::{Accepted, Match, Tolerance};

/// A miss ratio that somebody published.
#[derive(Clone, Debug)]
pub struct Row {
    /// Which trace.
    pub trace: String,
    /// Pages of the cache.
    pub size: u32,
    /// The policy, as it is called there.
    pub policy: String,
    /// Its parameters, as they are written there.
    pub params: String,
    /// Misses, where they are told.
    pub misses: Option<u64>,
    /// Misses in a request.
    pub miss_ratio: f64,
    /// Half a unit of the last digit of `miss_ratio`.
    pub rounding: f64,
    /// Whose program.
    pub simulator: String,
}

/// Ours beside theirs.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Which trace.
    pub trace: String,
    /// Pages of the cache.
    pub size: u32,
    /// Our policy.
    pub ours: &'static str,
    /// What we found.
    pub outcome: Outcome,
    /// What others did.
    pub rows: Vec<Row>,
    /// How close it must come.
    pub tolerance: Tolerance,
    /// Unless it is known why it does not.
    pub accepted: Option<&'static Accepted>,
}

impl Comparison {
    /// How far beside the rows we are, in points (a hundredth of all requests); 0 between the lowest and the highest.
    pub fn deviation(&self) -> f64 {
        let ours = self.outcome.miss_ratio();
        let below = self
            .rows
            .iter()
            .map(|row| row.miss_ratio - row.rounding - ours);
        let above = self
            .rows
            .iter()
            .map(|row| ours - row.miss_ratio - row.rounding);
        let (below, above) = (
            below.fold(f64::MAX, f64::min),
            above.fold(f64::MAX, f64::min),
        );
        100.0 * below.max(above).max(0.0)
    }

    /// Are we as close as we must be?
    pub fn holds(&self) -> bool {
        let accepted = self.accepted.map(|known| Tolerance::Points(known.points));
        self.comes_within(accepted.unwrap_or(self.tolerance))
    }

    /// Is the known difference gone?
    pub fn is_accepted_needlessly(&self) -> bool {
        self.accepted.is_some() && self.comes_within(self.tolerance)
    }

    fn comes_within(&self, tolerance: Tolerance) -> bool {
        match tolerance {
            Tolerance::Exact => self.rows.iter().all(|row| self.equals(row)),
            Tolerance::Points(points) => self.deviation() <= points,
        }
    }

    fn equals(&self, row: &Row) -> bool {
        match row.misses {
            Some(misses) => misses == self.outcome.misses,
            None => (row.miss_ratio - self.outcome.miss_ratio()).abs() <= row.rounding + 1e-9,
        }
    }
}

/// Where the traces are: `$LONGSHORE_TRACES`, or `../shared/traces` beside the checkout whose folder is `checkout`.
pub fn folder(checkout: &Path) -> Option<PathBuf> {
    let folder = match std::env::var_os("LONGSHORE_TRACES") {
        Some(folder) => PathBuf::from(folder),
        None => checkout.join("../shared/traces"),
    };
    folder.join("reference.csv").is_file().then_some(folder)
}

/// The rows of `reference.csv` in `folder`, and those of papers.
///
/// # Errors
/// It cannot be read.
pub fn rows(folder: &Path) -> Result<Vec<Row>, LabError> {
    let path = folder.join("reference.csv");
    let name = path.to_string_lossy().into_owned();
    let text = std::fs::read_to_string(&path).map_err(LabError::file("read", &name))?;
    let mut rows: Vec<Row> = Vec::new();
    for (at, line) in text.lines().enumerate().skip(1) {
        let row = parse(line);
        let bad = || LabError::Reference {
            path: name.clone(),
            line: at + 1,
        };
        rows.push(row.ok_or_else(bad)?);
    }
    rows.extend(table::from_papers());
    Ok(rows)
}

/// `trace,size,policy,params,requests,misses,miss_ratio,simulator`
fn parse(line: &str) -> Option<Row> {
    let columns: Vec<&str> = line.splitn(8, ',').map(str::trim).collect();
    let [trace, size, policy, params, _, misses, ratio, simulator] = columns[..] else {
        return None;
    };
    let digits = ratio.split_once('.').map_or(0, |(_, digits)| digits.len());
    Some(Row {
        trace: trace.to_string(),
        size: size.parse().ok()?,
        policy: policy.to_string(),
        params: params.to_string(),
        misses: if misses.is_empty() {
            None
        } else {
            Some(misses.parse().ok()?)
        },
        miss_ratio: ratio.parse().ok()?,
        rounding: 0.5 * 10f64.powi(-(digits as i32)),
        simulator: simulator.to_string(),
    })
}

/// The file of a trace in `folder`, whatever its format.
fn file_of(folder: &Path, trace: &str) -> Option<PathBuf> {
    const PLACES: [(&str, &str); 5] = [
        ("arc", "lis"),
        ("lirs", "txt"),
        ("cloudphysics", "u32be"),
        ("cloudphysics", "csv"),
        ("keys", "txt"),
    ];
    let places = PLACES.iter().chain(&[("cache2k", "u32be")]);
    let mut paths = places.map(|(place, end)| folder.join(place).join(format!("{trace}.{end}.gz")));
    paths.find(|path| path.is_file())
}

/// Compares with all `rows` of the traces that `is_wanted`, trace by trace; those that have no file are left out.
///
/// # Errors
/// A trace cannot be read; the table has a policy with parameters that there are not.
pub fn compare(
    folder: &Path,
    rows: &[Row],
    is_wanted: impl Fn(&str) -> bool,
    progress: &Progress,
) -> Result<Vec<Comparison>, LabError> {
    let mut traces: Vec<&str> = rows.iter().map(|row| row.trace.as_str()).collect();
    traces.sort_unstable();
    traces.dedup();
    let mut comparisons = Vec::new();
    for name in traces.into_iter().filter(|name| is_wanted(name)) {
        let Some(path) = file_of(folder, name) else {
            continue;
        };
        let trace = Input::of(&path.to_string_lossy()).load(progress)?;
        let planned = plan(name, rows)?;
        let jobs: Vec<Job<'_>> = planned
            .iter()
            .map(|(contender, compared)| Job {
                trace: &trace,
                contender,
                size: compared.size,
            })
            .collect();
        let outcomes = simulate::run(&jobs, progress)?;
        let compared = planned.into_iter().zip(outcomes);
        comparisons.extend(compared.map(|((_, compared), outcome)| Comparison {
            outcome,
            ..compared
        }));
    }
    Ok(comparisons)
}

/// What is to be run over one trace, the outcomes still missing.
fn plan(trace: &str, rows: &[Row]) -> Result<Vec<(Contender, Comparison)>, LabError> {
    let mut planned: Vec<(Contender, Comparison)> = Vec::new();
    for row in rows.iter().filter(|row| row.trace == trace) {
        let Some(Match {
            ours, tolerance, ..
        }) = table::ours(row)
        else {
            continue;
        };
        let contender = match ours.parse() {
            Ok(contender) => contender,
            Err(SpecError::UnknownPolicy { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        let same = |(_, other): &&mut (Contender, Comparison)| {
            other.ours == *ours && other.size == row.size
        };
        match planned.iter_mut().find(same) {
            Some((_, other)) => other.rows.push(row.clone()),
            None => planned.push((
                contender,
                Comparison {
                    trace: trace.to_string(),
                    size: row.size,
                    ours,
                    outcome: Outcome {
                        requests: 0,
                        misses: 0,
                    },
                    rows: vec![row.clone()],
                    tolerance: *tolerance,
                    accepted: table::accepted(row, ours),
                },
            )),
        }
    }
    Ok(planned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(ratios: &[&str], misses: u64, tolerance: Tolerance) -> Comparison {
        let row = |ratio: &&str| parse(&format!("T,9,LRU,,1000,,{ratio},me, myself")).unwrap();
        Comparison {
            trace: "T".to_string(),
            size: 9,
            ours: "lru",
            outcome: Outcome {
                requests: 1000,
                misses,
            },
            rows: ratios.iter().map(row).collect(),
            tolerance,
            accepted: None,
        }
    }

    #[test]
    fn rows_are_read_with_their_rounding() {
        let row = parse("OLTP,1000,2Q,in=20%;out=50%,914145,543916,0.595000,some, one").unwrap();
        assert_eq!(
            (row.size, row.misses, row.simulator.as_str()),
            (1000, Some(543_916), "some, one")
        );
        assert!((row.rounding - 5e-7).abs() < 1e-12);
        assert!(parse("OLTP,1000,2Q").is_none() && parse("OLTP,x,2Q,,1,,0.5,me").is_none());
    }

    #[test]
    fn exact_is_exact_but_for_rounding() {
        assert!(!comparison(&["0.5005", "0.501"], 501, Tolerance::Exact).holds());
        assert!(comparison(&["0.5010", "0.501"], 501, Tolerance::Exact).holds());
        let mut counted = comparison(&["0.501"], 501, Tolerance::Exact);
        counted.rows[0].misses = Some(502);
        assert!(!counted.holds());
    }

    #[test]
    fn between_the_rows_nothing_deviates() {
        let band = |misses| comparison(&["0.500", "0.520"], misses, Tolerance::Points(0.5));
        assert_eq!(band(510).deviation(), 0.0);
        assert!((band(530).deviation() - 0.95).abs() < 1e-9);
        assert!((band(490).deviation() - 0.95).abs() < 1e-9);
        assert!(band(525).holds() && band(495).holds() && !band(530).holds() && !band(490).holds());
    }
}
