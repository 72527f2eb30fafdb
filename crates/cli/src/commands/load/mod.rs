//! `longshore load`: a file of records becomes rows of a table.
//!
//! # Protocol
//! File, header and key are looked at before the database is touched. Then records are read one by
//! one and handed to the [`Writer`], which knows one of three ways to keep the promise:
//!
//! | way | when | rows become visible | if it fails or is killed |
//! |---|---|---|---|
//! | staged | the table is new | all at once: a stage table is filled, by a bulk load as long as keys ascend, then in large transactions whose commits wait for nothing, and takes the table's name | the table does not exist; the next load removes the stage |
//! | whole | the table exists | all at once, by the one commit | no row was added; locks and undo bound the size |
//! | parts | `--commit-every N` | N at a time | what was committed stays |
//!
//! # Invariants
//! L1. A table that `load` made has its shape before its name, or before its first row.
//! L2. Nothing is reported as loaded or committed before it is as safe as `--durability` asks.
//! L3. Without `--commit-every`, a load that fails changes no table.

mod report;
mod sorted;
mod writer;

use std::time::Instant;

use crate::args::{Duplicates, Global, Load};
use crate::exit::{Code, Failure, Outcome};
use crate::input::{Format, Input, Record, Source};
use crate::progress::Progress;
use crate::row::{KeySpec, Shape, encode_key};
use crate::store::{Purpose, Store};
use report::Report;
use writer::{Writer, Written};

/// Loads the file and reports what was done and what to try next.
///
/// # Errors
/// The file cannot be used, has too many bad lines, or the engine refuses.
pub fn run(global: &Global, args: &Load) -> Outcome {
    let start = Instant::now();
    let asked = KeySpec::parse(&args.key).map_err(Failure::usage)?;
    let source = Source::open(&args.file)?;
    let position = source.position.clone();
    let progress = Progress::new(!args.quiet && !global.json, source.len, position.clone());
    let (store, input) = open(global, args, &asked, source)?;
    let mut job = Job::new(args, &progress, input);
    let shape = job.load(global, &store, asked);
    progress.finish();
    let shape = shape.map_err(|failure| job.explain(failure))?;
    let report = Report {
        rows: job.rows,
        kept: job.kept,
        bad_lines: job.bad_lines,
        bytes: position.bytes(),
        seconds: start.elapsed().as_secs_f64(),
        is_new_database: store.is_created,
        is_new_table: job.is_new_table,
        shape,
        sample: job.sample,
    };
    store.close()?;
    report.print(global, args)
}

/// Opens file and database: the file first, so that a wrong name or header creates no database.
fn open(global: &Global, args: &Load, asked: &KeySpec, source: Source) -> Outcome<(Store, Input)> {
    let format = args
        .format
        .or_else(|| Format::of_file(&args.file))
        .ok_or_else(|| {
            Failure::usage(format!(
                "{}: the name does not tell the format; say --format",
                args.file
            ))
        })?;
    if !asked.is_empty() {
        let input = Input::open(source, format, &asked.names())?;
        return Ok((Store::open(&args.db, global, Purpose::Create)?, input));
    }
    let missing = |what: &str| {
        Failure::usage(format!(
            "{what}: name the column(s) of its key, --key COLUMN"
        ))
    };
    if !std::path::Path::new(&args.db).exists() {
        return Err(missing(&format!(
            "{} is a new database and its table is new",
            args.db
        )));
    }
    let store = Store::open(&args.db, global, Purpose::Write)?;
    let table = store.find_table(&args.table)?;
    let table = table.ok_or_else(|| missing(&format!("table {} is new", args.table)))?;
    let shape = store.shape(&table)?.ok_or_else(|| no_shape(&args.table))?;
    let input = Input::open(source, format, &shape.key_names())?;
    Ok((store, input))
}

fn no_shape(table: &str) -> Failure {
    Failure::usage(format!(
        "table {table} holds bare keys and values, no records; load into another table"
    ))
}

/// One run of the command.
struct Job<'a> {
    args: &'a Load,
    progress: &'a Progress,
    input: Input,
    is_new_table: bool,
    /// Rows written.
    rows: u64,
    /// Records left out because their key was there, as `--duplicates keep` asks.
    kept: u64,
    /// Records left out because they are no good.
    bad_lines: u64,
    /// The JSON of the first row, for the advice what to try next.
    sample: Option<Vec<u8>>,
}

impl<'a> Job<'a> {
    fn new(args: &'a Load, progress: &'a Progress, input: Input) -> Job<'a> {
        Job {
            args,
            progress,
            input,
            is_new_table: true,
            rows: 0,
            kept: 0,
            bad_lines: 0,
            sample: None,
        }
    }

    /// Loads everything; returns the table's shape.
    fn load(&mut self, global: &Global, store: &Store, asked: KeySpec) -> Outcome<Shape> {
        let table = store.find_table(&self.args.table)?;
        let known = match &table {
            Some(table) => Some(
                store
                    .shape(table)?
                    .ok_or_else(|| no_shape(&self.args.table))?,
            ),
            None => None,
        };
        if let Some(shape) = &known {
            asked
                .check(&self.args.table, shape)
                .map_err(Failure::usage)?;
        }
        self.is_new_table = table.is_none();
        let first = self.next_record()?;
        let mut shape = known.unwrap_or_else(|| Shape {
            key: asked.resolve(first.as_ref().map_or(&[], |record| &record.key)),
            columns: Vec::new(),
        });
        shape.add_columns(self.input.columns().iter().map(String::as_str));
        let mut writer = Writer::new(store, global, self.args, table, shape)?;
        let written = match writer.is_staged() {
            true => self.write_sorted(&mut writer, first),
            false => Ok(first),
        };
        match written.and_then(|next| self.write_all(&mut writer, next)) {
            Ok(()) => writer.finish(self.input.columns()),
            Err(failure) => {
                writer.abandon();
                Err(failure)
            }
        }
    }

    fn write_all(&mut self, writer: &mut Writer<'_>, first: Option<Record>) -> Outcome {
        let mut next = first;
        while let Some(record) = next {
            self.write(writer, &record)?;
            next = self.next_record()?;
        }
        Ok(())
    }

    fn write(&mut self, writer: &mut Writer<'_>, record: &Record) -> Outcome {
        let key = match encode_key(&writer.shape().key, &record.key) {
            Ok(key) => key,
            Err(message) => return self.bad_line(record.line, &message),
        };
        match writer.write(&key, record, self.input.columns())? {
            Written::Row => {
                self.wrote(record);
                Ok(())
            }
            Written::Exists => self.is_there(record),
            Written::Unfit(message) => self.bad_line(record.line, &message),
        }
    }

    /// A record has become a row.
    fn wrote(&mut self, record: &Record) {
        self.rows += 1;
        self.sample.get_or_insert_with(|| record.json.clone());
        self.progress.update(self.rows);
    }

    /// There is a row with the record's key, and it stays.
    fn is_there(&mut self, record: &Record) -> Outcome {
        if self.args.duplicates == Duplicates::Keep {
            self.kept += 1;
            return Ok(());
        }
        let key = String::from_utf8_lossy(&record.json).into_owned();
        let message = format!(
            "a row with this key is there already: {}; --duplicates replace or keep",
            shorten(&key)
        );
        self.bad_line(record.line, &message)
    }

    /// The next good record; bad ones are counted on the way.
    fn next_record(&mut self) -> Outcome<Option<Record>> {
        loop {
            match self.input.next()? {
                None => return Ok(None),
                Some(Ok(record)) => return Ok(Some(record)),
                Some(Err(bad)) => self.bad_line(bad.line, &bad.message)?,
            }
        }
    }

    /// Reports a bad line, and gives up when there are too many.
    fn bad_line(&mut self, line: u64, message: &str) -> Outcome {
        self.progress
            .say(&format!("{}:{line}: {message}", self.args.file));
        self.bad_lines += 1;
        let tolerated = self.args.bad_lines;
        match self.bad_lines > tolerated {
            false => Ok(()),
            true => Err(Failure::input(format!(
                "{}: {} bad line(s), {tolerated} tolerated; mend the file, or say --bad-lines N",
                self.args.file, self.bad_lines
            ))),
        }
    }

    /// Adds to a failure what has become of the rows.
    fn explain(&self, failure: Failure) -> Failure {
        let Failure::Failed { code, message } = failure else {
            return failure;
        };
        let fate = match self.args.commit_every {
            Some(_) => "what was committed stays loaded",
            None => "nothing was loaded",
        };
        let advice = match code {
            Code::Store if self.args.commit_every.is_none() && !self.is_new_table => {
                "; --commit-every N loads in parts that need less room"
            }
            _ => "",
        };
        Failure::Failed {
            code,
            message: format!("{message}; {fate}{advice}"),
        }
    }
}

/// At most 60 characters of a text.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_string(),
    }
}
