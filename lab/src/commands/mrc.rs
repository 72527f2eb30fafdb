//! `longshore lab mrc`: the miss ratio at each size, exactly and from samples.

use std::io::Write;

use clap::Args;
use longshore_policy::Trace;
use plot::{Axis, Chart, Figure, Line, Panel, STYLES_MAX, Scale};
use serde_json::json;

use crate::contenders::{self, Named};
use crate::curve::estimate::{self, Estimated};
use crate::curve::sample::{SAMPLES, SIZE_MIN, Samples, rate_for};
use crate::error::LabError;
use crate::input::Input;
use crate::progress::Progress;
use crate::report::{Form, Output, count, rounded, short, table};
use crate::simulate;
use crate::sizes::{self, Size};

/// What `mrc` is told.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
LRU's curve is found exactly, in one pass. Samples are small parts of the pages with all their references, run in caches
that are scaled down alike; there are eight of them, which share no page. The estimate is their mean, its error the
standard error of that mean: two times out of three the truth lies within it. --exact runs the whole trace, too, and tells
how far off the estimates were.

Examples:
  longshore lab mrc OLTP.lis.gz
  longshore lab mrc w106.u32be.gz --policies lru,arc,lirs --rate 0.001 --figure w106.png
  longshore lab mrc db4m --policies lru,gclock:cap=3 --exact --json")]
pub struct Settings {
    /// Which trace
    #[command(flatten)]
    pub input: Input,
    /// Policies with their parameters, separated by commas
    #[arg(long, value_name = "POLICY,...", default_value = "lru")]
    pub policies: String,
    /// Sizes in pages, or in parts of the trace's distinct pages (5%) [default: ten from 0.5% to 80%]
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',')]
    pub sizes: Vec<Size>,
    /// Part of the pages that is in each of the eight samples, at most 0.125
    #[arg(long, value_name = "PART", conflicts_with = "sample_pages")]
    pub rate: Option<f64>,
    /// The same as a number of pages
    #[arg(long, value_name = "PAGES", default_value_t = 4096)]
    pub sample_pages: u32,
    /// Run the whole trace through every policy, and compare
    #[arg(long)]
    pub exact: bool,
    /// How the answer is given
    #[command(flatten)]
    pub output: Output,
}

/// A policy's miss ratios, size by size.
struct Curve<'a> {
    policy: &'a Named,
    estimated: Vec<Estimated>,
    exact: Option<Vec<f64>>,
}

impl Curve<'_> {
    /// How far the estimates are off: the mean over all sizes, and the most.
    fn off(&self) -> Option<(f64, f64)> {
        let exact = self.exact.as_ref()?;
        let pairs = self.estimated.iter().zip(exact);
        let off: Vec<f64> = pairs
            .map(|(estimated, exact)| (estimated.miss_ratio.mean - exact).abs())
            .collect();
        Some((
            off.iter().sum::<f64>() / off.len() as f64,
            off.iter().copied().fold(0.0, f64::max),
        ))
    }
}

/// Samples and prints.
///
/// # Errors
/// The settings make no sense, the trace cannot be read, or the answer not be written.
pub fn run(settings: &Settings, out: &mut impl Write) -> Result<(), LabError> {
    let policies = contenders::parse(Some(&settings.policies))?;
    check(settings, &policies)?;
    settings.output.prepare()?;
    let progress = Progress::new(!settings.output.quiet);
    let trace = settings.input.load(&progress)?;
    let distinct = trace.pages().len();
    let sizes = sizes::resolve(&settings.sizes, distinct);
    let rate = settings
        .rate
        .unwrap_or_else(|| rate_for(settings.sample_pages, distinct));
    let samples = Samples::of(&trace, rate);
    let estimated = estimate::all(&samples, &policies, &sizes, &progress)?;
    let curves: Vec<Curve<'_>> = policies
        .iter()
        .zip(estimated)
        .map(|(policy, estimated)| {
            let exact = exact(settings, policy, &trace, &sizes, &progress)?;
            Ok(Curve {
                policy,
                estimated,
                exact,
            })
        })
        .collect::<Result<_, LabError>>()?;
    progress.finish();
    let shown = Shown {
        settings,
        trace: &trace,
        sizes: &sizes,
        samples: &samples,
        curves: &curves,
    };
    shown.print(out)?;
    settings.output.draw(|| shown.figure())
}

fn check(settings: &Settings, policies: &[Named]) -> Result<(), LabError> {
    if let Some(rate) = settings.rate
        && !(rate > 0.0 && rate <= 1.0 / SAMPLES as f64)
    {
        return Err(LabError::Usage(format!(
            "--rate {rate}: must be above 0 and at most 0.125"
        )));
    }
    if settings.sample_pages == 0 {
        return Err(LabError::Usage(
            "--sample-pages 0: a sample has at least one page".to_string(),
        ));
    }
    if !settings.output.figure.is_empty() && policies.len() * 2 > STYLES_MAX {
        let what = format!(
            "--figure: a picture shows up to {} policies",
            STYLES_MAX / 2
        );
        return Err(LabError::Usage(what));
    }
    Ok(())
}

/// Miss ratios over the whole trace: LRU's cost one pass, those of others are found where they are asked for.
fn exact(
    settings: &Settings,
    policy: &Named,
    trace: &Trace,
    sizes: &[u32],
    progress: &Progress,
) -> Result<Option<Vec<f64>>, LabError> {
    if policy.text == "lru" {
        let curve = estimate::lru_curve(trace, progress);
        let requests = curve.requests() as f64;
        return Ok(Some(
            sizes
                .iter()
                .map(|&size| curve.misses(size) as f64 / requests)
                .collect(),
        ));
    }
    if !settings.exact {
        return Ok(None);
    }
    let policy = std::slice::from_ref(policy);
    let curves = simulate::curves(trace, policy, sizes, progress)?;
    let ratios = curves[0].iter().map(|outcome| outcome.miss_ratio());
    Ok(Some(ratios.collect()))
}

/// What is shown, in whichever form.
struct Shown<'a> {
    settings: &'a Settings,
    trace: &'a Trace,
    sizes: &'a [u32],
    samples: &'a Samples,
    curves: &'a [Curve<'a>],
}

impl Shown<'_> {
    fn print(&self, out: &mut impl Write) -> Result<(), LabError> {
        match self.settings.output.form() {
            Form::Table => self.table(out),
            Form::Json => self.json(out),
            Form::Csv => self.csv(out),
        }
    }

    fn json(&self, out: &mut impl Write) -> Result<(), LabError> {
        for curve in self.curves {
            for (at, &size) in self.sizes.iter().enumerate() {
                let estimated = curve.estimated[at];
                let line = json!({
                    "trace": self.settings.input.name(),
                    "policy": curve.policy.text,
                    "params": curve.policy.params(),
                    "size": size,
                    "requests": self.trace.refs().len(),
                    "miss_ratio": rounded(estimated.miss_ratio.mean, 6),
                    "error": rounded(estimated.miss_ratio.error, 6),
                    "exact": curve.exact.as_ref().map(|exact| rounded(exact[at], 6)),
                    "rate": self.samples.rate,
                    "sample_size": estimated.size,
                });
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }

    fn csv(&self, out: &mut impl Write) -> Result<(), LabError> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(["policy", "size", "miss_ratio", "error", "exact"])?;
        for curve in self.curves {
            for (at, size) in self.sizes.iter().enumerate() {
                let estimated = curve.estimated[at].miss_ratio;
                let exact = curve
                    .exact
                    .as_ref()
                    .map(|exact| rounded(exact[at], 6).to_string());
                let numbers =
                    [estimated.mean, estimated.error].map(|number| rounded(number, 6).to_string());
                let [mean, error] = numbers;
                let exact = exact.unwrap_or_default();
                writer.write_record([
                    curve.policy.text.clone(),
                    size.to_string(),
                    mean,
                    error,
                    exact,
                ])?;
            }
        }
        writer.flush()?;
        Ok(())
    }

    fn table(&self, out: &mut impl Write) -> Result<(), LabError> {
        writeln!(
            out,
            "{}: {}\nMisses in 100 requests, by pages of the cache; ± is the standard error\n",
            self.settings.input.name(),
            self.how()
        )?;
        let mut head = vec!["pages".to_string()];
        let mut lines: Vec<Vec<String>> = self
            .sizes
            .iter()
            .map(|&size| vec![count(size.into())])
            .collect();
        for curve in self.curves {
            head.push(curve.policy.text.clone());
            head.push("±".to_string());
            if curve.exact.is_some() {
                head.push("exact".to_string());
            }
            for (at, line) in lines.iter_mut().enumerate() {
                let estimated = curve.estimated[at].miss_ratio;
                line.push(format!("{:.2}", 100.0 * estimated.mean));
                line.push(format!("{:.2}", 100.0 * estimated.error));
                line.extend(
                    curve
                        .exact
                        .as_ref()
                        .map(|exact| format!("{:.2}", 100.0 * exact[at])),
                );
            }
        }
        lines.insert(0, head);
        table(out, &lines)?;
        for curve in self.curves {
            if let Some((mean, most)) = curve.off() {
                let name = &curve.policy.text;
                writeln!(
                    out,
                    "\n{name}: estimates are off by {:.2} points in the mean, {:.2} at most",
                    100.0 * mean,
                    100.0 * most
                )?;
            }
        }
        self.warn(out)
    }

    /// Says where the estimates are worth little.
    fn warn(&self, out: &mut impl Write) -> Result<(), LabError> {
        let least = (f64::from(SIZE_MIN) / self.samples.rate).ceil() as u32;
        if self.sizes[0] < least {
            let least = count(least.into());
            writeln!(
                out,
                "\nA cache below {least} pages is less than {SIZE_MIN} in a sample, whose answer is worth little: \
                 take more with --rate or --sample-pages"
            )?;
        }
        Ok(())
    }

    fn how(&self) -> String {
        let (requests, distinct) = (
            self.trace.refs().len() as u64,
            self.trace.pages().len() as u64,
        );
        let (requests, distinct) = (count(requests), count(distinct));
        let rate = 100.0 * self.samples.rate;
        format!(
            "{requests} requests of {distinct} pages; {SAMPLES} samples of {rate:.3} % of the pages each"
        )
    }

    fn figure(&self) -> Figure {
        let mut lines = Vec::new();
        for curve in self.curves {
            let points = |value: &dyn Fn(usize) -> f64| -> Vec<(f64, f64)> {
                let sizes = self.sizes.iter().enumerate();
                sizes
                    .map(|(at, &size)| (f64::from(size), 100.0 * value(at)))
                    .collect()
            };
            let name = &curve.policy.text;
            lines.push(Line::new(
                format!("{name}, sampled"),
                points(&|at| curve.estimated[at].miss_ratio.mean),
            ));
            if let Some(exact) = &curve.exact {
                lines.push(Line::new(
                    format!("{name}, exactly"),
                    points(&|at| exact[at]),
                ));
            }
        }
        Figure {
            title: format!(
                "Miss ratio against size: {}",
                short(&self.settings.input.name())
            ),
            panels: vec![Panel {
                title: String::new(),
                x: Axis::new("size of the cache, pages", Scale::Log),
                y: Axis::new("miss ratio, %", Scale::Linear)
                    .from(0.0)
                    .to(100.0),
                chart: Chart::Lines(lines),
            }],
            caption: vec![self.how()],
        }
    }
}
