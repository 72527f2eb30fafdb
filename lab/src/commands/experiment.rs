//! `longshore lab experiment`: the papers' experiments, ours beside the papers' values.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::replay::{seconds, threads};
use crate::error::LabError;
use crate::experiments::{
    About, Bench, EXPERIMENTS, Findings, Plan, figure, fill, markdown, objects, print,
};
use crate::live::FRAMES_ENOUGH;
use crate::progress::Progress;
use crate::report::Output;

/// What `experiment` is told.
#[derive(Clone, Debug, Args)]
#[command(after_help = after_help())]
pub struct Settings {
    /// Which one; `all`: one after the other
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(names()))]
    pub name: String,
    /// Numbers of threads [default: the paper's; where they vary, from 1 on]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = threads)]
    pub threads: Vec<usize>,
    /// Length of each run; the Nb-GCLOCK paper's is 60
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub seconds: Option<f64>,
    /// Runs of each case, interleaved with those of others; the median counts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Sizes of the pool in pages, at least 24 [default: the paper's]
    #[arg(long, value_name = "PAGES,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(i64::from(FRAMES_ENOUGH)..))]
    pub capacity: Vec<u32>,
    /// A workload or the file of a trace [default: what the paper's authors really ran]
    #[arg(long, value_name = "FILE|WORKLOAD")]
    pub workload: Option<String>,
    /// A small run, for a look: 0.2 s, one round, 2 to 32 threads
    #[arg(long)]
    pub quick: bool,
    /// Folder for the data file, which needs 400 MB [default: memory]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Print JSON, an object for each number and each relation
    #[arg(long)]
    pub json: bool,
    /// Draw the paper's figure, too: FILE.svg or FILE.png; may be given twice
    #[arg(long, value_name = "FILE")]
    pub figure: Vec<PathBuf>,
    /// Draw it as DIR/NAME.svg
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
    /// Put the tables into a document, between its marks <!-- begin NAME --> and <!-- end NAME -->
    #[arg(long, value_name = "FILE")]
    pub fill: Option<PathBuf>,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

const ALL: &str = "all";
const SECONDS: f64 = 2.0;
const ROUNDS: u32 = 3;
const QUICK_SECONDS: f64 = 0.2;

fn names() -> Vec<&'static str> {
    let names = EXPERIMENTS.iter().map(|about| about.name);
    names.chain([ALL]).collect()
}

fn after_help() -> String {
    let mut help = "Experiments:\n".to_string();
    for About {
        name, source, asks, ..
    } in EXPERIMENTS
    {
        help += &format!("  {name:<12} {source}: {asks}\n");
    }
    help + "\n\
Each runs on the real pool over a data file in memory, which is read as if it were a disk; a page's bytes are read on\n\
each access. Tables have the paper's values beside ours; below them stands whether the relations hold that the paper's\n\
figures show.\n\n\
Examples:\n  \
longshore lab experiment nbg-fig7 --figure fig7.svg\n  \
longshore lab experiment nbg-fig10 --threads 1,2,4 --seconds 5 --rounds 5 --json\n  \
longshore lab experiment all --fill docs/experiments.md --figures docs/figures"
}

/// Runs and prints.
///
/// # Errors
/// The settings make no sense, a pool cannot serve, or the answer not be written.
pub fn run(settings: &Settings, out: &mut impl Write) -> Result<(), LabError> {
    let chosen: Vec<&About> = match About::of(&settings.name) {
        Some(about) => vec![about],
        None => EXPERIMENTS.iter().collect(),
    };
    if chosen.len() > 1 && !settings.figure.is_empty() {
        let what = "--figure: all experiments have a figure each; say --figures DIR";
        return Err(LabError::Usage(what.to_string()));
    }
    let outputs: Vec<Output> = chosen.iter().map(|about| output(settings, about)).collect();
    outputs.iter().try_for_each(Output::prepare)?;
    if let Some(document) = &settings.fill {
        chosen
            .iter()
            .try_for_each(|about| filled(document, about, "").map(|_| ()))?;
    }
    let plan = plan(settings);
    let progress = Progress::new(!settings.quiet);
    let mut bench = Bench::new(&plan, &progress);
    for (nth, (about, output)) in chosen.iter().zip(&outputs).enumerate() {
        let findings = about.run(&mut bench)?;
        if nth > 0 && !settings.json {
            writeln!(out)?;
        }
        tell(settings, about, &findings, out)?;
        output.draw(|| figure(about, &findings))?;
        if let Some(document) = &settings.fill {
            let text = picture(settings, about) + &markdown(&findings);
            let text = filled(document, about, &text)?;
            let path = document.to_string_lossy();
            std::fs::write(document, text).map_err(LabError::file("write", &path))?;
        }
    }
    Ok(())
}

fn plan(settings: &Settings) -> Plan {
    let (seconds, rounds) = match settings.quick {
        true => (QUICK_SECONDS, 1),
        false => (SECONDS, ROUNDS),
    };
    Plan {
        threads: settings.threads.clone(),
        capacities: settings.capacity.clone(),
        workload: settings.workload.clone(),
        duration: Duration::from_secs_f64(settings.seconds.unwrap_or(seconds)),
        rounds: settings.rounds.unwrap_or(rounds) as usize,
        dir: settings.dir.clone(),
        is_quick: settings.quick,
    }
}

fn output(settings: &Settings, about: &About) -> Output {
    let in_folder = settings
        .figures
        .iter()
        .map(|folder| folder.join(format!("{}.svg", about.name)));
    Output {
        figure: settings.figure.iter().cloned().chain(in_folder).collect(),
        ..Output::default()
    }
}

fn tell(
    settings: &Settings,
    about: &About,
    findings: &Findings,
    out: &mut impl Write,
) -> Result<(), LabError> {
    if !settings.json {
        return print(about, findings, out);
    }
    for object in objects(about, findings) {
        writeln!(out, "{object}")?;
    }
    Ok(())
}

/// The picture as a document shows it, if it is drawn beside the document or below.
fn picture(settings: &Settings, about: &About) -> String {
    let beside = settings
        .fill
        .as_ref()
        .and_then(|document| document.parent());
    let folder = settings.figures.as_ref().zip(beside);
    let folder = folder.and_then(|(figures, beside)| figures.strip_prefix(beside).ok());
    let link = folder.map(|folder| {
        let file = folder.join(format!("{}.svg", about.name));
        format!("![{}]({})\n\n", about.asks, file.display())
    });
    link.unwrap_or_default()
}

/// The document with these tables in it.
fn filled(document: &Path, about: &About, text: &str) -> Result<String, LabError> {
    let path = document.to_string_lossy();
    let whole = std::fs::read_to_string(document).map_err(LabError::file("read", &path))?;
    fill(&whole, about.name, text).ok_or_else(|| {
        let name = about.name;
        LabError::Usage(format!(
            "--fill {path}: it has no marks <!-- begin {name} --> and <!-- end {name} -->"
        ))
    })
}
