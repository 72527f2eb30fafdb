//! Why a benchmark has no result.

use crate::store::StoreError;
use longshore_disk::DiskError;
use longshore_pool::PoolError;
use std::io;
use std::path::{Path, PathBuf};

/// What stopped a benchmark.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A setting that makes no sense.
    #[error("{option} {value}: must be {allowed}")]
    Settings {
        /// The option, as on the command line.
        option: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// The engine under measurement refused or failed.
    #[error("{engine} failed in the benchmark {workload}: {source}")]
    Engine {
        /// The engine.
        engine: &'static str,
        /// What was measured.
        workload: &'static str,
        /// What it said.
        source: StoreError,
    },
    /// The data are not consistent after a run.
    #[error("the run with {clients} clients left the data inconsistent: {violations}")]
    Inconsistent {
        /// How many clients had run.
        clients: usize,
        /// What does not hold, and where.
        violations: String,
    },
    /// The pool under measurement failed.
    #[error("the page pool failed: {0}")]
    Pool(#[from] PoolError),
    /// The disk in memory under the pool failed.
    #[error("the disk below the pool failed: {0}")]
    Disk(#[from] DiskError),
    /// A file of the benchmark's own could not be used.
    #[error("cannot {what} {}: {source}; choose another folder with --dir", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The figure could not be put in its place.
    #[error("cannot write the figure {}: {source}", path.display())]
    Figure {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The figure could not be drawn.
    #[error("cannot draw the figure: {0}")]
    Plot(#[from] plot::PlotError),
    /// The result could not be written.
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),
}

impl BenchError {
    /// The failure of an engine.
    pub(crate) fn engine(
        engine: &'static str,
        workload: &'static str,
    ) -> impl Fn(StoreError) -> BenchError {
        move |source| BenchError::Engine {
            engine,
            workload,
            source,
        }
    }

    /// The failure of a figure's file.
    pub(crate) fn figure(path: &Path) -> impl FnOnce(io::Error) -> BenchError + use<> {
        let path = path.to_owned();
        move |source| BenchError::Figure { path, source }
    }

    /// The failure of a file of the benchmark's own.
    pub(crate) fn file(
        what: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> BenchError + use<> {
        let path = path.to_owned();
        move |source| BenchError::File { what, path, source }
    }
}
