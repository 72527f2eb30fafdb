//! The bytes of one record.
//!
//! | word | bytes  | field    | meaning                                                     |
//! |------|--------|----------|-------------------------------------------------------------|
//! | 0    | 0..4   | length   | header and body, without the padding to the next 8 bytes    |
//! |      | 4..8   | checksum | CRC-32C of body, length, words 1 to 3 and the whole LSN     |
//! | 1    | 8      | kind     | whose record it is; 0 and 255 are the log's own             |
//! |      | 9..12  | -        | zero                                                        |
//! |      | 12..16 | position | LSN / 8, cut to 32 bits: a cheap test before the checksum   |
//! | 2    | 16..24 | txn      | the transaction, 0 for nobody's                             |
//! | 3    | 24..32 | prev     | the previous record of that transaction, 0 for none         |
//!
//! # Invariants
//! R1. Word 0 of a record is never zero (its length is at least 32): the ring uses zero for "not yet
//! published", and zeroed disk space never looks like a record.
//! R2. The checksum covers the LSN: a record copied or left over at another position is invalid there.

use longshore_base::{Lsn, TxnId};
use std::fmt;

/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 32;
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
    body_checksum: u32,
}

impl<'a> Draft<'a> {
    /// Measures and sums the body, so that little is left to do once the position is known.
    #[inline]
    pub(crate) fn new(kind: u8, txn: TxnId, prev: Lsn, body: &'a [&'a [u8]]) -> Draft<'a> {
        let body_bytes = body.iter().map(|part| part.len()).sum();
        let body_checksum = body
            .iter()
            .fold(0, |sum, part| crc32c::crc32c_append(sum, part));
        Draft {
            body,
            kind,
            txn,
            prev,
            body_bytes,
            body_checksum,
        }
    }

    /// Bytes of log it takes.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        record_bytes(self.body_bytes)
    }

    /// The header words at position `lsn`.
    #[inline]
    pub(crate) fn header(&self, lsn: u64) -> [u64; 4] {
        let length = (HEADER_BYTES + self.body_bytes) as u32;
        let word1 = u64::from(self.kind) | u64::from(short_position(lsn)) << 32;
        let rest = [word1, self.txn.get(), self.prev.get()];
        let checksum = checksum(self.body_checksum, length, rest, lsn);
        [
            u64::from(length) | u64::from(checksum) << 32,
            rest[0],
            rest[1],
            rest[2],
        ]
    }
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

#[inline]
fn checksum(body: u32, length: u32, rest: [u64; 3], lsn: u64) -> u32 {
    let mut bytes = [0; 40];
    for (place, word) in
        bytes
            .chunks_exact_mut(8)
            .zip([u64::from(length), rest[0], rest[1], rest[2], lsn])
    {
        place.copy_from_slice(&word.to_le_bytes());
    }
    crc32c::crc32c_append(body, &bytes)
}

/// A header as read from disk; nothing in it is to be believed before [`Header::check`].
#[derive(Clone, Copy)]
pub(crate) struct Header {
    length: u32,
    checksum: u32,
    rest: [u64; 3],
}

impl Header {
    pub(crate) fn parse(bytes: &[u8; HEADER_BYTES]) -> Header {
        let word = |index: usize| {
            let at = index * 8;
            u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
        };
        Header {
            length: word(0) as u32,
            checksum: (word(0) >> 32) as u32,
            rest: [word(1), word(2), word(3)],
        }
    }

    /// Looks for what can be wrong before the body is at hand: a record at `lsn`, in a log that
    /// ends at `end`. Returns the length of the body.
    pub(crate) fn body_bytes(&self, lsn: u64, end: u64) -> Result<usize, Flaw> {
        if self.length == 0 && self.checksum == 0 {
            return Err(Flaw::Blank);
        }
        if (self.length as usize) < HEADER_BYTES {
            return Err(Flaw::Length(self.length));
        }
        if (self.rest[0] >> 32) as u32 != short_position(lsn) {
            return Err(Flaw::Position);
        }
        let bytes = u64::from(self.length).next_multiple_of(ALIGNMENT);
        if end.saturating_sub(lsn) < bytes {
            return Err(Flaw::Cut(self.length));
        }
        Ok(self.length as usize - HEADER_BYTES)
    }

    /// Tests the checksum over header, body and position.
    pub(crate) fn check(&self, lsn: u64, body: &[u8]) -> Result<(), Flaw> {
        let expected = checksum(crc32c::crc32c(body), self.length, self.rest, lsn);
        match expected == self.checksum {
            true => Ok(()),
            false => Err(Flaw::Checksum),
        }
    }

    pub(crate) fn kind(&self) -> u8 {
        self.rest[0] as u8
    }

    pub(crate) fn record(&self, lsn: u64, body: &[u8]) -> Record {
        Record {
            lsn: Lsn::new(lsn),
            kind: self.kind(),
            txn: TxnId::new(self.rest[1]),
            prev: Lsn::new(self.rest[2]),
            body: body.to_vec(),
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
        bytes
    }

    fn decode(lsn: u64, bytes: &[u8]) -> Result<Record, Flaw> {
        let header = Header::parse(bytes[..HEADER_BYTES].try_into().unwrap());
        let body = header.body_bytes(lsn, lsn + bytes.len() as u64)?;
        let body = &bytes[HEADER_BYTES..HEADER_BYTES + body];
        header.check(lsn, body)?;
        Ok(header.record(lsn, body))
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
