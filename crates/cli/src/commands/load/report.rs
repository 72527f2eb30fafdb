//! What a load says when it is done: what it did, and what to try next.

use std::io::Write;

use serde_json::json;

use crate::args::{Global, Load};
use crate::exit::Outcome;
use crate::output;
use crate::row::{Fields, Shape, text_of};
use crate::units;

/// The figures of a load.
pub struct Report {
    /// Rows written.
    pub rows: u64,
    /// Records left out because their key was there.
    pub kept: u64,
    /// Records left out because they are no good.
    pub bad_lines: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// From start to end.
    pub seconds: f64,
    /// The load created the database.
    pub is_new_database: bool,
    /// The load created the table.
    pub is_new_table: bool,
    /// The table's key and columns.
    pub shape: Shape,
    /// The first row.
    pub sample: Option<Vec<u8>>,
}

impl Report {
    /// Prints the report.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn print(&self, global: &Global, args: &Load) -> Outcome {
        let mut out = output::stdout();
        match global.json {
            true => writeln!(out, "{}", self.json(args))?,
            false => self.print_words(&mut out, args)?,
        }
        Ok(out.flush()?)
    }

    fn json(&self, args: &Load) -> serde_json::Value {
        json!({
            "database": args.db,
            "table": args.table,
            "rows": self.rows,
            "kept": self.kept,
            "bad_lines": self.bad_lines,
            "bytes": self.bytes,
            "seconds": self.seconds,
            "rows_per_second": self.rows_per_second(),
            "new_database": self.is_new_database,
            "new_table": self.is_new_table,
            "key": self.shape.key,
            "columns": self.shape.columns,
        })
    }

    fn print_words(&self, out: &mut impl Write, args: &Load) -> Outcome {
        let is_new = |is_new: bool| if is_new { " (new)" } else { "" };
        writeln!(
            out,
            "loaded {} ({}) in {:.2} s: {} rows/s",
            units::plural(self.rows, "row"),
            units::bytes(self.bytes),
            self.seconds,
            units::count(self.rows_per_second())
        )?;
        writeln!(
            out,
            "  database  {}{}",
            args.db,
            is_new(self.is_new_database)
        )?;
        writeln!(
            out,
            "  table     {}{}",
            args.table,
            is_new(self.is_new_table)
        )?;
        writeln!(out, "  key       {}", self.shape.key_words())?;
        writeln!(out, "  columns   {}", self.shape.columns.join(", "))?;
        if self.kept > 0 {
            writeln!(
                out,
                "  kept      {} whose key was there",
                units::plural(self.kept, "row")
            )?;
        }
        if self.bad_lines > 0 {
            writeln!(
                out,
                "  skipped   {}",
                units::plural(self.bad_lines, "bad line")
            )?;
        }
        writeln!(out, "try next:")?;
        for command in self.advice(args) {
            writeln!(out, "  {} {command}", invocation())?;
        }
        Ok(())
    }

    fn advice(&self, args: &Load) -> Vec<String> {
        let (db, table) = (quote(&args.db), quote(&args.table));
        let mut advice = Vec::new();
        if let Some(fields) = self
            .sample
            .as_deref()
            .and_then(|json| Fields::parse(json).ok())
        {
            let key: Vec<String> = self
                .shape
                .key
                .iter()
                .map(|column| text_of(fields.get(&column.name).unwrap_or_default()).into_owned())
                .collect();
            let dashes = if key.iter().any(|text| text.starts_with('-')) {
                "-- "
            } else {
                ""
            };
            let words: Vec<String> = key.iter().map(|text| quote(text)).collect();
            advice.push(format!("get {dashes}{db} {table} {}", words.join(" ")));
            advice.push(format!(
                "scan {db} {table} --from {} --limit 5",
                quote(&key[0])
            ));
        }
        advice.push(format!("stat {db}"));
        advice
    }

    fn rows_per_second(&self) -> u64 {
        (self.rows as f64 / self.seconds.max(1e-6)) as u64
    }
}

/// How the user called us: through Cargo, or by the binary's name.
fn invocation() -> String {
    // Cargo sets this for what `cargo run` starts.
    if std::env::var_os("CARGO_MANIFEST_DIR").is_some() {
        let release = if cfg!(debug_assertions) {
            ""
        } else {
            " --release"
        };
        return format!("cargo run{release} --");
    }
    std::env::args()
        .next()
        .map_or_else(|| "longshore".to_string(), |name| quote(&name))
}

/// A word that a shell takes as one argument.
fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_shell() {
        assert_eq!(quote("Europe/Paris"), "Europe/Paris");
        assert_eq!(quote("a b"), "'a b'");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote(""), "''");
    }
}
