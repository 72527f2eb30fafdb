//! Fixed workloads, cut at every single write and sync, and at every hit of every crash point.

use crate::fixed::{Fixed, WORKLOADS};
use crate::points::Points;
use crate::subject::Subject;
use crate::workload::Stop;

/// Where a run is cut.
#[derive(Clone, Copy, Debug)]
enum Cut {
    Change(u64),
    Point(u64),
}

/// Runs every workload once for each cut, until a run ends uncut.
///
/// # Errors
/// The workload and the cut after which something was missing or wrong.
pub fn run() -> Result<String, String> {
    let points = Points::install();
    let mut total = 0;
    for workload in &WORKLOADS {
        let changes = cut_everywhere(workload, &points, Cut::Change)?;
        let hits = cut_everywhere(workload, &points, Cut::Point)?;
        println!(
            "{}: cut at {changes} writes and syncs and at {hits} crash points",
            workload.name
        );
        total += changes + hits;
    }
    Ok(format!(
        "survived {total} cuts, one at every write and sync, one at every crash point"
    ))
}

fn cut_everywhere(fixed: &Fixed, points: &Points, cut: fn(u64) -> Cut) -> Result<u64, String> {
    for n in 1.. {
        let cut = cut(n);
        let was_cut = run_cut(fixed, points, cut);
        points.disarm();
        match was_cut {
            Ok(true) => {}
            Ok(false) => return Ok(n - 1),
            Err(wrong) => return Err(format!("{}, {cut:?}: {wrong}", fixed.name)),
        }
    }
    unreachable!("a workload has an end")
}

/// Whether the workload was cut before its end.
fn run_cut(fixed: &Fixed, points: &Points, cut: Cut) -> Result<bool, String> {
    let mut subject = Subject::new(fixed.seed, Some(fixed.profile));
    match cut {
        Cut::Change(n) => subject.disk.crash_after_changes(n - 1),
        Cut::Point(n) => points.arm(&subject.disk, None, n),
    }
    match subject.open() {
        Ok(db) => match subject.work(&db, fixed.steps) {
            Ok(()) if !subject.disk.is_crashed() => return Ok(false),
            Err(Stop::Wrong(wrong)) => return Err(wrong),
            Ok(()) | Err(Stop::Failed(_)) => {}
        },
        Err(error) if !subject.disk.is_crashed() => return Err(format!("create: {error}")),
        Err(_) => {}
    }
    points.disarm();
    subject.replace_disk();
    let db = subject
        .open()
        .map_err(|error| format!("recovery: {error}"))?;
    subject.compare(&db)?;
    subject.close_and_compare(db)?;
    Ok(true)
}
