//! `longshore dump`: tables as files that `load` reads.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::ops::{Bound, ControlFlow};
use std::path::Path;

use crate::args::{Dump, DumpFormat, Global, Output};
use crate::exit::{Failure, Outcome};
use crate::output::{self, Rows};
use crate::store::{Direction, OWN_TABLES, Purpose, Store, for_each_row};
use crate::units;
use crate::view::View;

/// Writes one table to standard output, or each to a file of its own.
///
/// # Errors
/// No such table; a file that exists or cannot be written; the engine's.
pub fn run(global: &Global, args: &Dump) -> Outcome {
    let store = Store::open(&args.db, global, Purpose::Read)?;
    match (&args.directory, &args.table) {
        (None, None) => return Err(Failure::usage("say which table, or --directory for all")),
        (None, Some(name)) => {
            dump_table(&store, args, name, output::stdout())?;
        }
        (Some(directory), Some(name)) => dump_to_file(&store, args, directory, name)?,
        (Some(directory), None) => {
            for name in store.table_names()? {
                if !name.starts_with(OWN_TABLES) {
                    dump_to_file(&store, args, directory, &name)?;
                }
            }
        }
    }
    store.close()
}

/// Returns the number of rows.
fn dump_table(store: &Store, args: &Dump, name: &str, out: impl Write) -> Outcome<u64> {
    let table = store.table(name)?;
    let view = View::of(store, &table, args.view)?;
    let format = match args.output {
        DumpFormat::Csv => Output::Csv,
        DumpFormat::Json => Output::Json,
    };
    let mut rows = Rows::new(out, format, view.columns())?;
    let mut count = 0;
    let all = (Bound::Unbounded, Bound::Unbounded);
    for_each_row(&store.db, &table, all, Direction::Forward, |key, value| {
        rows.push(view.show(format, key, value)?)?;
        count += 1;
        Ok(ControlFlow::Continue(()))
    })?;
    rows.finish()?;
    Ok(count)
}

fn dump_to_file(store: &Store, args: &Dump, directory: &str, name: &str) -> Outcome {
    std::fs::create_dir_all(directory)
        .map_err(|error| Failure::file("create the directory", directory, &error))?;
    let extension = match args.output {
        DumpFormat::Csv => "csv",
        DumpFormat::Json => "jsonl",
    };
    let path = Path::new(directory).join(format!("{}.{extension}", file_name(name)));
    let path_name = path.display().to_string();
    let failed = |error: std::io::Error| Failure::file("write", &path_name, &error);
    let file: File = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .map_err(failed)?;
    let count = dump_table(store, args, name, BufWriter::new(&file))?;
    file.sync_all().map_err(failed)?;
    println!("{path_name}: {}", units::plural(count, "row"));
    Ok(())
}

/// A table's name as a file's: what a path could misread is written as `%` and two digits.
fn file_name(table: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let encoded = table.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02x}"),
    });
    encoded.collect()
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn no_table_name_leaves_the_directory() {
        assert_eq!(file_name("zones"), "zones");
        assert_eq!(file_name("../a b"), "%2e%2e%2fa%20b");
    }
}
