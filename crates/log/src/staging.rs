//! What is not in the file yet: the ring, and the buffer that its writer writes from.
//!
//! # Protocol
//! A record is in the ring until it is taken, in the buffer until it is written, and then in the file; it
//! is whole in one of the three at any time. The buffer stands under a lock that the writer holds
//! alone while it moves records out of the ring, which is work in memory only, and shares while it
//! writes them. Whoever wants a record back shares it too, and finds the record where it is; a disk
//! that stalls holds nobody up who reads what it has not taken yet.
//!
//! | position of the record | where it is |
//! |---|---|
//! | below `start` | in the file: the writer comes back for more only when all is written |
//! | `start` to the taker's position | in the buffer, sealed |
//! | from there on | in the ring, not sealed, if its appender has published it |
//!
//! # Order
//! Under the lock, the table of segments. It is taken alone under the writer's role only, and never waited
//! for with a lock or latch of this crate held.

use crate::record::{HEADER_BYTES, Header, Record};
use crate::ring::{Ring, Taken, Taker};

/// The buffer, with the right to take records out of the ring.
pub struct Staging {
    taker: Taker,
    /// Position of the first byte of the buffer.
    start: u64,
    /// Never shortened: what is behind `filled` is left over.
    bytes: Vec<u8>,
    filled: usize,
}

impl Staging {
    /// A buffer that holds nothing.
    pub fn new(taker: Taker) -> Staging {
        Staging {
            start: taker.position(),
            taker,
            bytes: Vec::new(),
            filled: 0,
        }
    }

    /// Takes about `enough` bytes of records, in the place of those that have been written, and gives their
    /// space in the ring back.
    pub fn fill(&mut self, ring: &Ring, enough: usize) -> Taken {
        self.start = self.taker.position();
        let taken = ring.take(&mut self.taker, &mut self.bytes, enough);
        self.filled = taken.bytes as usize;
        ring.release(&mut self.taker);
        taken
    }

    /// Puts `count` zeros behind the records.
    pub(crate) fn add_zeros(&mut self, count: usize) {
        let end = self.filled + count;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[self.filled..end].fill(0);
        self.filled = end;
    }

    /// What is to be written, and where.
    pub(crate) fn content(&self) -> (u64, &[u8]) {
        (self.start, &self.bytes[..self.filled])
    }

    /// Everything before this has been taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taker.position()
    }

    /// The record at `lsn`, if it is here or in the ring.
    ///
    /// `None`: it is in the file, its appender is still at work, or no record starts there.
    pub fn find(&self, ring: &Ring, lsn: u64) -> Option<Record> {
        if lsn >= self.taken() {
            return ring.copy(&self.taker, lsn);
        }
        let at = usize::try_from(lsn.checked_sub(self.start)?).ok()?;
        let bytes = self.bytes[..self.filled].get(at..)?;
        let header = Header::parse(bytes.first_chunk()?);
        let body_bytes = header.body_bytes(lsn, self.taken()).ok()?;
        let body = bytes.get(HEADER_BYTES..HEADER_BYTES + body_bytes)?;
        header.check(lsn, body).ok()?;
        Some(header.record(lsn, body.to_vec()))
    }
}
