//! Direct I/O of any range: whole blocks as they are, the rest by way of an aligned buffer.
//!
//! # Protocol
//! The device moves whole blocks from aligned memory. A range that does not start and end at block
//! borders is written by reading the blocks at its edges, laying the range over them and writing
//! whole blocks; if that made the file too long, its length is set right. Meanwhile nobody else may
//! write to those blocks: the caller holds the file's `shape` exclusively.

use super::disk::because;
use super::transfer::write_fully;
use crate::aligned::{AlignedBuffer, BLOCK};
use crate::error::{DiskError, DiskErrorKind, DiskOperation};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that are moved at once through a thread's own buffer.
const WINDOW: usize = 256 * 1024;

thread_local! {
    static BOUNCE: RefCell<AlignedBuffer> = RefCell::new(AlignedBuffer::zeroed(0));
}

/// Lends this thread's aligned buffer, large enough for `len` bytes.
pub(super) fn with_bounce<T>(len: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    debug_assert!(len <= WINDOW, "windows are bounded");
    BOUNCE.with_borrow_mut(|bounce| {
        if bounce.len() < len {
            *bounce = AlignedBuffer::zeroed(len.next_power_of_two());
        }
        work(&mut bounce[..len])
    })
}

/// Reads whole blocks into aligned memory; short only at the end of the file.
pub(super) fn read_blocks(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if !done.is_multiple_of(BLOCK) {
            // Only the end of the file lies inside a block; reading on from there is not allowed.
            let is_end = offset + done as u64 >= file.metadata()?.len();
            return if is_end {
                Ok(done)
            } else {
                Err(io::ErrorKind::UnexpectedEof.into())
            };
        }
    }
    Ok(done)
}

/// Reads any range into any memory.
pub(super) fn read_any(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    for window in windows(offset, bytes.len()) {
        let wanted = window.range_len();
        let got = with_bounce(window.blocks_len(), |bounce| {
            let count = read_blocks(file, bounce, window.start)?;
            let got = count.saturating_sub(window.head).min(wanted);
            bytes[done..][..got].copy_from_slice(&bounce[window.head..][..got]);
            io::Result::Ok(got)
        })?;
        done += got;
        if got < wanted {
            break;
        }
    }
    Ok(done)
}

/// Writes whole blocks from memory that is not aligned.
pub(super) fn write_copied(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut offset = offset;
    for part in bytes.chunks(WINDOW) {
        with_bounce(part.len(), |bounce| {
            bounce.copy_from_slice(part);
            write_fully(bounce, offset, |bytes, at| file.write_at(bytes, at))
        })?;
        offset += part.len() as u64;
    }
    Ok(())
}

/// Writes a range whose edges lie inside blocks; the caller keeps all others out of the file.
pub(super) fn write_edges(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let end = offset + bytes.len() as u64;
    let len_after = file.metadata()?.len().max(end);
    let written = write_windows(file, bytes, offset);
    // Also after a failure: the padding of the last block must not show.
    let is_padded = file.metadata()?.len() > len_after;
    let trimmed = if is_padded {
        file.set_len(len_after)
    } else {
        Ok(())
    };
    written.and(trimmed)
}

fn write_windows(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    for window in windows(offset, bytes.len()) {
        with_bounce(window.blocks_len(), |bounce| {
            let range = window.head..window.head + window.range_len();
            let last_block = bounce.len() - BLOCK;
            if range.start > 0 {
                read_or_zero(file, &mut bounce[..BLOCK], window.start)?;
            }
            if range.end < bounce.len() && (last_block > 0 || range.start == 0) {
                let at = window.start + last_block as u64;
                read_or_zero(file, &mut bounce[last_block..], at)?;
            }
            bounce[range.clone()].copy_from_slice(&bytes[done..][..range.len()]);
            done += range.len();
            write_fully(bounce, window.start, |bytes, at| file.write_at(bytes, at))
        })?;
    }
    Ok(())
}

fn read_or_zero(file: &File, block: &mut [u8], offset: u64) -> io::Result<()> {
    let count = read_blocks(file, block, offset)?;
    block[count..].fill(0);
    Ok(())
}

/// A part of a range, and the whole blocks around it.
struct Window {
    /// Offset of the first block.
    start: u64,
    /// Bytes of the first block before the range.
    head: usize,
    /// Where the range ends, counted from `start`.
    end: usize,
}

impl Window {
    fn blocks_len(&self) -> usize {
        self.end.next_multiple_of(BLOCK)
    }

    fn range_len(&self) -> usize {
        self.end - self.head
    }
}

/// Splits a range so that the blocks of each part fit into a thread's buffer.
fn windows(offset: u64, len: usize) -> impl Iterator<Item = Window> {
    let end = offset + len as u64;
    let mut at = offset;
    std::iter::from_fn(move || {
        let head = (at % BLOCK as u64) as usize;
        let start = at - head as u64;
        let window = Window {
            start,
            head,
            end: (end - start).min(WINDOW as u64) as usize,
        };
        let is_left = at < end;
        at = start + window.end as u64;
        is_left.then_some(window)
    })
}

/// The error for a file system that does not do direct I/O.
pub(super) fn refused(operation: DiskOperation, path: &Path) -> DiskError {
    let reason = "the file system refuses direct I/O; use buffered I/O here, or put the database \
                  on another file system";
    because(operation, path, DiskErrorKind::Io, reason)
}
