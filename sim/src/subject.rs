//! The database under test: its simulated disk, its model, and the steps that every test takes.

use crate::indexes;
use crate::model::{History, Rows, State};
use crate::rng::Choices;
use crate::trace::trace;
use crate::workload::{Profile, Stop, Workload};
use longshore::{Background, Database, Error, LockEscalation, Options, Replacement};
use longshore_base::{Environment, SeededEnvironment};
use longshore_disk::{Disk, SimDisk, SimOptions};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Frames of a pool, but for what else it holds.
const POOL_FRAMES: u32 = 64;

/// Options that make everything small: pages are evicted, segments fill, chains grow in moments.
pub fn small_options() -> Options {
    Options::new()
        .page_size(4096)
        .pool_bytes(POOL_FRAMES as usize * 4096)
        .log_segment_bytes(64 << 10)
        .log_buffer_bytes(64 << 10)
        .log_bytes_max(2 << 20)
        .lock_bytes_max(256 << 10)
        .transactions_max(16)
        .lock_wait(Duration::ZERO)
        .lock_escalation(LockEscalation::At(8))
        .background(Background::Off)
}

/// A simulated disk, the database on it, and what that must hold.
pub struct Subject {
    /// The disk; replaced by an image of itself after a crash.
    pub disk: Arc<SimDisk>,
    /// The commits so far.
    pub history: History,
    /// Where all further choices come from.
    pub choices: Choices,
    /// How the transactions look.
    pub profile: Profile,
    /// Who chooses the pages that leave memory.
    replacement: Replacement,
}

impl Subject {
    /// The subject of `seed`, with a profile of the seed's choice unless one is given.
    pub fn new(seed: u64, profile: Option<Profile>) -> Subject {
        let mut choices = Choices::new(seed);
        let disk = Arc::new(SimDisk::new(choices.any(), SimOptions::default()));
        let profile = profile.unwrap_or_else(|| Profile::choose(&mut choices));
        Subject {
            disk,
            history: History::default(),
            choices,
            profile,
            replacement: choose_replacement(seed),
        }
    }

    /// The policy takes its memory besides, lest it leave no room for frames.
    fn options(&self) -> Options {
        let beside = self.replacement.bytes_max(POOL_FRAMES);
        small_options()
            .pool_bytes(POOL_FRAMES as usize * 4096 + beside)
            .replacement(self.replacement.to_string())
    }

    /// Opens the database, or creates it; registers its indexes.
    ///
    /// # Errors
    /// The database's own.
    pub fn open(&mut self) -> Result<Database, Error> {
        let env: Arc<dyn Environment> = Arc::new(SeededEnvironment::new(self.choices.any()));
        let disk: Arc<dyn Disk> = Arc::<SimDisk>::clone(&self.disk);
        let db = Database::open_with_disk(disk, env, self.options())?;
        indexes::open_all(&db)?;
        Ok(db)
    }

    /// Has the clients take `steps` steps.
    ///
    /// # Errors
    /// [`Stop`], when the disk has failed or the database has failed the test.
    pub fn work(&mut self, db: &Database, steps: u64) -> Result<(), Stop> {
        let (profile, choices) = (self.profile, &mut self.choices);
        Workload::new(&self.disk, db, profile, choices, &mut self.history).run(steps)
    }

    /// Puts an image of what a crash left in the place of the disk.
    pub fn replace_disk(&mut self) {
        self.disk = Arc::new(self.disk.crash_image(self.choices.any()));
    }

    /// Holds the recovered database against the model, and verifies it.
    ///
    /// # Errors
    /// What is missing, wrong or should not be there.
    pub fn compare(&mut self, db: &Database) -> Result<(), String> {
        let found = read_all(db).map_err(|error| format!("reading after recovery: {error}"))?;
        self.history.recovered(found)?;
        self.settle(db)?;
        let report = db
            .verify()
            .map_err(|error| format!("verify after recovery: {error}"))?;
        match report.faults.first() {
            Some(fault) => {
                trace_log(db);
                Err(format!("verify after recovery: {fault}"))
            }
            None => Ok(()),
        }
    }

    /// Closes the database, opens it again and expects every commit there.
    ///
    /// # Errors
    /// The first difference.
    pub fn close_and_compare(&mut self, db: Database) -> Result<(), String> {
        db.close().map_err(|error| format!("close: {error}"))?;
        let db = self
            .open()
            .map_err(|error| format!("open after close: {error}"))?;
        let found = read_all(&db).map_err(|error| format!("reading after close: {error}"))?;
        match self.history.now().difference(&found) {
            Some(difference) => Err(format!("after close: {difference}")),
            None => Ok(()),
        }
    }
}

/// Nb-GCLOCK every other time, else any policy in any form. Chosen apart from all else, so that what a seed does is
/// the same whatever policies there are.
fn choose_replacement(seed: u64) -> Replacement {
    let mut choices = Choices::new(!seed);
    let all: Vec<Replacement> = Replacement::all().collect();
    let replacement = match choices.one_in(2) {
        true => Replacement::Native,
        false => all[choices.index(all.len())].clone(),
    };
    trace(|| format!("replacement: {replacement}"));
    replacement
}

/// Prints what the log still holds, if steps are printed.
fn trace_log(db: &Database) {
    for entry in db.log_entries(None).into_iter().flatten().flatten() {
        trace(|| format!("log: {entry:?}"));
    }
}

/// Every row of every table, and the names of its indexes.
///
/// # Errors
/// The database's own.
pub fn read_all(db: &Database) -> Result<State, Error> {
    let mut state = State::default();
    for name in db.tables()? {
        let table = db.table(&name)?;
        // Not under locks: prepared transactions have some.
        let rows: Result<Rows, Error> = db.view(|tx| tx.scan(&table, ..)?.collect());
        let indexes: BTreeSet<String> = table.indexes().into_iter().map(|i| i.name).collect();
        if !indexes.is_empty() {
            state.indexes.insert(name.clone(), indexes);
        }
        state.tables.insert(name, rows?);
    }
    Ok(state)
}
