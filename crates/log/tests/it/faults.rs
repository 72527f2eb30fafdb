//! The Nth call on the disk fails: nothing is acknowledged after a failed sync, and what was before is there.

use crate::support::*;
use longshore_base::{Durability, Lsn};
use longshore_disk::{Fault, FaultError, FaultOn, FaultRepeat, SimDisk};
use longshore_log::{Level, LogError, Record};

/// A fixed workload; returns what was appended and how much of it was acknowledged.
fn work(disk: &SimDisk) -> (Vec<Record>, Lsn) {
    let (mut records, mut acknowledged) = (Vec::new(), Lsn::ZERO);
    let Ok(log) = create(disk) else {
        return (records, acknowledged);
    };
    for step in 0..60_u8 {
        let body = vec![step; usize::from(step) * 13];
        let Ok(lsn) = append(&log, step + 1, &body) else {
            continue;
        };
        records.push(record(lsn, step + 1, &body));
        if step % 5 == 4 && log.flush(lsn, Level::Sync).is_ok() {
            assert!(log.poison_cause().is_none(), "acknowledged after a failure");
            acknowledged = acknowledged.max(log.durable_lsn());
        }
        if step % 20 == 19 {
            let _ = log.truncate(Lsn::ZERO);
        }
    }
    if let Some(cause) = log.poison_cause() {
        assert!(matches!(
            append(&log, 1, b"late"),
            Err(LogError::Poisoned { .. })
        ));
        let lost = log.make_durable(log.tail()).err();
        assert!(lost.is_none_or(|lost| !lost.cause.is_empty()));
        assert!(!cause.is_empty());
    }
    (records, acknowledged)
}

#[test]
fn the_nth_call_fails() {
    for error in [FaultError::Io, FaultError::Full, FaultError::ShortWrite] {
        for repeat in [FaultRepeat::Once, FaultRepeat::ForEver] {
            for on in [FaultOn::Any, FaultOn::Sync] {
                if error != FaultError::Io && on == FaultOn::Sync {
                    continue;
                }
                every_n(Fault { error, repeat, on });
            }
        }
    }
}

fn every_n(fault: Fault) {
    for n in 1.. {
        let disk = sim();
        disk.fail_at(n, fault);
        let (records, acknowledged) = work(&disk);
        if disk.faults_hit() == 0 {
            assert!(n > 10, "{fault:?} hit nothing");
            return;
        }
        disk.clear_faults();
        for image in [disk.clone(), disk.crash_image(n)] {
            check(&image, &records, acknowledged, &format!("{fault:?} at {n}"));
        }
    }
}

fn check(disk: &SimDisk, records: &[Record], acknowledged: Lsn, context: &str) {
    let log = match open(disk, Lsn::ZERO) {
        Ok(log) => log,
        // The very first segment was never made.
        Err(LogError::Missing { .. } | LogError::NotALog { .. }) if acknowledged == Lsn::ZERO => {
            return;
        }
        Err(error) => panic!("{context}: {error}"),
    };
    let found = scan(&log, Lsn::ZERO).unwrap();
    assert!(found.len() <= records.len(), "{context}: invented");
    assert_eq!(found[..], records[..found.len()], "{context}");
    if let Some(lost) = records.get(found.len()) {
        assert!(
            lost.lsn >= acknowledged,
            "{context}: {:?} was acknowledged",
            lost.lsn
        );
    }
    append(&log, 1, b"goes on").unwrap();
    log.flush_all(Level::Sync).unwrap();
}

#[test]
fn a_failed_write_is_told_to_everybody_with_its_cause() {
    let disk = sim();
    let log = create(&disk).unwrap();
    let lsn = append(&log, 1, b"lost").unwrap();
    let handle = log.durable(lsn, Level::Sync);
    let fault = Fault {
        error: FaultError::Io,
        repeat: FaultRepeat::Once,
        on: FaultOn::Write,
    };
    disk.fail_at(1, fault);
    for error in [
        log.flush(lsn, Level::Os),
        handle.wait(),
        log.flush_all(Level::Sync),
    ] {
        let message = error.unwrap_err().to_string();
        assert!(
            message.contains("log-0000") && message.contains("reopened"),
            "{message}"
        );
    }
    assert!(!handle.is_done());
    assert!(log.scan(Lsn::ZERO).next().unwrap().is_err());
}
