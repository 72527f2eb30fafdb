//! Walking the records in order.

use crate::LogError;
use crate::reader::Reader;
use crate::record::{Record, is_internal};
use crate::space::Space;
use std::sync::Arc;

/// The records from a position to what was the end of the log when the scan began.
///
/// The log's own records (sync markers) are left out. After an error there is no more.
pub struct Scan {
    space: Arc<Space>,
    reader: Reader,
    position: u64,
    /// An error to be told first, after which there is nothing.
    failed: Option<LogError>,
}

impl Scan {
    /// Everything in `[from, end)`, which is written.
    pub(crate) fn new(space: Arc<Space>, from: u64, end: Result<u64, LogError>) -> Scan {
        let (end, failed) = match end {
            Ok(end) => (end, None),
            Err(error) => (from, Some(error)),
        };
        Scan {
            space,
            reader: Reader::new(end),
            position: from,
            failed,
        }
    }

    fn step(&mut self) -> Result<Option<Record>, LogError> {
        while self.position < self.reader.end() {
            let segments = &self.space.segments;
            match self.reader.record(segments, self.position)? {
                Ok(view) => {
                    self.position = view.end();
                    if !is_internal(view.kind()) {
                        return Ok(Some(view.to_record()));
                    }
                }
                Err(flaw) => return Err(segments.damaged(self.position, flaw.to_string())),
            }
        }
        Ok(None)
    }
}

impl Iterator for Scan {
    type Item = Result<Record, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failed.take() {
            return Some(Err(error));
        }
        let step = self.step();
        if step.is_err() {
            self.position = self.reader.end();
        }
        step.transpose()
    }
}
