//! The bytes of one file in memory, in chunks that threads may use side by side.
//!
//! # Protocol
//! A file is a table of chunks, each behind its own lock, so that two threads meet only when they
//! touch the same chunk. The table grows by whole rows that double in size and never move: finding
//! a chunk takes no lock. A chunk never written is a hole and takes no memory.
//!
//! # Invariants
//! I5. Bytes at or beyond the length are zero, so growing needs no clearing.
//!
//! # Ordering
//! `len` is raised with `Release` after the bytes are in their chunks; `read_at` loads it with
//! `Acquire`. Whoever sees the new length therefore finds the bytes. The chunk locks order the rest.
//! The locks are those of `std`, not the model checker's: none is held while calling out, so to a
//! model that runs above a disk each call is one step.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock};

/// Bytes per chunk: the default page, so that threads on different pages rarely meet.
const CHUNK: usize = 8192;
/// Chunks in the first row; each further row has twice as many.
const FIRST_ROW: u64 = 64;
/// Rows enough for every offset that a file can have.
const ROWS: usize = (64 - CHUNK.trailing_zeros() - FIRST_ROW.trailing_zeros()) as usize + 1;

/// `None` is a hole: zeros that take no memory.
type Chunk = RwLock<Option<Box<[u8]>>>;

pub(super) struct Content {
    /// Written with `Release` once the bytes are in place, read with `Acquire` (see Ordering).
    len: AtomicU64,
    /// Row `r` holds `FIRST_ROW << r` chunks; set once, then never moved.
    rows: [OnceLock<Box<[Chunk]>>; ROWS],
}

impl Default for Content {
    fn default() -> Self {
        Self {
            len: AtomicU64::new(0),
            rows: [const { OnceLock::new() }; ROWS],
        }
    }
}

impl Content {
    pub(super) fn len(&self) -> u64 {
        // Acquire: pairs with Release in `grow`; the bytes below this length are in their chunks.
        self.len.load(Ordering::Acquire)
    }

    pub(super) fn grow(&self, len: u64) {
        // Read first: a write inside the file stores nothing to the line that all readers load. Relaxed: a length
        // too low costs the step below.
        if self.len.load(Ordering::Relaxed) < len {
            // Release: pairs with Acquire in `len`.
            self.len.fetch_max(len, Ordering::Release);
        }
    }

    pub(super) fn read(&self, bytes: &mut [u8], offset: u64) -> usize {
        let wanted = self.len().saturating_sub(offset).min(bytes.len() as u64) as usize;
        for piece in Pieces::new(offset, wanted) {
            let target = &mut bytes[piece.from..][..piece.len];
            match self.chunk(piece.chunk) {
                Some(chunk) => read_chunk(chunk, piece.at, target),
                None => target.fill(0),
            }
        }
        wanted
    }

    pub(super) fn write(&self, bytes: &[u8], offset: u64) {
        for piece in Pieces::new(offset, bytes.len()) {
            let source = &bytes[piece.from..][..piece.len];
            write_chunk(self.chunk_or_new(piece.chunk), piece.at, source);
        }
        if !bytes.is_empty() {
            self.grow(offset + bytes.len() as u64);
        }
    }

    pub(super) fn set_len(&self, len: u64) {
        let former = self.len();
        if len >= former {
            return self.grow(len);
        }
        // Relaxed is enough for readers: fewer bytes are promised, not more. The chunk locks order
        // the clearing against whoever grows the file again (I5).
        self.len.store(len, Ordering::Relaxed);
        let at = (len % CHUNK as u64) as usize;
        if at > 0 {
            self.clear_chunk(len / CHUNK as u64, at);
        }
        for chunk in len.div_ceil(CHUNK as u64)..former.div_ceil(CHUNK as u64) {
            self.clear_chunk(chunk, 0);
        }
    }

    fn clear_chunk(&self, chunk: u64, at: usize) {
        let Some(chunk) = self.chunk(chunk) else {
            return;
        };
        let mut chunk = chunk.write().unwrap_or_else(PoisonError::into_inner);
        match at {
            0 => *chunk = None,
            _ => chunk.iter_mut().for_each(|bytes| bytes[at..].fill(0)),
        }
    }

    fn chunk(&self, chunk: u64) -> Option<&Chunk> {
        let (row, column) = row_and_column(chunk);
        self.rows[row].get().map(|row| &row[column])
    }

    fn chunk_or_new(&self, chunk: u64) -> &Chunk {
        let (row, column) = row_and_column(chunk);
        let new_row = || (0..FIRST_ROW << row).map(|_| Chunk::default()).collect();
        &self.rows[row].get_or_init(new_row)[column]
    }
}

fn read_chunk(chunk: &Chunk, at: usize, target: &mut [u8]) {
    match &*chunk.read().unwrap_or_else(PoisonError::into_inner) {
        Some(bytes) => target.copy_from_slice(&bytes[at..][..target.len()]),
        None => target.fill(0),
    }
}

fn write_chunk(chunk: &Chunk, at: usize, source: &[u8]) {
    let mut chunk = chunk.write().unwrap_or_else(PoisonError::into_inner);
    match &mut *chunk {
        None if source.len() == CHUNK => *chunk = Some(source.into()),
        hole @ None => {
            hole.insert(vec![0; CHUNK].into())[at..][..source.len()].copy_from_slice(source)
        }
        Some(bytes) => bytes[at..][..source.len()].copy_from_slice(source),
    }
}

/// Finds the row that holds `chunk`, and its place there.
fn row_and_column(chunk: u64) -> (usize, usize) {
    let shifted = chunk + FIRST_ROW;
    let row = shifted.ilog2() - FIRST_ROW.ilog2();
    (row as usize, (shifted - (FIRST_ROW << row)) as usize)
}

/// The parts of a range of bytes that lie in one chunk each.
struct Pieces {
    offset: u64,
    from: usize,
    end: usize,
}

struct Piece {
    chunk: u64,
    /// Where the piece starts inside its chunk.
    at: usize,
    /// Where it starts inside the caller's bytes.
    from: usize,
    len: usize,
}

impl Pieces {
    fn new(offset: u64, len: usize) -> Self {
        Self {
            offset,
            from: 0,
            end: len,
        }
    }
}

impl Iterator for Pieces {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.from == self.end {
            return None;
        }
        let position = self.offset + self.from as u64;
        let at = (position % CHUNK as u64) as usize;
        let len = (CHUNK - at).min(self.end - self.from);
        let piece = Piece {
            chunk: position / CHUNK as u64,
            at,
            from: self.from,
            len,
        };
        self.from += len;
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_filled_in_order_without_gap() {
        let mut expected = (0, 0);
        for chunk in 0..10_000 {
            assert_eq!(row_and_column(chunk), expected);
            expected = match expected {
                (row, column) if column as u64 + 1 == FIRST_ROW << row => (row + 1, 0),
                (row, column) => (row, column + 1),
            };
        }
        assert!(row_and_column(u64::MAX / CHUNK as u64).0 < ROWS);
    }

    #[test]
    fn hole_far_out_takes_no_memory() {
        let file = Content::default();
        file.set_len(1 << 50);
        let mut bytes = [1; 100];
        assert_eq!(file.read(&mut bytes, (1 << 50) - 60), 60);
        assert_eq!(bytes[..60], [0; 60]);
    }

    #[test]
    fn bytes_cut_off_do_not_come_back() {
        let file = Content::default();
        file.write(&[7; 3 * CHUNK], 0);
        file.set_len(100);
        file.set_len(3 * CHUNK as u64);
        let mut bytes = vec![1; 3 * CHUNK];
        file.read(&mut bytes, 0);
        assert!(bytes[..100].iter().all(|byte| *byte == 7));
        assert!(bytes[100..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn threads_on_their_own_pages_do_not_disturb_each_other() {
        let file = Content::default();
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let file = &file;
                scope.spawn(move || {
                    let page = [thread as u8 + 1; 4096];
                    for round in 0..500 {
                        let offset = (round * 4 + thread) * 4096;
                        file.write(&page, offset);
                        let mut back = [0; 4096];
                        assert_eq!(file.read(&mut back, offset), 4096);
                        assert_eq!(back, page);
                    }
                });
            }
        });
        assert_eq!(file.len(), 2000 * 4096);
    }
}
