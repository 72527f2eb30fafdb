//! How answers are printed: for people, for spreadsheets, for programs; and the files of pictures.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use plot::{Figure, Format};

use crate::error::LabError;

/// How an answer is given.
#[derive(Clone, Debug, Default, Args)]
pub struct Output {
    /// Print JSON, an object on each line
    #[arg(long)]
    pub json: bool,
    /// Print CSV with a header
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Draw a picture, too: FILE.svg or FILE.png; may be given twice
    #[arg(long, value_name = "FILE")]
    pub figure: Vec<PathBuf>,
    /// No progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// For spreadsheets.
    Csv,
}

impl Output {
    /// The form asked for.
    pub(crate) fn form(&self) -> Form {
        match (self.json, self.csv) {
            (true, _) => Form::Json,
            (_, true) => Form::Csv,
            _ => Form::Table,
        }
    }

    /// Finds out, before the work is done, whether its pictures could be written.
    ///
    /// # Errors
    /// A name without a format; a file that cannot be written.
    pub(crate) fn prepare(&self) -> Result<(), LabError> {
        for path in &self.figure {
            format_of(path)?;
            try_to_write(path).map_err(LabError::file("write", &path.to_string_lossy()))?;
        }
        Ok(())
    }

    /// Draws `figure` into all files asked for.
    ///
    /// # Errors
    /// It cannot be drawn, or a file not be written.
    pub(crate) fn draw(&self, figure: impl FnOnce() -> Figure) -> Result<(), LabError> {
        if self.figure.is_empty() {
            return Ok(());
        }
        let figure = figure();
        for path in &self.figure {
            let bytes = figure.render(format_of(path)?)?;
            std::fs::write(path, bytes)
                .map_err(LabError::file("write", &path.to_string_lossy()))?;
        }
        Ok(())
    }
}

/// Opens the file, and leaves everything as it was.
fn try_to_write(path: &Path) -> io::Result<()> {
    let is_new = !path.exists();
    OpenOptions::new().append(true).create(true).open(path)?;
    match is_new {
        true => std::fs::remove_file(path),
        false => Ok(()),
    }
}

fn format_of(path: &Path) -> Result<Format, LabError> {
    Format::of(path).ok_or_else(|| {
        let path = path.display();
        LabError::Usage(format!(
            "--figure {path}: the name ends with neither .svg nor .png"
        ))
    })
}

/// Aligned columns; the first to the left, the others to the right.
pub(crate) fn table(out: &mut impl Write, rows: &[Vec<String>]) -> Result<(), LabError> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let line: String = cells
            .map(|(at, (cell, &width))| match at {
                0 => format!("{cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            })
            .collect();
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// A count for people: `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Rounded to `digits` behind the point, for JSON.
pub(crate) fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

/// A trace's name without its folders.
pub(crate) fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut out = Vec::new();
        let rows = [vec!["policy", "1,000"], vec!["lru", "9.5"], vec!["x"]];
        let rows: Vec<Vec<String>> = rows
            .iter()
            .map(|row| row.iter().map(ToString::to_string).collect())
            .collect();
        table(&mut out, &rows).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "policy  1,000\nlru       9.5\nx\n"
        );
    }

    #[test]
    fn pictures_have_a_name_with_a_format() {
        assert!(format_of(Path::new("a.png")).is_ok());
        let error = format_of(Path::new("a.jpg")).unwrap_err().to_string();
        assert!(error.contains("a.jpg") && error.contains(".svg"), "{error}");
    }

    #[test]
    fn numbers_are_grouped_and_rounded() {
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(123), "123");
        assert_eq!(rounded(0.123456, 4), 0.1235);
    }
}
