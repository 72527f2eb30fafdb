//! The bytes of one record.
//!
//! | word | bytes  | field    | meaning                                                     |
//! |------|--------|----------|-------------------------------------------------------------|
//! | 0    | 0..4   | length   | header and body, without the padding to the next 8 bytes    |
//! |      | 4..8   | checksum | see below                                                   |
//! | 1    | 8      | kind     | whose record it is; 0 and 255 are the log's own             |
//! |      | 9..12  | -        | zero                                                        |
//! |      | 12..16 | position | LSN / 8, cut to 32 bits: a cheap test before the checksum   |
//! | 2    | 16..24 | txn      | the transaction, 0 for nobody's                             |
//! | 3    | 24..32 | prev     | the previous record of that transaction, 0 for none         |
//!
//! The checksum is the CRC-32C of header and body, with zero in its own place, begun with the upper half
//! of LSN / 8, whose lower half is in the header. It takes in every byte, so it is put in when the
//! record leaves the ring ([`seal`]): by then its bytes are in one piece, and no appender has to wait.
//!
//! # Invariants
//! R1. Word 0 of a record is never zero (its length is at least 32): the ring uses zero for "not yet
//! published", and zeroed disk space never looks like a record.
//! R2. The checksum covers the LSN: a record copied or left over at another position is invalid there.

use longshore_base::{Lsn, TxnId};
use std::fmt;
use std::ops::Range;

/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 32;
/// Where in the header the checksum stands.
const CHECKSUM_AT: Range<usize> = 4..8;
/// Records start at multiples of this.
pub(crate) const ALIGNMENT: u64 = 8;
/// Kind of the record by which the log remembers how far it was durable.
pub(crate) const KIND_SYNC_MARKER: u8 = 255;

/// A record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where it starts.
    pub lsn: Lsn,
    /// Whose record it is and what it says; the layers above divide 1..=254 among them.
    pub kind: u8,
    /// The transaction it belongs to.
    pub txn: TxnId,
    /// The previous record of the same transaction, or [`Lsn::ZERO`].
    pub prev: Lsn,
    /// What it says.
    pub body: Vec<u8>,
}

impl Record {
    /// The position right behind it, where the next record starts.
    pub fn end(&self) -> Lsn {
        self.lsn.plus(record_bytes(self.body.len()))
    }
}

/// Bytes of log that a record with a body of `body` bytes takes.
pub const fn record_bytes(body: usize) -> u64 {
    (HEADER_BYTES as u64 + body as u64).next_multiple_of(ALIGNMENT)
}

/// Whether records of this kind are the log's own, hidden from scans.
pub(crate) fn is_internal(kind: u8) -> bool {
    kind == 0 || kind == KIND_SYNC_MARKER
}

/// A record about to be appended: everything but its position.
pub(crate) struct Draft<'a> {
    pub(crate) body: &'a [&'a [u8]],
    kind: u8,
    txn: TxnId,
    prev: Lsn,
    body_bytes: usize,
}

impl<'a> Draft<'a> {
    /// Measures the body.
    #[inline]
    pub(crate) fn new(kind: u8, txn: TxnId, prev: Lsn, body: &'a [&'a [u8]]) -> Draft<'a> {
        Draft {
            body,
            kind,
            txn,
            prev,
            body_bytes: body.iter().map(|part| part.len()).sum(),
        }
    }

    /// Bytes of log it takes.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        record_bytes(self.body_bytes)
    }

    /// The header words at position `lsn`, without checksum.
    #[inline]
    pub(crate) fn header(&self, lsn: u64) -> [u64; 4] {
        [
            (HEADER_BYTES + self.body_bytes) as u64,
            u64::from(self.kind) | u64::from(short_position(lsn)) << 32,
            self.txn.get(),
            self.prev.get(),
        ]
    }
}

/// Puts the checksum into the record at `lsn`, with which `bytes` begin; returns the bytes it takes.
#[inline]
pub(crate) fn seal(bytes: &mut [u8], lsn: u64) -> u64 {
    let length = u32::from_le_bytes(std::array::from_fn(|i| bytes[i]));
    let sum = crc32c::crc32c_append(checksum_start(lsn), &bytes[..length as usize]);
    bytes[CHECKSUM_AT].copy_from_slice(&sum.to_le_bytes());
    bytes_of(u64::from(length))
}

/// Bytes of log taken by the record whose word 0 this is.
#[inline]
pub(crate) fn bytes_of(word0: u64) -> u64 {
    u64::from(word0 as u32).next_multiple_of(ALIGNMENT)
}

/// What word 1 holds of the position in its upper half.
#[inline]
pub(crate) fn short_position(lsn: u64) -> u32 {
    (lsn / ALIGNMENT) as u32
}

/// What a record's checksum begins with: the half of LSN / 8 that is not in the header.
#[inline]
fn checksum_start(lsn: u64) -> u32 {
    ((lsn / ALIGNMENT) >> 32) as u32
}

/// A header as read from disk; nothing in it is to be believed before [`Header::check`].
#[derive(Clone, Copy)]
pub(crate) struct Header {
    bytes: [u8; HEADER_BYTES],
}

impl Header {
    pub(crate) fn parse(bytes: &[u8; HEADER_BYTES]) -> Header {
        Header { bytes: *bytes }
    }

    fn word(&self, index: usize) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|i| self.bytes[index * 8 + i]))
    }

    fn length(&self) -> u32 {
        self.word(0) as u32
    }

    fn checksum(&self) -> u32 {
        (self.word(0) >> 32) as u32
    }

    /// Looks for what can be wrong before the body is at hand: a record at `lsn`, in a log that
    /// ends at `end`. Returns the length of the body.
    pub(crate) fn body_bytes(&self, lsn: u64, end: u64) -> Result<usize, Flaw> {
        let length = self.length();
        if self.word(0) == 0 {
            return Err(Flaw::Blank);
        }
        if (length as usize) < HEADER_BYTES {
            return Err(Flaw::Length(length));
        }
        if (self.word(1) >> 32) as u32 != short_position(lsn) {
            return Err(Flaw::Position);
        }
        let bytes = u64::from(length).next_multiple_of(ALIGNMENT);
        if end.saturating_sub(lsn) < bytes {
            return Err(Flaw::Cut(length));
        }
        Ok(length as usize - HEADER_BYTES)
    }

    /// Tests the checksum over header, body and position.
    pub(crate) fn check(&self, lsn: u64, body: &[u8]) -> Result<(), Flaw> {
        let mut header = self.bytes;
        header[CHECKSUM_AT].fill(0);
        let sum = crc32c::crc32c_append(checksum_start(lsn), &header);
        match crc32c::crc32c_append(sum, body) == self.checksum() {
            true => Ok(()),
            false => Err(Flaw::Checksum),
        }
    }

    pub(crate) fn kind(&self) -> u8 {
        self.word(1) as u8
    }

    pub(crate) fn record(&self, lsn: u64, body: Vec<u8>) -> Record {
        Record {
            lsn: Lsn::new(lsn),
            kind: self.kind(),
            txn: TxnId::new(self.word(2)),
            prev: Lsn::new(self.word(3)),
            body,
        }
    }
}

/// Why the bytes at a position are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Word 0 is zero: nothing was written here.
    Blank,
    /// The length is shorter than a header.
    Length(u32),
    /// It was written for another position, or these are no header's bytes.
    Position,
    /// It reaches beyond the end.
    Cut(u32),
    /// Some of its bytes are not what was written.
    Checksum,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::Blank => f.write_str("there is no record"),
            Flaw::Length(length) => write!(f, "the record's length is {length}"),
            Flaw::Position => f.write_str("the record's header is not one of this position"),
            Flaw::Cut(length) => write!(f, "a record of {length} bytes reaches beyond the end"),
            Flaw::Checksum => f.write_str("the record's checksum does not match its bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(lsn: u64, body: &[&[u8]]) -> Vec<u8> {
        let draft = Draft::new(7, TxnId::new(9), Lsn::new(64), body);
        let mut bytes: Vec<u8> = draft
            .header(lsn)
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .collect();
        body.iter().for_each(|part| bytes.extend_from_slice(part));
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        assert_eq!(seal(&mut bytes, lsn), bytes.len() as u64);
        bytes
    }

    fn decode(lsn: u64, bytes: &[u8]) -> Result<Record, Flaw> {
        let header = Header::parse(bytes[..HEADER_BYTES].try_into().unwrap());
        let body = header.body_bytes(lsn, lsn + bytes.len() as u64)?;
        let body = &bytes[HEADER_BYTES..HEADER_BYTES + body];
        header.check(lsn, body)?;
        Ok(header.record(lsn, body.to_vec()))
    }

    #[test]
    fn a_record_reads_back() {
        let record = decode(128, &encode(128, &[b"one", b"", b"two"])).unwrap();
        assert_eq!(record.body, b"onetwo");
        assert_eq!((record.lsn, record.kind), (Lsn::new(128), 7));
        assert_eq!((record.txn, record.prev), (TxnId::new(9), Lsn::new(64)));
        assert_eq!(record.end(), Lsn::new(128 + 40));
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let bytes = encode(4096, &[b"the body of a record"]);
        for bit in 0..(HEADER_BYTES + 20) * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(4096, &bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_record_is_invalid_at_any_other_position() {
        let bytes = encode(64, &[b"here"]);
        assert_eq!(decode(72, &bytes), Err(Flaw::Position));
        // 32 GiB further on the short position is the same again; the checksum tells.
        assert_eq!(decode(64 + (8 << 32), &bytes), Err(Flaw::Checksum));
    }

    #[test]
    fn zeros_are_no_record() {
        assert_eq!(decode(64, &[0; 64]), Err(Flaw::Blank));
    }
}
