//! The sorted beginning of a file, which fills a new table by the engine's bulk load: whole pages, no locks.
//!
//! # Protocol
//! Records are handed over as long as each key is above the one before. The first that is not, or that may be too
//! large, ends that: it and all behind it are written by transactions, into the same stage. A file that is
//! sorted to its end is thus loaded in bulk altogether, and one that is not differs in speed only.

use std::cmp::Ordering;

use super::Job;
use super::writer::Writer;
use crate::args::Duplicates;
use crate::exit::Outcome;
use crate::input::Record;
use crate::row::{KeyColumn, encode_key};

/// Longest key and value that are handed over: pages of every size take them, one way or another.
const KEY_BYTES_MAX: usize = 1_000;
const VALUE_BYTES_MAX: usize = 64 << 20;

impl Job<'_> {
    /// Loads the records whose keys ascend, from `first` on; returns the one behind them.
    pub(super) fn write_sorted(
        &mut self,
        writer: &mut Writer<'_>,
        first: Option<Record>,
    ) -> Outcome<Option<Record>> {
        let key = writer.shape().key.clone();
        let mut ascent = Ascent {
            job: self,
            key: &key,
            next: first,
            last: None,
            line: 0,
        };
        let mut failed = None;
        let rows = std::iter::from_fn(|| match ascent.take() {
            Ok(row) => row.map(Ok),
            Err(failure) => {
                failed = Some(failure);
                Some(Err(longshore::Error::other("the input ends the load")))
            }
        });
        let loaded = writer.load_sorted(rows);
        match (failed, loaded) {
            (Some(failure), _) => Err(failure),
            (None, Ok(())) => Ok(ascent.next),
            (None, Err(failure)) => Err(failure.at(&ascent.job.args.file, ascent.line)),
        }
    }
}

/// Records whose keys ascend.
struct Ascent<'a, 'b> {
    job: &'a mut Job<'b>,
    key: &'a [KeyColumn],
    /// Read, and not handed over yet.
    next: Option<Record>,
    /// The key handed over last.
    last: Option<Vec<u8>>,
    /// Where that record stood.
    line: u64,
}

impl Ascent<'_, '_> {
    /// The next row; `None` when the file or the ascent ends.
    fn take(&mut self) -> Outcome<Option<(Vec<u8>, Vec<u8>)>> {
        loop {
            let next = match self.next.take() {
                Some(record) => Some(record),
                None => self.job.next_record()?,
            };
            let Some(record) = next else {
                return Ok(None);
            };
            let key = match encode_key(self.key, &record.key) {
                Ok(key) => key,
                Err(message) => {
                    self.job.bad_line(record.line, &message)?;
                    continue;
                }
            };
            let order = self
                .last
                .as_ref()
                .map_or(Ordering::Greater, |last| key.cmp(last));
            let is_short = key.len() <= KEY_BYTES_MAX && record.json.len() <= VALUE_BYTES_MAX;
            match order {
                Ordering::Greater if is_short => {
                    self.job.wrote(&record);
                    self.last.get_or_insert_default().clone_from(&key);
                    self.line = record.line;
                    return Ok(Some((key, record.json)));
                }
                Ordering::Equal if self.job.args.duplicates != Duplicates::Replace => {
                    self.job.is_there(&record)?;
                }
                _ => {
                    self.next = Some(record);
                    return Ok(None);
                }
            }
        }
    }
}
