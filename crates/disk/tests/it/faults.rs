//! Disks that fail and lie: the simulated disk does what it was told, when it was told.

use longshore_disk::{
    CrashStyle, Disk, DiskErrorKind, DiskFile, Fault, FaultError, FaultOn, FaultRepeat, OpenMode,
    SimDisk, SimOptions,
};
use std::sync::Arc;

const CHUNK: u64 = 4096;

fn disk_with_file(capacity_bytes: Option<u64>) -> (SimDisk, Arc<dyn DiskFile>) {
    let disk = SimDisk::new(0, SimOptions { capacity_bytes });
    let file = disk.open("f", OpenMode::Create).unwrap();
    disk.sync_directory().unwrap();
    (disk, file)
}

fn fault(error: FaultError, repeat: FaultRepeat, on: FaultOn) -> Fault {
    Fault { error, repeat, on }
}

#[test]
fn fault_hits_the_call_it_was_counted_for_once_or_for_ever() {
    for (repeat, later) in [(FaultRepeat::Once, true), (FaultRepeat::ForEver, false)] {
        let (disk, file) = disk_with_file(None);
        disk.fail_at(3, fault(FaultError::Io, repeat, FaultOn::Write));
        file.write_at(&[1], 0).unwrap();
        file.sync().unwrap();
        file.read_at(&mut [0], 0).unwrap();
        file.write_at(&[2], 0).unwrap();
        assert_eq!(file.write_at(&[3], 0).unwrap_err().kind, DiskErrorKind::Io);
        assert_eq!(disk.faults_hit(), 1);
        assert_eq!(file.write_at(&[4], 0).is_ok(), later);
        file.sync().unwrap();
        disk.clear_faults();
        file.write_at(&[5], 0).unwrap();
    }
}

#[test]
fn fault_on_any_call_reaches_reads_opens_and_lists() {
    for n in 1..=4 {
        let (disk, file) = disk_with_file(None);
        disk.fail_at(n, fault(FaultError::Io, FaultRepeat::Once, FaultOn::Any));
        let failed = [
            file.read_at(&mut [0], 0).is_err(),
            disk.open("f", OpenMode::Read).is_err(),
            disk.list().is_err(),
            disk.remove("f").is_err(),
        ];
        let expected: Vec<bool> = (1..=4).map(|index| index == n).collect();
        assert_eq!(failed, expected[..]);
    }
}

#[test]
fn full_disk_faults_spare_reads() {
    let (disk, file) = disk_with_file(None);
    disk.fail_at(
        1,
        fault(FaultError::Full, FaultRepeat::ForEver, FaultOn::Any),
    );
    file.read_at(&mut [0], 0).unwrap();
    assert!(file.write_at(&[1], 0).unwrap_err().is_full());
}

#[test]
fn short_write_leaves_a_true_prefix() {
    let (disk, file) = disk_with_file(None);
    for _ in 0..30 {
        file.write_at(&[1; 2000], 0).unwrap();
        disk.fail_at(
            1,
            fault(FaultError::ShortWrite, FaultRepeat::Once, FaultOn::Any),
        );
        assert!(file.write_at(&[2; 2000], 0).is_err());
        let bytes = disk.contents("f").unwrap();
        let written = bytes.iter().take_while(|byte| **byte == 2).count();
        assert!(written < 2000, "a short write is short");
        assert!(bytes[written..].iter().all(|byte| *byte == 1));
    }
}

/// The trap that made PostgreSQL panic on a failed fsync: a later sync says `Ok` without having
/// written what the failed one had given up.
#[test]
fn later_sync_does_not_save_what_a_failed_one_lost() {
    let (disk, file) = disk_with_file(None);
    file.write_at(&[1; 2 * CHUNK as usize], 0).unwrap();
    file.sync().unwrap();
    file.write_at(&[2; 2 * CHUNK as usize], 0).unwrap();
    disk.fail_at(1, fault(FaultError::Io, FaultRepeat::Once, FaultOn::Sync));
    file.sync().unwrap_err();
    file.write_at(&[3; 10], 0).unwrap();
    file.sync().unwrap();
    let lost = disk
        .crash_image_in_style(CrashStyle::LoseAll, 0)
        .contents("f")
        .unwrap();
    assert_eq!(lost[..10], [3; 10], "written again after the failure");
    assert_eq!(
        lost[10..4096],
        [2; 4086],
        "in the same chunk, so written along"
    );
    assert_eq!(lost[4096..], [1; 4096], "given up by the failed sync");
    for seed in 0..50 {
        let image = disk.crash_image(seed).contents("f").unwrap();
        assert_eq!(
            image[..10],
            [3; 10],
            "what was synced since is safe from the lost write"
        );
    }
}

#[test]
fn full_disk_refuses_new_space_only() {
    let (disk, file) = disk_with_file(Some(3 * CHUNK));
    file.write_at(&[1; 3 * CHUNK as usize], 0).unwrap();
    assert_eq!(disk.used_bytes(), 3 * CHUNK);
    assert!(file.write_at(&[2], 3 * CHUNK).unwrap_err().is_full());
    file.write_at(&[2; 100], CHUNK).unwrap();
    file.set_len(CHUNK).unwrap();
    file.set_len(3 * CHUNK).unwrap();
    assert_eq!(disk.used_bytes(), CHUNK, "holes take no space");
    let other = disk.open("g", OpenMode::Create).unwrap();
    other.write_at(&[3; 2 * CHUNK as usize], 0).unwrap();
    assert!(
        file.write_at(&[4], CHUNK).unwrap_err().is_full(),
        "the hole's space is taken"
    );
    disk.remove("g").unwrap();
    assert!(
        file.write_at(&[4], CHUNK).unwrap_err().is_full(),
        "still open"
    );
    drop(other);
    file.write_at(&[4], CHUNK).unwrap();
}

#[test]
fn allocated_space_is_never_refused_later() {
    let (disk, file) = disk_with_file(Some(4 * CHUNK));
    assert!(file.allocate(5 * CHUNK).unwrap_err().is_full());
    assert_eq!(
        (file.len().unwrap(), disk.used_bytes()),
        (0, 0),
        "all or nothing"
    );
    file.allocate(4 * CHUNK).unwrap();
    assert_eq!(file.len().unwrap(), 4 * CHUNK);
    let other = disk.open("g", OpenMode::Create).unwrap();
    assert!(other.write_at(&[1], 0).unwrap_err().is_full());
    file.write_at(&[1; 5000], 0).unwrap();
    file.sync().unwrap();
    let after = disk.crash_image(3);
    assert_eq!(
        after.used_bytes(),
        4 * CHUNK,
        "reserved over a crash once synced"
    );
    let file = after.open("f", OpenMode::Write).unwrap();
    file.write_at(&[1; 4 * CHUNK as usize], 0).unwrap();
    assert!(
        file.write_at(&[1], 4 * CHUNK).unwrap_err().is_full(),
        "as small as before"
    );
}

#[test]
fn write_that_does_not_fit_writes_what_fits() {
    let (disk, file) = disk_with_file(Some(2 * CHUNK));
    assert!(
        file.write_at(&[1; 3 * CHUNK as usize], 100)
            .unwrap_err()
            .is_full()
    );
    assert_eq!(disk.contents("f").unwrap().len() as u64, 2 * CHUNK);
}

#[test]
fn flipped_bit_is_on_the_medium() {
    let (disk, file) = disk_with_file(None);
    file.write_at(&[0; 5000], 0).unwrap();
    file.sync().unwrap();
    disk.flip_bit("f", 4500, 3);
    let mut byte = [0];
    file.read_at(&mut byte, 4500).unwrap();
    assert_eq!(byte, [8]);
    let image = disk.crash_image_in_style(CrashStyle::LoseAll, 0);
    assert_eq!(image.contents("f").unwrap()[4500], 8);
    disk.flip_bit("f", 4500, 3);
    assert_eq!(disk.contents("f").unwrap(), [0; 5000]);
}

#[test]
fn misdirected_write_lands_elsewhere_and_says_nothing() {
    let (disk, file) = disk_with_file(None);
    file.write_at(&[1; 3 * CHUNK as usize], 0).unwrap();
    disk.misdirect_next_write("f", Some(CHUNK), 2 * CHUNK);
    file.write_at(&[2; 10], 0).unwrap();
    file.write_at(&[3; 10], CHUNK).unwrap();
    let bytes = disk.contents("f").unwrap();
    assert_eq!((bytes[0], bytes[4096], bytes[8192]), (2, 1, 3));
}

#[test]
fn lost_write_leaves_stale_bytes_and_says_nothing() {
    let (disk, file) = disk_with_file(None);
    file.write_at(&[1; 10], 0).unwrap();
    disk.lose_next_write("f", None);
    file.write_at(&[2; 10], 0).unwrap();
    file.sync().unwrap();
    assert_eq!(disk.contents("f").unwrap(), [1; 10]);
    file.write_at(&[3; 10], 0).unwrap();
    assert_eq!(disk.contents("f").unwrap(), [3; 10]);
}
