//! The formats that records come in.

use std::path::Path;

use clap::ValueEnum;

/// How a file of records is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Fields separated by commas, quoted where needed; first line names the columns
    Csv,
    /// Fields separated by tabs, never quoted; first line names the columns
    Tsv,
    /// One JSON object per line
    Jsonl,
}

impl Format {
    /// The format that the name of a file promises.
    pub fn of_file(name: &str) -> Option<Format> {
        let extension = Path::new(name).extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "csv" => Some(Format::Csv),
            "tsv" | "tab" => Some(Format::Tsv),
            "jsonl" | "ndjson" | "json" => Some(Format::Jsonl),
            _ => None,
        }
    }

    /// What separates the fields; `None` for JSON.
    pub(super) fn delimiter(self) -> Option<u8> {
        match self {
            Format::Csv => Some(b','),
            Format::Tsv => Some(b'\t'),
            Format::Jsonl => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_the_format() {
        assert_eq!(Format::of_file("a/b.CSV"), Some(Format::Csv));
        assert_eq!(Format::of_file("zone.tab"), Some(Format::Tsv));
        assert_eq!(Format::of_file("x.ndjson"), Some(Format::Jsonl));
        assert_eq!(Format::of_file("x"), None);
        assert_eq!(Format::of_file("-"), None);
    }
}
