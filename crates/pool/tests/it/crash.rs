//! Crashes on the simulated disk: whatever is torn, every page can be read afterwards, and what was
//! synced is there.

use crate::support::{Bed, check, fill, small};
use longshore_base::{PageId, SeededEnvironment};
use longshore_disk::{Disk, OpenMode, SimDisk, SimOptions};
use longshore_pool::{Pool, PoolError};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;

const PAGES: u64 = 40;

/// Changes pages until the disk crashes, or to the end. Returns the values that were synced, and the
/// greatest ever given.
fn run(bed: &Bed, seed: u64) -> (Vec<u64>, Vec<u64>) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let (mut safe, mut newest) = (vec![0; PAGES as usize], vec![0; PAGES as usize]);
    for value in 1..200 {
        let id = rng.random_range(0..PAGES);
        let Ok(mut guard) = bed.pool.fix_exclusive(PageId::new(id)) else {
            return (safe, newest);
        };
        fill(&mut guard.page_mut(), id, value);
        guard.stamp(bed.lsn());
        newest[id as usize] = value;
        drop(guard);
        let written = match rng.random_range(0..20) {
            0 => bed.pool.flush_all().and_then(|()| bed.pool.sync_data()),
            1 => bed.pool.maintain(8).map(drop),
            _ => continue,
        };
        if written.is_err() {
            return (safe, newest);
        }
        if all_clean(bed) && bed.pool.sync_data().is_ok() {
            safe.clone_from(&newest);
        }
    }
    (safe, newest)
}

fn all_clean(bed: &Bed) -> bool {
    let begin = bed.lsn();
    bed.pool.oldest_dirty(begin) == begin
}

fn crash_once(seed: u64, cut: u64) -> bool {
    let disk = SimDisk::new(seed, SimOptions::default());
    let bed = Bed::on(Arc::new(disk.clone()), small(16));
    disk.crash_after(cut);
    let (safe, newest) = run(&bed, seed);
    let crashed = disk.is_crashed();
    let image = disk.crash_image(seed ^ cut);
    // The restoring of pages may be cut short as well.
    image.crash_after(cut % 7);
    let _ = recover(&image);
    let image = image.crash_image(seed ^ cut ^ 1);
    let pool = recover(&image).unwrap_or_else(|e| panic!("seed {seed}, cut {cut}: {e}"));
    for id in 0..PAGES {
        let guard = pool.fix_shared(PageId::new(id));
        let guard = guard.unwrap_or_else(|e| panic!("seed {seed}, cut {cut}: {e}"));
        let value = check(guard.page(), id);
        let (least, most) = (safe[id as usize], newest[id as usize]);
        assert!(
            (least..=most).contains(&value),
            "seed {seed}, cut {cut}: page {id} is {value}, not {least} to {most}"
        );
    }
    crashed
}

fn recover(disk: &SimDisk) -> Result<Arc<Pool>, PoolError> {
    let pool = Pool::new(
        small(64),
        disk.open("data", OpenMode::OpenOrCreate)?,
        Some(disk.open("double-write", OpenMode::OpenOrCreate)?),
        Arc::new(crate::support::TestLog::default()),
        Arc::new(SeededEnvironment::new(1)),
    )?;
    pool.recover_double_write()?;
    Ok(pool)
}

#[test]
fn no_crash_leaves_a_page_that_cannot_be_read() {
    for seed in 0..12 {
        let mut cut = seed % 3;
        while crash_once(seed, cut) {
            cut += 3;
        }
        assert!(cut > 30, "seed {seed} made only {cut} calls");
    }
}
