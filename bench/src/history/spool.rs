//! What each client writes down, in the order of time; merged at the end.

use super::operation::Operation;
use crate::error::BenchError;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, Write};
use std::path::Path;

/// What a line tells about a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Invoke,
    Ok,
    Fail,
    Info,
}

/// A line of the history, but for its index.
#[derive(Serialize)]
struct Event<'a> {
    process: u64,
    time: u64,
    #[serde(rename = "type")]
    kind: Kind,
    value: &'a [Operation],
}

/// The notes of one client.
pub(super) struct Spool(BufWriter<File>);

impl Spool {
    pub(super) fn create(folder: &Path, number: usize) -> Result<Spool, BenchError> {
        let path = folder.join(format!("client-{number}"));
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path);
        let file = file.map_err(BenchError::file("write", &path))?;
        Ok(Spool(BufWriter::with_capacity(1 << 16, file)))
    }

    /// Writes down an event; times do not fall.
    pub(super) fn note(
        &mut self,
        process: u64,
        time: u64,
        kind: Kind,
        value: &[Operation],
    ) -> io::Result<()> {
        // What sorts comes first: at one time, what begins before what ends, for that claims less.
        write!(self.0, "{time} {} ", u8::from(kind != Kind::Invoke))?;
        serde_json::to_writer(
            &mut self.0,
            &Event {
                process,
                time,
                kind,
                value,
            },
        )?;
        writeln!(self.0)
    }
}

/// An event that waits for its turn; sorted by time, then whether it is an end, then by client.
type Waiting = Reverse<(u64, u8, usize, String)>;

/// Merges the notes of all clients by time; returns the number of lines.
pub(super) fn merge(
    spools: impl Iterator<Item = Spool>,
    out: &mut impl Write,
) -> Result<u64, BenchError> {
    let mut sources = Vec::new();
    for spool in spools {
        let mut file = spool
            .0
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        sources.push(BufReader::with_capacity(1 << 16, file));
    }
    let mut waiting: BinaryHeap<Waiting> = BinaryHeap::new();
    for number in 0..sources.len() {
        waiting.extend(next(&mut sources, number)?);
    }
    let mut index = 0;
    while let Some(Reverse((_, _, number, event))) = waiting.pop() {
        writeln!(out, "{{\"index\":{index},{}", &event[1..])?;
        index += 1;
        waiting.extend(next(&mut sources, number)?);
    }
    Ok(index)
}

fn next(sources: &mut [BufReader<File>], number: usize) -> io::Result<Option<Waiting>> {
    let mut line = String::new();
    if sources[number].read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut parts = line.trim_end().splitn(3, ' ');
    let mut part = || parts.next().ok_or(io::ErrorKind::InvalidData);
    let (time, is_end, event) = (part()?, part()?, part()?.to_owned());
    let number_of = |text: &str| text.parse().map_err(|_| io::ErrorKind::InvalidData);
    let is_end = u8::from(is_end != "0");
    Ok(Some(Reverse((number_of(time)?, is_end, number, event))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_merged_by_time_and_numbered() {
        let folder = tempfile::tempdir().unwrap();
        let mut spools: Vec<Spool> = (0..2)
            .map(|number| Spool::create(folder.path(), number).unwrap())
            .collect();
        let value = [Operation::Append { key: 1, value: 2 }];
        spools[0].note(0, 5, Kind::Invoke, &value).unwrap();
        spools[0].note(0, 9, Kind::Ok, &value).unwrap();
        spools[1].note(1, 3, Kind::Invoke, &[]).unwrap();
        spools[1].note(1, 5, Kind::Fail, &[]).unwrap();
        spools[1].note(1, 9, Kind::Invoke, &[]).unwrap();
        let mut out = Vec::new();
        assert_eq!(merge(spools.into_iter(), &mut out).unwrap(), 5);
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1],
            r#"{"index":1,"process":0,"time":5,"type":"invoke","value":[["append",1,2]]}"#
        );
        let processes: Vec<bool> = lines
            .iter()
            .map(|line| line.contains("\"process\":1"))
            .collect();
        // At time 5 and at time 9 the beginning stands before the end.
        assert_eq!(processes, [true, false, true, true, false]);
    }
}
