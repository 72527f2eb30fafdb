//! Whole transfers out of a system call that may be interrupted or do only a part.

use std::io;

/// Reads until `bytes` is full or the file ends; returns how many bytes were read.
pub(super) fn read_fully(
    bytes: &mut [u8],
    offset: u64,
    read: impl Fn(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match read(&mut bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Writes all of `bytes`.
pub(super) fn write_fully(
    bytes: &[u8],
    offset: u64,
    write: impl Fn(&[u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match write(&bytes[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    /// Interrupts every other call and otherwise moves at most three bytes.
    fn stingy(calls: &Cell<u32>, wanted: usize) -> io::Result<usize> {
        calls.set(calls.get() + 1);
        match calls.get() % 2 {
            1 => Err(io::ErrorKind::Interrupted.into()),
            _ => Ok(wanted.min(3)),
        }
    }

    #[test]
    fn interrupted_and_short_writes_are_finished() {
        let (calls, file) = (Cell::new(0), RefCell::new(vec![0; 20]));
        write_fully(b"0123456789", 5, |bytes, offset| {
            let count = stingy(&calls, bytes.len())?;
            file.borrow_mut()[offset as usize..][..count].copy_from_slice(&bytes[..count]);
            Ok(count)
        })
        .unwrap();
        assert_eq!(&file.borrow()[5..15], b"0123456789");
    }

    #[test]
    fn interrupted_and_short_reads_go_on_to_the_end_of_the_file() {
        let (calls, file) = (Cell::new(0), b"0123456789");
        let mut bytes = [0; 20];
        let count = read_fully(&mut bytes, 2, |bytes, offset| {
            let rest = &file[offset as usize..];
            let count = stingy(&calls, bytes.len().min(rest.len()))?;
            bytes[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        });
        assert_eq!((count.unwrap(), &bytes[..8]), (8, &b"23456789"[..]));
    }

    #[test]
    fn write_that_moves_nothing_is_an_error() {
        let error = write_fully(b"x", 0, |_, _| Ok(0)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
    }
}
