//! `.pages`, the project's own format: page, kind of access and thread, in the order in which they came.
//!
//! | part | bytes | holds |
//! |---|---|---|
//! | header | 8 | magic `LSPAGES` and a line end, so that no text passes for it |
//! | | 2 | version: 1 |
//! | | 2 | zero |
//! | | 4 | page size in bytes; 0 where it is not known |
//! | block | 4 | number of accesses, at least one |
//! | | 4 | bytes of the body |
//! | | 4 | CRC32C of the body |
//! | | … | body |
//! | end | 4 + 8 | zero; number of accesses in the file |
//!
//! Fixed numbers are little-endian. A body is a sequence of numbers in groups of seven bits, least significant group
//! first, the high bit set in all but the last byte. The two lowest bits of a number tell the kind: 0 read, 1 write,
//! 2 create; the others are the difference from the page before, its sign in the lowest bit. Kind 3 is no access: the
//! other bits are the number of the thread whose accesses follow. Each block begins at page 0 and thread 0, so it can
//! be understood alone. A trace mostly of one thread in one region takes 2 to 3 bytes an access.
//!
//! # Invariants
//! T1. A file that is cut off anywhere, or changed anywhere, ends with an error: lengths, checksums, the total.

use std::io::{self, BufRead, Write};

use super::{Access, FormatError, Kind, Place, ReadAccess, fill};

const MAGIC: &[u8; 8] = b"LSPAGES\n";
const VERSION: u16 = 1;
const HEADER_BYTES: usize = 16;
/// Accesses of a block; a reader allows no more.
const BLOCK_ACCESSES: u32 = 4096;
/// No number is longer: 66 bits in groups of seven.
const NUMBER_BYTES_MAX: usize = 10;
/// Each access, with a change of thread before it.
const BODY_BYTES_MAX: usize = BLOCK_ACCESSES as usize * 2 * NUMBER_BYTES_MAX;
const THREAD: u128 = 3;

/// Writes a trace. Without [`Writer::finish`] the file is one that was cut off.
pub struct Writer<W> {
    out: W,
    block: Block,
    total: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a trace of pages of `page_size` bytes, 0 if that is not known.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn new(mut out: W, page_size: u32) -> io::Result<Writer<W>> {
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&[0; 2])?;
        out.write_all(&page_size.to_le_bytes())?;
        Ok(Writer {
            out,
            block: Block::default(),
            total: 0,
        })
    }

    /// Appends an access.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn push(&mut self, access: Access) -> io::Result<()> {
        self.block.push(access);
        self.total += 1;
        match self.block.accesses < BLOCK_ACCESSES {
            true => Ok(()),
            false => self.end_block(),
        }
    }

    /// Ends the trace, and returns the output.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.end_block()?;
        self.out.write_all(&0u32.to_le_bytes())?;
        self.out.write_all(&self.total.to_le_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn end_block(&mut self) -> io::Result<()> {
        let block = std::mem::take(&mut self.block);
        if block.accesses == 0 {
            return Ok(());
        }
        let len = block.body.len() as u32;
        self.out.write_all(&block.accesses.to_le_bytes())?;
        self.out.write_all(&len.to_le_bytes())?;
        self.out
            .write_all(&crc32c::crc32c(&block.body).to_le_bytes())?;
        self.out.write_all(&block.body)
    }
}

/// A block that grows.
#[derive(Default)]
struct Block {
    accesses: u32,
    page: u64,
    thread: u32,
    body: Vec<u8>,
}

impl Block {
    fn push(&mut self, access: Access) {
        if access.thread != self.thread {
            self.thread = access.thread;
            self.number(u128::from(access.thread) << 2 | THREAD);
        }
        let kind = match access.kind {
            Kind::Read => 0,
            Kind::Write => 1,
            Kind::Create => 2,
        };
        let step = access.page.wrapping_sub(self.page) as i64;
        let folded = (step << 1 ^ step >> 63) as u64;
        self.page = access.page;
        self.number(u128::from(folded) << 2 | kind);
        self.accesses += 1;
    }

    fn number(&mut self, mut number: u128) {
        while number >= 0x80 {
            self.body.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.body.push(number as u8);
    }
}

/// Reads a trace.
pub(super) struct Reader<R> {
    input: R,
    /// Bytes read, but for what is left of the body.
    offset: u64,
    /// Accesses of the blocks read.
    total: u64,
    has_header: bool,
    is_ended: bool,
    block: Opened,
}

/// A block that is being read.
#[derive(Default)]
struct Opened {
    body: Vec<u8>,
    /// Where in the file the body begins.
    begin: u64,
    /// What of it is read.
    at: usize,
    left: u32,
    page: u64,
    thread: u32,
}

impl<R: BufRead> Reader<R> {
    pub(super) fn new(input: R) -> Self {
        Reader {
            input,
            offset: 0,
            total: 0,
            has_header: false,
            is_ended: false,
            block: Opened::default(),
        }
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let mut bytes = [0; N];
        let place = Place::Byte(self.offset);
        let read = fill(&mut self.input, &mut bytes, place)?;
        self.offset += read as u64;
        match read == N {
            true => Ok(bytes),
            false => Err(self.error("the file is cut off: the recording did not end")),
        }
    }

    fn error(&self, what: impl Into<String>) -> FormatError {
        FormatError::malformed(Place::Byte(self.offset), what)
    }

    fn header(&mut self) -> Result<(), FormatError> {
        let mut header = [0; HEADER_BYTES];
        let read = fill(&mut self.input, &mut header, Place::Byte(0))?;
        if !header.starts_with(MAGIC) {
            return Err(self.error("not a trace that `longshore lab record` wrote"));
        }
        let version = u16::from_le_bytes([header[8], header[9]]);
        if read >= 10 && version != VERSION {
            self.offset = 8;
            let what = format!("version {version} of the format; this program reads {VERSION}");
            return Err(self.error(what));
        }
        self.offset = read as u64;
        if read < HEADER_BYTES {
            return Err(self.error("the file is cut off in its header"));
        }
        Ok(())
    }

    /// Opens the next block. Is there one?
    fn next_block(&mut self) -> Result<bool, FormatError> {
        let begin = self.offset;
        let accesses = u32::from_le_bytes(self.bytes()?);
        if accesses == 0 {
            return self.end().map(|()| false);
        }
        let len = u32::from_le_bytes(self.bytes()?) as usize;
        let checksum = u32::from_le_bytes(self.bytes()?);
        if accesses > BLOCK_ACCESSES || len > BODY_BYTES_MAX || len < accesses as usize {
            self.offset = begin;
            let what = format!("damaged: a block of {accesses} accesses in {len} bytes");
            return Err(self.error(what));
        }
        let mut body = std::mem::take(&mut self.block.body);
        body.resize(len, 0);
        let at = self.offset;
        let read = fill(&mut self.input, &mut body, Place::Byte(at))?;
        self.offset += read as u64;
        if read < len {
            return Err(self.error("the file is cut off: the recording did not end"));
        }
        if crc32c::crc32c(&body) != checksum {
            self.offset = at;
            return Err(self.error("damaged: the checksum of the block is wrong"));
        }
        self.total += u64::from(accesses);
        self.block = Opened {
            body,
            begin: at,
            left: accesses,
            ..Opened::default()
        };
        Ok(true)
    }

    fn end(&mut self) -> Result<(), FormatError> {
        let total = u64::from_le_bytes(self.bytes()?);
        if total != self.total {
            let what = format!(
                "damaged: {} accesses, not the {total} that were written",
                self.total
            );
            return Err(self.error(what));
        }
        match fill(&mut self.input, &mut [0], Place::Byte(self.offset))? {
            0 => Ok(()),
            _ => Err(self.error("something follows the end of the trace")),
        }
    }
}

impl Opened {
    fn next_access(&mut self) -> Result<Access, FormatError> {
        loop {
            let number = self.number()?;
            let kind = match number & 3 {
                0 => Kind::Read,
                1 => Kind::Write,
                2 => Kind::Create,
                _ => {
                    let thread = u32::try_from(number >> 2);
                    self.thread = thread.map_err(|_| self.error("no thread has this number"))?;
                    continue;
                }
            };
            let folded = u64::try_from(number >> 2);
            let folded = folded.map_err(|_| self.error("no page has this number"))?;
            let step = (folded >> 1) ^ (folded & 1).wrapping_neg();
            self.page = self.page.wrapping_add(step);
            self.left -= 1;
            if self.left == 0 && self.at < self.body.len() {
                return Err(self.error("more bytes than accesses in the block"));
            }
            return Ok(Access {
                page: self.page,
                kind,
                thread: self.thread,
            });
        }
    }

    fn number(&mut self) -> Result<u128, FormatError> {
        let mut number = 0;
        for group in 0..NUMBER_BYTES_MAX {
            let Some(&byte) = self.body.get(self.at) else {
                return Err(self.error("fewer bytes than accesses in the block"));
            };
            self.at += 1;
            number |= u128::from(byte & 0x7f) << (7 * group);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.error("a number without an end"))
    }

    fn error(&self, what: &str) -> FormatError {
        FormatError::malformed(Place::Byte(self.begin + self.at as u64), what)
    }
}

impl<R: BufRead> ReadAccess for Reader<R> {
    fn next_access(&mut self) -> Result<Option<Access>, FormatError> {
        if !self.has_header {
            self.header()?;
            self.has_header = true;
        }
        if self.block.left == 0 && !self.is_ended {
            self.is_ended = !self.next_block()?;
        }
        match self.is_ended {
            true => Ok(None),
            false => self.block.next_access().map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;
    use proptest::prelude::*;

    fn written(accesses: &[Access]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), 8192).unwrap();
        for &access in accesses {
            writer.push(access).unwrap();
        }
        writer.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> Result<Vec<Access>, String> {
        let accesses = Format::Pages.read(bytes);
        accesses
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())
    }

    fn some() -> Vec<Access> {
        let kinds = [Kind::Read, Kind::Write, Kind::Create];
        (0..10_000)
            .map(|at: u64| Access {
                page: at * at % 977,
                kind: kinds[at as usize % 3],
                thread: at as u32 / 300 % 4,
            })
            .collect()
    }

    prop_compose! {
        fn any_access()(page: u64, kind in 0..3, thread: u32, is_near: bool) -> Access {
            Access {
                page: if is_near { page % 1000 } else { page },
                kind: [Kind::Read, Kind::Write, Kind::Create][kind as usize],
                thread: if is_near { 0 } else { thread },
            }
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(accesses in proptest::collection::vec(any_access(), 0..600)) {
            prop_assert_eq!(read(&written(&accesses)), Ok(accesses));
        }

        #[test]
        fn any_bytes_give_an_answer(bytes: Vec<u8>, with_header: bool) {
            let mut input = if with_header { written(&[])[..HEADER_BYTES].to_vec() } else { Vec::new() };
            input.extend(bytes);
            prop_assert!(read(&input).is_err() || input.len() == HEADER_BYTES + 12);
        }

        #[test]
        fn a_changed_byte_is_seen(at in 0usize..28_000, by in 1u8..) {
            let mut bytes = written(&some());
            let at = at % bytes.len();
            // Bytes 10 to 15 are the page size and a reserve: any value is a value.
            prop_assume!(!(10..16).contains(&at));
            bytes[at] ^= by;
            prop_assert!(read(&bytes).is_err(), "byte {}", at);
        }
    }

    #[test]
    fn every_cut_is_seen_and_told() {
        let whole = written(&some());
        for len in
            (0..whole.len()).filter(|len| len % 37 == 0 || *len < 64 || *len + 64 > whole.len())
        {
            let error = read(&whole[..len]).unwrap_err();
            assert!(error.starts_with("byte "), "{len}: {error}");
        }
        assert_eq!(read(&whole), Ok(some()));
        assert!(whole.len() < 3 * some().len(), "{} bytes", whole.len());
    }

    #[test]
    fn a_missing_block_is_seen() {
        let mut bytes = written(&some());
        let len = u32::from_le_bytes([20, 21, 22, 23].map(|at: usize| bytes[at])) as usize;
        bytes.drain(HEADER_BYTES..HEADER_BYTES + 12 + len);
        let error = read(&bytes).unwrap_err();
        assert!(error.contains("5904 accesses, not the 10000"), "{error}");
    }

    #[test]
    fn other_files_are_refused_with_the_reason() {
        assert!(read(b"1 1 0 0\n").unwrap_err().contains("not a trace"));
        assert!(read(b"").unwrap_err().contains("not a trace"));
        let mut later = written(&some());
        later[8] = 2;
        assert_eq!(
            read(&later).unwrap_err(),
            "byte 8: version 2 of the format; this program reads 1"
        );
        let mut longer = written(&some());
        longer.push(0);
        assert!(read(&longer).unwrap_err().contains("follows the end"));
    }
}
