//! Where a trace comes from: a file, standard input, or a named workload.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use clap::Args;
use flate2::bufread::MultiGzDecoder;
use longshore_policy::Trace;

use crate::error::LabError;
use crate::format::{Accesses, Format};
use crate::progress::Progress;
use crate::workload::Workload;

/// Large enough that reading costs little beside understanding.
const BUFFER_BYTES: usize = 256 << 10;
const GZIP: [u8; 3] = [0x1f, 0x8b, 8];
/// References between two looks at the bar.
const STRIDE: usize = 1 << 16;

/// Which trace, and how it is written.
#[derive(Clone, Debug, Args)]
pub struct Input {
    /// File of a trace, .gz or not (`-`: standard input), or a workload such as nbg or zipf:alpha=0.8
    #[arg(value_name = "FILE|WORKLOAD")]
    pub trace: String,
    /// Format of the file, when its name does not tell
    #[arg(long, short, value_enum)]
    pub format: Option<Format>,
    /// Count each page of 4 KiB that a request touches (cloudphysics)
    #[arg(long)]
    pub pages: bool,
}

impl Input {
    /// The trace of that name.
    pub fn of(trace: &str) -> Input {
        Input {
            trace: trace.to_string(),
            format: None,
            pages: false,
        }
    }

    /// All accesses, as they come.
    ///
    /// # Errors
    /// The file cannot be opened, or its format is not known.
    pub fn accesses(&self) -> Result<Accesses<'static>, LabError> {
        self.open(&Progress::hidden())
    }

    /// The whole trace, in memory.
    ///
    /// # Errors
    /// It cannot be read to its end, or is empty.
    pub fn load(&self, progress: &Progress) -> Result<Trace, LabError> {
        let mut trace = Trace::new();
        for (at, access) in self.open(progress)?.enumerate() {
            let access = access.map_err(|source| LabError::Trace {
                trace: self.name(),
                source,
            })?;
            trace
                .push(access.page)
                .map_err(|source| LabError::TooLong {
                    trace: self.name(),
                    source,
                })?;
            if at.is_multiple_of(STRIDE) {
                progress.say_read(at);
            }
        }
        progress.finish();
        match trace.refs().is_empty() {
            true => Err(LabError::Empty { trace: self.name() }),
            false => Ok(trace),
        }
    }

    /// What messages call it.
    pub fn name(&self) -> String {
        match self.trace.as_str() {
            "-" => "standard input".to_string(),
            name => name.to_string(),
        }
    }

    fn open(&self, progress: &Progress) -> Result<Accesses<'static>, LabError> {
        if Workload::is_named(&self.trace) {
            return self.draw();
        }
        let format = self.format()?;
        let (file, len): (Box<dyn Read>, _) = match self.trace.as_str() {
            "-" => (Box::new(io::stdin()), None),
            path => {
                let (file, len) = open_file(path).map_err(|error| self.no_file(error))?;
                (Box::new(file), Some(len))
            }
        };
        let mut input = BufReader::with_capacity(BUFFER_BYTES, progress.reading(file, len));
        match self.is_compressed(&mut input)? {
            true => {
                let plain = BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(input));
                Ok(format.read(plain))
            }
            false => Ok(format.read(input)),
        }
    }

    fn draw(&self) -> Result<Accesses<'static>, LabError> {
        let workload: Workload = self.trace.parse().map_err(LabError::Usage)?;
        if self.format.is_some() || self.pages {
            let what = format!("{}: a workload has no format", self.trace);
            return Err(LabError::Usage(what));
        }
        Ok(Box::new(workload.accesses().map(Ok)))
    }

    fn format(&self) -> Result<Format, LabError> {
        let format = self.format.or_else(|| Format::of_name(&self.trace));
        let format = format.ok_or_else(|| self.no_format())?;
        match (format, self.pages) {
            (format, false) => Ok(format),
            (Format::Cloudphysics | Format::CloudphysicsPages, true) => {
                Ok(Format::CloudphysicsPages)
            }
            (_, true) => Err(LabError::Usage(
                "--pages is for traces whose requests have a size: cloudphysics".to_string(),
            )),
        }
    }

    /// A file says so by its name, standard input by its first bytes.
    fn is_compressed(&self, input: &mut impl BufRead) -> Result<bool, LabError> {
        if self.trace != "-" {
            return Ok(self.trace.to_ascii_lowercase().ends_with(".gz"));
        }
        let bytes = input
            .fill_buf()
            .map_err(LabError::file("read", &self.name()))?;
        Ok(bytes.starts_with(&GZIP))
    }

    /// Of a name that tells no format: perhaps it is no file's, either.
    fn no_format(&self) -> LabError {
        match File::open(&self.trace) {
            Err(error) if self.trace != "-" && error.kind() == io::ErrorKind::NotFound => {
                self.no_file(error)
            }
            _ => LabError::UnknownFormat { trace: self.name() },
        }
    }

    fn no_file(&self, source: io::Error) -> LabError {
        let path = match source.kind() {
            io::ErrorKind::NotFound => {
                format!(
                    "{} (neither a file nor a workload; see `longshore lab list`)",
                    self.trace
                )
            }
            _ => self.trace.clone(),
        };
        LabError::file("read", &path)(source)
    }
}

fn open_file(path: &str) -> io::Result<(File, u64)> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    match metadata.is_dir() {
        true => Err(io::Error::other("it is a directory")),
        false => Ok((file, metadata.len())),
    }
}
