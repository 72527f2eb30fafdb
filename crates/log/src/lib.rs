//! The write-ahead log: what happened, in order.
//!
//! Records are appended to a circular buffer in memory (`ring.rs`), flushed in groups (`group.rs`,
//! `flush.rs`) to segment files (`segment.rs`, `segments.rs`), and found again after a crash (`recover.rs`).
//! Disk space for them is claimed ahead (`space.rs`). The README has the picture and the invariants.
//!
//! ```
//! use longshore_base::{Lsn, SystemEnvironment, TxnId};
//! use longshore_disk::MemoryDisk;
//! use longshore_log::{Access, Level, Log, LogOptions};
//! use std::sync::Arc;
//!
//! let disk = Arc::new(MemoryDisk::new());
//! let env = Arc::new(SystemEnvironment::new());
//! let log = Log::create(disk.clone(), LogOptions::default(), 42, env.clone())?;
//! let mut claim = log.claim(1000)?;
//! let lsn = log.append(&mut claim, 1, TxnId::new(7), Lsn::ZERO, &[b"what ", b"happened"])?;
//! log.flush(lsn, Level::Sync)?;
//! drop((claim, log));
//!
//! let log = Log::open(disk, LogOptions::default(), 42, Lsn::ZERO, Access::ReadWrite, env)?;
//! let record = log.scan(Lsn::ZERO).next().expect("one record")?;
//! assert_eq!(record.body, b"what happened");
//! # Ok::<(), longshore_log::LogError>(())
//! ```

#![forbid(unsafe_code)]

mod error;
mod flush;
mod handle;
mod log;
mod options;
mod reader;
mod record;
mod recover;
mod rooms;
mod scan;
mod segment;
mod segments;
mod space;
mod stats;

// Open to the model checker's tests, which run them without a disk.
#[cfg(not(loom))]
mod group;
#[cfg(loom)]
#[allow(missing_docs)]
pub mod group;
#[cfg(not(loom))]
mod ring;
#[cfg(loom)]
pub mod ring;
#[cfg(not(loom))]
mod staging;
#[cfg(loom)]
pub mod staging;

pub use error::{FullCause, LogError};
pub use handle::DurableHandle;
pub use log::Log;
pub use options::{Access, Level, LogOptions, ScanFrom};
pub use record::Record;
pub use scan::Scan;
pub use space::Claim;
pub use stats::LogStats;
