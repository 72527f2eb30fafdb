//! A trace, and a data file that has its pages.
//!
//! Pages keep their numbers, unless these are too large for a file: then they are numbered in their order. Each page
//! that the trace uses is there, with its checksum, if all of them take no more than [`DISK_MEMORY_MAX`]; else the file
//! is a hole, which reads as blank pages, and [`Ground::is_blank`] says so.

use std::path::Path;
use std::sync::{Arc, Mutex};

use longshore_base::page::{header, seal};
use longshore_base::{
    Durability, DurabilityLost, Lsn, PageId, PageSize, PageType, SystemEnvironment,
};
use longshore_disk::{Disk, DiskError, DiskFile, FileDisk, FileOptions, MemoryDisk, OpenMode};
use longshore_policy::Trace;
use longshore_pool::{DoubleWrite, Pool, PoolError, PoolOptions};

use super::Setup;
use crate::error::LabError;

/// The most that pages of a data file may take, in bytes.
pub const DISK_MEMORY_MAX: u64 = 2 << 30;
/// Page numbers from here on are too large for a file.
const NUMBER_MAX: u64 = 1 << 25;
const _: () = assert!(NUMBER_MAX <= u32::MAX as u64);
/// With so many frames any pool works.
pub const FRAMES_ENOUGH: u32 = 24;
/// References of a stretch.
const STRETCH: usize = 64;
const FILE: &str = "longshore-lab-pages";

/// Where the data file lies.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// In memory.
    Memory,
    /// In a directory; the file goes when the ground does.
    Directory(&'a Path),
}

/// How the data file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// By many at once, as `pread` does.
    AsTheyCome,
    /// One after the other, as `seek` and `read` of one open file must.
    OneAtATime,
}

/// See the head of the file.
pub struct Ground {
    /// Numbers of pages in the file, in the order of the trace.
    refs: Vec<u32>,
    /// Each of them once.
    pages: Vec<u32>,
    file: Arc<dyn DiskFile>,
    is_blank: bool,
    disk: Option<FileDisk>,
}

impl Ground {
    /// The ground of a trace that is not empty.
    ///
    /// # Errors
    /// The data file cannot be made.
    pub fn new(trace: &Trace, place: Place<'_>) -> Result<Ground, LabError> {
        let pages = numbered(trace.pages());
        let (file, disk) = match place {
            Place::Memory => (MemoryDisk::new().open(FILE, OpenMode::Create)?, None),
            Place::Directory(path) => {
                let disk = FileDisk::open(path, FileOptions::default())?;
                (disk.open(FILE, OpenMode::Create)?, Some(disk))
            }
        };
        let page_bytes = PageSize::DEFAULT.bytes() as u64;
        let is_blank = pages.len() as u64 * page_bytes > DISK_MEMORY_MAX;
        let ground = Ground {
            refs: trace.refs().iter().map(|&at| pages[at as usize]).collect(),
            pages,
            file,
            is_blank,
            disk,
        };
        ground.write_pages()?;
        Ok(ground)
    }

    fn write_pages(&self) -> Result<(), DiskError> {
        let page_bytes = PageSize::DEFAULT.bytes() as u64;
        let end = self
            .pages
            .iter()
            .max()
            .map_or(0, |&last| u64::from(last) + 1);
        self.file.set_len(end * page_bytes)?;
        if self.is_blank {
            return Ok(());
        }
        let mut bytes = vec![7; PageSize::DEFAULT.bytes()];
        bytes[header::TYPE] = PageType::Node as u8;
        for page in self.pages.iter().copied().map(u64::from) {
            seal(PageId::new(page), &mut bytes);
            self.file.write_at(&bytes, page * page_bytes)?;
        }
        Ok(())
    }

    /// References of the trace.
    pub fn references(&self) -> usize {
        self.refs.len()
    }

    /// Different pages among them.
    pub fn distinct(&self) -> usize {
        self.pages.len()
    }

    /// Whether its pages were too many to be written.
    pub fn is_blank(&self) -> bool {
        self.is_blank
    }

    /// Stretches that the trace has.
    pub(super) fn stretches(&self) -> usize {
        self.refs.len().div_ceil(STRETCH)
    }

    /// The stretch of the trace with this number; they come round again.
    pub(super) fn stretch(&self, number: usize) -> impl Iterator<Item = PageId> {
        let start = number % self.stretches() * STRETCH;
        let end = (start + STRETCH).min(self.refs.len());
        self.refs[start..end].iter().map(page_of)
    }

    /// The first pages that the trace uses, so many references; and again from its begin, if it is shorter.
    pub(super) fn first(&self, references: usize) -> impl Iterator<Item = PageId> {
        let refs = self.refs.iter().cycle().take(references);
        refs.map(page_of)
    }

    /// Each page once.
    pub(super) fn each(&self) -> impl Iterator<Item = PageId> {
        self.pages.iter().map(page_of)
    }

    /// A pool over the file, in which so many pages have room as `setup` says.
    ///
    /// # Errors
    /// There is no such pool.
    pub fn pool(&self, setup: &Setup) -> Result<Arc<Pool>, LabError> {
        let file: Arc<dyn DiskFile> = match setup.reads {
            Reads::AsTheyCome => Arc::clone(&self.file),
            Reads::OneAtATime => Arc::new(OneAtATime {
                file: Arc::clone(&self.file),
                turn: Mutex::new(()),
            }),
        };
        // What is not for frames is the pool's secret: ask, and correct.
        const FRAME_BYTES: i64 = PageSize::DEFAULT.bytes() as i64 + 64;
        const TRIES: usize = 64;
        let wanted = i64::from(setup.frames);
        let mut bytes = (wanted + 64) * FRAME_BYTES + (1 << 20);
        for _ in 0..TRIES {
            let pool = match self.try_pool(setup, &file, bytes as usize) {
                Ok(pool) => pool,
                Err(PoolError::TooSmall { .. }) => break,
                Err(error) => return Err(error.into()),
            };
            let lacking = wanted - pool.stats().frames_free as i64;
            if lacking == 0 {
                return Ok(pool);
            }
            bytes = (bytes + lacking * FRAME_BYTES).max(1);
        }
        Err(LabError::Usage(match setup.frames < FRAMES_ENOUGH {
            true => format!(
                "{wanted} pages are too few for the pool to work; {FRAMES_ENOUGH} are enough"
            ),
            false => format!("{wanted} pages are too many for a pool here"),
        }))
    }

    fn try_pool(
        &self,
        setup: &Setup,
        file: &Arc<dyn DiskFile>,
        bytes_max: usize,
    ) -> Result<Arc<Pool>, PoolError> {
        let options = PoolOptions {
            replacement: setup.replacement.clone(),
            hand: setup.hand,
            weight_max: setup.weight_max,
            miss: setup.miss,
            times_replacement: setup.times_lock,
            double_write: DoubleWrite::Off,
            ..PoolOptions::with_bytes(bytes_max)
        };
        let environment = Arc::new(SystemEnvironment::new());
        Pool::new(
            options,
            Arc::clone(file),
            None,
            Arc::new(NoLog),
            environment,
        )
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if let Some(disk) = &self.disk {
            // Nothing can be done about it, and nothing is lost.
            let _ = disk.remove(FILE);
        }
    }
}

/// The least memory with which a pool can be made whose replacement and size of a page are these; 0 for a size that no page
/// of a pool has.
///
/// # Errors
/// There is no such replacement.
pub fn bytes_min(replacement: &str, page_bytes: u64) -> Result<u64, LabError> {
    let replacement = replacement.parse()?;
    let Some(page_size) = usize::try_from(page_bytes).ok().and_then(PageSize::new) else {
        return Ok(0);
    };
    // Ask with too little, and be told.
    let options = PoolOptions {
        page_size,
        replacement,
        double_write: DoubleWrite::Off,
        ..PoolOptions::with_bytes(0)
    };
    let file = MemoryDisk::new().open(FILE, OpenMode::Create)?;
    let environment = Arc::new(SystemEnvironment::new());
    match Pool::new(options, file, None, Arc::new(NoLog), environment) {
        Err(PoolError::TooSmall { minimum, .. }) => Ok(minimum as u64),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(0),
    }
}

fn page_of(number: &u32) -> PageId {
    PageId::new(u64::from(*number))
}

/// The numbers of the pages in a file.
fn numbered(pages: &[u64]) -> Vec<u32> {
    if pages.iter().all(|&page| page < NUMBER_MAX) {
        return pages.iter().map(|&page| page as u32).collect();
    }
    let mut sorted: Vec<u32> = (0..pages.len() as u32).collect();
    sorted.sort_unstable_by_key(|&at| pages[at as usize]);
    let mut numbers = vec![0; pages.len()];
    for (number, at) in sorted.into_iter().enumerate() {
        numbers[at as usize] = number as u32;
    }
    numbers
}

/// A log that is always durable: nothing is changed.
struct NoLog;

impl Durability for NoLog {
    fn is_durable(&self, _: Lsn) -> bool {
        true
    }

    fn make_durable(&self, _: Lsn) -> Result<(), DurabilityLost> {
        Ok(())
    }
}

/// A file that is read by one thread at a time.
struct OneAtATime {
    file: Arc<dyn DiskFile>,
    turn: Mutex<()>,
}

impl DiskFile for OneAtATime {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        let _turn = self.turn.lock().expect("no read panics");
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), DiskError> {
        self.file.write_at(bytes, offset)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.file.sync()
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> Result<(), DiskError> {
        self.file.set_len(len)
    }

    fn allocate(&self, len: u64) -> Result<(), DiskError> {
        self.file.allocate(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_keep_their_numbers_or_their_order() {
        assert_eq!(numbered(&[80, 0, 160]), [80, 0, 160]);
        assert_eq!(numbered(&[1 << 40, 7, u64::MAX]), [1, 0, 2]);
    }

    #[test]
    fn a_pool_has_as_many_frames_as_asked_for() {
        let trace: Trace = (0..100).map(|page| page * 80_000).collect();
        let ground = Ground::new(&trace, Place::Memory).unwrap();
        for frames in [24, 100, 1_234] {
            let pool = ground
                .pool(&Setup::new("lru".parse().unwrap(), frames))
                .unwrap();
            assert_eq!(pool.stats().frames_free, u64::from(frames));
        }
        let error = ground
            .pool(&Setup::new("lru".parse().unwrap(), 1))
            .unwrap_err();
        assert!(error.to_string().contains("1 pages are too few"), "{error}");
    }

    #[test]
    fn stretches_are_the_trace_and_come_round_again() {
        let trace: Trace = (0..150).collect();
        let ground = Ground::new(&trace, Place::Memory).unwrap();
        assert!(!ground.is_blank());
        assert_eq!(ground.stretches(), 3);
        let pages: Vec<_> = (0..4).flat_map(|number| ground.stretch(number)).collect();
        let expected: Vec<_> = (0..150).chain(0..64).map(PageId::new).collect();
        assert_eq!(pages, expected);
    }

    #[test]
    fn a_file_of_the_ground_goes_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let trace: Trace = [3, 1].into_iter().collect();
        let ground = Ground::new(&trace, Place::Directory(folder.path())).unwrap();
        assert!(folder.path().join(FILE).exists());
        drop(ground);
        assert!(!folder.path().join(FILE).exists());
    }
}
