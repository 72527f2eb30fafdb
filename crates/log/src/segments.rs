//! The segments at hand, in order, as one stream of bytes.
//!
//! # Invariants
//! T1. The table is contiguous: each segment starts where the one before it ends.
//! T2. Only the front is removed, only the back is added to, once the log is open.
//!
//! # Order
//! The table's mutex is held for a look-up or a change of the table, never during I/O; a segment that
//! was looked up stays readable even if it is removed meanwhile.

use crate::LogError;
use crate::segment::Segment;
use longshore_base::sync::Mutex;
use longshore_disk::DiskError;
use std::collections::VecDeque;
use std::sync::Arc;

/// The table of segments.
pub(crate) struct Segments {
    table: Mutex<VecDeque<Arc<Segment>>>,
}

impl Segments {
    /// A table of segments that follow each other.
    pub(crate) fn new(segments: Vec<Segment>) -> Segments {
        let contiguous = segments
            .windows(2)
            .all(|pair| pair[0].end() == pair[1].start);
        assert!(contiguous, "log T1");
        let table = segments.into_iter().map(Arc::new).collect();
        Segments {
            table: Mutex::new(table),
        }
    }

    /// The first position held; `None` while there is no segment.
    pub(crate) fn start(&self) -> Option<u64> {
        self.table.lock().front().map(|segment| segment.start)
    }

    /// The position behind the last segment.
    pub(crate) fn end(&self) -> Option<u64> {
        self.table.lock().back().map(|segment| segment.end())
    }

    /// Bytes of all files.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.table
            .lock()
            .iter()
            .map(|segment| segment.file_bytes())
            .sum()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.table.lock().len()
    }

    /// Adds the next segment.
    pub(crate) fn push(&self, segment: Segment) {
        let mut table = self.table.lock();
        let follows = table.back().is_none_or(|last| last.end() == segment.start);
        assert!(follows, "log T1");
        table.push_back(Arc::new(segment));
    }

    /// Removes the first segment if it lies wholly before `before` and is not the only one.
    pub(crate) fn pop_before(&self, before: u64) -> Option<Arc<Segment>> {
        let mut table = self.table.lock();
        let is_passed = table.len() > 1 && table.front()?.end() <= before;
        is_passed.then(|| table.pop_front()).flatten()
    }

    /// Removes the segments from `start` on: while opening, when they turn out not to be ready.
    pub(crate) fn remove_from(&self, start: u64) -> Vec<Arc<Segment>> {
        let mut table = self.table.lock();
        let keep = table.partition_point(|segment| segment.start < start);
        table.split_off(keep).into()
    }

    /// The segment that holds `position`.
    pub(crate) fn find(&self, position: u64) -> Option<Arc<Segment>> {
        let table = self.table.lock();
        let index = table.partition_point(|segment| segment.end() <= position);
        table
            .get(index)
            .filter(|segment| segment.start <= position)
            .cloned()
    }

    /// The segments that hold some of `[from, to)`.
    pub(crate) fn overlapping(&self, from: u64, to: u64) -> Vec<Arc<Segment>> {
        let table = self.table.lock();
        let overlaps = |segment: &&Arc<Segment>| segment.start < to && from < segment.end();
        table.iter().filter(overlaps).cloned().collect()
    }

    /// Writes as much of `bytes` at `position` as there are segments for; returns how many.
    pub(crate) fn write(&self, position: u64, bytes: &[u8]) -> Result<usize, DiskError> {
        let mut done = 0;
        while done < bytes.len() {
            let at = position + done as u64;
            let Some(segment) = self.find(at) else {
                break;
            };
            let count = (bytes.len() - done).min((segment.end() - at) as usize);
            segment.write(at, &bytes[done..done + count])?;
            done += count;
        }
        Ok(done)
    }

    /// How many zeros to write behind `position`; see `segment.rs`.
    pub(crate) fn zeros_behind(&self, position: u64) -> u64 {
        self.find(position)
            .map_or(0, |segment| segment.zeros_behind(position))
    }

    /// Reads the stream from `position` on; what a file is too short for reads as zeros.
    ///
    /// # Errors
    /// [`LogError::Truncated`] if the place has been given up.
    pub(crate) fn read(&self, position: u64, bytes: &mut [u8]) -> Result<(), LogError> {
        let mut done = 0;
        while done < bytes.len() {
            let at = position + done as u64;
            let Some(segment) = self.find(at) else {
                return Err(self.not_held(at));
            };
            let count = (bytes.len() - done).min((segment.end() - at) as usize);
            let place = &mut bytes[done..done + count];
            let read = segment.file.read_at(place, segment.offset(at))?;
            place[read..].fill(0);
            done += count;
        }
        Ok(())
    }

    fn not_held(&self, position: u64) -> LogError {
        let lsn = longshore_base::Lsn::new;
        match (self.start(), self.end()) {
            (Some(oldest), _) if position < oldest => LogError::Truncated {
                lsn: lsn(position),
                oldest: lsn(oldest),
            },
            (_, end) => LogError::BeyondEnd {
                lsn: lsn(position),
                end: lsn(end.unwrap_or(0)),
            },
        }
    }

    /// An error that names the place in its file.
    pub(crate) fn damaged(&self, position: u64, reason: String) -> LogError {
        let (segment, offset) = match self.find(position) {
            Some(segment) => (segment.name.clone(), segment.offset(position)),
            None => (crate::segment::name_of(position), 0),
        };
        LogError::Damaged {
            segment,
            offset,
            lsn: longshore_base::Lsn::new(position),
            reason,
        }
    }
}
