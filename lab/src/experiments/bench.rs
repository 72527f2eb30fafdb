//! What runs the cases of an experiment, and how it was told to.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use longshore_policy::Trace;
use longshore_pool::MissMode;

use super::findings::{Column, Row};
use super::paper::Published;
use super::rival::Rival;
use crate::contenders::Named;
use crate::error::LabError;
use crate::input::Input;
use crate::live::{self, Ground, Length, Measured, Place, Reads, Setup};
use crate::progress::Progress;
use crate::report::count;
use crate::simulate::{self, Job};

/// What the user wants otherwise than the paper.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Sizes of the pool.
    pub capacities: Vec<u32>,
    /// What is drawn or read.
    pub workload: Option<String>,
    /// Of each run that is measured by time.
    pub duration: Duration,
    /// Runs of each case, in turn with the others.
    pub rounds: usize,
    /// Where the data file lies, if not in memory.
    pub dir: Option<PathBuf>,
    /// Small, for a look: the numbers mean little.
    pub is_quick: bool,
}

/// Runs cases.
pub struct Bench<'a> {
    plan: &'a Plan,
    progress: &'a Progress,
    experiment: &'static str,
    grounds: BTreeMap<String, Rc<Ground>>,
    used: Vec<String>,
    is_timed: bool,
}

/// How many pages have room.
#[derive(Clone, Copy, Debug)]
pub(super) enum Capacity {
    Pages(u32),
    /// All that the workload uses.
    All,
}

/// One setting of one rival.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) rival: Rival,
    pub(super) workload: String,
    pub(super) capacity: Capacity,
    pub(super) threads: usize,
    pub(super) miss: MissMode,
    pub(super) reads: Reads,
    pub(super) times_lock: bool,
    /// Through the workload once; else for the time of the plan.
    pub(super) once: bool,
}

impl<'a> Bench<'a> {
    /// A bench that works as planned.
    pub fn new(plan: &'a Plan, progress: &'a Progress) -> Bench<'a> {
        Bench {
            plan,
            progress,
            experiment: "",
            grounds: BTreeMap::new(),
            used: Vec::new(),
            is_timed: false,
        }
    }

    /// Begins another experiment.
    pub(super) fn begin(&mut self, experiment: &'static str) {
        self.experiment = experiment;
        self.used.clear();
        self.is_timed = false;
    }

    /// The workload, unless the user has another.
    pub(super) fn workload(&self, of_paper: &str) -> String {
        self.plan
            .workload
            .clone()
            .unwrap_or_else(|| of_paper.to_string())
    }

    /// Whether the user has a workload of their own.
    pub(super) fn has_own_workload(&self) -> bool {
        self.plan.workload.is_some()
    }

    /// The sizes, unless the user has others.
    pub(super) fn capacities(&self, of_paper: &[u32]) -> Vec<u32> {
        match &*self.plan.capacities {
            [] => of_paper.to_vec(),
            own => own.to_vec(),
        }
    }

    /// Whether the user has sizes of their own.
    pub(super) fn has_own_capacities(&self) -> bool {
        !self.plan.capacities.is_empty()
    }

    /// The numbers of threads, unless the user has others.
    pub(super) fn series_of_threads(&self, of_paper: &[usize]) -> Vec<usize> {
        match (&*self.plan.threads, self.plan.is_quick) {
            ([], false) => of_paper.to_vec(),
            ([], true) => vec![2, 8, 32],
            (own, _) => own.to_vec(),
        }
    }

    /// The number of threads, unless the user has another.
    pub(super) fn threads(&self, of_paper: usize) -> Result<usize, LabError> {
        match &*self.plan.threads {
            [] => Ok(of_paper),
            [own] => Ok(*own),
            _ => Err(LabError::Usage(format!(
                "--threads: {} has one number of threads",
                self.experiment
            ))),
        }
    }

    /// Whether runs are small.
    pub(super) fn is_quick(&self) -> bool {
        self.plan.is_quick
    }

    /// Runs all cases, round by round; the run with the median throughput of each.
    pub(super) fn measure(&mut self, cases: &[Case]) -> Result<Vec<Measured>, LabError> {
        let rounds = match cases.iter().all(|case| case.once) {
            true => 1,
            false => self.plan.rounds,
        };
        let mut runs: Vec<Vec<Measured>> = cases.iter().map(|_| Vec::new()).collect();
        for round in 1..=rounds {
            for (at, case) in cases.iter().enumerate() {
                let (number, all) = (at + 1, cases.len());
                self.progress.say(&format!(
                    "{}: case {number} of {all}, round {round} of {rounds}: {}",
                    self.experiment, case.rival.name
                ));
                let measured = self.run(case)?;
                runs[at].push(measured);
            }
        }
        self.progress.finish();
        Ok(runs.into_iter().map(middle).collect())
    }

    fn run(&mut self, case: &Case) -> Result<Measured, LabError> {
        let ground = self.ground(&case.workload)?;
        let frames = match case.capacity {
            Capacity::Pages(pages) => pages,
            Capacity::All => u32::try_from(ground.distinct()).unwrap_or(u32::MAX).max(32),
        };
        let setup = Setup {
            hand: case.rival.hand,
            weight_max: case.rival.weight_max,
            miss: case.miss,
            reads: case.reads,
            times_lock: case.times_lock,
            ..Setup::new(case.rival.replacement.clone(), frames)
        };
        let length = match case.once {
            true => Length::Once,
            false => Length::For(self.plan.duration),
        };
        self.is_timed |= !case.once;
        let pool = ground.pool(&setup)?;
        live::run(&pool, &ground, case.threads, length)
    }

    fn ground(&mut self, workload: &str) -> Result<Rc<Ground>, LabError> {
        if let Some(ground) = self.grounds.get(workload) {
            let ground = Rc::clone(ground);
            self.note(
                workload,
                ground.references(),
                ground.distinct(),
                ground.is_blank(),
            );
            return Ok(ground);
        }
        let trace = Input::of(workload).load(self.progress)?;
        let place = self
            .plan
            .dir
            .as_deref()
            .map_or(Place::Memory, Place::Directory);
        // One file in a directory at a time; and memory is not without end.
        self.grounds.retain(|_, _| matches!(place, Place::Memory));
        let ground = Rc::new(Ground::new(&trace, place)?);
        self.grounds
            .insert(workload.to_string(), Rc::clone(&ground));
        self.note(
            workload,
            ground.references(),
            ground.distinct(),
            ground.is_blank(),
        );
        Ok(ground)
    }

    /// Hit ratios of policies in the simulator, in hundredths: for each policy, at each size.
    pub(super) fn simulate(
        &mut self,
        workload: &str,
        policies: &[&str],
        capacities: &[u32],
    ) -> Result<Vec<Vec<f64>>, LabError> {
        let trace: Trace = Input::of(workload).load(self.progress)?;
        self.note(workload, trace.refs().len(), trace.pages().len(), false);
        let named = policies.iter().map(|policy| Named::parse(policy));
        let named: Vec<Named> = named.collect::<Result<_, _>>()?;
        let jobs: Vec<Job<'_>> = named
            .iter()
            .flat_map(|named| capacities.iter().map(|&size| (&named.contender, size)))
            .map(|(contender, size)| Job {
                trace: &trace,
                contender,
                size,
            })
            .collect();
        let outcomes = simulate::run(&jobs, self.progress)?;
        let rows = outcomes.chunks(capacities.len());
        Ok(rows
            .map(|row| row.iter().map(|outcome| outcome.hit_percent()).collect())
            .collect())
    }

    fn note(&mut self, workload: &str, references: usize, distinct: usize, is_blank: bool) {
        let (references, distinct) = (count(references as u64), count(distinct as u64));
        let blank = if is_blank { ", all blank" } else { "" };
        let line = format!("`{workload}`: {references} references of {distinct} pages{blank}");
        if !self.used.contains(&line) {
            self.used.push(line);
        }
    }

    /// What was really run, and how.
    pub(super) fn conditions(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .used
            .iter()
            .map(|line| format!("Workload {line}."))
            .collect();
        if self.is_timed {
            let (seconds, rounds) = (self.plan.duration.as_secs_f64(), self.plan.rounds);
            lines.push(format!(
                "Threads take stretches of 64 references in turn, for {seconds} s; of {rounds} interleaved rounds the median."
            ));
        }
        let file = match &self.plan.dir {
            None => "in memory",
            Some(_) => "read through the system's cache",
        };
        let quick = if self.plan.is_quick {
            " A quick run: the numbers mean little."
        } else {
            ""
        };
        let machine = machine();
        lines.push(format!(
            "Pages of 8 KiB, data file {file}; {machine}.{quick}"
        ));
        lines
    }
}

impl Case {
    /// A case that is timed, with optimistic reads: what most experiments of the paper are.
    pub(super) fn timed(rival: &Rival, workload: &str, capacity: Capacity, threads: usize) -> Case {
        Case {
            rival: rival.clone(),
            workload: workload.to_string(),
            capacity,
            threads,
            miss: MissMode::Optimistic,
            reads: Reads::AsTheyCome,
            times_lock: false,
            once: false,
        }
    }
}

/// Rows of what was measured: `measured` has all columns of the first rival, then those of the second.
pub(super) fn rows(
    rivals: &[Rival],
    columns: &[Column],
    published: &Published,
    measured: &[Measured],
    number: impl Fn(&Measured) -> Option<f64>,
) -> Vec<Row> {
    let of_rival = measured.chunks(columns.len());
    rivals
        .iter()
        .zip(of_rival)
        .map(|(rival, measured)| Row {
            name: rival.name.clone(),
            ours: measured.iter().map(&number).collect(),
            paper: published.row(&rival.name, columns),
        })
        .collect()
}

/// Millions of accesses in a second.
pub(super) fn millions(measured: &Measured) -> Option<f64> {
    Some(measured.per_second() / 1e6)
}

fn middle(mut runs: Vec<Measured>) -> Measured {
    runs.sort_by(|one, other| one.per_second().total_cmp(&other.per_second()));
    let at = runs.len() / 2;
    runs.swap_remove(at)
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("an unknown processor", |(_, model)| model.trim());
    format!("{cores} cores of {model}")
}
