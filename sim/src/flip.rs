//! Every bit of one page of each kind, and of the log, flipped on a closed or crashed disk.
//!
//! A flipped bit must be found, or must not matter. For each, the database is opened and read as a
//! whole: the outcome is an error that names the place (`place.rs` judges that), or exactly the rows that
//! were committed. The log is flipped on an unclean disk, where recovery depends on it. Only the end of
//! the log, behind which nothing proves that it was ever whole, may be taken for torn: a marker commit
//! written last makes up that end, and is the only one that may be missing.

use crate::fixed::WORKLOADS;
use crate::model::{Change, State};
use crate::place::{Place, Records};
use crate::subject::{Subject, read_all};
use crate::workload::Stop;
use longshore::{Database, Durability, VerifyReport};
use longshore_base::PageId;
use longshore_base::page::header;
use longshore_disk::{Disk, SimDisk};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

const PAGE_BYTES: u64 = 4096;

/// Flips every bit.
///
/// # Errors
/// The bit that led to a wrong answer.
pub fn run() -> Result<String, String> {
    run_every(1)
}

/// Flips every `stride`-th bit.
///
/// # Errors
/// Those of [`run`].
pub fn run_every(stride: usize) -> Result<String, String> {
    let pages = flip_pages(stride)?;
    let log = flip_log(stride)?;
    let [found, harmless] = [pages.0 + log.0, pages.1 + log.1];
    Ok(format!(
        "flipped {} bits: {found} found, {harmless} harmless",
        found + harmless
    ))
}

type Counts = (u64, u64);

fn flip_pages(stride: usize) -> Result<Counts, String> {
    let (subject, expected) = worked()?;
    let kinds = one_page_of_each_kind(&subject.disk)?;
    let mut counts = (0, 0);
    for (kind, page) in kinds {
        let legal = [expected.clone()];
        let range = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
        let place = |_| Place::Page(PageId::new(page));
        let (found, harmless) = flip_range(&subject, "data", range, place, &legal, stride)?;
        println!("page {page} of type {kind}: {found} found, {harmless} harmless");
        counts = (counts.0 + found, counts.1 + harmless);
    }
    let legal = [expected];
    let place = |_| Place::File("control".to_owned());
    let slots = 0..2 * PAGE_BYTES;
    let (found, harmless) = flip_range(&subject, "control", slots, place, &legal, stride)?;
    println!("control: {found} found, {harmless} harmless");
    Ok((counts.0 + found, counts.1 + harmless))
}

fn flip_log(stride: usize) -> Result<Counts, String> {
    let (mut subject, before) = worked()?;
    let db = subject.open().map_err(|error| format!("open: {error}"))?;
    let mut after = before.clone();
    for row in 1..20u8 {
        let change =
            commit_row(&db, &before, row, 40).map_err(|error| format!("commit: {error}"))?;
        after.apply(&change);
    }
    // The last commit is the end that may be taken for torn.
    let proven = after.clone();
    let change = commit_row(&db, &before, 255, 40).map_err(|error| format!("commit: {error}"))?;
    after.apply(&change);
    let unclean = Arc::new(subject.disk.crash_image(1));
    let records = Records::of(&db).map_err(|error| format!("log: {error}"))?;
    drop(db);
    subject.disk = unclean;
    let segments = subject.disk.list().map_err(|error| error.to_string())?;
    let mut counts = (0, 0);
    for name in segments.iter().filter(|name| name.starts_with("log-")) {
        let used = used_bytes(&subject.disk, name)?;
        let legal = [after.clone(), proven.clone()];
        let place = |byte| records.place(name, byte);
        let (found, harmless) = flip_range(&subject, name, 0..used, place, &legal, stride)?;
        println!("{name}: {found} found, {harmless} harmless");
        counts = (counts.0 + found, counts.1 + harmless);
    }
    Ok(counts)
}

/// A database that was worked on and closed, and its rows.
fn worked() -> Result<(Subject, State), String> {
    let fixed = WORKLOADS[2];
    let mut subject = Subject::new(fixed.seed, Some(fixed.profile));
    let db = subject.open().map_err(|error| format!("create: {error}"))?;
    match subject.work(&db, fixed.steps) {
        Ok(()) => {}
        Err(Stop::Wrong(wrong)) => return Err(wrong),
        Err(Stop::Failed(error)) => return Err(format!("work: {error}")),
    }
    // What waits for a decision holds locks, and rows that belong to no state yet.
    for view in db.prepared() {
        db.rollback_prepared(&view.gid)
            .map_err(|error| format!("rollback of a prepared transaction: {error}"))?;
    }
    let mut rows = subject.history.now().clone();
    // A row with a chain, so that there is a page of that kind.
    let large = commit_row(&db, &rows, 0, 9000).map_err(|error| format!("commit: {error}"))?;
    rows.apply(&large);
    db.close().map_err(|error| format!("close: {error}"))?;
    Ok((subject, rows))
}

fn commit_row(
    db: &Database,
    state: &State,
    row: u8,
    value_bytes: usize,
) -> Result<Change, longshore::Error> {
    let name = state.tables.keys().next().cloned().unwrap_or_default();
    let table = db.table(&name)?;
    let (key, value) = (vec![b'z', row], vec![row; value_bytes]);
    let transaction = db.begin()?;
    transaction.put(&table, &key, &value)?;
    transaction.commit_with(Durability::Sync)?.wait()?;
    Ok(Change::Put(name, key, value))
}

fn one_page_of_each_kind(disk: &SimDisk) -> Result<BTreeMap<u8, u64>, String> {
    let data = bytes_of(disk, "data")?;
    let mut kinds = BTreeMap::new();
    for (number, page) in data.chunks_exact(PAGE_BYTES as usize).enumerate() {
        if page[header::TYPE] != 0 {
            kinds.entry(page[header::TYPE]).or_insert(number as u64);
        }
    }
    Ok(kinds)
}

fn used_bytes(disk: &SimDisk, name: &str) -> Result<u64, String> {
    let bytes = bytes_of(disk, name)?;
    Ok(bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last as u64 + 1))
}

fn bytes_of(disk: &SimDisk, name: &str) -> Result<Vec<u8>, String> {
    disk.contents(name)
        .ok_or_else(|| format!("there is no file {name}"))
}

fn flip_range(
    subject: &Subject,
    file: &str,
    range: Range<u64>,
    place: impl Fn(u64) -> Place,
    legal: &[State],
    stride: usize,
) -> Result<Counts, String> {
    let (mut found, mut harmless) = (0, 0);
    for bit in (range.start * 8..range.end * 8).step_by(stride) {
        let byte = bit / 8;
        let outcome = read_flipped(subject, file, byte, (bit % 8) as u8);
        match judge(outcome, &place(byte), legal) {
            Ok(Verdict::Found) => found += 1,
            Ok(Verdict::Harmless) => harmless += 1,
            Err(wrong) => return Err(format!("{file}, byte {byte}, bit {}: {wrong}", bit % 8)),
        }
    }
    Ok((found, harmless))
}

fn read_flipped(subject: &Subject, file: &str, byte: u64, bit: u8) -> Outcome {
    let mut copy = Subject::new(1, Some(subject.profile));
    copy.disk = Arc::new(subject.disk.crash_image(1));
    copy.disk.flip_bit(file, byte, bit);
    let db = copy.open()?;
    let state = read_all(&db)?;
    Ok((state, db.verify()?))
}

type Outcome = Result<(State, VerifyReport), longshore::Error>;

enum Verdict {
    /// It was told, and told where.
    Found,
    /// The answer was right, or the damage repaired.
    Harmless,
}

fn judge(outcome: Outcome, place: &Place, legal: &[State]) -> Result<Verdict, String> {
    match outcome {
        Err(error) if place.is_named_by(&error) => Ok(Verdict::Found),
        Err(error) => Err(format!("the error does not name {place:?}: {error}")),
        Ok((state, _)) if !legal.contains(&state) => {
            Err(legal[0].difference(&state).unwrap_or_default())
        }
        Ok((_, report)) if report.is_sound() => Ok(Verdict::Harmless),
        Ok((_, report)) if place.is_named_in(&report) => Ok(Verdict::Found),
        Ok((_, report)) => Err(format!(
            "no fault names {place:?}, the first one is: {}",
            report.faults[0]
        )),
    }
}
