//! Opening: finds the end of the log, tells a torn end from damage, and makes the end safe to go on from.
//!
//! # Protocol
//! 1. The segments from the one that holds `scan_from` on are identified and chained, up to the first
//!    that is missing or whose header is not right. The files behind that are *loose*.
//! 2. Records are walked from `scan_from` to the first position, `end`, at which none is valid.
//! 3. Everything behind `end` is searched for what looks like records, at every multiple of 8.
//!    They are *left over*, and may be evidence (below).
//! 4. To write on: what may not be durable is written again, left-over records are overwritten with
//!    zeros, the segments are synced, then the directory, and only then loose and old files are removed.
//!    Reading only does none of this.
//!
//! # Torn end or damage
//! After a crash the writes that had not been synced may be there in part and in any order, so an
//! invalid record, even with valid ones behind it, is normal: the log ends there. It is damage if the
//! bytes had been made durable, and that is known from
//! - a sync marker behind `end` that says the log was durable beyond `end`. The flusher writes one with
//!   every synced group, naming the position that was durable before it;
//! - the caller, who remembers a durable position elsewhere (a checkpoint in the control file);
//! - a finished segment behind a missing or unfinished one, or any record in an unfinished one: header and
//!   name of a segment are durable before the next is begun, and before a record is written there (S1).
//!
//! What is not known: damage to the very last synced group, which no marker and no checkpoint followed, is
//! taken for a torn end. That is so for every log that does not write twice.
//!
//! # Left-over records
//! A record left over behind `end` is valid for its position. If the log went on from `end` with records
//! that happen to reach exactly to it, and crashed again, it would be taken for their successor: history
//! invented. Therefore step 4 zeroes all of `[end, behind the last left-over record)`, and syncs, before
//! anything is appended. Positions that hold no valid record when the log is opened cannot come to hold
//! an old one later: bytes change only by appending, and an appended record decides the positions of
//! all records before the next append. Zeroing rather than an epoch in each record, because it costs
//! nothing when there is nothing left over, which is nearly always, and no format.
//!
//! # Why the last group is written again
//! What is read may be in the operating system's cache only: the process died but the machine did not, or
//! a sync failed and the cache now calls clean what never reached the device. The caller is going to
//! act on it (redo, undo, acknowledge), and `durable_lsn` starts at `end`. So everything from the position
//! that is known to be durable (by a marker, or by the caller) to `end` is written again, as are the
//! headers of the segments ahead, and then synced. That is as much as one group, usually.

use crate::LogError;
use crate::reader::{Reader, View};
use crate::record::{Flaw, KIND_SYNC_MARKER, short_position};
use crate::segment::{self, Identity, Segment};
use crate::segments::Segments;
use crate::{Access, Log, ScanFrom};
use longshore_base::{Lsn, crash_point};
use longshore_disk::{Disk, OpenMode};

/// Bytes written at a time.
const CHUNK_BYTES: u64 = 64 << 10;

/// What opening found.
pub(crate) struct Recovered {
    pub(crate) segments: Segments,
    pub(crate) end: u64,
}

/// A file with a segment's name that is not in the chain.
struct Loose {
    name: String,
    start: u64,
    /// What is wrong with it; `None` if it is finished, but what lies before it is not.
    reason: Option<String>,
}

/// The files of a log, sorted out.
struct Files {
    /// Wholly before `scan_from`: left by an interrupted truncation.
    old: Vec<String>,
    chain: Vec<Segment>,
    loose: Vec<Loose>,
}

/// Opens the files of a log and finds its end.
pub(crate) fn recover(
    disk: &dyn Disk,
    database: u64,
    from: ScanFrom,
    access: Access,
) -> Result<Recovered, LogError> {
    let scan_from = from.lsn.get().max(Log::FIRST.get());
    let files = sort_out(disk, database, scan_from, access)?;
    let segments = Segments::new(files.chain);
    let chain_end = segments.end().unwrap_or(scan_from);
    let mut reader = Reader::new(chain_end);
    let Found { end, flaw, durable } = find_end(&segments, &mut reader, scan_from)?;
    let durable = durable.max(from.known_durable.get());
    let left_over = search(&segments, &mut reader, end)?;
    let known = durable.max(left_over.durable);
    if known > end {
        let reason = format!("{flaw}, though the log was durable up to LSN {known}");
        return Err(lost(&segments, &files.loose, end, reason));
    }
    for loose in &files.loose {
        check_loose(disk, chain_end, loose, access)?;
    }
    if access == Access::ReadWrite {
        write_again(&segments, &mut reader, durable, end)?;
        neutralise(&segments, end, left_over.end)?;
        for segment in segments.overlapping(durable, end.max(left_over.end)) {
            segment.file.sync()?;
        }
        let unready = make_ready(&segments, database, end)?;
        disk.sync_directory()?;
        crash_point("log.open.synced");
        let loose = files.loose.into_iter().map(|loose| loose.name);
        remove_ahead(disk, loose.chain(unready).collect())?;
        for name in files.old {
            disk.remove(&name)?;
        }
    }
    Ok(Recovered { segments, end })
}

fn sort_out(
    disk: &dyn Disk,
    database: u64,
    scan_from: u64,
    access: Access,
) -> Result<Files, LogError> {
    let names = disk.list()?;
    let mut found: Vec<_> = names
        .into_iter()
        .filter_map(|name| Some((segment::start_of(&name)?, name)))
        .collect();
    found.sort();
    let needed = found.partition_point(|(start, _)| *start <= scan_from);
    let Some(first) = needed.checked_sub(1) else {
        return Err(missing_first(disk, database, scan_from, found.first()));
    };
    let mut files = Files {
        old: Vec::new(),
        chain: Vec::new(),
        loose: Vec::new(),
    };
    for (index, (start, name)) in found.into_iter().enumerate() {
        if index < first {
            files.old.push(name);
            continue;
        }
        let file = disk.open(&name, mode(access))?;
        let identity = Segment::identify(&*file, &name, database, start)?;
        let expected = files.chain.last().map(Segment::end);
        let follows = files.loose.is_empty() && expected.is_none_or(|end| end == start);
        match identity {
            Identity::Segment(bytes) if follows => {
                files.chain.push(Segment::new(name, start, bytes, file));
            }
            Identity::Segment(_) => files.loose.push(Loose {
                name,
                start,
                reason: None,
            }),
            Identity::Unfinished(reason) if index == first => {
                return Err(LogError::NotALog {
                    segment: name,
                    reason,
                });
            }
            Identity::Unfinished(reason) => {
                files.loose.push(Loose {
                    name,
                    start,
                    reason: Some(reason),
                });
            }
        }
    }
    match files
        .chain
        .first()
        .is_some_and(|segment| segment.end() >= scan_from)
    {
        true => Ok(files),
        false => Err(missing(files.chain.first().map_or(scan_from, Segment::end))),
    }
}

fn mode(access: Access) -> OpenMode {
    match access {
        Access::ReadOnly => OpenMode::Read,
        Access::ReadWrite => OpenMode::Write,
    }
}

fn missing(start: u64) -> LogError {
    LogError::Missing {
        segment: segment::name_of(start),
        lsn: Lsn::new(start),
    }
}

/// The segment with `scan_from` is missing; its name follows from the next one's, if sizes are alike.
fn missing_first(
    disk: &dyn Disk,
    database: u64,
    scan_from: u64,
    next: Option<&(u64, String)>,
) -> LogError {
    let guess = |(start, name): &(u64, String)| {
        let file = disk.open(name, OpenMode::Read).ok()?;
        match Segment::identify(&*file, name, database, *start).ok()? {
            Identity::Segment(bytes) => {
                let before = (start - scan_from).div_ceil(bytes.max(1));
                start.checked_sub(before * bytes)
            }
            Identity::Unfinished(_) => None,
        }
    };
    missing(
        next.and_then(guess)
            .unwrap_or(if scan_from == Log::FIRST.get() {
                0
            } else {
                scan_from
            }),
    )
}

/// Damage at `end`: names the missing or unreadable segment, if that is what ended the chain.
fn lost(segments: &Segments, loose: &[Loose], end: u64, reason: String) -> LogError {
    let chain_end = segments.end().unwrap_or(end);
    // A record that would reach into the next segment is cut, too; that segment is what is lost then.
    match loose.iter().find(|loose| loose.start == chain_end) {
        _ if end < chain_end => segments.damaged(end, reason),
        Some(Loose {
            name,
            reason: Some(why),
            ..
        }) => damaged_header(name, chain_end, why),
        _ => missing(chain_end),
    }
}

fn damaged_header(name: &str, start: u64, reason: &str) -> LogError {
    let (segment, lsn) = (name.to_owned(), Lsn::new(start));
    LogError::Damaged {
        segment,
        offset: 0,
        lsn,
        reason: reason.to_owned(),
    }
}

/// How far the valid records go.
struct Found {
    end: u64,
    /// Why there is no record at `end`.
    flaw: Flaw,
    /// The farthest position that a marker among them says was durable; at least where they begin.
    durable: u64,
}

/// Walks the records from `scan_from` on.
fn find_end(segments: &Segments, reader: &mut Reader, scan_from: u64) -> Result<Found, LogError> {
    let (mut end, mut durable) = (scan_from, scan_from);
    loop {
        match reader.record(segments, end)? {
            Ok(record) => {
                durable = durable.max(marked(&record));
                end = record.end();
            }
            Err(flaw) => return Ok(Found { end, flaw, durable }),
        }
    }
}

/// The position that a record says was durable; zero if it is no marker.
fn marked(record: &View<'_>) -> u64 {
    match record.body().first_chunk() {
        Some(durable) if record.kind() == KIND_SYNC_MARKER => u64::from_le_bytes(*durable),
        _ => 0,
    }
}

/// What lies behind the end.
#[derive(Default)]
struct LeftOver {
    /// Behind the last valid record; zero if there is none.
    end: u64,
    /// The farthest position that a marker among them says was durable.
    durable: u64,
}

/// Looks at every position behind `end` for a valid record.
fn search(segments: &Segments, reader: &mut Reader, end: u64) -> Result<LeftOver, LogError> {
    let mut left_over = LeftOver::default();
    let mut position = end;
    while let Some(candidate) = next_candidate(segments, reader, position)? {
        position = candidate + 8;
        if let Ok(record) = reader.record(segments, candidate)? {
            // Not into its body: what users store is no evidence.
            position = record.end();
            left_over.end = record.end();
            left_over.durable = left_over.durable.max(marked(&record));
        }
    }
    Ok(left_over)
}

/// The first position from `from` on whose word 1 would be that of a record of that position.
fn next_candidate(
    segments: &Segments,
    reader: &mut Reader,
    from: u64,
) -> Result<Option<u64>, LogError> {
    let mut word1_at = from + 8;
    while let Some(bytes) = reader.rest_of_window(segments, word1_at)? {
        let (words, _) = bytes.as_chunks::<8>();
        let is_word1 = |(index, word): (usize, &[u8; 8])| {
            let upper = (u64::from_le_bytes(*word) >> 32) as u32;
            // A word of zeros is never taken for one: in the first few positions it would be.
            upper == short_position(word1_at - 8 + index as u64 * 8) && *word != [0; 8]
        };
        if let Some(index) = words.iter().enumerate().position(is_word1) {
            return Ok(Some(word1_at - 8 + index as u64 * 8));
        }
        word1_at += words.len().max(1) as u64 * 8;
    }
    Ok(None)
}

/// A loose file must be the beginning of a segment at most: a finished one, or a record in it, proves
/// that what lies before it had been durable (S1).
fn check_loose(
    disk: &dyn Disk,
    chain_end: u64,
    loose: &Loose,
    access: Access,
) -> Result<(), LogError> {
    let Some(reason) = &loose.reason else {
        return Err(missing(chain_end));
    };
    let file = disk.open(&loose.name, mode(access))?;
    let bytes = file.len()?.saturating_sub(segment::HEADER_BYTES);
    let name = loose.name.clone();
    let segments = Segments::new(vec![Segment::new(name, loose.start, bytes, file)]);
    let mut reader = Reader::new(loose.start + bytes);
    // Candidates from `start` on; a record that straddles the border begins in another file.
    let left_over = search(&segments, &mut reader, loose.start)?;
    match left_over.end {
        0 => Ok(()),
        _ if loose.start == chain_end => Err(damaged_header(&loose.name, loose.start, reason)),
        _ => Err(missing(chain_end)),
    }
}

/// Removes segments ahead of the end, the last one first and each for good: a segment that is there
/// proves that those before it were.
fn remove_ahead(disk: &dyn Disk, mut names: Vec<String>) -> Result<(), LogError> {
    names.sort();
    for name in names.iter().rev() {
        disk.remove(name)?;
        disk.sync_directory()?;
        crash_point("log.open.removed");
    }
    Ok(())
}

/// Writes `[from, to)` as it is, so that the next sync carries it to the device for certain.
fn write_again(
    segments: &Segments,
    reader: &mut Reader,
    from: u64,
    to: u64,
) -> Result<(), LogError> {
    let mut position = from;
    while position < to {
        let count = CHUNK_BYTES.min(to - position);
        let Some(bytes) = reader.bytes(segments, position, count)? else {
            break;
        };
        segments.write(position, bytes)?;
        position += count;
        crash_point("log.open.rewritten");
    }
    Ok(())
}

/// Overwrites `[from, to)` with zeros.
fn neutralise(segments: &Segments, from: u64, to: u64) -> Result<(), LogError> {
    let mut position = from;
    while position < to {
        let bytes = vec![0; CHUNK_BYTES.min(to - position) as usize];
        segments.write(position, &bytes)?;
        position += bytes.len() as u64;
        crash_point("log.open.zeroed");
    }
    Ok(())
}

/// Makes sure of the segments that hold nothing yet. Returns those for which the disk has no room
/// after all, taken out of the table.
fn make_ready(segments: &Segments, database: u64, end: u64) -> Result<Vec<String>, LogError> {
    for segment in segments.overlapping(end, u64::MAX) {
        // The one that holds the end has been ready long ago, unless it only begins there.
        if segment.start < end {
            continue;
        }
        match segment.refresh(database) {
            Err(error) if error.is_full() => {
                let unready = segments.remove_from(segment.start);
                return Ok(unready.iter().map(|segment| segment.name.clone()).collect());
            }
            other => other?,
        }
    }
    Ok(Vec::new())
}
