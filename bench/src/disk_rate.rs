//! How often the disk itself can sync: the yardstick of group commit.

use crate::error::BenchError;
use crate::harness::new_latencies;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// One write before each sync: a block.
const BLOCK_BYTES: usize = 4096;

/// Blocks written in turn. Written once ahead, so that no sync has to save a new length too.
const BLOCKS: u64 = 256;

/// How often a disk can sync.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyncRate {
    /// Syncs per second of a thread that does nothing else, as it went.
    pub(crate) per_second: f64,
    /// What it would have been if each sync had taken as long as the quickest tenth at most. On a
    /// busy machine a thread whose sync is over may wait for a core as long as for the disk.
    pub(crate) undisturbed_per_second: f64,
}

impl SyncRate {
    /// The better of two.
    pub(crate) fn max(self, other: SyncRate) -> SyncRate {
        let undisturbed = self
            .undisturbed_per_second
            .max(other.undisturbed_per_second);
        SyncRate {
            per_second: self.per_second.max(other.per_second),
            undisturbed_per_second: undisturbed,
        }
    }
}

/// Writes a block and syncs it, again and again for `duration`, in a file in `folder`.
///
/// # Errors
/// [`BenchError::File`].
pub(crate) fn sync_rate(folder: &Path, duration: Duration) -> Result<SyncRate, BenchError> {
    let path = folder.join("sync-rate");
    let failed = || BenchError::file("write and sync", &path);
    let file = File::create(&path).map_err(failed())?;
    for block in 0..BLOCKS {
        file.write_all_at(&[1; BLOCK_BYTES], block * BLOCK_BYTES as u64)
            .map_err(failed())?;
    }
    file.sync_all().map_err(failed())?;

    let start = Instant::now();
    let mut latency = new_latencies();
    while start.elapsed() < duration || latency.is_empty() {
        let turn = latency.len();
        let begun = Instant::now();
        let at = turn % BLOCKS * BLOCK_BYTES as u64;
        file.write_all_at(&[turn as u8; BLOCK_BYTES], at)
            .map_err(failed())?;
        file.sync_data().map_err(failed())?;
        latency.saturating_record(begun.elapsed().as_nanos() as u64);
    }
    let elapsed = start.elapsed();
    fs::remove_file(&path).map_err(failed())?;
    Ok(SyncRate {
        per_second: latency.len() as f64 / elapsed.as_secs_f64(),
        undisturbed_per_second: 1e9 / latency.value_at_quantile(0.1) as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_syncs_and_nothing_stays_behind() {
        let folder = tempfile::tempdir().unwrap();
        let rate = sync_rate(folder.path(), Duration::from_millis(20)).unwrap();
        assert!(rate.per_second > 0.0);
        assert!(rate.undisturbed_per_second >= rate.per_second * 0.99);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = sync_rate(Path::new("/nowhere/at/all"), Duration::ZERO).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("/nowhere/at/all") && message.contains("--dir"),
            "{message}"
        );
    }
}
