//! A disk in memory: for databases that need not outlive the process, used by many threads at once.
//!
//! `disk.rs` is the directory and the handles, `content.rs` the bytes of one file.

mod content;
mod disk;

pub use disk::MemoryDisk;
