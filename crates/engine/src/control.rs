//! The control file: which database this is, and from where its log must be read.
//!
//! Two slots of 4 KiB hold the same [`Control`]. A change is written to the one, synced, then to the
//! other, synced: at every moment one slot is whole, and at rest both are, so that damage to one is
//! repaired from the other.
//!
//! | bytes      | field        | meaning                                              |
//! |------------|--------------|------------------------------------------------------|
//! | 0..8       | magic        | `LONGSHRE`                                           |
//! | 8..12      | version      | of the database format, [`FORMAT_VERSION`]           |
//! | 12..16     | page_size    | bytes                                                |
//! | 16..24     | database     | a random number, in every log segment too            |
//! | 24..32     | sequence     | raised by each write of a slot; the higher one wins  |
//! | 32..40     | redo_lsn     | where redo starts                                    |
//! | 40..48     | scan_lsn     | where analysis starts; never above `redo_lsn`        |
//! | 48..56     | end_lsn      | the log is known to reach at least this far          |
//! | 56..64     | state        | 0 in use, 1 closed cleanly                           |
//! | 64..72     | next_txn     | no transaction has had this number or a higher one   |
//! | 72..80     | pages        | the data file has at least so many pages             |
//! | 80..88     | catalog_root | root page of the table of tables                     |
//! | 88..96     | garbage_root | root page of the table of things to free             |
//! | 4092..4096 | checksum     | CRC32C over bytes 0..4092                            |
//!
//! All numbers are little-endian. Magic, version and checksum stay where they are in every version.
//!
//! # Invariants
//! I1. What the newer slot needs of the log, and what the older one needs, is in the log: segments
//! are recycled only after both slots were written.
//! I2. The state is "closed cleanly" only while nothing was logged behind `end_lsn`: the first thing
//! that opening for writing does is to write "in use".
//!
//! # Failure
//! A crash within or between the two writes leaves one whole slot: the old content or the new, both
//! right (I1). A failed write leaves the same on disk, and may be tried again; a failed sync poisons the
//! database.

use crate::error::{Error, Result};
use longshore_base::sync::Mutex;
use longshore_base::{Lsn, PageId, PageSize, crash_point};
use longshore_disk::{Disk, DiskError, DiskFile, OpenMode};
use std::sync::Arc;

/// Version of the database format that this build reads and writes.
pub const FORMAT_VERSION: u32 = 2;

/// Name of the control file in the database's directory.
pub(crate) const CONTROL_FILE: &str = "control";

const MAGIC: &[u8; 8] = b"LONGSHRE";
const SLOT_BYTES: usize = 4096;
const CHECKSUM_AT: usize = SLOT_BYTES - 4;

/// Whether the log holds anything that the pages may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Open, or left by a crash.
    InUse,
    /// Every change is in the pages, no transaction was active.
    Clean,
}

/// What the control file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    pub(crate) page_size: PageSize,
    pub(crate) database: u64,
    pub(crate) redo_lsn: Lsn,
    pub(crate) scan_lsn: Lsn,
    pub(crate) end_lsn: Lsn,
    pub(crate) state: State,
    pub(crate) next_txn: u64,
    pub(crate) pages: u64,
    pub(crate) catalog_root: PageId,
    pub(crate) garbage_root: PageId,
}

/// The open control file of a database.
pub(crate) struct ControlFile {
    file: Arc<dyn DiskFile>,
    current: Mutex<(Control, u64)>,
}

impl ControlFile {
    /// Writes the first control of a new database under the name `name`.
    pub(crate) fn create(disk: &dyn Disk, name: &str, control: Control) -> Result<ControlFile> {
        let file = disk.open(name, OpenMode::OpenOrCreate)?;
        let this = ControlFile {
            file,
            current: Mutex::new((control, 0)),
        };
        this.write(control)?;
        Ok(this)
    }

    /// Reads the control file of the database at `path`, which is named in errors.
    ///
    /// # Errors
    /// [`Error::NotADatabase`], [`Error::OtherVersion`], [`Error::Corrupt`].
    pub(crate) fn open(disk: &dyn Disk, mode: OpenMode, path: &str) -> Result<ControlFile> {
        let file = disk.open(CONTROL_FILE, mode)?;
        let mut bytes = vec![0; 2 * SLOT_BYTES];
        let length = file.read_at(&mut bytes, 0)?;
        let current = choose(&bytes[..length], path)?;
        Ok(ControlFile {
            file,
            current: Mutex::new(current),
        })
    }

    /// What the file says now.
    pub(crate) fn get(&self) -> Control {
        self.current.lock().0
    }

    /// Replaces the content, slot by slot; on disk when this returns.
    pub(crate) fn write(&self, control: Control) -> Result<()> {
        let mut current = self.current.lock();
        for step in ["control.first_written", "control.written"] {
            let sequence = current.1 + 1;
            let offset = (sequence % 2) * SLOT_BYTES as u64;
            self.file.write_at(&encode(&control, sequence), offset)?;
            self.file.sync().map_err(unknown)?;
            *current = (control, sequence);
            crash_point(step);
        }
        Ok(())
    }

    /// Replaces what `change` changes.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Control)) -> Result<()> {
        let mut control = self.get();
        change(&mut control);
        self.write(control)
    }
}

/// After a failed sync nobody knows what is on disk, even if a later sync says that all is well.
fn unknown(error: DiskError) -> Error {
    Error::Poisoned {
        cause: error.to_string().into(),
    }
}

/// The bytes of one slot.
fn encode(control: &Control, sequence: u64) -> Vec<u8> {
    let mut slot = vec![0; SLOT_BYTES];
    slot[..8].copy_from_slice(MAGIC);
    slot[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    slot[12..16].copy_from_slice(&(control.page_size.bytes() as u32).to_le_bytes());
    let state = match control.state {
        State::InUse => 0,
        State::Clean => 1,
    };
    let words = [
        control.database,
        sequence,
        control.redo_lsn.get(),
        control.scan_lsn.get(),
        control.end_lsn.get(),
        state,
        control.next_txn,
        control.pages,
        control.catalog_root.get(),
        control.garbage_root.get(),
    ];
    for (at, word) in words.iter().enumerate() {
        slot[16 + at * 8..24 + at * 8].copy_from_slice(&word.to_le_bytes());
    }
    let sum = checksum(&slot);
    slot[CHECKSUM_AT..].copy_from_slice(&sum.to_le_bytes());
    slot
}

/// What one slot turned out to be.
#[derive(Debug, PartialEq, Eq)]
enum Slot {
    Whole(Control, u64),
    /// Whole, but of another version.
    OtherVersion(u32),
    /// Begins as ours do, and is damaged.
    Damaged(String),
    /// Does not begin as ours do.
    Foreign,
}

fn decode(slot: &[u8]) -> Slot {
    if !slot.starts_with(MAGIC) {
        return Slot::Foreign;
    }
    if slot.len() < SLOT_BYTES {
        return Slot::Damaged(format!("a slot of {} bytes, not {SLOT_BYTES}", slot.len()));
    }
    let version = u32_at(slot, 8);
    let (stored, computed) = (u32_at(slot, CHECKSUM_AT), checksum(slot));
    if stored != computed {
        return Slot::Damaged(format!(
            "checksum mismatch: stored {stored:08x}, computed {computed:08x} (version {version})"
        ));
    }
    if version != FORMAT_VERSION {
        return Slot::OtherVersion(version);
    }
    let Some(page_size) = PageSize::new(u32_at(slot, 12) as usize) else {
        return Slot::Damaged(format!("pages of {} bytes", u32_at(slot, 12)));
    };
    let word = |index: usize| u64_at(slot, 16 + index * 8);
    let state = match word(5) {
        0 => State::InUse,
        1 => State::Clean,
        other => return Slot::Damaged(format!("unknown state {other}")),
    };
    let control = Control {
        page_size,
        database: word(0),
        redo_lsn: Lsn::new(word(2)),
        scan_lsn: Lsn::new(word(3)),
        end_lsn: Lsn::new(word(4)),
        state,
        next_txn: word(6),
        pages: word(7),
        catalog_root: PageId::new(word(8)),
        garbage_root: PageId::new(word(9)),
    };
    Slot::Whole(control, word(1))
}

/// The newer whole slot of the file's bytes, with its sequence number.
fn choose(bytes: &[u8], path: &str) -> Result<(Control, u64)> {
    let (first, second) = bytes.split_at(bytes.len().min(SLOT_BYTES));
    match (decode(first), decode(second)) {
        // Another version's slot means that another version was at work last: keep off.
        (Slot::OtherVersion(found), _) | (_, Slot::OtherVersion(found)) => {
            Err(Error::OtherVersion {
                path: path.to_owned(),
                found,
                supported: FORMAT_VERSION,
            })
        }
        (Slot::Whole(a, left), Slot::Whole(b, right)) => {
            Ok(if left > right { (a, left) } else { (b, right) })
        }
        (Slot::Whole(control, sequence), _) | (_, Slot::Whole(control, sequence)) => {
            Ok((control, sequence))
        }
        (Slot::Damaged(reason), _) | (_, Slot::Damaged(reason)) => {
            Err(Error::corrupt(CONTROL_FILE, reason))
        }
        (Slot::Foreign, Slot::Foreign) => Err(Error::NotADatabase {
            path: path.to_owned(),
            reason: match bytes.len() {
                0 => "its file `control` is empty".to_owned(),
                _ => "its file `control` does not begin with LONGSHRE".to_owned(),
            },
        }),
    }
}

fn checksum(slot: &[u8]) -> u32 {
    crc32c::crc32c(&slot[..CHECKSUM_AT])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_disk::MemoryDisk;
    use proptest::prelude::*;

    fn control(redo: u64) -> Control {
        Control {
            page_size: PageSize::DEFAULT,
            database: 0x1234_5678_9abc_def0,
            redo_lsn: Lsn::new(redo),
            scan_lsn: Lsn::new(redo / 2),
            end_lsn: Lsn::new(redo * 2),
            state: State::InUse,
            next_txn: 17,
            pages: 99,
            catalog_root: PageId::new(2),
            garbage_root: PageId::new(3),
        }
    }

    fn file(first: (u64, u64), second: (u64, u64)) -> Vec<u8> {
        let mut bytes = encode(&control(first.0), first.1);
        bytes.extend(encode(&control(second.0), second.1));
        bytes
    }

    #[test]
    fn the_higher_sequence_wins_in_either_slot() {
        assert_eq!(
            choose(&file((100, 4), (200, 5)), "p").unwrap(),
            (control(200), 5)
        );
        assert_eq!(
            choose(&file((300, 6), (200, 5)), "p").unwrap(),
            (control(300), 6)
        );
    }

    #[test]
    fn a_torn_slot_leaves_the_other() {
        let mut bytes = file((300, 6), (200, 5));
        bytes[512..4096].fill(0xee);
        assert_eq!(choose(&bytes, "p").unwrap(), (control(200), 5));
        bytes.truncate(4096 + 100);
        assert!(choose(&bytes, "p").unwrap_err().is_corrupt());
    }

    #[test]
    fn other_things_are_refused_by_name() {
        let empty = choose(&[], "/db").unwrap_err().to_string();
        assert_eq!(
            empty,
            "/db is not a Longshore database: its file `control` is empty"
        );
        let text = choose(b"hello, world, this is a letter", "/db").unwrap_err();
        assert!(text.to_string().contains("does not begin with LONGSHRE"));
    }

    #[test]
    fn another_version_is_refused_even_beside_an_older_slot_of_ours() {
        let mut bytes = file((300, 6), (200, 5));
        bytes[8] = 9;
        let sum = checksum(&bytes[..SLOT_BYTES]);
        bytes[CHECKSUM_AT..SLOT_BYTES].copy_from_slice(&sum.to_le_bytes());
        let refused = choose(&bytes, "/db").unwrap_err().to_string();
        assert_eq!(
            refused,
            format!("/db has format version 9; this build reads version {FORMAT_VERSION}")
        );
    }

    #[test]
    fn both_slots_are_written_and_read_back() {
        let disk = MemoryDisk::new();
        let created = ControlFile::create(&disk, CONTROL_FILE, control(100)).unwrap();
        created.update(|c| c.state = State::Clean).unwrap();
        let file = disk.open(CONTROL_FILE, OpenMode::Write).unwrap();
        for slot in 0..2 {
            // Damage to either slot is repaired from the other.
            let mut byte = [0];
            let offset = slot * SLOT_BYTES as u64 + 40;
            file.read_at(&mut byte, offset).unwrap();
            file.write_at(&[byte[0] ^ 1], offset).unwrap();
            let opened = ControlFile::open(&disk, OpenMode::Write, "p").unwrap();
            assert_eq!(opened.get().state, State::Clean);
            file.write_at(&byte, offset).unwrap();
        }
    }

    proptest! {
        #[test]
        fn any_flipped_bit_of_one_slot_is_harmless(bit in 0usize..4096 * 8) {
            let mut bytes = file((200, 6), (200, 5));
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(choose(&bytes, "p").unwrap(), (control(200), 5));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..9000)) {
            let _ = choose(&bytes, "p");
        }
    }
}
