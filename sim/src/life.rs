//! The life of one database on a simulated disk: work, crash, recovery, comparison, and again.
//!
//! # Protocol
//! A seed determines everything. A life has several rounds. In each, the disk is set to crash at a
//! random I/O or at a random crash point; clients work until it does; what the disk then holds is an
//! image drawn from its unsynced writes; recovery runs on it, and may be crashed itself, up to three
//! deep; the recovered database is compared with the model and verified; the next round goes on with
//! it. The creation of the database may be cut as well.

use crate::points::Points;
use crate::subject::Subject;
use crate::trace::trace;
use crate::workload::Stop;
use longshore::Database;

/// Crashes that recovery itself must survive in a row.
const DEPTH_MAX: u64 = 3;

/// What a life saw.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Crashes survived.
    pub cuts: u64,
    /// Crashes among them that fell into recovery.
    pub cuts_in_recovery: u64,
}

/// One database through several crashes.
pub struct Life<'p> {
    seed: u64,
    points: &'p Points,
    subject: Subject,
    report: Report,
}

impl<'p> Life<'p> {
    /// The life of `seed`.
    pub fn new(seed: u64, points: &'p Points) -> Life<'p> {
        Life {
            seed,
            points,
            subject: Subject::new(seed, None),
            report: Report::default(),
        }
    }

    /// Lives through `rounds` crashes of work, and as many in recovery as chance has it.
    ///
    /// # Errors
    /// What went wrong, with the seed.
    pub fn run(mut self, rounds: u64) -> Result<Report, String> {
        let outcome = self.live(rounds);
        self.points.disarm();
        let (report, profile) = (self.report, self.subject.profile);
        outcome.map(|()| report).map_err(|wrong| {
            format!(
                "seed {} (after {} cuts, {profile:?}): {wrong}",
                self.seed, report.cuts
            )
        })
    }

    fn live(&mut self, rounds: u64) -> Result<(), String> {
        let mut db = self.create()?;
        for _ in 0..rounds {
            self.work_until_crash(&db)?;
            drop(db);
            db = self.recover()?;
        }
        self.subject.close_and_compare(db)
    }

    fn create(&mut self) -> Result<Database, String> {
        if self.subject.choices.one_in(8) {
            self.arm(60);
        }
        loop {
            match self.subject.open() {
                Ok(db) if !self.subject.disk.is_crashed() => return Ok(db),
                Ok(_) => self.replace_disk(),
                Err(_) if self.subject.disk.is_crashed() => self.replace_disk(),
                Err(error) => return Err(format!("create: {error}")),
            }
        }
    }

    fn work_until_crash(&mut self, db: &Database) -> Result<(), String> {
        self.arm(400);
        let steps = self.subject.choices.log_uniform(300);
        match self.subject.work(db, steps) {
            Err(Stop::Wrong(wrong)) => return Err(wrong),
            Ok(()) if self.subject.choices.one_in(4) => self.close(db)?,
            Ok(()) | Err(Stop::Failed(_)) => {}
        }
        // Not reached: the power fails while the clients think.
        self.subject.disk.crash_now();
        Ok(())
    }

    /// Closes the database, which may be cut as well.
    fn close(&mut self, db: &Database) -> Result<(), String> {
        trace(|| "close".to_owned());
        match db.close() {
            Ok(()) => self.subject.history.all_durable(),
            Err(_) if self.subject.disk.is_crashed() => {}
            Err(error) => return Err(format!("close: {error}")),
        }
        Ok(())
    }

    fn recover(&mut self) -> Result<Database, String> {
        let mut depth = 0;
        loop {
            self.replace_disk();
            if depth < DEPTH_MAX && self.subject.choices.one_in(3) {
                depth += 1;
                self.arm(40);
            }
            match self.subject.open() {
                Ok(db) if !self.subject.disk.is_crashed() => {
                    self.points.disarm();
                    self.subject.disk.crash_after(u64::MAX);
                    self.subject.compare(&db)?;
                    return Ok(db);
                }
                // Recovered, and then the power failed again.
                Ok(_) => self.report.cuts_in_recovery += 1,
                Err(_) if self.subject.disk.is_crashed() => self.report.cuts_in_recovery += 1,
                Err(error) => return Err(format!("recovery: {error}")),
            }
        }
    }

    /// Sets the disk to crash at one of the next I/Os, or at one of the next crash points.
    fn arm(&mut self, ios_max: u64) {
        let nth = self.subject.choices.log_uniform(ios_max);
        if self.subject.choices.one_in(3) {
            self.points.arm(&self.subject.disk, None, nth);
        } else {
            self.subject.disk.crash_after(nth);
        }
    }

    fn replace_disk(&mut self) {
        trace(|| format!("--- cut {} ---", self.report.cuts + 1));
        self.points.disarm();
        self.subject.replace_disk();
        self.report.cuts += 1;
    }
}
