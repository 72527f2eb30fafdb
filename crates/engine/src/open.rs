//! Creating and opening: from a directory to an engine that works.
//!
//! # Protocol
//! Creating writes `control.new` first, makes that name safe, then makes all other files, syncs them,
//! writes the control into `control.new`, syncs everything, and renames it to `control`. So a
//! directory with `control` holds a whole database; one with `control.new` only holds a creation that
//! never finished, and may be started afresh; any other file in the way is somebody else's.
//!
//! Opening takes the lock, reads the control file, opens log and pages, and repeats history
//! (`recovery.rs`). A database that was closed cleanly has nothing to repeat.
//!
//! # Failure
//! An error or a crash while opening leaves a database that can be opened again.

use crate::control::{CONTROL_FILE, Control, ControlFile, State};
use crate::ddl;
use crate::engine::{Engine, Files, Storage};
use crate::error::{Error, Result};
use crate::index;
use crate::options::{Access as Mode, DoubleWrite, Options};
use crate::prepared;
use crate::recovery;
use longshore_access::Tree;
use longshore_base::{Environment, PageId, StoreId, crash_point};
use longshore_disk::{Disk, DiskErrorKind, DiskFile, DiskLock, OpenMode};
use longshore_log::{Access as LogAccess, Log, LogOptions, ScanFrom};
use std::sync::Arc;

const NEW_CONTROL_FILE: &str = "control.new";
const DATA_FILE: &str = "data";
const DOUBLE_WRITE_FILE: &str = "double-write";
const LOCK_FILE: &str = "lock";
const LOG_PREFIX: &str = "log-";

/// Where a database is or shall be, and how it is to be used.
pub(crate) struct Place {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) env: Arc<dyn Environment>,
    pub(crate) options: Options,
    /// For messages.
    pub(crate) path: String,
}

/// Opens the database, or creates it where there is none.
pub(crate) fn open_or_create(place: Place) -> Result<Arc<Engine>> {
    let is_there = place.disk.exists(CONTROL_FILE)? || place.options.access == Mode::ReadOnly;
    if is_there { open(place) } else { create(place) }
}

/// Creates a database.
pub(crate) fn create(place: Place) -> Result<Arc<Engine>> {
    place.options.check()?;
    if place.options.access == Mode::ReadOnly {
        return Err(Error::ReadOnly);
    }
    let lock = place.lock()?;
    place.clear()?;
    let disk = &*place.disk;
    disk.open(NEW_CONTROL_FILE, OpenMode::OpenOrCreate)?;
    disk.sync_directory()?;
    crash_point("create.begun");

    let control = Control {
        page_size: place.options.page_size_chosen(),
        database: place.env.random(),
        redo_lsn: Log::FIRST,
        scan_lsn: Log::FIRST,
        end_lsn: Log::FIRST,
        state: State::InUse,
        next_txn: 1,
        pages: 0,
        catalog_root: PageId::NONE,
        garbage_root: PageId::NONE,
    };
    let log = Log::create(
        Arc::clone(&place.disk),
        place.log_options(),
        control.database,
        Arc::clone(&place.env),
    )?;
    let control = ControlFile::create(disk, NEW_CONTROL_FILE, control)?;
    let files = place.files(OpenMode::Create)?;
    crash_point("create.files");

    let storage = Storage::new(&place, control.get().page_size, log, files)?;
    format(&storage, &control)?;
    crash_point("create.formatted");
    let first_txn = control.get().next_txn;
    let engine = Engine::new(place, lock, control, storage, first_txn);
    engine.checkpoint()?;
    engine.disk.sync_directory()?;
    engine.disk.rename(NEW_CONTROL_FILE, CONTROL_FILE)?;
    crash_point("create.renamed");
    engine.disk.sync_directory()?;
    Ok(Arc::new(engine))
}

/// Makes the pages and trees that every database has.
fn format(storage: &Storage, control: &ControlFile) -> Result<()> {
    let access = &storage.access;
    let mut context = access.system_context(0)?;
    access.format(&mut context)?;
    let catalog = Tree::create(access, &mut context, StoreId::CATALOG)?;
    let garbage = Tree::create(access, &mut context, StoreId::GARBAGE)?;
    control.update(|control| {
        control.catalog_root = catalog.root;
        control.garbage_root = garbage.root;
    })
}

/// Opens a database that is there.
pub(crate) fn open(place: Place) -> Result<Arc<Engine>> {
    place.options.check()?;
    place.check_there()?;
    let lock = place.lock()?;
    let mode = match place.options.access {
        Mode::ReadWrite => OpenMode::Write,
        Mode::ReadOnly => OpenMode::Read,
    };
    let control = ControlFile::open(&*place.disk, mode, &place.path)?;
    let found = control.get();
    place.check_page_size(&found)?;
    if mode == OpenMode::Read && found.state != State::Clean {
        return Err(Error::NeedsRecovery { path: place.path });
    }
    let files = place.files(mode)?;
    check_length(&*files.data, &found)?;
    let log = place.open_log(&found)?;
    let storage = Storage::new(&place, found.page_size, log, files)?;
    if mode == OpenMode::Read {
        storage.access.attach()?;
        return Ok(Arc::new(Engine::new(
            place,
            lock,
            control,
            storage,
            found.next_txn,
        )));
    }
    let history = recovery::repeat_history(&storage, &found)?;
    let first_txn = history.next_txn.max(found.next_txn);
    let engine = Engine::new(place, lock, control, storage, first_txn);
    let adopted = match found.state {
        State::Clean => {
            engine
                .control
                .update(|control| control.state = State::InUse)?;
            Vec::new()
        }
        State::InUse => recovery::take_back(&engine, history)?,
    };
    ddl::give_up_interrupted_loads(&engine)?;
    index::give_up_interrupted_builds(&engine, |entries| {
        adopted.iter().any(|one| one.changed.contains(&entries))
    })?;
    prepared::enter_tables(&engine, adopted)?;
    Ok(Arc::new(engine))
}

impl Place {
    fn lock(&self) -> Result<Option<DiskLock>> {
        match self.disk.lock(LOCK_FILE) {
            Ok(lock) => Ok(Some(lock)),
            Err(error) if error.kind == DiskErrorKind::Locked => Err(Error::Locked {
                path: self.path.clone(),
                holder: error.source.to_string(),
            }),
            // A medium that cannot be written cannot have a writer to be kept out.
            Err(error)
                if error.kind == DiskErrorKind::PermissionDenied
                    && self.options.access == Mode::ReadOnly =>
            {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes what a creation that never finished has left; refuses when anything else is there.
    fn clear(&self) -> Result<()> {
        let names = self.disk.list()?;
        let unfinished = names.iter().any(|name| name == NEW_CONTROL_FILE);
        for name in names.iter().filter(|name| is_ours(name)) {
            if name == CONTROL_FILE || !unfinished {
                return Err(Error::DatabaseExists {
                    path: self.path.clone(),
                    found: name.clone(),
                });
            }
            if name != NEW_CONTROL_FILE {
                self.disk.remove(name)?;
            }
        }
        Ok(())
    }

    /// Sees that there is a database to open, before anything is written there.
    fn check_there(&self) -> Result<()> {
        if self.disk.exists(CONTROL_FILE)? {
            return Ok(());
        }
        let path = self.path.clone();
        match self
            .disk
            .list()?
            .iter()
            .find(|name| name.as_str() != LOCK_FILE)
        {
            None => Err(Error::NoDatabase { path }),
            Some(name) if name == NEW_CONTROL_FILE => Err(Error::NoDatabase { path }),
            Some(_) => Err(Error::NotADatabase {
                path,
                reason: "it has no file `control`".to_owned(),
            }),
        }
    }

    fn check_page_size(&self, found: &Control) -> Result<()> {
        match self.options.page_size_bytes {
            Some(asked) if asked != found.page_size.bytes() => Err(Error::OtherPageSize {
                path: self.path.clone(),
                found: found.page_size.bytes(),
                asked,
            }),
            _ => Ok(()),
        }
    }

    fn files(&self, mode: OpenMode) -> Result<Files> {
        let data = self.open_file(DATA_FILE, mode)?;
        let double_write = match (self.options.double_write, mode) {
            (DoubleWrite::Off, _) | (_, OpenMode::Read) => None,
            // One who turned it off for a while finds no such file; it holds nothing of value then.
            (DoubleWrite::On, OpenMode::Write) => {
                Some(self.open_file(DOUBLE_WRITE_FILE, OpenMode::OpenOrCreate)?)
            }
            (DoubleWrite::On, mode) => Some(self.open_file(DOUBLE_WRITE_FILE, mode)?),
        };
        Ok(Files { data, double_write })
    }

    fn open_file(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn DiskFile>> {
        self.disk
            .open(name, mode)
            .map_err(|error| match error.kind {
                DiskErrorKind::NotFound => Error::corrupt(name, "the file is missing"),
                _ => error.into(),
            })
    }

    fn open_log(&self, control: &Control) -> Result<Arc<Log>> {
        let access = match self.options.access {
            Mode::ReadWrite => LogAccess::ReadWrite,
            Mode::ReadOnly => LogAccess::ReadOnly,
        };
        let from = ScanFrom {
            lsn: control.scan_lsn,
            known_durable: control.end_lsn,
        };
        Ok(Log::open(
            Arc::clone(&self.disk),
            self.log_options(),
            control.database,
            from,
            access,
            Arc::clone(&self.env),
        )?)
    }

    fn log_options(&self) -> LogOptions {
        LogOptions {
            segment_bytes: self.options.log_segment_bytes,
            buffer_bytes: self.options.log_buffer_bytes,
            bytes_max: self.options.log_bytes_max,
        }
    }
}

/// Whether a file of this name would be part of a database.
fn is_ours(name: &str) -> bool {
    [CONTROL_FILE, NEW_CONTROL_FILE, DATA_FILE, DOUBLE_WRITE_FILE].contains(&name)
        || name.starts_with(LOG_PREFIX)
}

/// A data file that lost its end would read as pages never written; the control file knows better.
fn check_length(data: &dyn DiskFile, control: &Control) -> Result<()> {
    let (found, least) = (
        data.len()?,
        control.pages * control.page_size.bytes() as u64,
    );
    if found < least {
        let reason =
            format!("it has {found} bytes, at least {least} were written; it was truncated");
        return Err(Error::corrupt(DATA_FILE, reason));
    }
    Ok(())
}
