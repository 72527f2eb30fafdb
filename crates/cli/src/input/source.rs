//! Where records are read from: a file, or standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::exit::{Failure, Outcome};

/// Large enough that reading costs little beside parsing.
const BUFFER_BYTES: usize = 256 << 10;

/// How far the file has been read, for the progress bar.
#[derive(Clone, Debug, Default)]
pub struct Position(Arc<AtomicU64>);

impl Position {
    /// Bytes read so far, at most one buffer ahead of the records.
    pub fn bytes(&self) -> u64 {
        // Relaxed: a hint for people; nothing is ordered by it.
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) {
        // Relaxed: see `bytes`.
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// An open stream of bytes with what is known about it.
pub struct Source {
    /// What messages call it.
    pub name: String,
    /// Its length, where it has one.
    pub len: Option<u64>,
    /// How far it has been read.
    pub position: Position,
    /// The bytes.
    pub(super) reader: Box<dyn BufRead>,
}

impl Source {
    /// Opens the file `path`; `-` is standard input.
    ///
    /// # Errors
    /// Says which file, and why not.
    pub fn open(path: &str) -> Outcome<Source> {
        if path == "-" {
            return Ok(Source::from_reader("standard input", None, io::stdin()));
        }
        let open = || -> io::Result<(File, u64)> {
            let file = File::open(path)?;
            let metadata = file.metadata()?;
            match metadata.is_dir() {
                true => Err(io::Error::other("it is a directory")),
                false => Ok((file, metadata.len())),
            }
        };
        let (file, len) = open().map_err(|error| Failure::file("read", path, &error))?;
        Ok(Source::from_reader(path, Some(len), file))
    }

    /// Reads from anything.
    pub fn from_reader(name: &str, len: Option<u64>, reader: impl Read + 'static) -> Source {
        let position = Position::default();
        let counted = Counted {
            reader,
            position: position.clone(),
        };
        let reader = Box::new(BufReader::with_capacity(BUFFER_BYTES, counted));
        Source {
            name: name.to_string(),
            len,
            position,
            reader,
        }
    }
}

struct Counted<R> {
    reader: R,
    position: Position,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(bytes)?;
        self.position.add(read);
        Ok(read)
    }
}
