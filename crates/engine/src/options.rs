//! What a user may choose, with units, ranges and defaults.
//!
//! # Invariants
//! I1. An [`Options`] value that passed [`Options::check`] is within every range named here; nothing
//! further down checks a range again. The pool alone knows how many frames it needs at least and
//! says so when it is created ([`Error::PoolTooSmall`]).

use crate::database::Database;
use crate::error::{Error, Result};
use crate::locks::LockEscalation;
use crate::open::Place;
use crate::retry::Limits;
use longshore_base::{PageSize, SystemEnvironment};
use longshore_disk::{FileDisk, FileOptions, MemoryDisk};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use longshore_disk::FileIo as IoMode;
pub use longshore_pool::{DoubleWrite, PageTrace, PageUse, Replacement};
pub use longshore_txn::{Isolation, LongReaders};

/// How safe a commit is when it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Durability {
    /// In the log buffer: lost with the process.
    None,
    /// Handed to the operating system: survives the process, not the machine.
    Os,
    /// On the disk: survives power loss. The default.
    #[default]
    Sync,
}

/// Who cleans pages, takes checkpoints and frees garbage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Background {
    /// Threads of the database's own, which end when it is closed.
    #[default]
    On,
    /// Nobody, until [`Database::maintain`] is called or an operation finds that it must.
    Off,
}

/// What a database may be opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Access {
    /// Reading and writing.
    #[default]
    ReadWrite,
    /// Reading a cleanly closed database; no byte of it is changed.
    ReadOnly,
}

/// Everything that can be chosen about a database; each has a default that suits most.
///
/// ```
/// use longshore::{Durability, Options};
/// use std::time::Duration;
///
/// # fn main() -> longshore::Result<()> {
/// let db = Options::new()
///     .pool_bytes(16 << 20)
///     .durability(Durability::Os)
///     .lock_wait(Duration::from_millis(500))
///     .in_memory()?;
/// # db.close()
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) page_size_bytes: Option<usize>,
    pub(crate) pool_bytes: usize,
    pub(crate) log_bytes_max: u64,
    pub(crate) log_segment_bytes: u64,
    pub(crate) log_buffer_bytes: usize,
    pub(crate) lock_bytes_max: usize,
    pub(crate) version_bytes_max: usize,
    pub(crate) long_readers: LongReaders,
    pub(crate) lock_wait: Duration,
    pub(crate) lock_escalation: LockEscalation,
    pub(crate) transactions_max: usize,
    pub(crate) durability: Durability,
    pub(crate) io: IoMode,
    pub(crate) background: Background,
    pub(crate) access: Access,
    pub(crate) double_write: DoubleWrite,
    pub(crate) replacement: String,
    pub(crate) page_trace: Option<Arc<dyn PageTrace>>,
    pub(crate) update_attempts_max: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            page_size_bytes: None,
            pool_bytes: 128 << 20,
            log_bytes_max: 1 << 30,
            log_segment_bytes: 16 << 20,
            log_buffer_bytes: 4 << 20,
            lock_bytes_max: 32 << 20,
            version_bytes_max: 64 << 20,
            long_readers: LongReaders::EndOldest,
            lock_wait: Duration::from_secs(5),
            lock_escalation: LockEscalation::At(10_000),
            transactions_max: 1024,
            durability: Durability::Sync,
            io: IoMode::Buffered,
            background: Background::On,
            access: Access::ReadWrite,
            double_write: DoubleWrite::On,
            replacement: Replacement::Native.to_string(),
            page_trace: None,
            update_attempts_max: 1000,
        }
    }
}

impl Options {
    /// The defaults.
    pub fn new() -> Options {
        Options::default()
    }

    /// Size of a page: a power of two from 4096 to 65536 bytes; 8192 unless set.
    ///
    /// Fixed when the database is created. When an existing one is opened, a size set here must be
    /// the database's own ([`Error::OtherPageSize`]).
    pub fn page_size(mut self, bytes: usize) -> Options {
        self.page_size_bytes = Some(bytes);
        self
    }

    /// Memory for pages, 128 MiB unless set. [`Error::PoolTooSmall`] states the least that will do.
    pub fn pool_bytes(mut self, bytes: usize) -> Options {
        self.pool_bytes = bytes;
        self
    }

    /// Disk space for the log, 1 GiB unless set; at least four segments.
    ///
    /// A checkpoint is taken each time that a quarter of it has been written. The changes of one
    /// transaction must fit, twice over ([`Error::LogFull`]).
    pub fn log_bytes_max(mut self, bytes: u64) -> Options {
        self.log_bytes_max = bytes;
        self
    }

    /// Size of one log file, 16 MiB unless set; from 16 KiB to 1 GiB, in steps of 4 KiB.
    pub fn log_segment_bytes(mut self, bytes: u64) -> Options {
        self.log_segment_bytes = bytes;
        self
    }

    /// Memory for log records on their way to disk, 4 MiB unless set; a power of two from 64 KiB to
    /// 1 GiB, and at least four pages.
    pub fn log_buffer_bytes(mut self, bytes: usize) -> Options {
        self.log_buffer_bytes = bytes;
        self
    }

    /// Memory for the lock table, 32 MiB unless set; at least 64 KiB. [`Error::LockTableFull`] when
    /// that does not suffice.
    pub fn lock_bytes_max(mut self, bytes: usize) -> Options {
        self.lock_bytes_max = bytes;
        self
    }

    /// Memory for older states of rows, which transactions that read a snapshot see, 64 MiB unless set; from
    /// 64 KiB to 16 GiB. [`Options::long_readers`] says what happens when that does not suffice.
    pub fn version_bytes_max(mut self, bytes: usize) -> Options {
        self.version_bytes_max = bytes;
        self
    }

    /// Who gives way when older states of rows need more memory than there is: the oldest reader, unless
    /// set.
    pub fn long_readers(mut self, policy: LongReaders) -> Options {
        self.long_readers = policy;
        self
    }

    /// When a transaction trades its locks on rows for one on their table: with 10,000 of them unless
    /// set, or when memory for locks runs short. A table may have its own rule, see
    /// [`Database::set_lock_escalation`](crate::Database::set_lock_escalation).
    pub fn lock_escalation(mut self, escalation: LockEscalation) -> Options {
        self.lock_escalation = escalation;
        self
    }

    /// Longest wait for a lock, 5 seconds unless set; zero means that nobody ever waits.
    pub fn lock_wait(mut self, limit: Duration) -> Options {
        self.lock_wait = limit;
        self
    }

    /// Transactions that may be active at a time, 1024 unless set; from 1 to 65536.
    pub fn transactions_max(mut self, count: usize) -> Options {
        self.transactions_max = count;
        self
    }

    /// How safe a commit is that does not say so itself; [`Durability::Sync`] unless set.
    pub fn durability(mut self, durability: Durability) -> Options {
        self.durability = durability;
        self
    }

    /// Whether files are read and written through the system's page cache, which is the default, or
    /// past it. A database in memory does not care.
    pub fn io(mut self, io: IoMode) -> Options {
        self.io = io;
        self
    }

    /// Whether the database runs threads of its own; it does unless set.
    pub fn background(mut self, background: Background) -> Options {
        self.background = background;
        self
    }

    /// Opens for reading only: every change is refused, no byte on disk is changed.
    ///
    /// The database must have been closed cleanly ([`Error::NeedsRecovery`]).
    pub fn read_only(mut self) -> Options {
        self.access = Access::ReadOnly;
        self
    }

    /// Whether pages are written twice, so that a page torn by power loss is repaired; they are
    /// unless set. Turn it off only where the file system promises that a page is written whole.
    pub fn double_write(mut self, double_write: DoubleWrite) -> Options {
        self.double_write = double_write;
        self
    }

    /// Which page leaves memory when another wants in: `nb-gclock`, unless set, which takes no lock; or a policy
    /// as `lirs` or `2q:in=20%`, in BP-Wrapper, so that threads rarely meet at its lock; or another form before it,
    /// as `lossy/lirs`. The error for a name that is none lists what there is.
    pub fn replacement(mut self, replacement: impl Into<String>) -> Options {
        self.replacement = replacement.into();
        self
    }

    /// Who is told of each use of a page; nobody, unless set. It is what `longshore lab` finds the fitting policy and
    /// memory with; `longshore lab record` is made of it.
    pub fn page_trace(mut self, trace: Arc<dyn PageTrace>) -> Options {
        self.page_trace = Some(trace);
        self
    }

    /// How often [`Database::update`] runs its body at most, 1000 times unless set; at least once. It
    /// also gives up when four times `lock_wait`, and a second, have passed.
    pub fn update_attempts_max(mut self, attempts: u32) -> Options {
        self.update_attempts_max = attempts;
        self
    }

    /// Creates a database in the directory `path`, which is made where it is missing.
    ///
    /// # Errors
    /// [`Error::DatabaseExists`] when there is one already.
    pub fn create(self, path: impl AsRef<Path>) -> Result<Database> {
        Database::create_at(self.place(path.as_ref(), true)?)
    }

    /// Opens the database in the directory `path`, recovering it when it was not closed cleanly.
    ///
    /// # Errors
    /// [`Error::NoDatabase`] when there is none; [`Error::Locked`] when another process has it open.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Database> {
        let path = path.as_ref();
        if !path.is_dir() {
            return Err(Error::NoDatabase {
                path: path.display().to_string(),
            });
        }
        Database::open_at(self.place(path, false)?)
    }

    /// Opens the database in the directory `path`, or creates it where there is none.
    ///
    /// # Errors
    /// Those of [`Options::open`] and [`Options::create`].
    pub fn open_or_create(self, path: impl AsRef<Path>) -> Result<Database> {
        let create = self.access == Access::ReadWrite;
        Database::open_or_create_at(self.place(path.as_ref(), create)?)
    }

    /// Creates a database in memory, which is gone when the last handle is.
    ///
    /// # Errors
    /// [`Error::InvalidOption`], [`Error::PoolTooSmall`].
    pub fn in_memory(self) -> Result<Database> {
        Database::create_at(Place {
            disk: Arc::new(MemoryDisk::new()),
            env: Arc::new(SystemEnvironment::new()),
            // What does not last need not be protected from being torn.
            options: self.double_write(DoubleWrite::Off),
            path: "memory".to_owned(),
        })
    }

    fn place(self, path: &Path, create: bool) -> Result<Place> {
        self.check()?;
        let files = FileOptions {
            io: self.io,
            create,
        };
        Ok(Place {
            disk: Arc::new(FileDisk::open(path, files)?),
            env: Arc::new(SystemEnvironment::new()),
            options: self,
            path: path.display().to_string(),
        })
    }

    /// Holds every choice against its range (I1).
    pub(crate) fn check(&self) -> Result<()> {
        self.check_log()?;
        if let Some(bytes) = self.page_size_bytes
            && PageSize::new(bytes).is_none()
        {
            return refuse(
                "page_size",
                bytes,
                "a power of two from 4096 to 65536 bytes",
            );
        }
        if self.lock_bytes_max < 64 << 10 {
            return refuse(
                "lock_bytes_max",
                self.lock_bytes_max,
                "at least 65536 bytes",
            );
        }
        // A shelf of versions numbers their places in 32 GiB, of which a half may lie between them.
        if !(64 << 10..=16 << 30).contains(&(self.version_bytes_max as u64)) {
            return refuse(
                "version_bytes_max",
                self.version_bytes_max,
                "from 65536 to 17179869184 bytes",
            );
        }
        if !(1..=65536).contains(&self.transactions_max) {
            return refuse("transactions_max", self.transactions_max, "from 1 to 65536");
        }
        if let Err(error) = self.replacement.parse::<Replacement>() {
            let allowed =
                format!("a policy, as `lru`, or a form and a policy, as `lossy/lru`: {error}");
            return refuse("replacement", &self.replacement, &allowed);
        }
        if self.update_attempts_max == 0 {
            return refuse("update_attempts_max", 0, "at least 1");
        }
        Ok(())
    }

    fn check_log(&self) -> Result<()> {
        let segment = self.log_segment_bytes;
        if !(16 << 10..=1 << 30).contains(&segment) || !segment.is_multiple_of(4096) {
            let allowed = "from 16384 to 1073741824 bytes, in steps of 4096";
            return refuse("log_segment_bytes", segment, allowed);
        }
        if self.log_bytes_max < 4 * segment {
            let allowed = format!("at least {} bytes, four segments", 4 * segment);
            return refuse("log_bytes_max", self.log_bytes_max, &allowed);
        }
        let least = (64 << 10).max(4 * self.page_size_chosen().bytes());
        let buffer = self.log_buffer_bytes;
        if !buffer.is_power_of_two() || !(least..=1 << 30).contains(&buffer) {
            let allowed = format!("a power of two from {least} to 1073741824 bytes");
            return refuse("log_buffer_bytes", buffer, &allowed);
        }
        Ok(())
    }

    /// What was chosen, and has passed `check`.
    pub(crate) fn replacement_chosen(&self) -> Replacement {
        self.replacement.parse().unwrap_or_default()
    }

    /// How long `update` tries again.
    pub(crate) fn retry_limits(&self) -> Limits {
        Limits {
            attempts_max: self.update_attempts_max,
            wait: self.lock_wait.saturating_mul(4) + Duration::from_secs(1),
        }
    }

    /// The page size of a database to be created.
    pub(crate) fn page_size_chosen(&self) -> PageSize {
        self.page_size_bytes
            .and_then(PageSize::new)
            .unwrap_or_default()
    }

    /// Log written between two checkpoints, in bytes.
    pub(crate) fn checkpoint_bytes(&self) -> u64 {
        self.log_bytes_max / 4
    }
}

fn refuse(option: &'static str, value: impl ToString, allowed: &str) -> Result<()> {
    Err(Error::InvalidOption {
        option,
        value: value.to_string(),
        allowed: allowed.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(options: Options) -> String {
        options.check().unwrap_err().to_string()
    }

    #[test]
    fn defaults_pass() {
        Options::new().check().unwrap();
    }

    #[test]
    fn small_sizes_of_the_simulation_pass() {
        let small = Options::new()
            .page_size(4096)
            .log_segment_bytes(64 << 10)
            .log_bytes_max(1 << 20)
            .log_buffer_bytes(64 << 10);
        small.check().unwrap();
    }

    #[test]
    fn each_refusal_names_option_value_and_range() {
        for (options, words) in [
            (
                Options::new().page_size(5000),
                ["page_size", "5000", "65536"],
            ),
            (
                Options::new().lock_bytes_max(1),
                ["lock_bytes_max", "1", "65536"],
            ),
            (
                Options::new().version_bytes_max(1),
                ["version_bytes_max", "1", "65536"],
            ),
            (
                Options::new().version_bytes_max((16 << 30) + 1),
                ["version_bytes_max", "17179869185", "17179869184"],
            ),
            (
                Options::new().transactions_max(0),
                ["transactions_max", "0", "65536"],
            ),
            (
                Options::new().update_attempts_max(0),
                ["update_attempts_max", "0", "at least 1"],
            ),
            (
                Options::new().log_segment_bytes(5000),
                ["log_segment_bytes", "5000", "4096"],
            ),
            (
                Options::new().log_bytes_max(1 << 20),
                ["log_bytes_max", "1048576", "67108864"],
            ),
            (
                Options::new().log_buffer_bytes(1000),
                ["log_buffer_bytes", "1000", "65536"],
            ),
            (
                Options::new().replacement("lruu"),
                ["replacement", "lruu", "nb-gclock, random, fifo, lru"],
            ),
            (
                Options::new().page_size(65536).log_buffer_bytes(1 << 17),
                ["log_buffer_bytes", "131072", "262144"],
            ),
        ] {
            let message = message(options);
            for word in words {
                assert!(message.contains(word), "{word:?} is not in {message:?}");
            }
        }
    }
}
