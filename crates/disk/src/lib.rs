//! Bytes at rest: files, memory, and a simulated disk that crashes.
//!
//! One trait for a database directory, [`Disk`], one for an open file, [`DiskFile`], and three
//! disks behind them: [`MemoryDisk`] for databases that need not last, and two that do.
//! What a crash may take is told once, in the header of `disk.rs`; the README has the map.

#![forbid(unsafe_code)]

mod aligned;
mod disk;
mod error;
mod file;
mod memory;
mod names;
mod sim;

pub use aligned::{AlignedBuffer, BLOCK};
pub use disk::{Disk, DiskFile, DiskLock, OpenMode};
pub use error::{DiskError, DiskErrorKind, DiskOperation};
pub use file::{FileDisk, FileIo, FileOptions};
pub use memory::MemoryDisk;
pub use sim::{CrashStyle, Fault, FaultError, FaultOn, FaultRepeat, SimDisk, SimIo, SimOptions};
