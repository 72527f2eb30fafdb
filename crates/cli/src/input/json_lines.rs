//! JSON lines: one object per line; empty lines are skipped.
//!
//! The line itself becomes the row's value, byte for byte, so numbers keep every digit.

use std::collections::HashSet;
use std::io::BufRead;

use super::{BadLine, Next, Record};
use crate::exit::{Code, Failure, Outcome};
use crate::row::{Fields, KeyField};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A reader of objects.
pub struct JsonLines<R> {
    reader: R,
    key: Vec<String>,
    line: u64,
    buffer: Vec<u8>,
    columns: Vec<String>,
    known: HashSet<String>,
}

impl<R: BufRead> JsonLines<R> {
    /// A reader of records that are keyed by the fields `key`.
    pub fn new(reader: R, key: &[String]) -> JsonLines<R> {
        JsonLines {
            reader,
            key: key.to_vec(),
            line: 0,
            buffer: Vec::new(),
            columns: Vec::new(),
            known: HashSet::new(),
        }
    }

    /// The fields seen so far, in order of appearance.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The next record.
    ///
    /// # Errors
    /// The file can no longer be read.
    pub fn next(&mut self) -> Outcome<Next> {
        while self.read_line()? {
            if !self.buffer.is_empty() {
                let line = self.line;
                return Ok(Some(
                    self.convert().map_err(|message| BadLine { line, message }),
                ));
            }
        }
        Ok(None)
    }

    /// Reads a line without the white space around it; `false` at the end of the file.
    fn read_line(&mut self) -> Outcome<bool> {
        self.buffer.clear();
        let read = self
            .reader
            .read_until(b'\n', &mut self.buffer)
            .map_err(|error| {
                Failure::new(Code::Store, format!("cannot read the input: {error}"))
            })?;
        if self.line == 0 && self.buffer.starts_with(BYTE_ORDER_MARK) {
            self.buffer.drain(..BYTE_ORDER_MARK.len());
        }
        self.line += 1;
        let len = self.buffer.trim_ascii_end().len();
        self.buffer.truncate(len);
        let blank = len - self.buffer.trim_ascii_start().len();
        self.buffer.drain(..blank);
        Ok(read > 0)
    }

    fn convert(&mut self) -> Result<Record, String> {
        if std::str::from_utf8(&self.buffer).is_err() {
            return Err("the line is not UTF-8 text".to_string());
        }
        let fields = Fields::parse(&self.buffer)?;
        for name in fields.names() {
            if !self.known.contains(name) {
                self.known.insert(name.to_string());
                self.columns.push(name.to_string());
            }
        }
        let key = self
            .key
            .iter()
            .map(|name| key_field(fields.get(name)))
            .collect();
        Ok(Record {
            line: self.line,
            key,
            json: self.buffer.clone(),
        })
    }
}

/// What a field holds, as a column of the key; `None` where the record has no such field.
pub fn key_field(json: Option<&str>) -> KeyField {
    let Some(json) = json else {
        return KeyField::Missing;
    };
    match json.as_bytes()[0] {
        b'n' => KeyField::Missing,
        b'"' => match serde_json::from_str(json) {
            Ok(text) => KeyField::Text(text),
            Err(error) => KeyField::Other(format!("a text that cannot be read ({error})")),
        },
        b'[' => KeyField::Other("a list".to_string()),
        b'{' => KeyField::Other("an object".to_string()),
        b't' | b'f' => KeyField::Other(json.to_string()),
        _ => json
            .parse()
            .map_or_else(|_| KeyField::Other(json.to_string()), KeyField::Int),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str, key: &str) -> Vec<Result<Record, BadLine>> {
        let mut input = JsonLines::new(text.as_bytes(), &[key.to_string()]);
        std::iter::from_fn(|| input.next().unwrap()).collect()
    }

    #[test]
    fn lines_are_kept_byte_for_byte() {
        let rows = read("{\"id\": 1, \"n\": 1.10}\r\n\n  {\"id\":\"x\"}", "id");
        let row = rows[0].as_ref().unwrap();
        assert_eq!(row.json, b"{\"id\": 1, \"n\": 1.10}");
        assert_eq!(row.key, [KeyField::Int(1)]);
        let row = rows[1].as_ref().unwrap();
        assert_eq!(
            (row.line, &row.key[0]),
            (3, &KeyField::Text("x".to_string()))
        );
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn columns_are_collected_in_order_of_appearance() {
        let text = "{\"b\":1}\n{\"a\":1,\"b\":2}\n";
        let mut input = JsonLines::new(text.as_bytes(), &["b".to_string()]);
        while input.next().unwrap().is_some() {}
        assert_eq!(input.columns(), ["b", "a"]);
    }

    #[test]
    fn bad_lines_are_told_and_reading_goes_on() {
        let rows = read("{\"id\":\n{\"id\":2}\n7\n", "id");
        assert_eq!(rows[0].as_ref().unwrap_err().line, 1);
        assert!(rows[1].is_ok());
        assert!(rows[2].as_ref().unwrap_err().message.contains("an object"));
    }

    #[test]
    fn what_is_no_key_is_told_in_words() {
        let key = |json| key_field(Some(json));
        assert_eq!(key("null"), KeyField::Missing);
        assert_eq!(key_field(None), KeyField::Missing);
        assert_eq!(key("1.5"), KeyField::Other("1.5".to_string()));
        assert_eq!(key("[1]"), KeyField::Other("a list".to_string()));
        assert_eq!(key("-3"), KeyField::Int(-3));
    }
}
