//! The transactions of a load: which rows become visible and safe together.
//!
//! The three ways are told in the header of [`super`]; they differ in which table is filled, when a
//! transaction is committed, and what happens at the end.

use longshore::{Durability, Error, Table, Transaction};

use crate::args::{Duplicates, Global, Load};
use crate::exit::{Failure, Outcome};
use crate::input::Record;
use crate::row::Shape;
use crate::store::{OWN_TABLES, Store, put_shape};

/// Most rows and bytes in one transaction of a staged load: few locks, little undo.
const STAGE_ROWS_MAX: u64 = 5_000;
const STAGE_BYTES_MAX: u64 = 8 << 20;

/// What became of a record.
#[derive(Debug, PartialEq, Eq)]
pub enum Written {
    /// It is a row.
    Row,
    /// Its key is there already, and is not to be replaced.
    Exists,
    /// It cannot be a row, for this reason.
    Unfit(String),
}

enum Way {
    Staged,
    Whole,
    Parts { rows: u64 },
}

/// Fills one table.
pub struct Writer<'a> {
    store: &'a Store,
    args: &'a Load,
    durability: Durability,
    way: Way,
    /// The table being filled: the stage, or the real one.
    table: Table,
    shapes: Table,
    shape: Shape,
    /// The shape has columns that are not kept yet.
    is_shape_new: bool,
    tx: Option<Transaction>,
    /// In the transaction at hand.
    rows: u64,
    bytes: u64,
    /// Committed so far.
    committed: u64,
}

impl<'a> Writer<'a> {
    /// Prepares to fill `table`, or a new one where it is `None`.
    pub fn new(
        store: &'a Store,
        global: &Global,
        args: &'a Load,
        table: Option<Table>,
        shape: Shape,
    ) -> Outcome<Writer<'a>> {
        let way = match (args.commit_every, &table) {
            (Some(rows), _) => Way::Parts { rows },
            (None, Some(_)) => Way::Whole,
            (None, None) => Way::Staged,
        };
        let shapes = store.shapes_table()?;
        let table = match (table, &way) {
            (Some(table), _) => table,
            (None, Way::Staged) => new_stage(store, &args.table)?,
            (None, _) => store.db.create_table(&args.table)?,
        };
        Ok(Writer {
            store,
            args,
            durability: global.durability.into(),
            way,
            table,
            shapes,
            shape,
            is_shape_new: true,
            tx: None,
            rows: 0,
            bytes: 0,
            committed: 0,
        })
    }

    /// The key and the columns of the table.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Is the table new, and to appear all at once?
    pub fn is_staged(&self) -> bool {
        matches!(self.way, Way::Staged)
    }

    /// Fills the stage, before any row is written to it, with rows in ascending order of their keys.
    pub fn load_sorted(
        &self,
        rows: impl Iterator<Item = longshore::Result<(Vec<u8>, Vec<u8>)>>,
    ) -> Outcome {
        self.store.db.bulk_load(&self.table, rows)?;
        Ok(())
    }

    /// Writes one row; `columns` are those of all records so far.
    pub fn write(&mut self, key: &[u8], record: &Record, columns: &[String]) -> Outcome<Written> {
        self.begin()?;
        let tx = self.tx.as_ref().expect("begun above");
        let outcome = match self.args.duplicates {
            Duplicates::Replace => tx.put(&self.table, key, &record.json),
            Duplicates::Refuse | Duplicates::Keep => tx.insert(&self.table, key, &record.json),
        };
        match outcome {
            Ok(()) => {
                self.rows += 1;
                self.bytes += (key.len() + record.json.len()) as u64;
                self.commit_if_due(record.line, columns)?;
                Ok(Written::Row)
            }
            Err(Error::KeyExists { .. }) => Ok(Written::Exists),
            Err(error @ (Error::KeyTooLong { .. } | Error::ValueTooLong { .. })) => {
                Ok(Written::Unfit(error.to_string()))
            }
            Err(error) => Err(Failure::from(error).at(&self.args.file, record.line)),
        }
    }

    /// Makes all rows visible and safe; returns the shape with all columns.
    pub fn finish(mut self, columns: &[String]) -> Outcome<Shape> {
        self.add_columns(columns);
        self.begin()?;
        match self.way {
            Way::Staged => {
                // The name is given by a later transaction, whose sync covers this one (L1, L2).
                self.commit(Durability::None)?;
                self.store
                    .db
                    .rename_table(&self.table.name(), &self.args.table)?;
            }
            Way::Whole => self.commit(self.durability)?,
            Way::Parts { .. } => {
                self.commit(self.durability)?;
                self.report_commit(None)?;
            }
        }
        Ok(self.shape)
    }

    /// Takes back what is not committed, and the stage.
    pub fn abandon(mut self) {
        // The failure that led here is what the user hears of; what cannot be taken back now is
        // taken back by recovery, and the stage by the next load.
        if let Some(tx) = self.tx.take() {
            let _ = tx.rollback();
        }
        if self.is_staged() {
            let _ = self.store.db.drop_table(&self.table.name());
        }
    }

    /// Begins a transaction if none is at hand, and keeps the shape if it is not kept yet (L1).
    fn begin(&mut self) -> Outcome {
        if self.tx.is_none() {
            self.tx = Some(self.store.db.begin()?);
        }
        if let (Some(tx), true) = (&self.tx, self.is_shape_new) {
            put_shape(tx, &self.shapes, &self.table, &self.shape)?;
            self.is_shape_new = false;
        }
        Ok(())
    }

    fn commit_if_due(&mut self, line: u64, columns: &[String]) -> Outcome {
        match self.way {
            Way::Staged if self.rows >= STAGE_ROWS_MAX || self.bytes >= STAGE_BYTES_MAX => {
                self.commit(Durability::None)
            }
            Way::Parts { rows } if self.rows >= rows => {
                self.add_columns(columns);
                self.begin()?;
                self.commit(self.durability)?;
                self.report_commit(Some(line))
            }
            _ => Ok(()),
        }
    }

    fn commit(&mut self, durability: Durability) -> Outcome {
        let Some(tx) = self.tx.take() else {
            return Ok(());
        };
        tx.commit_with(durability)?.wait()?;
        self.committed += self.rows;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }

    fn add_columns(&mut self, columns: &[String]) {
        if columns.len() != self.shape.columns.len() {
            self.is_shape_new |= self.shape.add_columns(columns.iter().map(String::as_str));
        }
    }

    fn report_commit(&self, line: Option<u64>) -> Outcome {
        use std::io::Write;
        if self.args.report_commits {
            let line = line.map_or_else(|| "end".to_string(), |line| line.to_string());
            let mut out = std::io::stdout().lock();
            writeln!(out, "committed {} {line}", self.committed)?;
            out.flush()?;
        }
        Ok(())
    }
}

/// An empty table under a name of its own; one left by a load that was killed is removed first.
fn new_stage(store: &Store, table: &str) -> Outcome<Table> {
    let name = format!("{OWN_TABLES}loading.{table}");
    if store.find_table(&name)?.is_some() {
        store.db.drop_table(&name)?;
    }
    Ok(store.db.create_table(&name)?)
}
