//! How often the disk itself can sync: the yardstick of group commit.

use crate::error::BenchError;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// One write before each sync: a block.
const BLOCK_BYTES: usize = 4096;

/// Blocks written in turn. Written once ahead, so that no sync has to save a new length too.
const BLOCKS: u64 = 256;

/// Writes a block and syncs it, again and again for `duration`, in a file in `folder`; returns syncs
/// per second.
///
/// # Errors
/// [`BenchError::File`].
pub(crate) fn syncs_per_second(folder: &Path, duration: Duration) -> Result<f64, BenchError> {
    let path = folder.join("sync-rate");
    let failed = || BenchError::file("write and sync", &path);
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .map_err(failed())?;
    for block in 0..BLOCKS {
        file.write_all_at(&[1; BLOCK_BYTES], block * BLOCK_BYTES as u64)
            .map_err(failed())?;
    }
    file.sync_all().map_err(failed())?;

    let start = Instant::now();
    let mut syncs = 0u64;
    while start.elapsed() < duration {
        let at = syncs % BLOCKS * BLOCK_BYTES as u64;
        file.write_all_at(&[syncs as u8; BLOCK_BYTES], at)
            .map_err(failed())?;
        file.sync_data().map_err(failed())?;
        syncs += 1;
    }
    let rate = syncs as f64 / start.elapsed().as_secs_f64();
    std::fs::remove_file(&path).map_err(failed())?;
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_syncs_and_nothing_stays_behind() {
        let folder = tempfile::tempdir().unwrap();
        let rate = syncs_per_second(folder.path(), Duration::from_millis(20)).unwrap();
        assert!(rate > 0.0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = syncs_per_second(Path::new("/nowhere/at/all"), Duration::ZERO).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("/nowhere/at/all") && message.contains("--dir"),
            "{message}"
        );
    }
}
