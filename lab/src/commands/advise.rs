//! `longshore lab advise`: a trace in, policy and size out, with the reason.

use std::io::Write;

use clap::Args;
use longshore_policy::Trace;
use plot::{Axis, Chart, Figure, Line, Panel, STYLES_MAX, Scale};
use serde_json::{Value, json};

use crate::advice::{Advice, Finding, GAIN_MIN, LOSS_MAX, ladder};
use crate::bytes::{in_words, parse_bytes};
use crate::contenders::{self, NATIVE, Named};
use crate::curve::estimate;
use crate::curve::sample::{Estimate, SAMPLES, Samples, rate_for};
use crate::error::LabError;
use crate::input::Input;
use crate::live;
use crate::progress::Progress;
use crate::report::{Form, Output, count, rounded, short, table};
use crate::simulate;

/// Pages of a sample.
const SAMPLE_PAGES: u32 = 8192;
/// So many simulated requests take seconds: the whole trace is run.
const REQUESTS_FULL: u64 = 200_000_000;

/// What `advise` is told.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Nb-GCLOCK, which the pool has of its own, is `gclock:cap=3` to the simulator; as it takes no lock on a hit, another policy is
advised only if it is ahead by half a point and by twice the error. The size is the smallest that loses less than a point
against all of the memory; --pool-bytes is never below what the pool needs to work at all. Long traces are sampled; --exact runs all of them.

Examples:
  longshore lab advise OLTP.lis.gz --memory 64M
  longshore lab advise w106.u32be.gz --memory 256M --page-size 4K --figure w106.svg
  longshore lab advise db.pages --memory 1G --policies lru,arc,lirs --json")]
pub struct Settings {
    /// Which trace
    #[command(flatten)]
    pub input: Input,
    /// Memory that the pool may have
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub memory: u64,
    /// Size of a page
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, default_value = "8K")]
    pub page_size: u64,
    /// Policies to choose from, besides Nb-GCLOCK and LRU [default: all]
    #[arg(long, value_name = "POLICY,...")]
    pub policies: Option<String>,
    /// Run the whole trace, however long it is
    #[arg(long)]
    pub exact: bool,
    /// How the answer is given
    #[command(flatten)]
    pub output: Output,
}

/// Finds out and prints.
///
/// # Errors
/// The settings make no sense, the trace cannot be read, or the answer not be written.
pub fn run(settings: &Settings, out: &mut impl Write) -> Result<(), LabError> {
    let policies = candidates(settings)?;
    let pages = pages(settings)?;
    settings.output.prepare()?;
    let progress = Progress::new(!settings.output.quiet);
    let trace = settings.input.load(&progress)?;
    let sizes = ladder(pages, trace.pages().len() as u32);
    let studied = study(settings, &trace, &policies, sizes, pages, &progress)?;
    match settings.output.form() {
        Form::Table => studied.text(out)?,
        Form::Json => writeln!(out, "{}", studied.json())?,
        Form::Csv => studied.csv(out)?,
    }
    settings.output.draw(|| studied.figure())
}

/// Nb-GCLOCK, LRU and OPT first, then all others.
fn candidates(settings: &Settings) -> Result<Vec<Named>, LabError> {
    let mut all = contenders::parse(Some(&format!("{NATIVE},lru,opt")))?;
    let others = contenders::parse(settings.policies.as_deref())?;
    all.extend(
        others
            .into_iter()
            .filter(|other| !matches!(other.text.as_str(), NATIVE | "lru" | "opt")),
    );
    Ok(all)
}

const AT_NATIVE: usize = 0;
const AT_LRU: usize = 1;
const AT_OPT: usize = 2;

fn pages(settings: &Settings) -> Result<u32, LabError> {
    if settings.page_size == 0 {
        return Err(LabError::Usage(
            "--page-size 0: a page has at least one byte".to_string(),
        ));
    }
    match settings.memory / settings.page_size {
        0 => Err(LabError::Usage(
            "--memory: not even one page fits".to_string(),
        )),
        pages => Ok(u32::try_from(pages).unwrap_or(u32::MAX)),
    }
}

fn study<'a>(
    settings: &'a Settings,
    trace: &'a Trace,
    policies: &'a [Named],
    sizes: Vec<u32>,
    pages: u32,
    progress: &Progress,
) -> Result<Studied<'a>, LabError> {
    let requests = trace.refs().len() as u64 * (policies.len() * sizes.len()) as u64;
    let rate = rate_for(SAMPLE_PAGES, trace.pages().len());
    let in_full = settings.exact || requests <= REQUESTS_FULL || rate * SAMPLES as f64 >= 1.0;
    let (sizes, findings) = match in_full {
        true => {
            let findings = run_all(trace, policies, &sizes, progress)?;
            (sizes, findings)
        }
        false => sample_all(&Samples::of(trace, rate), policies, sizes, pages, progress)?,
    };
    let top = sizes.iter().rposition(|&size| size <= pages).unwrap_or(0);
    // OPT is told, and cannot be advised.
    let mut live = findings.clone();
    live.remove(AT_OPT);
    let mut advice = Advice::of(&live, &sizes, top, AT_NATIVE);
    for at in advice.peers.iter_mut().chain([&mut advice.policy]) {
        *at += usize::from(*at >= AT_OPT);
    }
    let mut studied = Studied {
        settings,
        trace,
        sizes,
        findings,
        advice,
        pool_bytes_min: 0,
        rate: (!in_full).then_some(rate),
    };
    studied.pool_bytes_min = live::bytes_min(studied.replacement(), settings.page_size)?;
    Ok(studied)
}

fn run_all(
    trace: &Trace,
    policies: &[Named],
    sizes: &[u32],
    progress: &Progress,
) -> Result<Vec<Finding>, LabError> {
    let curves = simulate::curves(trace, policies, sizes, progress)?;
    let curves = policies.iter().zip(curves);
    let findings = curves.map(|(policy, outcomes)| Finding {
        policy: policy.text.clone(),
        hits: outcomes
            .iter()
            .map(|outcome| vec![outcome.hit_percent()])
            .collect(),
    });
    Ok(findings.collect())
}

/// Sizes of which the samples say little are left out, but the greatest allowed.
fn sample_all(
    samples: &Samples,
    policies: &[Named],
    mut sizes: Vec<u32>,
    pages: u32,
    progress: &Progress,
) -> Result<(Vec<u32>, Vec<Finding>), LabError> {
    let top = sizes.iter().copied().filter(|&size| size <= pages).max();
    sizes.retain(|&size| Some(size) == top || !estimate::is_too_small(samples, size));
    let estimated = estimate::all(samples, policies, &sizes, progress)?;
    let curves = policies.iter().zip(estimated);
    let findings = curves.map(|(policy, curve)| Finding {
        policy: policy.text.clone(),
        hits: curve
            .iter()
            .map(|at| at.ratios.map(|ratio| 100.0 * (1.0 - ratio)).to_vec())
            .collect(),
    });
    Ok((sizes, findings.collect()))
}

/// What was found, to be told in one form or another.
struct Studied<'a> {
    settings: &'a Settings,
    trace: &'a Trace,
    sizes: Vec<u32>,
    findings: Vec<Finding>,
    advice: Advice,
    /// The least with which a pool of the advised policy can be made.
    pool_bytes_min: u64,
    /// Part of the pages in a sample; `None`: the whole trace was run.
    rate: Option<f64>,
}

impl Studied<'_> {
    fn chosen(&self) -> &Finding {
        &self.findings[self.advice.policy]
    }

    fn bytes(&self, at: usize) -> u64 {
        u64::from(self.sizes[at]) * self.settings.page_size
    }

    /// Memory for the advised size, and for a pool to be made at all.
    fn pool_bytes(&self) -> u64 {
        self.bytes(self.advice.size).max(self.pool_bytes_min)
    }

    /// As `--replacement` wants it.
    fn replacement(&self) -> &str {
        match self.advice.policy {
            AT_NATIVE => "nb-gclock",
            _ => &self.chosen().policy,
        }
    }

    fn first_uses(&self) -> f64 {
        100.0 * self.trace.pages().len() as f64 / self.trace.refs().len() as f64
    }

    fn text(&self, out: &mut impl Write) -> Result<(), LabError> {
        let Advice { size, top, .. } = self.advice;
        let (requests, distinct) = (
            self.trace.refs().len() as u64,
            self.trace.pages().len() as u64,
        );
        let name = self.settings.input.name();
        writeln!(
            out,
            "{name}: {} requests of {} pages",
            count(requests),
            count(distinct)
        )?;
        writeln!(
            out,
            "\nTake {} with {} pages ({}): {:.1} of 100 requests hit.",
            self.replacement(),
            count(self.sizes[size].into()),
            in_words(self.bytes(size)),
            self.chosen().at(size).mean
        )?;
        writeln!(
            out,
            "  --replacement {} --pool-bytes {}",
            self.replacement(),
            self.pool_bytes()
        )?;
        if self.pool_bytes() > self.bytes(size) {
            writeln!(out, "{}", self.why_more())?;
        }
        writeln!(
            out,
            "\nWhy this policy: hits in 100 requests with {} pages",
            count(self.sizes[top].into())
        )?;
        self.policies(out)?;
        writeln!(out, "{}", self.why_policy())?;
        writeln!(out, "\nWhy this size: hits in 100 requests")?;
        self.curve(out)?;
        writeln!(out, "{}", self.why_size())?;
        writeln!(out, "\nHow sure: {}", self.how_sure())?;
        Ok(())
    }

    /// From the best to the worst, the bound at the top.
    fn order(&self) -> Vec<usize> {
        let top = self.advice.top;
        let mut order: Vec<usize> = (0..self.findings.len())
            .filter(|&at| at != AT_OPT)
            .collect();
        order.sort_by(|&a, &b| {
            self.findings[b]
                .at(top)
                .mean
                .total_cmp(&self.findings[a].at(top).mean)
        });
        order.insert(0, AT_OPT);
        order
    }

    fn policies(&self, out: &mut impl Write) -> Result<(), LabError> {
        let head = ["  policy", "hits", "over nb-gclock", "over lru"];
        let mut lines = vec![head.map(str::to_string).to_vec()];
        for at in self.order() {
            let finding = &self.findings[at];
            let over = |other: usize| {
                self.in_points(finding.ahead_of(&self.findings[other], self.advice.top))
            };
            let name = match at {
                AT_NATIVE => format!("  nb-gclock ({NATIVE})"),
                AT_OPT => "  opt (the bound)".to_string(),
                _ => format!("  {}", finding.policy),
            };
            let hits = format!("{:.2}", finding.at(self.advice.top).mean);
            lines.push(vec![name, hits, over(AT_NATIVE), over(AT_LRU)]);
        }
        table(out, &lines)
    }

    fn in_points(&self, difference: Estimate) -> String {
        match self.rate {
            None => format!("{:+.2}", difference.mean),
            Some(_) => format!("{:+.2} ± {:.2}", difference.mean, difference.error),
        }
    }

    fn why_policy(&self) -> String {
        let peers = self
            .advice
            .peers
            .iter()
            .filter(|&&at| at != self.advice.policy);
        let peers: Vec<&str> = peers.map(|&at| self.findings[at].policy.as_str()).collect();
        match self.advice.policy {
            AT_NATIVE => format!(
                "Nothing is ahead of nb-gclock by {GAIN_MIN} points and by twice the error; it takes no lock on a hit."
            ),
            _ if peers.is_empty() => format!("{} is ahead of all others.", self.chosen().policy),
            _ => format!(
                "As good at this size, but not at all smaller ones: {}.",
                peers.join(", ")
            ),
        }
    }

    fn curve(&self, out: &mut impl Write) -> Result<(), LabError> {
        let head = ["  pages", "memory", self.replacement(), "lru", "opt", ""];
        let mut lines = vec![head.map(str::to_string).to_vec()];
        for (at, &size) in self.sizes.iter().enumerate() {
            let hits = |finding: &Finding| format!("{:.2}", finding.at(at).mean);
            let (lru, opt) = (hits(&self.findings[AT_LRU]), hits(&self.findings[AT_OPT]));
            let pages = format!("  {}", count(size.into()));
            lines.push(vec![
                pages,
                in_words(self.bytes(at)),
                hits(self.chosen()),
                lru,
                opt,
                self.mark(at),
            ]);
        }
        table(out, &lines)
    }

    fn mark(&self, at: usize) -> String {
        let marks = [
            (at == self.advice.size, "advised"),
            (at == self.advice.knee, "knee"),
            (at == self.advice.top, "all of the memory"),
            (at > self.advice.top, "twice as much"),
        ];
        let marks = marks
            .into_iter()
            .filter(|(holds, _)| *holds)
            .map(|(_, word)| word);
        marks.collect::<Vec<_>>().join(", ")
    }

    fn why_size(&self) -> String {
        let Advice {
            size, top, knee, ..
        } = self.advice;
        let hits = |at: usize| self.chosen().at(at).mean;
        let knee = format!(
            "Up to {} pages memory brings more than in the mean, above that less.",
            count(self.sizes[knee].into())
        );
        let why = match size == top {
            true => format!("Any size below all of the memory costs more than {LOSS_MAX} point."),
            false => format!(
                "All of the memory would bring {:.2} points more.",
                hits(top) - hits(size)
            ),
        };
        let all = self.trace.pages().len() as u32 <= self.sizes[top];
        let more = if all { " All pages fit." } else { "" };
        format!("{knee} {why}{more}")
    }

    fn why_more(&self) -> String {
        format!(
            "The pool needs {} to work at all, more than {} pages take.",
            in_words(self.pool_bytes_min),
            count(self.sizes[self.advice.size].into())
        )
    }

    fn how_sure(&self) -> String {
        let how = match self.rate {
            None => "the whole trace was run".to_string(),
            Some(rate) => format!(
                "{SAMPLES} samples of {:.2} % of the pages each were run; ± is the standard error, \
                 sample by sample for differences; --exact runs all",
                100.0 * rate
            ),
        };
        format!(
            "{how}. It holds for what the trace shows: {:.1} of 100 requests are the first of their page, which no \
             cache hits.",
            self.first_uses()
        )
    }

    fn json(&self) -> Value {
        let Advice {
            size, top, knee, ..
        } = self.advice;
        let told = |estimate: Estimate| json!({ "mean": rounded(estimate.mean, 4), "error": rounded(estimate.error, 4) });
        let policies = self.order().into_iter().map(|at| {
            let finding = &self.findings[at];
            json!({
                "policy": finding.policy,
                "hit_percent": told(finding.at(top)),
                "over_nb_gclock": told(finding.ahead_of(&self.findings[AT_NATIVE], top)),
                "over_lru": told(finding.ahead_of(&self.findings[AT_LRU], top)),
            })
        });
        let sizes = self.sizes.iter().enumerate().map(|(at, &pages)| {
            json!({
                "size": pages,
                "bytes": self.bytes(at),
                "hit_percent": told(self.chosen().at(at)),
                "lru": told(self.findings[AT_LRU].at(at)),
                "opt": told(self.findings[AT_OPT].at(at)),
            })
        });
        json!({
            "trace": self.settings.input.name(),
            "requests": self.trace.refs().len(),
            "distinct": self.trace.pages().len(),
            "first_use_percent": rounded(self.first_uses(), 4),
            "replacement": self.replacement(),
            "policy": self.chosen().policy,
            "size": self.sizes[size],
            "pool_bytes": self.pool_bytes(),
            "pool_bytes_min": self.pool_bytes_min,
            "hit_percent": told(self.chosen().at(size)),
            "knee": self.sizes[knee],
            "size_max": self.sizes[top],
            "as_good": self.advice.peers.iter().map(|&at| &self.findings[at].policy).collect::<Vec<_>>(),
            "rate": self.rate,
            "policies": policies.collect::<Vec<_>>(),
            "sizes": sizes.collect::<Vec<_>>(),
            "why": [self.why_policy(), self.why_size(), self.how_sure()],
        })
    }

    fn csv(&self, out: &mut impl Write) -> Result<(), LabError> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(["policy", "size", "hit_percent", "error"])?;
        for finding in &self.findings {
            for (at, size) in self.sizes.iter().enumerate() {
                let Estimate { mean, error } = finding.at(at);
                let numbers = [mean, error].map(|number| rounded(number, 4).to_string());
                let [mean, error] = numbers;
                writer.write_record([finding.policy.clone(), size.to_string(), mean, error])?;
            }
        }
        writer.flush()?;
        Ok(())
    }

    /// The best policies, Nb-GCLOCK, LRU, and the bound.
    fn figure(&self) -> Figure {
        let order = self.order();
        let few = order
            .iter()
            .copied()
            .filter(|&at| at > AT_OPT)
            .take(STYLES_MAX / 3);
        let shown: Vec<usize> = [AT_OPT, AT_NATIVE, AT_LRU].into_iter().chain(few).collect();
        let lines = shown.into_iter().map(|which| {
            let finding = &self.findings[which];
            let points = self.sizes.iter().enumerate();
            let points = points.map(|(at, &size)| (f64::from(size), finding.at(at).mean.max(0.0)));
            match which {
                AT_OPT => Line::reference("opt", points),
                AT_NATIVE => Line::new("nb-gclock", points),
                _ => Line::new(&finding.policy, points),
            }
        });
        Figure {
            title: format!(
                "Hit ratio against size: {}",
                short(&self.settings.input.name())
            ),
            panels: vec![Panel {
                title: String::new(),
                x: Axis::new("size of the pool, pages", Scale::Log),
                y: Axis::new("hit ratio, %", Scale::Linear).from(0.0),
                chart: Chart::Lines(lines.collect()),
            }],
            caption: vec![format!(
                "Advised: {} with {} pages. {}",
                self.replacement(),
                count(self.sizes[self.advice.size].into()),
                self.why_size()
            )],
        }
    }
}
