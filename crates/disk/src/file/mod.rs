//! A directory of real files.
//!
//! `disk.rs` is the directory, `handle.rs` an open file, `direct.rs` moves bytes past the system's
//! cache, `reserve.rs` makes space, `transfer.rs` finishes what the system does by halves, `lock.rs`
//! keeps others out.
//!
//! # Failure
//! A failed sync is reported once by the system and forgotten; nothing here retries it.

mod direct;
mod disk;
mod handle;
mod lock;
mod reserve;
mod transfer;

pub use disk::{FileDisk, FileIo, FileOptions};
