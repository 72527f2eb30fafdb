//! A pool on a disk whose every call can be watched, held up and failed; pages that check themselves.

use longshore_base::{
    Durability, DurabilityLost, Lsn, PageId, PageSize, PageType, SystemEnvironment,
};
use longshore_disk::{
    Disk, DiskError, DiskErrorKind, DiskFile, DiskOperation, MemoryDisk, OpenMode,
};
use longshore_pool::{PageMut, PageRef, Pool, PoolOptions, Replacement};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const PAGE: usize = 4096;

/// A log that is durable as far as it was asked to be.
#[derive(Default)]
pub struct TestLog {
    durable: AtomicU64,
    lost: AtomicBool,
}

impl TestLog {
    /// The end of the safe prefix: a record at `lsn` is safe if it lies below.
    pub fn durable(&self) -> u64 {
        self.durable.load(SeqCst)
    }

    pub fn lose(&self) {
        self.lost.store(true, SeqCst);
    }
}

impl Durability for TestLog {
    fn is_durable(&self, lsn: Lsn) -> bool {
        lsn == Lsn::ZERO || lsn.get() < self.durable()
    }

    fn make_durable(&self, lsn: Lsn) -> Result<(), DurabilityLost> {
        if self.lost.load(SeqCst) {
            let cause = "test".into();
            return Err(DurabilityLost { cause });
        }
        if lsn != Lsn::ZERO {
            self.durable.fetch_max(lsn.get() + 1, SeqCst);
        }
        Ok(())
    }
}

/// A call on a file, before it is made; and the end of a read.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    Read { page: u64 },
    ReadDone { page: u64 },
    Write { page: u64, bytes: &'a [u8] },
    Sync,
}

type Hook = Arc<dyn Fn(Call<'_>) -> Result<(), DiskErrorKind> + Send + Sync>;

/// A file that tells a hook of every call; the hook may wait, act, or fail the call.
pub struct WatchedFile {
    file: Arc<dyn DiskFile>,
    hook: Mutex<Option<Hook>>,
}

impl WatchedFile {
    pub fn new(file: Arc<dyn DiskFile>) -> Arc<WatchedFile> {
        Arc::new(WatchedFile {
            file,
            hook: Mutex::new(None),
        })
    }

    pub fn watch(
        &self,
        hook: impl Fn(Call<'_>) -> Result<(), DiskErrorKind> + Send + Sync + 'static,
    ) {
        *self.hook.lock().unwrap() = Some(Arc::new(hook));
    }

    pub fn unwatch(&self) {
        *self.hook.lock().unwrap() = None;
    }

    fn tell(&self, operation: DiskOperation, call: Call<'_>) -> Result<(), DiskError> {
        let hook = self.hook.lock().unwrap().clone();
        match hook.map_or(Ok(()), |hook| hook(call)) {
            Ok(()) => Ok(()),
            Err(kind) => Err(DiskError::because(operation, "watched", kind, "as told")),
        }
    }
}

impl DiskFile for WatchedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize, DiskError> {
        let page = offset / PAGE as u64;
        self.tell(DiskOperation::Read, Call::Read { page })?;
        let read = self.file.read_at(bytes, offset)?;
        self.tell(DiskOperation::Read, Call::ReadDone { page })?;
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), DiskError> {
        let page = offset / PAGE as u64;
        self.tell(DiskOperation::Write, Call::Write { page, bytes })?;
        self.file.write_at(bytes, offset)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.tell(DiskOperation::Sync, Call::Sync)?;
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

/// A pool, and what it stands on.
pub struct Bed {
    pub pool: Arc<Pool>,
    pub data: Arc<WatchedFile>,
    pub area: Arc<WatchedFile>,
    pub log: Arc<TestLog>,
    pub disk: Arc<dyn Disk>,
    next_lsn: AtomicU64,
}

/// Options for small pages, and so many frames.
pub fn small(frames: usize) -> PoolOptions {
    let batch = (frames / 8).max(4) + 1;
    PoolOptions {
        page_size: PageSize::MIN,
        wait: Duration::from_millis(200),
        ..PoolOptions::with_bytes(frames * (PAGE + 64) + batch * PAGE + (20 << 10))
    }
}

/// These options under a policy, which takes its memory besides.
pub fn under(replacement: &Replacement, options: PoolOptions) -> PoolOptions {
    let frames = options.bytes_max / options.page_size.bytes();
    PoolOptions {
        replacement: replacement.clone(),
        bytes_max: options.bytes_max + replacement.bytes_max(frames as u32),
        ..options
    }
}

impl Bed {
    pub fn new(options: PoolOptions) -> Bed {
        Bed::on(Arc::new(MemoryDisk::new()), options)
    }

    pub fn on(disk: Arc<dyn Disk>, options: PoolOptions) -> Bed {
        let open = |name| WatchedFile::new(disk.open(name, OpenMode::OpenOrCreate).unwrap());
        let (data, area) = (open("data"), open("double-write"));
        disk.sync_directory().unwrap();
        let log = Arc::new(TestLog::default());
        let pool = Pool::new(
            options,
            data.clone(),
            Some(area.clone()),
            log.clone(),
            Arc::new(SystemEnvironment::new()),
        );
        Bed {
            pool: pool.unwrap(),
            data,
            area,
            log,
            disk,
            next_lsn: AtomicU64::new(64),
        }
    }

    /// The same files under a new pool.
    pub fn reopen(&self, options: PoolOptions) -> Bed {
        Bed::on(self.disk.clone(), options)
    }

    pub fn lsn(&self) -> Lsn {
        Lsn::new(self.next_lsn.fetch_add(64, SeqCst))
    }

    /// Makes page `id` anew, with value `value`.
    pub fn create(&self, id: u64, value: u64) {
        let mut guard = self.pool.fix_new(PageId::new(id)).unwrap();
        fill(&mut guard.page_mut(), id, value);
        guard.stamp(self.lsn());
    }

    /// Gives page `id` the value `value`.
    pub fn set(&self, id: u64, value: u64) {
        let mut guard = self.pool.fix_exclusive(PageId::new(id)).unwrap();
        check(guard.page(), id);
        fill(&mut guard.page_mut(), id, value);
        guard.stamp(self.lsn());
    }

    /// The value of page `id`.
    pub fn get(&self, id: u64) -> u64 {
        let guard = self.pool.fix_shared(PageId::new(id)).unwrap();
        check(guard.page(), id)
    }

    /// Whether a read of page `id` finds it in the pool.
    pub fn is_resident(&self, id: u64) -> bool {
        let before = self.pool.stats().misses;
        let _ = self.pool.read_scan(PageId::new(id));
        self.pool.stats().misses == before
    }

    /// Reads page `id`, and does nothing with it.
    pub fn touch(&self, id: u64) {
        self.pool.read(PageId::new(id)).unwrap();
    }

    /// Reads page `id` in passing.
    pub fn scan(&self, id: u64) {
        self.pool.read_scan(PageId::new(id)).unwrap();
    }

    /// Reads so many other pages that what was in the pool is out of it, written if it was dirty.
    pub fn push_out(&self, from: u64) {
        let frames = self.pool.stats().frames;
        for id in from..from + 6 * frames {
            self.scan(id);
            self.pool.maintain(usize::MAX).unwrap();
        }
    }
}

/// Stops the helpers of a test when its main thread is done, or fails.
pub struct StopOnDrop<'a>(pub &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Fills a page so that each word tells page and value.
pub fn fill(page: &mut PageMut<'_>, id: u64, value: u64) {
    page.set_u8(longshore_base::page::header::TYPE, PageType::Node as u8);
    page.set_word(1, id);
    for index in 4..PAGE / 8 {
        page.set_word(index, word(id, value, index));
    }
}

/// The value of a page, all of whose words must agree. A page never filled has value 0.
#[track_caller]
pub fn check(page: PageRef<'_>, id: u64) -> u64 {
    let value = page.word(4);
    if value == 0 {
        return 0;
    }
    for index in 4..PAGE / 8 {
        let wanted = word(id, value, index);
        assert_eq!(page.word(index), wanted, "page {id}, word {index}");
    }
    value
}

fn word(id: u64, value: u64, index: usize) -> u64 {
    if index == 4 {
        value
    } else {
        (id << 40) ^ value.rotate_left(index as u32)
    }
}
