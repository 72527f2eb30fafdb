//! CSV and TSV: a header line, then one record per line (or per quoted stretch of lines).
//!
//! TSV has no quotes: a tab or a line break cannot stand in a field. CSV follows RFC 4180.

use std::io::BufRead;

use csv::{ByteRecord, Reader, ReaderBuilder};

use super::{BadLine, Next, Record};
use crate::exit::{Failure, Outcome};
use crate::row::KeyField;

/// A reader of records with a header.
pub struct Delimited<R> {
    reader: Reader<R>,
    columns: Vec<String>,
    /// `"name":` for each column, escaped once.
    labels: Vec<Vec<u8>>,
    /// For each column of the key, its place in the record.
    key: Vec<usize>,
    record: ByteRecord,
}

impl<R: BufRead> Delimited<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// A sentence about the header.
    pub fn open(reader: R, delimiter: u8, key: &[String]) -> Result<Delimited<R>, String> {
        let is_csv = delimiter == b',';
        let mut reader = ReaderBuilder::new()
            .delimiter(delimiter)
            .quoting(is_csv)
            .flexible(true)
            .has_headers(true)
            .from_reader(reader);
        let header = reader
            .byte_headers()
            .map_err(|e| format!("cannot read the header: {e}"))?;
        let columns = columns_of(header)?;
        let key = key
            .iter()
            .map(|name| {
                columns
                    .iter()
                    .position(|column| column == name)
                    .ok_or_else(|| {
                        format!(
                            "line 1: no column \"{name}\"; the header has {}",
                            columns.join(", ")
                        )
                    })
            })
            .collect::<Result<Vec<usize>, String>>()?;
        let labels = columns.iter().map(|name| label(name)).collect();
        Ok(Delimited {
            reader,
            columns,
            labels,
            key,
            record: ByteRecord::new(),
        })
    }

    /// The columns of the header.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The next record.
    ///
    /// # Errors
    /// The file can no longer be read.
    pub fn next(&mut self) -> Outcome<Next> {
        let more = self
            .reader
            .read_byte_record(&mut self.record)
            .map_err(|error| {
                Failure::new(
                    crate::exit::Code::Store,
                    format!("cannot read the input: {error}"),
                )
            })?;
        if !more {
            return Ok(None);
        }
        let line = self.record.position().map_or(0, csv::Position::line);
        Ok(Some(
            self.convert(line)
                .map_err(|message| BadLine { line, message }),
        ))
    }

    fn convert(&self, line: u64) -> Result<Record, String> {
        let (fields, columns) = (self.record.len(), self.columns.len());
        if fields != columns {
            return Err(format!("{fields} field(s), but the header has {columns}"));
        }
        let mut json = Vec::with_capacity(self.record.as_slice().len() + 16 * columns);
        for (at, label) in self.labels.iter().enumerate() {
            json.push(if at == 0 { b'{' } else { b',' });
            json.extend_from_slice(label);
            serde_json::to_writer(&mut json, self.text(at)?).expect("writing to memory");
        }
        json.push(b'}');
        let key = self
            .key
            .iter()
            .map(|at| Ok(KeyField::Text(self.text(*at)?.to_string())));
        Ok(Record {
            line,
            key: key.collect::<Result<_, String>>()?,
            json,
        })
    }

    fn text(&self, at: usize) -> Result<&str, String> {
        let column = &self.columns[at];
        std::str::from_utf8(&self.record[at])
            .map_err(|_| format!("column \"{column}\" is not UTF-8 text"))
    }
}

fn columns_of(header: &ByteRecord) -> Result<Vec<String>, String> {
    if header.is_empty() {
        return Err("the file is empty: the first line must name the columns".to_string());
    }
    let mut columns: Vec<String> = Vec::new();
    for (at, name) in header.iter().enumerate() {
        let name = std::str::from_utf8(name)
            .map_err(|_| "line 1: the header is not UTF-8 text".to_string())?;
        if name.is_empty() {
            return Err(format!("line 1: column {} has no name", at + 1));
        }
        if columns.iter().any(|column| column == name) {
            return Err(format!("line 1: the header names \"{name}\" twice"));
        }
        columns.push(name.to_string());
    }
    Ok(columns)
}

fn label(name: &str) -> Vec<u8> {
    let mut label = serde_json::to_vec(name).expect("writing to memory");
    label.push(b':');
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str, delimiter: u8, key: &str) -> Vec<Result<Record, BadLine>> {
        let mut input = Delimited::open(text.as_bytes(), delimiter, &[key.to_string()]).unwrap();
        std::iter::from_fn(|| input.next().unwrap()).collect()
    }

    fn refusal(text: &'static str, key: &str) -> String {
        let opened = Delimited::open(text.as_bytes(), b',', &[key.to_string()]);
        opened.err().expect("refused")
    }

    #[test]
    fn records_become_json_objects_in_column_order() {
        let rows = read("id,name\n7,\"a \"\"b\"\", c\"\n", b',', "id");
        let row = rows[0].as_ref().unwrap();
        assert_eq!(row.line, 2);
        assert_eq!(row.key, [KeyField::Text("7".to_string())]);
        assert_eq!(row.json, br#"{"id":"7","name":"a \"b\", c"}"#);
    }

    #[test]
    fn lines_are_counted_across_quoted_line_breaks() {
        let rows = read("id,name\n1,\"a\nb\"\n2\n3,c\n", b',', "id");
        let lines: Vec<u64> = rows
            .iter()
            .map(|row| row.as_ref().map_or_else(|bad| bad.line, |r| r.line))
            .collect();
        assert_eq!(lines, [2, 4, 5]);
        assert_eq!(
            rows[1].as_ref().unwrap_err().message,
            "1 field(s), but the header has 2"
        );
        assert!(rows[2].is_ok());
    }

    #[test]
    fn tabs_separate_and_quotes_mean_nothing_in_tsv() {
        let rows = read("id\tname\n1\t\"a\n", b'\t', "id");
        assert_eq!(
            rows[0].as_ref().unwrap().json,
            br#"{"id":"1","name":"\"a"}"#
        );
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_header() {
        let rows = read("\u{feff}id,name\n1,a\n", b',', "id");
        assert!(rows[0].is_ok());
    }

    #[test]
    fn bytes_that_are_no_text_are_a_bad_line() {
        let text: &[u8] = b"id,name\n1,\xff\n2,b\n";
        let mut input = Delimited::open(text, b',', &["id".to_string()]).unwrap();
        let bad = input.next().unwrap().unwrap().unwrap_err();
        assert_eq!(
            (bad.line, bad.message.as_str()),
            (2, "column \"name\" is not UTF-8 text")
        );
        assert!(input.next().unwrap().unwrap().is_ok());
    }

    #[test]
    fn headers_that_cannot_be_used_say_why() {
        assert!(refusal("", "id").contains("empty"));
        assert!(refusal("a,a\n", "a").contains("twice"));
        assert!(refusal("a,,b\n", "a").contains("column 2 has no name"));
        let message = refusal("a,b\n", "id");
        assert!(
            message.contains("no column \"id\"; the header has a, b"),
            "{message}"
        );
    }
}
