//! Real files: locks against other openers, direct I/O, and messages that help.

use longshore_disk::{
    AlignedBuffer, BLOCK, Disk, DiskErrorKind, FileDisk, FileIo, FileOptions, OpenMode,
};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Once;

fn open(path: &Path, io: FileIo) -> FileDisk {
    FileDisk::open(path, FileOptions { io, create: false }).unwrap()
}

/// Whether the test directory does direct I/O; says so loudly when it does not.
pub fn direct_io_works() -> bool {
    static SAY: Once = Once::new();
    let directory = tempfile::tempdir().unwrap();
    let disk = open(directory.path(), FileIo::Direct);
    let tried = disk
        .open("probe", OpenMode::Create)
        .and_then(|file| file.write_at(&AlignedBuffer::zeroed(BLOCK), 0));
    if let Err(error) = &tried {
        assert!(error.to_string().contains("refuses direct I/O"), "{error}");
        SAY.call_once(|| eprintln!("SKIPPED: no direct I/O in {:?}: {error}", directory.path()));
    }
    tried.is_ok()
}

#[test]
fn directory_is_created_when_asked_and_only_then() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/database");
    let error = FileDisk::open(&path, FileOptions::default()).unwrap_err();
    assert_eq!(error.kind, DiskErrorKind::NotFound);
    assert!(error.to_string().contains("deep/database"), "{error}");
    FileDisk::open(
        &path,
        FileOptions {
            create: true,
            ..FileOptions::default()
        },
    )
    .unwrap();
    FileDisk::open(&path, FileOptions::default()).unwrap();
}

#[test]
fn file_in_place_of_the_directory_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for create in [false, true] {
        let options = FileOptions {
            create,
            ..FileOptions::default()
        };
        let error = FileDisk::open(file.path(), options).unwrap_err();
        assert!(error.to_string().contains("not a directory"), "{error}");
    }
}

#[test]
fn bytes_are_there_after_reopening() {
    for io in [FileIo::Buffered, FileIo::Direct] {
        if io == FileIo::Direct && !direct_io_works() {
            continue;
        }
        let directory = tempfile::tempdir().unwrap();
        let disk = open(directory.path(), io);
        let file = disk.open("data", OpenMode::Create).unwrap();
        file.write_at(&[7; 10_001], 123).unwrap();
        file.sync().unwrap();
        disk.sync_directory().unwrap();
        drop((file, disk));
        let bytes = std::fs::read(directory.path().join("data")).unwrap();
        assert_eq!((bytes.len(), bytes[122], bytes[123]), (10_124, 0, 7));
        let disk = open(directory.path(), io);
        let file = disk.open("data", OpenMode::Read).unwrap();
        let mut back = vec![0; 20_000];
        assert_eq!(file.read_at(&mut back, 5).unwrap(), 10_119);
        assert!(back[118..10_119].iter().all(|byte| *byte == 7));
        assert_eq!(
            file.write_at(&[1], 0).unwrap_err().kind,
            DiskErrorKind::PermissionDenied
        );
    }
}

#[test]
fn direct_transfers_larger_than_the_bounce_buffer_are_whole() {
    if !direct_io_works() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = open(directory.path(), FileIo::Direct)
        .open("f", OpenMode::Create)
        .unwrap();
    let bytes: Vec<u8> = (0..1_000_003u32).map(|at| (at / 7) as u8).collect();
    for offset in [0, 1, 4095, 4096, 5000] {
        file.write_at(&bytes, offset).unwrap();
        let mut back = vec![0; bytes.len()];
        assert_eq!(file.read_at(&mut back, offset).unwrap(), bytes.len());
        assert!(back == bytes, "at offset {offset}");
    }
}

/// Unaligned writers share a block, each by its own handle: the block that one rewrites must hold
/// what the others wrote meanwhile.
#[test]
fn direct_writers_inside_one_block_do_not_undo_each_other() {
    if !direct_io_works() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let disk = open(directory.path(), FileIo::Direct);
    disk.open("f", OpenMode::Create).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let file = disk.open("f", OpenMode::Write).unwrap();
            scope.spawn(move || {
                let (offset, mut back) = (thread * 100, [0; 100]);
                for round in 0..150 {
                    file.write_at(&[round; 100], offset).unwrap();
                    // Gives the others time to write back a block they read before.
                    std::thread::yield_now();
                    assert_eq!(file.read_at(&mut back, offset).unwrap(), 100);
                    assert_eq!(back, [round; 100], "undone by a neighbour");
                }
            });
        }
    });
}

#[test]
fn second_opener_in_the_process_is_refused_until_the_first_lets_go() {
    let directory = tempfile::tempdir().unwrap();
    let disk = open(directory.path(), FileIo::Buffered);
    let lock = disk.lock("lock").unwrap();
    let error = open(directory.path(), FileIo::Buffered)
        .lock("lock")
        .unwrap_err();
    assert_eq!(error.kind, DiskErrorKind::Locked);
    assert!(
        error
            .to_string()
            .contains("this process has it open already"),
        "{error}"
    );
    drop(lock);
    let again = disk.lock("lock").unwrap();
    drop(again);
}

/// Tells the process that this test binary starts which directory to try.
const CHILD_DIRECTORY: &str = "LONGSHORE_TEST_LOCK_DIRECTORY";

/// Not a test of its own: what the second process runs, see below.
#[test]
fn lock_child() {
    let Ok(path) = std::env::var(CHILD_DIRECTORY) else {
        return;
    };
    match open(Path::new(&path), FileIo::Buffered).lock("lock") {
        Ok(_lock) => println!("child: locked"),
        Err(error) => println!("child: {:?}: {error}", error.kind),
    }
}

fn lock_in_second_process(path: &Path) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "file::lock_child", "--nocapture"])
        .env(CHILD_DIRECTORY, path)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.split("child: ").nth(1));
    line.unwrap_or_else(|| panic!("the child said nothing: {text}"))
        .to_owned()
}

#[test]
fn second_process_is_refused_and_told_who_holds_the_lock() {
    let directory = tempfile::tempdir().unwrap();
    let disk = open(directory.path(), FileIo::Buffered);
    let lock = disk.lock("lock").unwrap();
    let refused = lock_in_second_process(directory.path());
    let holder = format!("process {} has it open", std::process::id());
    assert!(
        refused.starts_with("Locked") && refused.contains(&holder),
        "{refused}"
    );
    drop(lock);
    assert_eq!(lock_in_second_process(directory.path()), "locked");
    let _lock = disk
        .lock("lock")
        .expect("the child is gone, and its lock with it");
}

#[test]
fn replaced_lock_file_does_not_let_two_in() {
    let directory = tempfile::tempdir().unwrap();
    let disk = open(directory.path(), FileIo::Buffered);
    let _first = disk.lock("lock").unwrap();
    let _second = disk.lock("other").unwrap();
    assert_eq!(disk.lock("lock").unwrap_err().kind, DiskErrorKind::Locked);
    assert_eq!(disk.list().unwrap(), ["lock", "other"]);
}

#[test]
fn file_system_without_direct_io_is_named_with_the_way_out() {
    // The one file system that every Linux has and that never does direct I/O.
    let error = open(Path::new("/proc/self"), FileIo::Direct)
        .open("status", OpenMode::Read)
        .map(drop)
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("refuses direct I/O; use buffered I/O"),
        "{text}"
    );
    assert!(text.contains("status"), "{text}");
}

#[test]
fn missing_and_existing_files_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let disk = open(directory.path(), FileIo::Buffered);
    let error = disk.open("data", OpenMode::Write).map(drop).unwrap_err();
    assert_eq!(error.kind, DiskErrorKind::NotFound);
    assert!(error.to_string().contains("data"), "{error}");
    disk.open("data", OpenMode::Create).unwrap();
    let error = disk.open("data", OpenMode::Create).map(drop).unwrap_err();
    assert_eq!(error.kind, DiskErrorKind::AlreadyExists);
}

#[test]
#[should_panic(expected = "not a plain file name")]
fn name_with_a_slash_is_our_bug() {
    let directory = tempfile::tempdir().unwrap();
    let _ = open(directory.path(), FileIo::Buffered).exists("../data");
}
