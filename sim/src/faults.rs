//! Fixed workloads in which the n-th I/O fails: for every n, in every way, once and for ever.
//!
//! Any call may then return an error, but none may panic or answer wrongly, and what was acknowledged
//! must be there when the disk works again. After the failure one more commit is tried: when the
//! database accepts it, that must survive, too; after a failed sync it would not.

use crate::fixed::{Fixed, WORKLOADS};
use crate::model::Change;
use crate::subject::Subject;
use crate::workload::{Stop, has_failed};
use longshore::{Database, Durability};
use longshore_disk::{Fault, FaultError, FaultOn, FaultRepeat};

const WAYS: [(FaultError, FaultOn); 6] = [
    (FaultError::Io, FaultOn::Any),
    (FaultError::Io, FaultOn::Read),
    (FaultError::Io, FaultOn::Write),
    (FaultError::Io, FaultOn::Sync),
    (FaultError::Full, FaultOn::Write),
    (FaultError::ShortWrite, FaultOn::Write),
];

/// Runs every workload once for each fault, until a run meets no fault.
///
/// # Errors
/// The workload and the fault after which something was lost, invented or damaged.
pub fn run() -> Result<String, String> {
    run_every(1)
}

/// Like [`run`], with every `stride`-th I/O only.
///
/// # Errors
/// Those of [`run`].
pub fn run_every(stride: usize) -> Result<String, String> {
    let mut total = 0;
    for workload in &WORKLOADS {
        for (error, on) in WAYS {
            for repeat in [FaultRepeat::Once, FaultRepeat::ForEver] {
                let fault = Fault { error, repeat, on };
                let runs = fail_everywhere(workload, fault, stride)?;
                println!("{}: {fault:?}: {runs} runs", workload.name);
                total += runs;
            }
        }
    }
    Ok(format!("survived {total} failing I/Os"))
}

fn fail_everywhere(fixed: &Fixed, fault: Fault, stride: usize) -> Result<u64, String> {
    let mut runs = 0;
    for n in (1..).step_by(stride) {
        match run_failing(fixed, fault, n) {
            Ok(true) => runs += 1,
            Ok(false) => break,
            Err(wrong) => return Err(format!("{}, {fault:?} at {n}: {wrong}", fixed.name)),
        }
    }
    Ok(runs)
}

/// Whether the fault was met before the end.
fn run_failing(fixed: &Fixed, fault: Fault, n: u64) -> Result<bool, String> {
    let mut subject = Subject::new(fixed.seed, Some(fixed.profile));
    subject.disk.fail_at(n, fault);
    match subject.open() {
        Ok(db) => match subject.work(&db, fixed.steps) {
            Err(Stop::Wrong(wrong)) => return Err(wrong),
            Ok(()) if !has_failed(&subject.disk) => return Ok(false),
            Ok(()) | Err(Stop::Failed(_)) => try_once_more(&mut subject, &db),
        },
        Err(error) if !has_failed(&subject.disk) => return Err(format!("create: {error}")),
        Err(_) => {}
    }
    subject.disk.crash_now();
    subject.replace_disk();
    let db = subject
        .open()
        .map_err(|error| format!("recovery: {error}"))?;
    subject.compare(&db)?;
    subject.close_and_compare(db)?;
    Ok(true)
}

/// Commits one row; if that is acknowledged, it must be there afterwards.
fn try_once_more(subject: &mut Subject, db: &Database) {
    let Some(name) = subject.history.now().tables.keys().next().cloned() else {
        return;
    };
    let outcome = db.table(&name).and_then(|table| {
        let transaction = db.begin()?;
        transaction.put(&table, b"after the failure", b"kept")?;
        transaction.commit_with(Durability::Sync)?.wait()
    });
    let change = vec![Change::Put(
        name,
        b"after the failure".to_vec(),
        b"kept".to_vec(),
    )];
    match outcome {
        Ok(_) => {
            subject.history.committed(change);
            subject.history.all_durable();
        }
        Err(_) => subject.history.in_doubt(change),
    }
}
