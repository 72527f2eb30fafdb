//! Creating, recycling and removing segments.

use crate::support::*;
use longshore_base::Lsn;
use longshore_disk::Disk;
use longshore_disk::{DiskOperation, OpenMode};
use longshore_log::{Access, Level, Log, LogError, LogOptions};

fn write_kilobytes(log: &Log, kilobytes: usize) {
    for _ in 0..kilobytes {
        append(log, 1, &[5; 1024 - 32]).unwrap();
    }
    log.flush_all(Level::Sync).unwrap();
}

#[test]
fn truncation_recycles_some_segments_and_removes_the_others() {
    let disk = sim();
    let log = create(&disk).unwrap();
    write_kilobytes(&log, 50);
    let before = segment_files(&disk).len();
    disk.start_trace();
    log.truncate(log.tail()).unwrap();
    let trace = disk.take_trace();
    let count = |operation| trace.iter().filter(|io| io.operation == operation).count();
    assert!(count(DiskOperation::Rename) > 0);
    assert!(count(DiskOperation::Remove) > 0);
    assert_eq!(
        count(DiskOperation::Allocate),
        0,
        "recycled space is there already"
    );
    assert!(segment_files(&disk).len() < before);
    assert!(matches!(
        log.read(Log::FIRST),
        Err(LogError::Truncated { .. })
    ));
    write_kilobytes(&log, 10);
}

#[test]
fn names_are_durable_before_the_first_record_is_written() {
    let disk = sim();
    let log = create(&disk).unwrap();
    disk.start_trace();
    write_kilobytes(&log, 30);
    let mut unsafe_names: Vec<String> = Vec::new();
    for io in disk.take_trace() {
        match io.operation {
            DiskOperation::Open | DiskOperation::Rename if io.is_change => {
                unsafe_names.push(io.file.to_string());
            }
            DiskOperation::SyncDirectory => unsafe_names.clear(),
            DiskOperation::Write if io.offset >= 4096 => {
                assert!(!unsafe_names.contains(&io.file.to_string()), "{io:?}");
            }
            _ => {}
        }
    }
}

#[test]
fn a_log_is_not_created_over_another_but_an_interrupted_one_can_be_erased() {
    let disk = sim();
    drop(create(&disk).unwrap());
    assert!(matches!(create(&disk), Err(LogError::AlreadyExists { .. })));
    Log::erase(&disk).unwrap();
    assert_eq!(segment_files(&disk), [""; 0]);
    create(&disk).unwrap();
}

#[test]
fn sizes_may_change_from_one_open_to_the_next() {
    let disk = sim();
    let log = create(&disk).unwrap();
    write_kilobytes(&log, 10);
    drop(log);
    let larger = LogOptions {
        segment_bytes: 20 << 10,
        ..SMALL
    };
    let log = Log::open(
        shared(&disk),
        larger,
        DATABASE,
        Lsn::ZERO,
        Access::ReadWrite,
        env(),
    )
    .unwrap();
    write_kilobytes(&log, 40);
    log.truncate(Lsn::new(9 << 10)).unwrap();
    let oldest = log.oldest_lsn();
    drop(log);
    let log = open(&disk, oldest.max(Lsn::new(64 + 9 * 1024))).unwrap();
    assert_eq!(scan(&log, Lsn::new(64 + 9 * 1024)).unwrap().len(), 41);
}

#[test]
fn files_left_by_interrupted_work_are_removed() {
    let disk = sim();
    let log = create(&disk).unwrap();
    write_kilobytes(&log, 20);
    let tail = log.tail();
    drop(log);
    // Beyond the end, a segment that was never finished; before the start, one already given up.
    disk.open("log-0000000000100000", OpenMode::Create).unwrap();
    let log = open(&disk, Lsn::new(64 + 8 * 1024)).unwrap();
    assert_eq!(log.tail(), tail);
    let files = segment_files(&disk);
    assert!(
        !files.contains(&"log-0000000000100000".to_owned()),
        "{files:?}"
    );
    assert!(
        !files.contains(&"log-0000000000000000".to_owned()),
        "{files:?}"
    );
}

#[test]
fn records_are_read_from_the_buffer_and_from_disk() {
    let log = create(&sim()).unwrap();
    let mut records = Vec::new();
    for length in (0..3000).step_by(97) {
        let body = vec![length as u8; length];
        let lsn = append(&log, 7, &body).unwrap();
        records.push(record(lsn, 7, &body));
        assert_eq!(log.read(lsn).unwrap(), records[records.len() - 1]);
    }
    for expected in &records {
        assert_eq!(log.read(expected.lsn).unwrap(), *expected);
    }
    assert!(matches!(
        log.read(log.tail()),
        Err(LogError::BeyondEnd { .. })
    ));
    assert!(matches!(
        log.flush(log.tail(), Level::Sync),
        Err(LogError::BeyondEnd { .. })
    ));
    let damaged = log.read(Lsn::new(records[3].lsn.get() + 8)).unwrap_err();
    assert!(damaged.is_damage());
    assert_eq!(scan(&log, records[5].lsn).unwrap(), records[5..]);
}

#[test]
fn truncation_keeps_what_is_not_durable() {
    let log = create(&sim()).unwrap();
    for _ in 0..20 {
        append(&log, 1, &[5; 1000]).unwrap();
    }
    log.flush_all(Level::Os).unwrap();
    log.truncate(log.tail()).unwrap();
    assert_eq!(log.oldest_lsn(), Log::FIRST);
    assert_eq!(scan(&log, Lsn::ZERO).unwrap().len(), 20);
}
