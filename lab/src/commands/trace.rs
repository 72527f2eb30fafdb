//! `longshore lab trace`: policies × sizes over a trace.

use std::io::Write;

use clap::Args;
use longshore_policy::Trace;
use longshore_policy::simulator::Outcome;
use plot::{Axis, Chart, Figure, Line, Panel, STYLES_MAX, Scale};
use serde_json::json;

use crate::contenders::{self, Named};
use crate::error::LabError;
use crate::input::Input;
use crate::progress::Progress;
use crate::report::{Output, count, rounded, short, table};
use crate::simulate::{self, Job};
use crate::sizes::{self, Size};

/// What `trace` is told.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
The cache is cold at first, every reference counts, a page is a unit. OPT knows the future: no policy can do better.

Examples:
  longshore lab trace OLTP.lis.gz --policies lru,arc,2q:in=25%,out=50% --sizes 1000,2000,5000
  longshore lab trace nbg:alpha=0.5 --sizes 8%,16%,33% --json
  longshore lab trace multi1.txt.gz --figure multi1.svg")]
pub struct Settings {
    /// Which trace
    #[command(flatten)]
    pub input: Input,
    /// Policies with their parameters, separated by commas; see `longshore lab list` [default: all]
    #[arg(long, value_name = "POLICY,...")]
    pub policies: Option<String>,
    /// Sizes in pages, or in parts of the trace's distinct pages (5%) [default: ten from 0.5% to 80%]
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',')]
    pub sizes: Vec<Size>,
    /// How the answer is given
    #[command(flatten)]
    pub output: Output,
}

/// A policy, and what came of it at each size.
struct Curve<'a> {
    policy: &'a Named,
    outcomes: &'a [Outcome],
}

/// Simulates and prints.
///
/// # Errors
/// The settings make no sense, the trace cannot be read, or the answer not be written.
pub fn run(settings: &Settings, out: &mut impl Write) -> Result<(), LabError> {
    let policies = contenders::parse(settings.policies.as_deref())?;
    let bound = Named::parse("opt")?;
    let draws = !settings.output.figure.is_empty();
    if draws && policies.len() > STYLES_MAX {
        let what = format!(
            "--figure: a picture shows up to {STYLES_MAX} policies; choose with --policies"
        );
        return Err(LabError::Usage(what));
    }
    settings.output.prepare()?;
    let progress = Progress::new(!settings.output.quiet);
    let trace = settings.input.load(&progress)?;
    let sizes = sizes::resolve(&settings.sizes, trace.pages().len());
    // The picture shows the bound, asked for or not.
    let has_bound = policies.iter().any(|policy| policy.text == bound.text);
    let hidden = (draws && !has_bound).then_some(&bound);
    let all: Vec<&Named> = policies.iter().chain(hidden).collect();
    let jobs: Vec<Job<'_>> = all
        .iter()
        .flat_map(|policy| sizes.iter().map(|&size| (&policy.contender, size)))
        .map(|(contender, size)| Job {
            trace: &trace,
            contender,
            size,
        })
        .collect();
    let outcomes = simulate::run(&jobs, &progress)?;
    let curves: Vec<Curve<'_>> = all
        .iter()
        .zip(outcomes.chunks(sizes.len()))
        .map(|(&policy, outcomes)| Curve { policy, outcomes })
        .collect();
    print(settings, &trace, &sizes, &curves[..policies.len()], out)?;
    let name = settings.input.name();
    settings
        .output
        .draw(|| figure(&name, &trace, &sizes, &curves))
}

fn print(
    settings: &Settings,
    trace: &Trace,
    sizes: &[u32],
    curves: &[Curve<'_>],
    out: &mut impl Write,
) -> Result<(), LabError> {
    let rows = || {
        let row = |curve: &Curve<'_>| {
            let policy = curve.policy.clone();
            let outcomes = curve.outcomes.to_vec();
            sizes
                .iter()
                .copied()
                .zip(outcomes)
                .map(move |(size, outcome)| (policy.clone(), size, outcome))
        };
        curves.iter().flat_map(row)
    };
    if settings.output.json {
        for (policy, size, outcome) in rows() {
            let line = json!({
                "trace": settings.input.name(),
                "policy": policy.text,
                "params": policy.params(),
                "size": size,
                "requests": outcome.requests,
                "misses": outcome.misses,
                "distinct": trace.pages().len(),
            });
            writeln!(out, "{line}")?;
        }
        return Ok(());
    }
    if settings.output.csv {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(["policy", "size", "requests", "misses", "miss_ratio"])?;
        for (policy, size, outcome) in rows() {
            let ratio = rounded(outcome.miss_ratio(), 6).to_string();
            let numbers = [u64::from(size), outcome.requests, outcome.misses]
                .map(|number| number.to_string());
            let [size, requests, misses] = numbers;
            writer.write_record([policy.text, size, requests, misses, ratio])?;
        }
        writer.flush()?;
        return Ok(());
    }
    let (requests, distinct) = (trace.refs().len() as u64, trace.pages().len() as u64);
    let (requests, distinct) = (count(requests), count(distinct));
    let name = settings.input.name();
    writeln!(
        out,
        "{name}: {requests} requests of {distinct} pages; hits in 100 requests, by pages of the cache\n"
    )?;
    let head = std::iter::once(String::new()).chain(sizes.iter().map(|&size| count(size.into())));
    let mut lines = vec![head.collect::<Vec<_>>()];
    for curve in curves {
        let hits = curve
            .outcomes
            .iter()
            .map(|outcome| format!("{:.2}", outcome.hit_percent()));
        lines.push(
            std::iter::once(curve.policy.text.clone())
                .chain(hits)
                .collect(),
        );
    }
    table(out, &lines)
}

fn figure(name: &str, trace: &Trace, sizes: &[u32], curves: &[Curve<'_>]) -> Figure {
    let line = |curve: &Curve<'_>| {
        let points = sizes.iter().zip(curve.outcomes);
        let points = points.map(|(&size, outcome)| (f64::from(size), outcome.hit_percent()));
        match curve.policy.text.as_str() {
            "opt" => Line::reference("opt", points),
            text => Line::new(text, points),
        }
    };
    // The bound is the topmost line; let it be the first in the legend, too.
    let (bound, others): (Vec<_>, Vec<_>) =
        curves.iter().partition(|curve| curve.policy.text == "opt");
    let lines = bound.into_iter().chain(others).map(line).collect();
    let (requests, distinct) = (trace.refs().len() as u64, trace.pages().len() as u64);
    Figure {
        title: format!("Hit ratio against size: {}", short(name)),
        panels: vec![Panel {
            title: String::new(),
            x: Axis::new("size of the cache, pages", Scale::Log),
            y: Axis::new("hit ratio, %", Scale::Linear).from(0.0),
            chart: Chart::Lines(lines),
        }],
        caption: vec![format!(
            "{} requests of {} pages; cold cache, every request counts. opt knows the future.",
            count(requests),
            count(distinct)
        )],
    }
}
