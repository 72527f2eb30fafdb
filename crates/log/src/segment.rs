//! One segment: a file that holds a slice of the stream behind a header.
//!
//! | header bytes | field    | meaning                                    |
//! |--------------|----------|--------------------------------------------|
//! | 0..8         | magic    | `LONGSLOG`                                 |
//! | 8..12        | version  | of the format                              |
//! | 12..16       | checksum | CRC-32C of bytes 0..12 and 16..40          |
//! | 16..24       | database | the random number of the database          |
//! | 24..32       | start    | the position of the first byte of the slice|
//! | 32..40       | bytes    | length of the slice                        |
//!
//! The slice follows at offset 4096. The file is named after its start, `log-%016x`.
//!
//! # Invariants
//! S1. Header, length and name of a segment are durable before the first record is written into it and
//! before the next segment is begun: `prepare` and `recycle` return only then, and segments ahead are
//! removed last one first. So a record in a segment whose header is wrong, or a finished segment behind
//! one that is missing or unfinished, is proof of damage.
//!
//! # Filling
//! Space that was only reserved costs more when it is synced: the file system notes which blocks are in
//! use from now on, a second write to the disk. So a small group that is to be synced and runs beyond
//! what is filled is written with zeros behind it, up to the end of a stretch; the syncs after it find
//! their blocks in use. A recycled segment is filled as it comes. Bytes behind the end of the log mean
//! nothing, and zeros are what they hold in a new segment.

use crate::LogError;
use longshore_base::crash_point;
use longshore_base::sync::atomic::{AtomicU64, Ordering};
use longshore_disk::{Disk, DiskError, DiskFile, OpenMode};
use std::sync::Arc;

/// Bytes before the slice.
pub(crate) const HEADER_BYTES: u64 = 4096;
const FIELDS_BYTES: usize = 40;
const MAGIC: [u8; 8] = *b"LONGSLOG";
const VERSION: u32 = 3;
/// Zeros are written up to a multiple of this; less in small segments.
const STRETCH_BYTES_MAX: u64 = 256 << 10;

/// An open segment.
pub(crate) struct Segment {
    pub(crate) name: String,
    /// Position of the first byte of the slice.
    pub(crate) start: u64,
    /// Length of the slice.
    pub(crate) bytes: u64,
    pub(crate) file: Arc<dyn DiskFile>,
    /// Up to this position the file has been written to, not only reserved. A hint of the writer's:
    /// any smaller value is safe.
    filled: AtomicU64,
}

/// Why a segment could not be made ready.
pub(crate) enum PrepareError {
    /// Nothing is lost; the same may be tried again.
    Disk(DiskError),
    /// A sync failed: the log must not go on.
    Sync(DiskError),
}

/// What the header of a file with a segment's name says.
pub(crate) enum Identity {
    /// It is that segment, and its slice has this length.
    Segment(u64),
    /// It is not, or not any more, or not yet: the header was never finished, or is damaged.
    Unfinished(String),
}

impl Segment {
    /// A segment of which nothing is known to be filled.
    pub(crate) fn new(name: String, start: u64, bytes: u64, file: Arc<dyn DiskFile>) -> Segment {
        Segment {
            name,
            start,
            bytes,
            file,
            filled: AtomicU64::new(start),
        }
    }

    /// Position right behind the slice.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.bytes
    }

    /// Length of the file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.bytes + HEADER_BYTES
    }

    /// Offset in the file of a position in the slice.
    pub(crate) fn offset(&self, position: u64) -> u64 {
        position - self.start + HEADER_BYTES
    }

    /// Writes bytes that lie wholly in the slice.
    pub(crate) fn write(&self, position: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.file.write_at(bytes, self.offset(position))?;
        // Relaxed: the writer's own.
        let end = position + bytes.len() as u64;
        self.filled.fetch_max(end, Ordering::Relaxed);
        Ok(())
    }

    /// How many zeros to write behind `position`, for the sake of the syncs to come.
    pub(crate) fn zeros_behind(&self, position: u64) -> u64 {
        // Relaxed: the writer's own.
        if position <= self.filled.load(Ordering::Relaxed) {
            return 0;
        }
        let stretch = (self.bytes / 16)
            .next_multiple_of(HEADER_BYTES)
            .min(STRETCH_BYTES_MAX);
        let end = self.end().min(position.next_multiple_of(stretch));
        end.saturating_sub(position)
    }

    /// Makes a new segment; returns when it is there for good (S1).
    pub(crate) fn prepare(
        disk: &dyn Disk,
        database: u64,
        start: u64,
        bytes: u64,
    ) -> Result<Segment, PrepareError> {
        let name = name_of(start);
        let made = Self::write_new(disk, &name, database, start, bytes);
        let file = made.inspect_err(|_| {
            // Best effort: a leftover costs space until the next open removes it.
            let _ = disk.remove(&name);
        })?;
        crash_point("log.segment.created");
        disk.sync_directory().map_err(PrepareError::Sync)?;
        crash_point("log.segment.ready");
        Ok(Segment::new(name, start, bytes, file))
    }

    fn write_new(
        disk: &dyn Disk,
        name: &str,
        database: u64,
        start: u64,
        bytes: u64,
    ) -> Result<Arc<dyn DiskFile>, PrepareError> {
        let file = disk
            .open(name, OpenMode::OpenOrCreate)
            .map_err(PrepareError::Disk)?;
        let write = || {
            file.set_len(0)?;
            file.allocate(bytes + HEADER_BYTES)?;
            file.write_at(&header(database, start, bytes), 0)
        };
        write().map_err(PrepareError::Disk)?;
        file.sync().map_err(PrepareError::Sync)?;
        Ok(file)
    }

    /// Makes this segment, which nobody needs any more, the one that begins at `start`. Its old
    /// bytes stay: they are invalid at their new position (R2).
    pub(crate) fn recycle(
        &self,
        disk: &dyn Disk,
        database: u64,
        start: u64,
    ) -> Result<Segment, PrepareError> {
        let name = name_of(start);
        disk.rename(&self.name, &name).map_err(PrepareError::Disk)?;
        crash_point("log.segment.renamed");
        let written = self.file.write_at(&header(database, start, self.bytes), 0);
        written.map_err(|error| {
            // Best effort, as above.
            let _ = disk.remove(&name);
            PrepareError::Disk(error)
        })?;
        self.file.sync().map_err(PrepareError::Sync)?;
        disk.sync_directory().map_err(PrepareError::Sync)?;
        crash_point("log.recycled");
        let next = Segment::new(name, start, self.bytes, self.file.clone());
        // Nobody needs it any more, so it has been written from end to end. Relaxed: nobody else has it yet.
        next.filled.store(next.end(), Ordering::Relaxed);
        Ok(next)
    }

    /// Makes sure again that a segment found ahead of the end is ready: whoever prepared it may have
    /// died, or failed, before it was.
    pub(crate) fn refresh(&self, database: u64) -> Result<(), DiskError> {
        self.file.allocate(self.file_bytes())?;
        self.file
            .write_at(&header(database, self.start, self.bytes), 0)?;
        self.file.sync()
    }

    /// Reads the header of the file `name`, which should begin at `start`.
    ///
    /// # Errors
    /// If it is certainly another database's or another version's.
    pub(crate) fn identify(
        file: &dyn DiskFile,
        name: &str,
        database: u64,
        start: u64,
    ) -> Result<Identity, LogError> {
        let mut bytes = [0; FIELDS_BYTES];
        let count = file.read_at(&mut bytes, 0)?;
        let unfinished = |reason: &str| Ok(Identity::Unfinished(reason.to_owned()));
        if count < FIELDS_BYTES {
            return unfinished("the file ends within its header");
        }
        if bytes[..8] != MAGIC {
            return unfinished("the header does not begin as a log segment's does");
        }
        if word32(&bytes, 12) != checksum(&bytes) {
            return unfinished("the header's checksum does not match");
        }
        let version = word32(&bytes, 8);
        if version != VERSION {
            let segment = name.to_owned();
            return Err(LogError::Version {
                segment,
                found: version,
                known: VERSION,
            });
        }
        let found = word64(&bytes, 16);
        if found != database {
            let segment = name.to_owned();
            return Err(LogError::OtherDatabase {
                segment,
                found,
                expected: database,
            });
        }
        if word64(&bytes, 24) != start {
            return unfinished("the header names another start");
        }
        Ok(Identity::Segment(word64(&bytes, 32)))
    }
}

/// The name of the segment that begins at `start`.
pub(crate) fn name_of(start: u64) -> String {
    format!("log-{start:016x}")
}

/// The start that a name states, if it is a segment's.
pub(crate) fn start_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("log-")?;
    let start = u64::from_str_radix(digits, 16).ok()?;
    // Only the one spelling: no sign, no capitals, sixteen digits.
    (name_of(start) == name).then_some(start)
}

fn header(database: u64, start: u64, bytes: u64) -> [u8; FIELDS_BYTES] {
    let mut header = [0; FIELDS_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&database.to_le_bytes());
    header[24..32].copy_from_slice(&start.to_le_bytes());
    header[32..40].copy_from_slice(&bytes.to_le_bytes());
    let sum = checksum(&header);
    header[12..16].copy_from_slice(&sum.to_le_bytes());
    header
}

fn checksum(header: &[u8; FIELDS_BYTES]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[..12]), &header[16..])
}

fn word32(bytes: &[u8; FIELDS_BYTES], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn word64(bytes: &[u8; FIELDS_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use longshore_disk::MemoryDisk;

    fn prepared(disk: &MemoryDisk) -> Segment {
        Segment::prepare(disk, 77, 8192, 4096).ok().unwrap()
    }

    #[test]
    fn names_have_one_spelling() {
        assert_eq!(start_of(&name_of(0xabc000)), Some(0xabc000));
        for other in [
            "log-",
            "log-1",
            "log-0000000000ABC000",
            "data",
            "log-+00000000000abc0",
        ] {
            assert_eq!(start_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_prepared_segment_is_recognised() {
        let disk = MemoryDisk::new();
        let segment = prepared(&disk);
        let found = Segment::identify(&*segment.file, &segment.name, 77, 8192).unwrap();
        assert!(matches!(found, Identity::Segment(4096)));
        assert_eq!(segment.file.len().unwrap(), segment.file_bytes());
    }

    #[test]
    fn strangers_are_refused_by_name() {
        let disk = MemoryDisk::new();
        let segment = prepared(&disk);
        let other = Segment::identify(&*segment.file, &segment.name, 78, 8192);
        assert!(matches!(
            other,
            Err(LogError::OtherDatabase {
                found: 77,
                expected: 78,
                ..
            })
        ));
        let mut newer = header(77, 8192, 4096);
        newer[8] = 9;
        let sum = checksum(&newer);
        newer[12..16].copy_from_slice(&sum.to_le_bytes());
        segment.file.write_at(&newer, 0).unwrap();
        let other = Segment::identify(&*segment.file, &segment.name, 77, 8192);
        assert!(matches!(
            other,
            Err(LogError::Version {
                found: 9,
                known: VERSION,
                ..
            })
        ));
    }

    #[test]
    fn every_flipped_bit_of_the_header_is_found() {
        let disk = MemoryDisk::new();
        let segment = prepared(&disk);
        let good = header(77, 8192, 4096);
        for bit in 0..FIELDS_BYTES * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            segment.file.write_at(&bad, 0).unwrap();
            let found = Segment::identify(&*segment.file, &segment.name, 77, 8192);
            assert!(matches!(found, Ok(Identity::Unfinished(_))), "bit {bit}");
        }
    }

    #[test]
    fn zeros_reach_to_the_end_of_a_stretch_or_of_the_segment() {
        let disk = MemoryDisk::new();
        let segment = Segment::prepare(&disk, 77, 0, 17 * 4096).ok().unwrap();
        assert_eq!(segment.zeros_behind(0), 0, "nothing was written");
        assert_eq!(segment.zeros_behind(10), 8192 - 10);
        segment.write(0, &[1; 8000]).unwrap();
        assert_eq!(segment.zeros_behind(8000), 0, "its block is in use");
        assert_eq!(segment.zeros_behind(8001), 191);
        assert_eq!(segment.zeros_behind(16 * 4096 + 1), 4095);
        assert_eq!(segment.zeros_behind(17 * 4096), 0);
        let recycled = segment.recycle(&disk, 77, 1 << 20).ok().unwrap();
        assert_eq!(recycled.zeros_behind((1 << 20) + 10), 0, "all was written");
    }

    #[test]
    fn a_recycled_segment_has_the_new_name_and_start() {
        let disk = MemoryDisk::new();
        let old = prepared(&disk);
        let new = old.recycle(&disk, 77, 1 << 20).ok().unwrap();
        assert_eq!(disk.list().unwrap(), [name_of(1 << 20)]);
        let found = Segment::identify(&*new.file, &new.name, 77, 1 << 20).unwrap();
        assert!(matches!(found, Identity::Segment(4096)));
    }
}
