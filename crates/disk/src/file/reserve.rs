//! Space that is really there before it is needed.
//!
//! `fallocate` where the file system has it; elsewhere by writing: zeros beyond the end, and below
//! it whatever blocks are zero once more, for a block of zeros may be a hole. Growing a file by its
//! length alone would reserve nothing.
//!
//! The caller keeps all others out of the file meanwhile.

use super::direct::{read_blocks, with_bounce};
use super::transfer::write_fully;
use crate::aligned::BLOCK;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes written at once where zeros are written.
const STEP: u64 = 64 * 1024;

/// Reserves the first `len` bytes; a failure leaves the length as it was.
///
/// `filled_bytes` is remembered between calls: there are no holes below, where we wrote zeros.
pub(super) fn reserve(file: &File, len: u64, filled_bytes: &mut u64) -> io::Result<()> {
    if len == 0 {
        return Ok(());
    }
    let former_len = file.metadata()?.len();
    let reserved = match retry(|| fallocate(file, FallocateFlags::empty(), 0, len)) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            fill(file, *filled_bytes, len).map(|()| *filled_bytes = len.max(*filled_bytes))
        }
        result => result.map_err(io::Error::from),
    };
    if reserved.is_err() && file.metadata()?.len() > former_len {
        file.set_len(former_len)?;
    }
    reserved
}

/// Writes every block from `from` to `to` that may be a hole; grows the file to `to`.
fn fill(file: &File, from: u64, to: u64) -> io::Result<()> {
    let len_after = file.metadata()?.len().max(to);
    let mut at = from - from % BLOCK as u64;
    while at < to {
        let step = STEP.min((to - at).next_multiple_of(BLOCK as u64));
        with_bounce(step as usize, |bounce| {
            let count = read_blocks(file, bounce, at)?;
            bounce[count..].fill(0);
            match bounce.chunks(BLOCK).any(is_zero) {
                true => write_fully(bounce, at, |bytes, at| file.write_at(bytes, at)),
                false => Ok(()),
            }
        })?;
        at += step;
    }
    match file.metadata()?.len() > len_after {
        true => file.set_len(len_after),
        false => Ok(()),
    }
}

fn is_zero(block: &[u8]) -> bool {
    block.iter().all(|byte| *byte == 0)
}

fn retry<T>(call: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    /// The way for file systems without `fallocate`, which the test machine need not have.
    #[test]
    fn filling_makes_holes_real_and_keeps_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .unwrap();
        file.set_len(100_000).unwrap();
        file.write_all_at(b"kept", 50_000).unwrap();
        fill(&file, 0, 300_001).unwrap();
        let metadata = file.metadata().unwrap();
        assert_eq!(metadata.len(), 300_001);
        assert!(
            metadata.blocks() * 512 >= 300_001,
            "only {} blocks",
            metadata.blocks()
        );
        let mut bytes = [0; 6];
        file.read_exact_at(&mut bytes, 49_999).unwrap();
        assert_eq!(&bytes, b"\0kept\0");
        fill(&file, 0, 10).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 300_001);
    }

    #[test]
    fn reserving_takes_blocks_and_never_shortens() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .unwrap();
        reserve(&file, 200_000, &mut 0).unwrap();
        assert!(file.metadata().unwrap().blocks() * 512 >= 200_000);
        reserve(&file, 1000, &mut 0).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 200_000);
    }

    #[test]
    fn reserving_more_than_there_is_fails_and_leaves_the_length() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .unwrap();
        file.set_len(10).unwrap();
        let petabyte = 1 << 50;
        let error = reserve(&file, petabyte, &mut 0).unwrap_err();
        let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::FileTooLarge];
        assert!(kinds.contains(&error.kind()), "{error}");
        assert_eq!(file.metadata().unwrap().len(), 10);
    }
}
