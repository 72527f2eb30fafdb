//! Throughput of each client by the number of clients, as a picture: the form of Shore-MT's figure 5.
//!
//! # Protocol
//! [`Sketch::begin`] comes before the runs: it refuses a place that cannot be written. [`Sketch::finish`] draws and
//! puts the whole picture in its place; a run that fails leaves there what was.
//!
//! We differ: clients stand on a logarithmic axis, since their numbers double; and a line shows what one client's speed
//! would give if the cores were all that is shared, since a machine may have fewer cores than clients.

use crate::error::BenchError;
use crate::process::{command_line, cores, machine, today};
use crate::report::Line as Run;
use crate::settings::Settings;
use plot::{Axis, Chart, Figure, Format, Line, Panel, Scale};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A picture that will be drawn.
pub(crate) struct Sketch {
    place: PathBuf,
    format: Format,
    file: NamedTempFile,
    seconds: f64,
}

impl Sketch {
    /// Opens the file beside its place, if a figure is wanted.
    ///
    /// # Errors
    /// [`BenchError::Figure`] when there can be no such file.
    pub(crate) fn begin(settings: &Settings) -> Result<Option<Sketch>, BenchError> {
        let Some((place, format)) = settings.figure() else {
            return Ok(None);
        };
        if place.is_dir() {
            let source = std::io::ErrorKind::IsADirectory.into();
            return Err(BenchError::figure(place)(source));
        }
        let folder = match place.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let file = tempfile::Builder::new()
            .prefix(".longshore-figure-")
            .permissions(readable())
            .tempfile_in(folder);
        Ok(Some(Sketch {
            place: place.to_owned(),
            format,
            file: file.map_err(BenchError::figure(place))?,
            seconds: settings.seconds,
        }))
    }

    /// Draws `runs`, or their medians, and writes the picture.
    ///
    /// # Errors
    /// [`BenchError::Plot`], [`BenchError::Figure`].
    pub(crate) fn finish(self, runs: &[Run]) -> Result<(), BenchError> {
        let origin = format!("{} · {} · {}", command_line(), machine(), today());
        let caption = vec![conditions(runs, self.seconds), origin];
        let picture = figure(runs, caption, cores()).render(self.format)?;
        let Sketch {
            place, mut file, ..
        } = self;
        let written = file.write_all(&picture);
        let written = written.and_then(|()| file.persist(&place).map_err(|failed| failed.error));
        written.map(drop).map_err(BenchError::figure(&place))
    }
}

/// What a new file of a user's may be.
fn readable() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o644)
}

/// A panel for each workload, a line in it for each engine.
fn figure(runs: &[Run], caption: Vec<String>, cores: usize) -> Figure {
    let workloads = distinct(runs.iter().map(|run| run.workload));
    let panels = workloads.into_iter().map(|workload| {
        let of_workload: Vec<&Run> = runs.iter().filter(|run| run.workload == workload).collect();
        panel(workload, &of_workload, cores)
    });
    Figure {
        title: "Throughput of each client by the number of clients".to_owned(),
        panels: panels.collect(),
        caption,
    }
}

fn panel(workload: &str, runs: &[&Run], cores: usize) -> Panel {
    let (title, operations) = match workload {
        "insert" => ("Insert", "rows"),
        "read" => ("Read, keys by Zipf's law", "reads"),
        "read-uniform" => ("Read, all keys equally likely", "reads"),
        "update" => ("Update", "updates"),
        "tpcc" => ("TPC-C", "transactions"),
        "tpcc-new-order" => ("New Order", "transactions"),
        "tpcc-payment" => ("Payment", "transactions"),
        other => (other, "operations"),
    };
    let clients: BTreeSet<usize> = runs.iter().map(|run| run.threads).collect();
    let engines = distinct(runs.iter().map(|run| run.engine));
    let mut lines: Vec<Line> = engines
        .iter()
        .map(|engine| {
            let mut points: Vec<(f64, f64)> = runs
                .iter()
                .filter(|run| run.engine == *engine)
                .map(|run| (run.threads as f64, per_client(run)))
                .collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            Line::new(*engine, points)
        })
        .collect();
    let alone = runs
        .iter()
        .find(|run| run.threads == 1 && run.engine == engines[0]);
    if let Some(alone) = alone {
        let share = |clients: usize| per_client(alone) * (cores as f64 / clients as f64).min(1.0);
        let points = clients
            .iter()
            .map(|clients| (*clients as f64, share(*clients)));
        let name = format!("{}: one client's speed, {cores} cores shared", engines[0]);
        lines.push(Line::reference(name, points));
    }
    Panel {
        title: title.to_owned(),
        x: Axis::new("clients", Scale::Log).ticks(clients.iter().map(|clients| *clients as f64)),
        y: Axis::new(format!("{operations} per second and client"), Scale::Log),
        chart: Chart::Lines(lines),
    }
}

fn per_client(run: &Run) -> f64 {
    run.ops_per_second / run.threads as f64
}

/// What the runs had in common.
fn conditions(runs: &[Run], seconds: f64) -> String {
    let Some(run) = runs.first() else {
        return String::new();
    };
    let told = |name: &str| {
        run.more
            .get(name)
            .map(|value| value.to_string().replace('"', ""))
    };
    let mut conditions = vec![format!("durability {}", run.durability)];
    conditions.extend(told("isolation"));
    conditions.extend(told("warehouses").map(|warehouses| format!("{warehouses} warehouses")));
    conditions.extend(
        told("scale")
            .filter(|scale| scale != "full")
            .map(|scale| format!("{scale} scale")),
    );
    conditions.push(format!("{seconds} s a run"));
    let rounds = told("median_of").filter(|rounds| rounds != "1");
    conditions.extend(rounds.map(|rounds| format!("medians of {rounds} rounds")));
    conditions.join(", ")
}

/// The different ones, in the order in which they first appear.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Name;
    use serde_json::{Map, json};

    fn run(engine: &'static str, workload: &'static str, threads: usize) -> Run {
        let mut more = Map::new();
        more.insert("isolation".to_owned(), json!("serializable"));
        more.insert("warehouses".to_owned(), json!(4));
        more.insert("median_of".to_owned(), json!(5));
        Run {
            engine,
            workload,
            threads,
            durability: "none",
            ops_per_second: 30_000.0,
            p50_us: 1.0,
            p99_us: 2.0,
            aborts: 0,
            blocked_per_million_fixes: None,
            log_bytes_per_op: None,
            more,
        }
    }

    fn svg(runs: &[Run]) -> String {
        let caption = vec![conditions(runs, 10.0)];
        let drawn = figure(runs, caption, 2).render(Format::Svg).unwrap();
        String::from_utf8(drawn).unwrap()
    }

    #[test]
    fn each_workload_has_a_panel_and_each_engine_a_line() {
        let mut runs = Vec::new();
        for threads in [1, 2, 32] {
            for workload in ["tpcc-new-order", "tpcc-payment"] {
                runs.extend(["ours", "theirs"].map(|engine| run(engine, workload, threads)));
            }
        }
        let svg = svg(&runs);
        for text in [
            "New Order",
            "Payment",
            "ours",
            "theirs",
            "transactions per second and client",
            "ours: one client's speed, 2 cores shared",
            "durability none, serializable, 4 warehouses, 10 s a run, medians of 5 rounds",
        ] {
            assert!(
                svg.contains(&format!(">{text}<")),
                "{text} is missing in {svg}"
            );
        }
    }

    #[test]
    fn a_single_run_can_be_drawn_too() {
        let svg = svg(&[run("ours", "insert", 8)]);
        assert!(svg.contains(">rows per second and client<"));
        assert!(!svg.contains("one client's speed"), "nothing ran alone");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_refused_before_the_run() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("taken.svg")).unwrap();
        for place in ["missing/f.svg", "taken.svg"] {
            let mut settings = Settings::of(Name::Tpcc);
            settings.figure = Some(folder.path().join(place));
            let refused = Sketch::begin(&settings).err().unwrap().to_string();
            assert!(
                refused.contains("cannot write the figure") && refused.contains(place),
                "{refused}"
            );
        }
    }

    #[test]
    fn what_is_begun_and_not_finished_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::of(Name::Read);
        let place = folder.path().join("f.png");
        settings.figure = Some(place.clone());
        drop(Sketch::begin(&settings).unwrap().unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

        let sketch = Sketch::begin(&settings).unwrap().unwrap();
        sketch.finish(&[run("ours", "read", 1)]).unwrap();
        assert!(std::fs::read(place).unwrap().starts_with(b"\x89PNG"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
