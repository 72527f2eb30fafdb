//! Reading the stream: a window that moves over the segments, and the records in it.

use crate::LogError;
use crate::record::{Flaw, HEADER_BYTES, Header, Record};
use crate::segments::Segments;

/// Bytes read from disk at a time.
const WINDOW_BYTES: u64 = 128 << 10;

/// A window on the stream. Reads whole windows, hands out slices of them.
pub(crate) struct Reader {
    /// Nothing at or beyond this is read.
    end: u64,
    /// Position of the first byte of the window.
    start: u64,
    window: Vec<u8>,
}

/// A valid record, still in the window.
pub(crate) struct View<'a> {
    header: Header,
    lsn: u64,
    body: &'a [u8],
}

impl View<'_> {
    pub(crate) fn kind(&self) -> u8 {
        self.header.kind()
    }

    pub(crate) fn body(&self) -> &[u8] {
        self.body
    }

    pub(crate) fn to_record(&self) -> Record {
        self.header.record(self.lsn, self.body.to_vec())
    }

    /// Position of the next record.
    pub(crate) fn end(&self) -> u64 {
        self.lsn + crate::record::record_bytes(self.body.len())
    }
}

impl Reader {
    /// A reader of everything before `end`.
    pub(crate) fn new(end: u64) -> Reader {
        Reader {
            end,
            start: 0,
            window: Vec::new(),
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The record at `lsn`, or why there is none.
    pub(crate) fn record(
        &mut self,
        segments: &Segments,
        lsn: u64,
    ) -> Result<Result<View<'_>, Flaw>, LogError> {
        let end = self.end;
        let Some(bytes) = self.bytes(segments, lsn, HEADER_BYTES as u64)? else {
            return Ok(Err(Flaw::Blank));
        };
        let Some(header) = bytes.first_chunk().map(Header::parse) else {
            return Ok(Err(Flaw::Blank));
        };
        let body_bytes = match header.body_bytes(lsn, end) {
            Ok(bytes) => bytes,
            Err(flaw) => return Ok(Err(flaw)),
        };
        let from = lsn + HEADER_BYTES as u64;
        let Some(body) = self.bytes(segments, from, body_bytes as u64)? else {
            return Ok(Err(Flaw::Cut(body_bytes as u32)));
        };
        Ok(header.check(lsn, body).map(|()| View { header, lsn, body }))
    }

    /// `count` bytes at `position`; `None` if they reach beyond the end.
    pub(crate) fn bytes(
        &mut self,
        segments: &Segments,
        position: u64,
        count: u64,
    ) -> Result<Option<&[u8]>, LogError> {
        if position + count > self.end {
            return Ok(None);
        }
        if !self.holds(position, count) {
            self.move_to(segments, position, count)?;
        }
        let at = (position - self.start) as usize;
        Ok(Some(&self.window[at..at + count as usize]))
    }

    /// The rest of the window from `position` on, at least one byte; `None` at the end.
    pub(crate) fn rest_of_window(
        &mut self,
        segments: &Segments,
        position: u64,
    ) -> Result<Option<&[u8]>, LogError> {
        if self.bytes(segments, position, 1)?.is_none() {
            return Ok(None);
        }
        Ok(Some(&self.window[(position - self.start) as usize..]))
    }

    fn holds(&self, position: u64, count: u64) -> bool {
        self.start <= position && position + count <= self.start + self.window.len() as u64
    }

    fn move_to(&mut self, segments: &Segments, position: u64, count: u64) -> Result<(), LogError> {
        let bytes = count.max(WINDOW_BYTES).min(self.end - position);
        // Empty until read: after an error nothing must be taken for the stream's bytes.
        self.window.clear();
        let mut window = std::mem::take(&mut self.window);
        window.resize(bytes as usize, 0);
        segments.read(position, &mut window)?;
        self.start = position;
        self.window = window;
        Ok(())
    }
}

/// Reads one record that must be there.
pub(crate) fn read_one(segments: &Segments, lsn: u64, end: u64) -> Result<Record, LogError> {
    // Most records are short: one read gets them whole.
    const GUESS: u64 = 512;
    let mut bytes = vec![0; GUESS.min(end.saturating_sub(lsn)) as usize];
    segments.read(lsn, &mut bytes)?;
    let Some(header) = bytes.first_chunk().map(Header::parse) else {
        return Err(segments.damaged(lsn, Flaw::Blank.to_string()));
    };
    let body_bytes = header
        .body_bytes(lsn, end)
        .map_err(|flaw| segments.damaged(lsn, flaw.to_string()))?;
    let whole = HEADER_BYTES + body_bytes;
    if whole > bytes.len() {
        let read = bytes.len();
        bytes.resize(whole, 0);
        segments.read(lsn + read as u64, &mut bytes[read..])?;
    }
    let body = &bytes[HEADER_BYTES..whole];
    header
        .check(lsn, body)
        .map_err(|flaw| segments.damaged(lsn, flaw.to_string()))?;
    Ok(header.record(lsn, body.to_vec()))
}
