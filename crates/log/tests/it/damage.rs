//! Bytes that change on the medium: an error that says where, or an end that may be torn; never a record
//! that was not written.

use crate::support::*;
use longshore_base::{Lsn, SeededEnvironment};
use longshore_disk::{Disk, OpenMode, SimDisk};
use longshore_log::{Access, Level, Log, LogError, LogOptions, Record, ScanFrom};
use std::sync::Arc;

/// Several segments of records, synced in groups; the last group is followed by no marker.
fn synced_log() -> (SimDisk, Vec<Record>, Lsn) {
    let disk = sim();
    let log = create(&disk).unwrap();
    let mut records = Vec::new();
    let mut marked = Lsn::ZERO;
    for group in 0..6_u8 {
        marked = log.durable_lsn();
        for length in [5, 300, 64, 700] {
            let body = vec![group; length];
            let lsn = append(&log, group + 1, &body).unwrap();
            records.push(record(lsn, group + 1, &body));
        }
        log.flush_all(Level::Sync).unwrap();
    }
    (disk, records, marked)
}

/// Opens, reads everything, and says whether it was an error; checks that nothing is made up.
fn is_found_out(disk: &SimDisk, records: &[Record], durable: Lsn) -> bool {
    let known = ScanFrom {
        lsn: Lsn::ZERO,
        known_durable: durable,
    };
    let found = open_read_only(disk, known).and_then(|log| scan(&log, Lsn::ZERO));
    match found {
        Ok(found) => {
            assert!(found.len() <= records.len());
            assert_eq!(found[..], records[..found.len()], "a record was made up");
            false
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.contains("log-0000"), "names the file: {message}");
            true
        }
    }
}

#[test]
fn every_flipped_bit_is_an_error_or_harmless_or_a_torn_end() {
    let (disk, records, marked) = synced_log();
    let end = records.last().unwrap().end().get();
    let mut torn_ends = 0;
    for (file, start) in segment_files(&disk).into_iter().zip((0..).step_by(4096)) {
        let bytes = disk.contents(&file).unwrap().len() as u64;
        for offset in (0..48).chain(4096..bytes) {
            let position = start + offset.saturating_sub(4096);
            if position > end + 64 {
                continue;
            }
            // One bit of each byte, all in turn; the units test every bit of one record.
            let bit = (offset % 8) as u8;
            disk.flip_bit(&file, offset, bit);
            if !is_found_out(&disk, &records, Lsn::ZERO) {
                let all = scan(&open_read_only(&disk, Lsn::ZERO).unwrap(), Lsn::ZERO).unwrap();
                if all.len() < records.len() {
                    torn_ends += 1;
                    let next = records[all.len()].lsn;
                    assert!(
                        next >= marked,
                        "{file} {offset}.{bit}: {next:?} was marked durable"
                    );
                    assert!(
                        is_found_out(&disk, &records, Lsn::new(end)),
                        "a checkpoint knows"
                    );
                }
            }
            disk.flip_bit(&file, offset, bit);
        }
    }
    assert!(torn_ends > 0, "the last group can be taken for a torn end");
    assert!(
        !is_found_out(&disk, &records, Lsn::new(end)),
        "all bits are back"
    );
}

#[test]
fn damage_names_segment_offset_and_position() {
    let (disk, records, _) = synced_log();
    let victim = &records[2];
    let file = &segment_files(&disk)[0];
    disk.flip_bit(file, 4096 + victim.lsn.get() + 33, 0);
    match open(&disk, Lsn::ZERO) {
        Err(LogError::Damaged {
            segment,
            offset,
            lsn,
            reason,
        }) => {
            assert_eq!(
                (&segment, offset, lsn),
                (file, 4096 + victim.lsn.get(), victim.lsn)
            );
            assert!(reason.contains("checksum"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_missing_segment_is_named() {
    for victim in 0..2 {
        let (disk, records, _) = synced_log();
        let file = segment_files(&disk)[victim].clone();
        disk.remove(&file).unwrap();
        let error = open(&disk, records[0].lsn).unwrap_err();
        assert!(
            matches!(&error, LogError::Missing { segment, .. } if *segment == file),
            "{error}"
        );
    }
}

#[test]
fn a_shortened_segment_is_damage() {
    let (disk, records, _) = synced_log();
    let file = segment_files(&disk)[0].clone();
    disk.open(&file, OpenMode::Write)
        .unwrap()
        .set_len(4096 + 1000)
        .unwrap();
    assert!(is_found_out(&disk, &records, Lsn::ZERO));
}

#[test]
fn strangers_are_refused() {
    let (disk, _, _) = synced_log();
    let env = Arc::new(SeededEnvironment::new(1));
    let other = Log::open(
        shared(&disk),
        SMALL,
        4711,
        Lsn::ZERO,
        Access::ReadWrite,
        env,
    )
    .unwrap_err();
    assert!(matches!(
        other,
        LogError::OtherDatabase { expected: 4711, .. }
    ));
    assert!(other.to_string().contains("log-0000000000000000"));

    let file = segment_files(&disk)[0].clone();
    disk.open(&file, OpenMode::Write)
        .unwrap()
        .write_at(b"something", 0)
        .unwrap();
    let other = open(&disk, Lsn::ZERO).unwrap_err();
    assert!(matches!(other, LogError::NotALog { .. }), "{other}");
}

#[test]
fn reading_only_changes_nothing() {
    let (disk, records, _) = synced_log();
    // A left-over record behind a torn end: writing on would overwrite it.
    let log = open(&disk, Lsn::ZERO).unwrap();
    append(&log, 9, &[9; 100]).unwrap();
    let torn = log.tail();
    append(&log, 9, &[9; 100]).unwrap();
    append(&log, 9, &[9; 100]).unwrap();
    log.flush_all(Level::Os).unwrap();
    drop(log);
    let file = &segment_files(&disk)[(torn.get() / 4096) as usize];
    disk.flip_bit(file, 4096 + torn.get() % 4096 + 50, 0);

    let before = disk.change_count();
    let log = open_read_only(&disk, Lsn::ZERO).unwrap();
    assert_eq!(log.tail(), torn);
    assert_eq!(scan(&log, Lsn::ZERO).unwrap().len(), records.len() + 1);
    assert!(matches!(append(&log, 1, b"x"), Err(LogError::ReadOnly)));
    let mut reserve = log.claim_reserve();
    let refused = log.append(
        &mut reserve,
        1,
        longshore_base::TxnId::SYSTEM,
        Lsn::ZERO,
        &[b"x"],
    );
    assert!(matches!(refused, Err(LogError::ReadOnly)));
    assert!(matches!(log.truncate(torn), Err(LogError::ReadOnly)));
    log.flush_all(Level::Sync).unwrap();
    drop((reserve, log));
    assert_eq!(disk.change_count(), before);
}

#[test]
fn options_out_of_range_are_refused_with_what_is_allowed() {
    let disk = sim();
    for (options, name) in [
        (
            LogOptions {
                segment_bytes: 5000,
                ..SMALL
            },
            "log_segment_bytes",
        ),
        (
            LogOptions {
                buffer_bytes: 5000,
                ..SMALL
            },
            "log_buffer_bytes",
        ),
        (
            LogOptions {
                bytes_max: 5000,
                ..SMALL
            },
            "log_bytes_max",
        ),
    ] {
        let error = Log::create(shared(&disk), options, DATABASE, env()).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
    assert_eq!(disk.list().unwrap(), [""; 0]);
}
