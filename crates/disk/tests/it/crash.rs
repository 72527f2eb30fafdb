//! When a simulated machine crashes, and that nothing happens afterwards.

use longshore_disk::{
    CrashStyle, Disk, DiskError, DiskErrorKind, DiskOperation, OpenMode, SimDisk, SimOptions,
};

/// Replaces `name` by a file with other bytes in the way that no crash can break.
fn replace(disk: &SimDisk, name: &str, bytes: &[u8]) -> Result<(), DiskError> {
    let file = disk.open("new", OpenMode::OpenOrCreate)?;
    file.set_len(0)?;
    for (index, part) in bytes.chunks(600).enumerate() {
        file.write_at(part, index as u64 * 600)?;
    }
    file.sync()?;
    disk.rename("new", name)?;
    disk.sync_directory()
}

/// The protocol that the engine builds upon, cut at every change and three deep in recovery.
#[test]
fn replaced_file_is_old_or_new_whenever_the_crash_comes() {
    let (old, new) = (vec![1; 3000], vec![2; 3000]);
    let base = SimDisk::new(0, SimOptions::default());
    replace(&base, "f", &old).unwrap();
    let mut cuts = 0;
    for cut in 0.. {
        let mut disk = base.crash_image_in_style(CrashStyle::KeepAll, 0);
        disk.crash_after_changes(cut);
        let mut acknowledged = replace(&disk, "f", &new).is_ok();
        let is_uncut = !disk.is_crashed();
        for depth in 0..3 {
            if !disk.is_crashed() {
                break;
            }
            disk = disk.crash_image(cut * 3 + depth);
            let found = disk.contents("f").expect("the name is safe");
            assert!(found == old || found == new, "cut {cut}, depth {depth}");
            assert!(!acknowledged || found == new, "cut {cut}, depth {depth}");
            disk.crash_after_changes(cut / 2);
            acknowledged |= replace(&disk, "f", &new).is_ok();
        }
        cuts += 1;
        if is_uncut {
            assert!(acknowledged);
            break;
        }
    }
    assert!(cuts > 8, "every change was a place to cut, not only {cuts}");
}

#[test]
fn call_in_which_the_crash_comes_may_take_effect_and_fails() {
    let disk = SimDisk::new(0, SimOptions::default());
    let file = disk.open("f", OpenMode::Create).unwrap();
    disk.sync_directory().unwrap();
    disk.crash_after(1);
    file.write_at(b"first", 0).unwrap();
    let error = file.write_at(b"second", 5).unwrap_err();
    assert_eq!(
        (error.kind, error.operation),
        (DiskErrorKind::Crashed, DiskOperation::Write)
    );
    let kept = disk
        .crash_image_in_style(CrashStyle::KeepAll, 0)
        .contents("f")
        .unwrap();
    assert_eq!(kept, b"firstsecond");
    let lost = disk
        .crash_image_in_style(CrashStyle::LoseAll, 0)
        .contents("f")
        .unwrap();
    assert_eq!(lost, b"");
}

#[test]
fn sync_in_which_the_crash_comes_promises_nothing() {
    let disk = SimDisk::new(0, SimOptions::default());
    let file = disk.open("f", OpenMode::Create).unwrap();
    disk.sync_directory().unwrap();
    file.write_at(b"bytes", 0).unwrap();
    disk.crash_after_changes(0);
    assert!(file.sync().unwrap_err().is_crash());
    let lost = disk
        .crash_image_in_style(CrashStyle::LoseAll, 0)
        .contents("f")
        .unwrap();
    assert_eq!(lost, b"");
}

#[test]
fn nothing_works_after_the_crash() {
    let disk = SimDisk::new(0, SimOptions::default());
    let file = disk.open("f", OpenMode::Create).unwrap();
    let lock = disk.lock("lock").unwrap();
    disk.crash_now();
    let ios = disk.io_count();
    let errors = [
        file.read_at(&mut [0], 0).unwrap_err(),
        file.write_at(&[0], 0).unwrap_err(),
        file.sync().unwrap_err(),
        file.len().unwrap_err(),
        file.set_len(0).unwrap_err(),
        file.allocate(0).unwrap_err(),
        disk.open("f", OpenMode::Write).map(drop).unwrap_err(),
        disk.list().unwrap_err(),
        disk.exists("f").unwrap_err(),
        disk.remove("f").unwrap_err(),
        disk.rename("f", "g").unwrap_err(),
        disk.sync_directory().unwrap_err(),
        disk.lock("other").unwrap_err(),
    ];
    assert!(errors.iter().all(DiskError::is_crash));
    assert_eq!(disk.io_count(), ios);
    drop(lock);
}

#[test]
fn crash_releases_locks() {
    let disk = SimDisk::new(0, SimOptions::default());
    let _lock = disk.lock("lock").unwrap();
    assert_eq!(disk.lock("lock").unwrap_err().kind, DiskErrorKind::Locked);
    let _free = disk.crash_image(0).lock("lock").unwrap();
}

#[test]
fn trace_lists_every_place_to_cut() {
    let disk = SimDisk::new(0, SimOptions::default());
    disk.start_trace();
    replace(&disk, "f", &[1; 1000]).unwrap();
    let file = disk.open("f", OpenMode::Read).unwrap();
    file.read_at(&mut [0; 10], 5).unwrap();
    let trace = disk.take_trace();
    assert_eq!(trace.len() as u64, disk.io_count());
    let changes: Vec<_> = trace.iter().filter(|io| io.is_change).collect();
    assert_eq!(changes.len() as u64, disk.change_count());
    let last = trace.last().unwrap();
    assert_eq!(
        (last.operation, last.offset, last.len),
        (DiskOperation::Read, 5, 10)
    );
    assert_eq!(&*last.file, "f");
    use DiskOperation::{Open, Rename, SetLen, Sync, SyncDirectory, Write};
    let operations: Vec<_> = changes.iter().map(|io| io.operation).collect();
    assert_eq!(
        operations,
        [Open, SetLen, Write, Write, Sync, Rename, SyncDirectory]
    );
}
