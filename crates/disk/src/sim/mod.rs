//! A disk that crashes, fails and lies on demand, the same way each time for the same seed.
//!
//! # Protocol
//! Run the system on a [`SimDisk`]. Plan a crash (`crash_after`, `crash_after_changes`, `crash_now`):
//! the call in which it strikes takes effect as an unsynced change and fails, as does every later
//! call. Then take `crash_image(seed)`: a fresh disk that holds what a real one might hold after the
//! power came back. Run recovery on that; it can be crashed again in the same way.
//!
//! ```
//! use longshore_disk::{Disk, OpenMode, SimDisk, SimOptions};
//! let disk = SimDisk::new(1, SimOptions::default());
//! let file = disk.open("data", OpenMode::Create)?;
//! file.write_at(b"safe", 0)?;
//! file.sync()?;
//! disk.sync_directory()?;
//! file.write_at(b"gone?", 4)?;
//! disk.crash_now();
//! assert!(file.sync().unwrap_err().is_crash());
//! let after = disk.crash_image(7);
//! assert!(after.contents("data").unwrap().starts_with(b"safe"));
//! # Ok::<(), longshore_disk::DiskError>(())
//! ```
//!
//! What a crash may do to a file is told in `inode.rs`, to names in `names.rs`, how often in
//! `style.rs`; what else can go wrong in `plan.rs`.
//!
//! What counts as an I/O: every call but `len`, `exists` and `lock`. It *changes* something unless
//! it is a read, a list, or the opening of a file that is there.
//!
//! # Invariants
//! I7. Everything is determined by the seeds and the order of calls: no clock, no addresses, no hash
//!     order. (Threads that race for the disk must be ordered by the harness.)
//!
//! # Order
//! One mutex guards the whole disk; nothing is called while it is held.

mod admission;
mod calls;
mod disk;
mod image;
mod inode;
mod names;
mod plan;
mod state;
mod style;

pub use disk::{SimDisk, SimOptions};
pub use plan::{Fault, FaultError, FaultOn, FaultRepeat, SimIo};
pub use style::CrashStyle;
