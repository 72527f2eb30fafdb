//! Random appends, flushes, checkpoints and crashes, three deep: what was synced is there, nothing else
//! is, in order.

use crate::support::*;
use longshore_base::Lsn;
use longshore_disk::SimDisk;
use longshore_log::{Claim, Level, Log, LogError, Record, ScanFrom};
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;

/// What the log should hold.
#[derive(Default)]
struct Model {
    /// Everything appended since the checkpoint, in order.
    records: Vec<Record>,
    /// What was acknowledged as safe: the log reaches at least here.
    acknowledged: Lsn,
    /// What a checkpoint remembers.
    checkpoint: Lsn,
}

impl Model {
    /// What may be found after a crash: a prefix that holds all that was acknowledged.
    fn check_and_adopt(&mut self, found: Vec<Record>) {
        assert!(found.len() <= self.records.len(), "records were invented");
        assert_eq!(
            found[..],
            self.records[..found.len()],
            "history was changed"
        );
        let lost = self.records.get(found.len());
        if let Some(lost) = lost {
            assert!(
                lost.lsn >= self.acknowledged,
                "{:?} was acknowledged",
                lost.lsn
            );
        }
        self.records = found;
    }

    fn scan_from(&self, knows: bool) -> ScanFrom {
        let known_durable = if knows {
            self.acknowledged
        } else {
            self.checkpoint
        };
        ScanFrom {
            lsn: self.checkpoint,
            known_durable,
        }
    }
}

struct Run {
    model: Model,
    random: SmallRng,
}

impl Run {
    /// Works until the disk crashes, or for a while.
    fn work(&mut self, log: &Arc<Log>, steps: u32) -> Result<(), LogError> {
        let mut claim = log.claim(512)?;
        for _ in 0..steps {
            match self.random.random_range(0..100) {
                0..75 => self.append(log, &mut claim)?,
                75..80 => log.flush_all(Level::Os)?,
                80..92 => self.sync(log)?,
                92..96 => self.read_back(log)?,
                _ => self.checkpoint(log)?,
            }
        }
        Ok(())
    }

    fn append(&mut self, log: &Log, claim: &mut Claim) -> Result<(), LogError> {
        // Few lengths, so that left-over records often lie right behind new ones.
        let length = [0, 8, 40, 40, 100, 900][self.random.random_range(0..6)];
        let body = vec![self.random.random(); length];
        let kind = self.random.random_range(1..255);
        let txn = longshore_base::TxnId::new(u64::from(kind));
        let lsn = log.append(claim, kind, txn, Lsn::ZERO, &[&body])?;
        self.model.records.push(record(lsn, kind, &body));
        Ok(())
    }

    fn sync(&mut self, log: &Log) -> Result<(), LogError> {
        let tail = log.tail();
        log.flush_all(Level::Sync)?;
        self.model.acknowledged = tail;
        Ok(())
    }

    fn read_back(&mut self, log: &Log) -> Result<(), LogError> {
        if self.model.records.is_empty() {
            return Ok(());
        }
        let index = self.random.random_range(0..self.model.records.len());
        let expected = &self.model.records[index];
        assert_eq!(log.read(expected.lsn)?, *expected);
        Ok(())
    }

    fn checkpoint(&mut self, log: &Log) -> Result<(), LogError> {
        self.sync(log)?;
        let kept = self.random.random_range(0..=self.model.records.len());
        let from = self
            .model
            .records
            .get(kept)
            .map_or(log.tail(), |record| record.lsn);
        self.model.checkpoint = from.min(self.model.acknowledged);
        self.model.records.drain(..kept);
        log.truncate(self.model.checkpoint)
    }

    /// Crashes the disk, and opens what is left, crashing again in between at times.
    fn reopen(&mut self, disk: &SimDisk) -> (SimDisk, Arc<Log>) {
        let mut disk = disk.crash_image(self.random.random());
        for _ in 0..2 {
            if self.random.random_bool(0.5) {
                disk.crash_after(self.random.random_range(0..20));
                let _ = open(&disk, self.model.scan_from(true));
                disk = disk.crash_image(self.random.random());
            }
        }
        let log =
            open(&disk, self.model.scan_from(self.random.random())).expect("a torn end at most");
        let found = scan(&log, self.model.checkpoint).expect("valid records");
        self.model.check_and_adopt(found);
        self.model.acknowledged = log.durable_lsn();
        (disk, log)
    }
}

fn run(seed: u64) {
    let mut run = Run {
        model: Model::default(),
        random: SmallRng::seed_from_u64(seed),
    };
    let mut disk = sim();
    let mut log = create(&disk).expect("a working disk");
    for _ in 0..4 {
        if run.random.random_bool(0.9) {
            disk.crash_after(run.random.random_range(0..120));
        }
        let steps = run.random.random_range(0..300);
        match run.work(&log, steps) {
            Ok(()) | Err(LogError::Full { .. }) => {}
            Err(_) => assert!(disk.is_crashed(), "seed {seed}: an error without a cause"),
        }
        drop(log);
        (disk, log) = run.reopen(&disk);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn what_was_synced_survives_and_nothing_is_invented(seed: u64) {
        run(seed);
    }
}

/// A record left over behind a torn end lies exactly where the next one would begin. Before left-over
/// records were overwritten, the scan after the second crash went on into it.
#[test]
fn left_over_record_is_not_taken_for_a_successor() {
    let disk = sim();
    let log = create(&disk).unwrap();
    let torn = append(&log, 1, &[1; 40]).unwrap();
    append(&log, 2, &[2; 40]).unwrap();
    log.flush_all(Level::Os).unwrap();
    let segment = &segment_files(&disk)[0];
    disk.flip_bit(segment, 4096 + torn.get() + 40, 0);
    drop(log);

    let log = open(&disk, Lsn::ZERO).unwrap();
    assert!(bodies(&log).is_empty(), "the log ends at the torn record");
    append(&log, 3, &[3; 40]).unwrap();
    log.flush_all(Level::Os).unwrap();
    drop(log);

    let log = open(&disk, Lsn::ZERO).unwrap();
    assert_eq!(bodies(&log), [[3; 40]]);
}

/// After a sync has failed, what the cache shows may never reach the device, even if a later sync says
/// yes. Opening writes it again before it counts on it.
#[test]
fn reopening_after_a_failed_sync_makes_durable_what_it_found() {
    use longshore_disk::{CrashStyle, Fault, FaultError, FaultOn, FaultRepeat};
    let disk = sim();
    let log = create(&disk).unwrap();
    let lsn = append(&log, 1, b"seen in the cache").unwrap();
    let fault = Fault {
        error: FaultError::Io,
        repeat: FaultRepeat::Once,
        on: FaultOn::Sync,
    };
    disk.fail_at(1, fault);
    assert!(log.flush(lsn, Level::Sync).unwrap_err().is_poisoned());
    drop(log);

    let log = open(&disk, Lsn::ZERO).unwrap();
    assert!(log.durable_lsn() > lsn);
    drop(log);
    let image = disk.crash_image_in_style(CrashStyle::LoseAll, 1);
    assert_eq!(
        bodies(&open(&image, Lsn::ZERO).unwrap()),
        [b"seen in the cache"]
    );
}

/// The same for the header of a segment: recycling it failed in the sync, so the cache shows a header
/// that the device does not have, and records behind it would be lost with it.
#[test]
fn reopening_after_a_failed_recycling_makes_the_header_durable() {
    use longshore_disk::{CrashStyle, Fault, FaultError, FaultOn, FaultRepeat};
    let disk = sim();
    let log = create(&disk).unwrap();
    for _ in 0..20 {
        append(&log, 1, &[1; 1000]).unwrap();
    }
    log.flush_all(Level::Sync).unwrap();
    let from = log.tail();
    let fault = Fault {
        error: FaultError::Io,
        repeat: FaultRepeat::Once,
        on: FaultOn::Sync,
    };
    disk.fail_at(1, fault);
    assert!(log.truncate(from).unwrap_err().is_poisoned());
    drop(log);

    let log = open(&disk, from).unwrap();
    for _ in 0..40 {
        append(&log, 2, &[2; 1000]).unwrap();
    }
    log.flush_all(Level::Sync).unwrap();
    drop(log);
    let image = disk.crash_image_in_style(CrashStyle::LoseAll, 1);
    let log = open(&image, from).unwrap();
    assert_eq!(scan(&log, from).unwrap().len(), 40);
}
