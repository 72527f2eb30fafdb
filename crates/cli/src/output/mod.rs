//! What commands print: rows as a table, CSV or JSON lines, and lists of figures.
//!
//! # Protocol
//! Rows go through [`Rows`]: `push` each, then `finish`. A table is printed in pieces of
//! [`PIECE_ROWS`] rows, each with its header, so memory stays small however long the scan.
//! Everything is written to standard output; messages go to standard error.

mod figures;
mod grid;
mod index;

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

pub use figures::Figures;
pub use index::{index_json, index_words};

use crate::args;
use crate::exit::Outcome;

/// Rows of one printed piece of a table.
pub const PIECE_ROWS: usize = 500;

/// Standard output, buffered.
pub type Out = BufWriter<StdoutLock<'static>>;

/// Standard output, buffered.
pub fn stdout() -> Out {
    BufWriter::with_capacity(64 << 10, io::stdout().lock())
}

/// How rows are printed when the user did not choose: a table for people, CSV for programs.
pub fn default_format() -> args::Output {
    match io::stdout().is_terminal() {
        true => args::Output::Table,
        false => args::Output::Csv,
    }
}

/// A row in the form that its format needs.
pub enum Shown {
    /// One text for each column.
    Cells(Vec<String>),
    /// One JSON object on one line.
    Json(String),
}

/// A printer of rows.
pub enum Rows<W: Write> {
    /// Pieces of a table.
    Table {
        /// Where to.
        out: W,
        /// The header.
        columns: Vec<String>,
        /// Rows of the piece at hand.
        piece: Vec<Vec<String>>,
    },
    /// CSV.
    Csv(Box<csv::Writer<W>>),
    /// JSON lines.
    Json(W),
}

impl<W: Write> Rows<W> {
    /// Starts to print rows of these columns.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn new(out: W, format: args::Output, columns: Vec<String>) -> Outcome<Rows<W>> {
        Ok(match format {
            args::Output::Table => Rows::Table {
                out,
                columns,
                piece: Vec::new(),
            },
            args::Output::Json => Rows::Json(out),
            args::Output::Csv => {
                let mut writer = csv::Writer::from_writer(out);
                writer.write_record(&columns)?;
                Rows::Csv(Box::new(writer))
            }
        })
    }

    /// Prints one row.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn push(&mut self, row: Shown) -> Outcome {
        match (self, row) {
            (
                Rows::Table {
                    out,
                    columns,
                    piece,
                },
                Shown::Cells(cells),
            ) => {
                piece.push(cells);
                if piece.len() == PIECE_ROWS {
                    writeln!(out, "{}", grid::render(columns, piece))?;
                    piece.clear();
                }
            }
            (Rows::Csv(writer), Shown::Cells(cells)) => writer.write_record(&cells)?,
            (Rows::Json(out), Shown::Json(json)) => writeln!(out, "{json}")?,
            (Rows::Json(_), Shown::Cells(_)) | (_, Shown::Json(_)) => {
                unreachable!("a row is shown in the format of its printer")
            }
        }
        Ok(())
    }

    /// Prints what is left.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(self) -> Outcome {
        match self {
            Rows::Table {
                mut out,
                columns,
                piece,
            } => {
                if !piece.is_empty() {
                    writeln!(out, "{}", grid::render(&columns, &piece))?;
                }
                out.flush()?;
            }
            Rows::Csv(mut writer) => writer.flush()?,
            Rows::Json(mut out) => out.flush()?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(format: args::Output, row: Shown) -> String {
        let mut bytes = Vec::new();
        let mut rows = Rows::new(&mut bytes, format, vec!["id".into(), "a b".into()]).unwrap();
        rows.push(row).unwrap();
        rows.finish().unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn each_format_prints_its_way() {
        let cells = || Shown::Cells(vec!["1".into(), "x,\"y\"".into()]);
        assert_eq!(
            print(args::Output::Csv, cells()),
            "id,a b\n1,\"x,\"\"y\"\"\"\n"
        );
        let table = print(args::Output::Table, cells());
        assert!(table.contains("id") && table.contains("x,\"y\""), "{table}");
        assert_eq!(print(args::Output::Json, Shown::Json("{}".into())), "{}\n");
    }
}
