//! The page trace of a running database, written while it runs.
//!
//! # Protocol
//! A [`Recorder`] owns the file. What [`Recorder::trace`] returns is told by the database's pool of the size of its pages,
//! with which the trace begins, and of each use of a page. Only then is the file emptied: a command that is
//! refused for its own settings leaves it as it was. A thread gathers its uses in a buffer of its own and writes them, a buffer at a time, under the file's lock;
//! [`Recorder::finish`] writes what is left, of ended threads too.
//!
//! # Invariants
//! A1. Each use is in the file once, and those of a thread are in their order. Between threads the order is right to
//!     within a buffer of [`GATHERED`] uses of each.
//! A2. A file that cannot be written disturbs nobody who uses the database: recording stops, and `finish` says why.
//! A3. A file is as it was before, until a pool is there whose pages are used.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longshore_base::{PageId, PageSize};
use longshore_pool::{PageTrace, PageUse};
use thread_local::ThreadLocal;

use crate::error::LabError;
use crate::format::{Access, Kind, Writer};

/// Uses that a thread gathers before it writes them.
pub const GATHERED: usize = 64;
/// In the file, where no pool has said it.
const PAGE_SIZE_UNKNOWN: u32 = 0;

/// A trace that is being written to a file.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    /// Whether the file was made for this trace.
    is_new: bool,
    shared: Arc<Shared>,
}

/// What was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Uses of pages.
    pub accesses: u64,
    /// Threads that used them.
    pub threads: u32,
}

impl Recorder {
    /// Makes ready for a trace in a new file, or in place of the one that is there, which stays until the trace begins.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path) -> Result<Recorder, LabError> {
        let is_new = !path.exists();
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(path);
        let name = path.display().to_string();
        let file = file.map_err(LabError::file("create", &name))?;
        Ok(Recorder {
            path: path.to_owned(),
            is_new,
            shared: Arc::new(Shared::new(file)),
        })
    }

    /// What is to be told of each use of a page; of one database only, as pages go by their numbers.
    pub fn trace(&self) -> Arc<dyn PageTrace> {
        Arc::clone(&self.shared) as Arc<dyn PageTrace>
    }

    /// Ends the trace. What is used from now on is not recorded.
    ///
    /// # Errors
    /// The file could not be written, now or before; it has no end then, and no reader takes it for whole.
    pub fn finish(self) -> Result<Recorded, LabError> {
        let shared = &self.shared;
        for gathered in &shared.threads {
            shared.write(&mut lock(gathered));
        }
        let mut output = lock(&shared.output);
        let failed = || LabError::file("write", &self.path.display().to_string());
        let finished = match std::mem::replace(&mut *output, Output::Ended) {
            Output::Open(writer, accesses) => writer.finish().map(|_| accesses),
            Output::Failed(error) => Err(error),
            Output::Untouched(_) => self.withdraw().map(|()| 0),
            Output::Ended => unreachable!("`finish` takes the recorder"),
        };
        Ok(Recorded {
            accesses: finished.map_err(failed())?,
            // Relaxed: those who write it have been joined, or are recorded no more.
            threads: shared.thread_count.load(Ordering::Relaxed),
        })
    }

    /// Leaves no file where there was none (A3).
    fn withdraw(&self) -> io::Result<()> {
        match self.is_new {
            true => fs::remove_file(&self.path),
            false => Ok(()),
        }
    }
}

enum Output {
    /// No pool is there yet, and the file is as it was (A3).
    Untouched(File),
    /// With so many uses in it.
    Open(Writer<BufWriter<File>>, u64),
    Failed(io::Error),
    Ended,
}

impl Output {
    /// Begins the trace, unless it has begun.
    fn begin(&mut self, page_bytes: u32) {
        *self = match std::mem::replace(self, Output::Ended) {
            Output::Untouched(file) => match open(file, page_bytes) {
                Ok(writer) => Output::Open(writer, 0),
                Err(error) => Output::Failed(error),
            },
            begun => begun,
        };
    }
}

/// Begins a trace in place of what the file has.
fn open(file: File, page_bytes: u32) -> io::Result<Writer<BufWriter<File>>> {
    // A device or a pipe has no length.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Writer::new(BufWriter::new(file), page_bytes)
}

struct Shared {
    output: Mutex<Output>,
    /// Each thread locks its own only, until the end.
    threads: ThreadLocal<Mutex<Gathered>>,
    thread_count: AtomicU32,
}

/// The uses of one thread that are not written yet.
struct Gathered {
    thread: u32,
    uses: Vec<(u64, Kind)>,
}

impl Shared {
    fn new(file: File) -> Shared {
        Shared {
            output: Mutex::new(Output::Untouched(file)),
            threads: ThreadLocal::new(),
            thread_count: AtomicU32::new(0),
        }
    }

    fn write(&self, gathered: &mut Gathered) {
        let thread = gathered.thread;
        let mut output = lock(&self.output);
        output.begin(PAGE_SIZE_UNKNOWN);
        if let Output::Open(writer, accesses) = &mut *output {
            *accesses += gathered.uses.len() as u64;
            let uses = gathered.uses.iter().copied();
            let written = uses
                .map(|(page, kind)| Access { page, kind, thread })
                .try_for_each(|access| writer.push(access));
            if let Err(error) = written {
                *output = Output::Failed(error);
            }
        }
        gathered.uses.clear();
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl PageTrace for Shared {
    fn begins(&self, page_size: PageSize) {
        lock(&self.output).begin(page_size.bytes() as u32);
    }

    fn used(&self, page: PageId, what: PageUse) {
        let kind = match what {
            PageUse::Read => Kind::Read,
            PageUse::Write => Kind::Write,
            PageUse::Create => Kind::Create,
        };
        let gathered = self.threads.get_or(|| {
            Mutex::new(Gathered {
                // Relaxed: only distinct numbers matter.
                thread: self.thread_count.fetch_add(1, Ordering::Relaxed),
                uses: Vec::with_capacity(GATHERED),
            })
        });
        let mut gathered = lock(gathered);
        gathered.uses.push((page.get(), kind));
        if gathered.uses.len() == GATHERED {
            self.write(&mut gathered);
        }
    }
}

/// No invariant spans a panic here: a thread that had one has lost its own last use at most.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
