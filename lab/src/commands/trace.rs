//! `longshore lab trace`: policies × sizes over a trace.

use std::io::Write;

use clap::Args;
use longshore_policy::Trace;
use longshore_policy::simulator::Outcome;
use plot::{Axis, Chart, Figure, Line, Panel, STYLES_MAX, Scale};
use serde_json::{Value, json};

use crate::contenders::{self, Named};
use crate::error::LabError;
use crate::input::Input;
use crate::progress::Progress;
use crate::report::{Form, Output, count, rounded, short, table};
use crate::simulate;
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

/// Simulates and prints.
///
/// # Errors
/// The settings make no sense, the trace cannot be read, or the answer not be written.
pub fn run(settings: &Settings, out: &mut impl Write) -> Result<(), LabError> {
    let mut policies = contenders::parse(settings.policies.as_deref())?;
    let draws = !settings.output.figure.is_empty();
    if draws && policies.len() > STYLES_MAX {
        let what = format!(
            "--figure: a picture shows up to {STYLES_MAX} policies; choose with --policies"
        );
        return Err(LabError::Usage(what));
    }
    let shown = policies.len();
    // The picture has the bound, asked for or not.
    if draws && policies.iter().all(|policy| policy.text != BOUND) {
        policies.push(Named::parse(BOUND)?);
    }
    settings.output.prepare()?;
    let progress = Progress::new(!settings.output.quiet);
    let trace = settings.input.load(&progress)?;
    let sizes = sizes::resolve(&settings.sizes, trace.pages().len());
    let curves = simulate::curves(&trace, &policies, &sizes, &progress)?;
    let simulated = Simulated {
        name: settings.input.name(),
        trace: &trace,
        sizes: &sizes,
        curves: policies.iter().zip(curves).collect(),
    };
    let rows = simulated.rows(shown);
    match settings.output.form() {
        Form::Table => simulated.table(shown, out)?,
        Form::Json => rows
            .iter()
            .try_for_each(|row| writeln!(out, "{}", object(row)))?,
        Form::Csv => csv(&rows, out)?,
    }
    settings.output.draw(|| simulated.figure())
}

/// OPT, by its name.
const BOUND: &str = "opt";

/// What came of a trace.
struct Simulated<'a> {
    name: String,
    trace: &'a Trace,
    sizes: &'a [u32],
    /// Each policy's outcomes, size by size.
    curves: Vec<(&'a Named, Vec<Outcome>)>,
}

/// A policy, a size, and what came of them.
type Row<'a> = (&'a Named, u32, Outcome);

impl Simulated<'_> {
    /// Of the first `shown` policies.
    fn rows(&self, shown: usize) -> Vec<Row<'_>> {
        let curves = self.curves[..shown].iter();
        let rows = curves.flat_map(|(policy, outcomes)| {
            let sizes = self.sizes.iter().zip(outcomes);
            sizes.map(|(&size, &outcome)| (*policy, size, outcome))
        });
        rows.collect()
    }

    /// The first `shown` policies, a line each.
    fn table(&self, shown: usize, out: &mut impl Write) -> Result<(), LabError> {
        let (name, what) = (&self.name, self.what());
        writeln!(
            out,
            "{name}: {what}; hits in 100 requests, by pages of the cache\n"
        )?;
        let sizes = self.sizes.iter().map(|&size| count(size.into()));
        let mut lines = vec![line("", sizes)];
        for (policy, outcomes) in &self.curves[..shown] {
            let hits = outcomes
                .iter()
                .map(|outcome| format!("{:.2}", outcome.hit_percent()));
            lines.push(line(&policy.text, hits));
        }
        table(out, &lines)
    }

    fn figure(&self) -> Figure {
        let points = |outcomes: &[Outcome]| -> Vec<(f64, f64)> {
            let points = self.sizes.iter().zip(outcomes);
            points
                .map(|(&size, outcome)| (f64::from(size), outcome.hit_percent()))
                .collect()
        };
        let curves = self.curves.iter();
        let lines = curves.map(|(policy, outcomes)| match policy.text.as_str() {
            BOUND => Line::reference(BOUND, points(outcomes)),
            text => Line::new(text, points(outcomes)),
        });
        Figure {
            title: format!("Hit ratio against size: {}", short(&self.name)),
            panels: vec![Panel {
                title: String::new(),
                x: Axis::new("size of the cache, pages", Scale::Log),
                y: Axis::new("hit ratio, %", Scale::Linear).from(0.0),
                chart: Chart::Lines(lines.collect()),
            }],
            caption: vec![format!(
                "{}; cold cache, every request counts. opt knows the future.",
                self.what()
            )],
        }
    }

    fn what(&self) -> String {
        let (requests, distinct) = (self.trace.refs().len(), self.trace.pages().len());
        let (requests, distinct) = (count(requests as u64), count(distinct as u64));
        format!("{requests} requests of {distinct} pages")
    }
}

fn line(first: &str, others: impl Iterator<Item = String>) -> Vec<String> {
    std::iter::once(first.to_string()).chain(others).collect()
}

fn object(&(policy, size, outcome): &Row<'_>) -> Value {
    json!({
        "policy": policy.text,
        "size": size,
        "requests": outcome.requests,
        "misses": outcome.misses,
    })
}

fn csv(rows: &[Row<'_>], out: &mut impl Write) -> Result<(), LabError> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(["policy", "size", "requests", "misses", "miss_ratio"])?;
    for (policy, size, outcome) in rows {
        writer.write_record([
            policy.text.clone(),
            size.to_string(),
            outcome.requests.to_string(),
            outcome.misses.to_string(),
            rounded(outcome.miss_ratio(), 6).to_string(),
        ])?;
    }
    writer.flush()?;
    Ok(())
}
