//! The database behind a command: opening it, its tables, their shapes.
//!
//! # Protocol
//! A command that reads opens for reading only, which changes no byte; where the database was not
//! closed cleanly it is opened for writing instead, which recovers it. Each error of the engine is
//! given its exit code here, and nowhere else.

use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use longshore::{Database, Error, IoMode, Options, Table, Transaction, TransactionOptions};

use crate::args::{Durability, Global, Io};
use crate::exit::{Code, Failure, Outcome};
use crate::row::{SHAPES_TABLE, Shape};

/// What the names of all tables begin with that the command keeps for itself.
pub const OWN_TABLES: &str = "longshore.";

/// What a command wants of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Only to read.
    Read,
    /// To change what is there.
    Write,
    /// To change, and to create what is missing.
    Create,
}

/// An open database.
pub struct Store {
    /// Its directory, as the user wrote it.
    pub path: String,
    /// The engine's handle.
    pub db: Database,
    /// Did this command create it?
    pub is_created: bool,
}

impl Store {
    /// Opens the database in the directory `path`.
    ///
    /// # Errors
    /// [`Code::Locked`] when another process has it open; [`Code::Store`] when there is none, it is
    /// damaged or cannot be reached.
    pub fn open(path: &str, global: &Global, purpose: Purpose) -> Outcome<Store> {
        let options = options(global)?;
        let exists = Path::new(path).join("control").exists();
        let is_created = purpose == Purpose::Create && !exists;
        let opened = match purpose {
            Purpose::Read => match options.clone().read_only().open(path) {
                Err(Error::NeedsRecovery { .. }) => options.open(path),
                other => other,
            },
            Purpose::Write => options.open(path),
            Purpose::Create => options.open_or_create(path),
        };
        Ok(Store {
            path: path.to_string(),
            db: opened?,
            is_created,
        })
    }

    /// The table `name`, if there is one.
    ///
    /// # Errors
    /// The engine's.
    pub fn find_table(&self, name: &str) -> Outcome<Option<Table>> {
        match self.db.table(name) {
            Ok(table) => Ok(Some(table)),
            Err(Error::TableMissing { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The table `name`.
    ///
    /// # Errors
    /// [`Code::NotFound`] when there is none; the message lists those that there are.
    pub fn table(&self, name: &str) -> Outcome<Table> {
        if let Some(table) = self.find_table(name)? {
            return Ok(table);
        }
        let names = self.table_names()?;
        let others: Vec<&str> = names
            .iter()
            .map(String::as_str)
            .filter(|name| !name.starts_with(OWN_TABLES))
            .collect();
        let advice = match others.as_slice() {
            [] => "it has none; `longshore load` creates one".to_string(),
            others => format!("it has {}", others.join(", ")),
        };
        Err(Failure::not_found(format!(
            "there is no table {name} in {}: {advice}",
            self.path
        )))
    }

    /// The table `name`, which a user may rename or drop.
    ///
    /// # Errors
    /// As [`Store::table`]; [`Code::Usage`] when the table is the command's own.
    pub fn users_table(&self, name: &str) -> Outcome<Table> {
        match name.starts_with(OWN_TABLES) {
            false => self.table(name),
            true => Err(Failure::usage(format!(
                "{name} is the command's own table, and stays as it is"
            ))),
        }
    }

    /// The names of all tables, sorted.
    ///
    /// # Errors
    /// The engine's.
    pub fn table_names(&self) -> Outcome<Vec<String>> {
        let mut names = self.db.tables()?;
        names.sort();
        Ok(names)
    }

    /// The shape of a table, if the command has made it.
    ///
    /// # Errors
    /// The engine's, or a shape that cannot be read.
    pub fn shape(&self, table: &Table) -> Outcome<Option<Shape>> {
        let Some(shapes) = self.find_table(SHAPES_TABLE)? else {
            return Ok(None);
        };
        let Some(json) = self.db.get(&shapes, shape_key(table))? else {
            return Ok(None);
        };
        let shape = Shape::from_json(&json).map_err(|reason| {
            let name = table.name();
            Failure::new(
                Code::Store,
                format!("the shape of table {name} cannot be read: {reason}"),
            )
        })?;
        Ok(Some(shape))
    }

    /// Removes the shape of a table, if it has one.
    ///
    /// # Errors
    /// The engine's.
    pub fn remove_shape(&self, table: &Table) -> Outcome {
        if let Some(shapes) = self.find_table(SHAPES_TABLE)? {
            self.db.update(|tx| tx.delete(&shapes, shape_key(table)))?;
        }
        Ok(())
    }

    /// The table that holds the shapes, created where it is missing.
    ///
    /// # Errors
    /// The engine's.
    pub fn shapes_table(&self) -> Outcome<Table> {
        match self.find_table(SHAPES_TABLE)? {
            Some(table) => Ok(table),
            None => Ok(self.db.create_table(SHAPES_TABLE)?),
        }
    }

    /// Ends the use of the database; everything acknowledged is safe before this already.
    ///
    /// # Errors
    /// The engine's.
    pub fn close(self) -> Outcome {
        Ok(self.db.close()?)
    }
}

/// Keeps the shape of `table`, in the transaction that makes its rows visible.
///
/// # Errors
/// The engine's.
pub fn put_shape(tx: &Transaction, shapes: &Table, table: &Table, shape: &Shape) -> Outcome {
    Ok(tx.put(shapes, shape_key(table), shape.to_json())?)
}

/// A table's number is never used again, and stays its own when it is renamed.
fn shape_key(table: &Table) -> Vec<u8> {
    table.id().get().to_string().into_bytes()
}

/// Calls `row` with each row of a range, in order, until it says to stop.
///
/// Reads a snapshot: the locks of prepared transactions are in nobody's way, and their changes are not seen.
///
/// # Errors
/// The engine's, and those of `row`.
pub fn for_each_row(
    db: &Database,
    table: &Table,
    bounds: Bounds,
    direction: Direction,
    mut row: impl FnMut(&[u8], &[u8]) -> Outcome<ControlFlow<()>>,
) -> Outcome {
    let tx = db.begin_with(TransactionOptions::new().read_only())?;
    let cursor = tx.scan(table, bounds)?;
    let mut cursor = match direction {
        Direction::Forward => cursor,
        Direction::Reverse => cursor.reverse(),
    };
    while let Some((key, value)) = cursor.next_row()? {
        if row(key, value)?.is_break() {
            break;
        }
    }
    drop(cursor);
    Ok(tx.commit()?)
}

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the first key to the last.
    Forward,
    /// From the last key to the first.
    Reverse,
}

/// Both ends of a range of keys.
pub type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// All keys that begin with `prefix`.
pub fn prefix_bounds(prefix: Vec<u8>) -> Bounds {
    let mut end = prefix.clone();
    while end.last() == Some(&u8::MAX) {
        end.pop();
    }
    let high = match end.last_mut() {
        Some(last) => {
            *last += 1;
            Bound::Excluded(end)
        }
        None => Bound::Unbounded,
    };
    (Bound::Included(prefix), high)
}

/// The engine's option of the same name.
impl From<Durability> for longshore::Durability {
    fn from(durability: Durability) -> longshore::Durability {
        match durability {
            Durability::None => longshore::Durability::None,
            Durability::Os => longshore::Durability::Os,
            Durability::Sync => longshore::Durability::Sync,
        }
    }
}

/// Nobody else is at work, but for the upkeep, and what is prepared lets nothing go.
const LOCK_WAIT: Duration = Duration::from_millis(300);

fn options(global: &Global) -> Outcome<Options> {
    let size = |name: &str, bytes: u64| {
        usize::try_from(bytes).map_err(|_| Failure::usage(format!("{name} is too large: {bytes}")))
    };
    let io = match global.io {
        Io::Buffered => IoMode::Buffered,
        Io::Direct => IoMode::Direct,
    };
    let options = Options::new()
        .pool_bytes(size("--pool-bytes", global.pool_bytes)?)
        .lock_bytes_max(size("--lock-bytes-max", global.lock_bytes_max)?)
        .log_bytes_max(global.log_bytes_max)
        .replacement(global.replacement.to_string())
        .durability(global.durability.into())
        .lock_wait(LOCK_WAIT)
        .io(io);
    let options = match &global.page_trace {
        Some(trace) => options.page_trace(Arc::clone(trace)),
        None => options,
    };
    Ok(match global.page_size {
        Some(bytes) => options.page_size(size("--page-size", bytes)?),
        None => options,
    })
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let hint = match waited_for_lock(&error) {
            true => "; a prepared transaction has it: see `longshore prepared`",
            false => "",
        };
        Failure::new(code_of(&error), format!("{error}{hint}"))
    }
}

/// Whether a lock was not to be had. The command is alone with the database, so nobody at work has it.
fn waited_for_lock(error: &Error) -> bool {
    match error {
        Error::LockTimeout { .. } => true,
        Error::GaveUp { last, .. } => waited_for_lock(last),
        _ => false,
    }
}

fn code_of(error: &Error) -> Code {
    match error {
        Error::Locked { .. } => Code::Locked,
        Error::TableMissing { .. } => Code::NotFound,
        Error::InvalidOption { .. }
        | Error::PoolTooSmall { .. }
        | Error::OtherPageSize { .. }
        | Error::TableName { .. } => Code::Usage,
        Error::KeyExists { .. } | Error::KeyTooLong { .. } | Error::ValueTooLong { .. } => {
            Code::Input
        }
        _ => Code::Store,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next_one() {
        let end = |prefix: &[u8]| prefix_bounds(prefix.to_vec()).1;
        assert_eq!(end(b"ab"), Bound::Excluded(b"ac".to_vec()));
        assert_eq!(end(b"a\xff"), Bound::Excluded(b"b".to_vec()));
        assert_eq!(end(b"\xff"), Bound::Unbounded);
        assert_eq!(end(b""), Bound::Unbounded);
    }

    #[test]
    fn errors_get_the_code_of_their_class() {
        assert_eq!(
            code_of(&Error::PoolTooSmall {
                bytes: 1,
                minimum: 2
            }),
            Code::Usage
        );
        assert_eq!(code_of(&Error::Closed), Code::Store);
    }
}
