//! How the keys of a table are understood and its rows shown.

use std::borrow::Cow;

use longshore::Table;

use crate::args::{Output, ViewArgs};
use crate::exit::{Code, Failure, Outcome};
use crate::output::Shown;
use crate::row::{Fields, KeyColumn, KeyKind, Last, Shape, encode_prefix, text_of};
use crate::store::Store;

/// How a user sees one table.
pub struct View {
    table: String,
    mode: Mode,
}

enum Mode {
    /// Records with columns.
    Records(Shape),
    /// Keys and values as text.
    Raw,
    /// Keys and values as hexadecimal digits.
    Hex,
}

impl View {
    /// The view of `table` that the options ask for: records where the table has a shape.
    ///
    /// # Errors
    /// The engine's.
    pub fn of(store: &Store, table: &Table, args: ViewArgs) -> Outcome<View> {
        let mode = match (args.hex, args.raw) {
            (true, _) => Mode::Hex,
            (false, true) => Mode::Raw,
            (false, false) => store.shape(table)?.map_or(Mode::Raw, Mode::Records),
        };
        Ok(View {
            table: table.name(),
            mode,
        })
    }

    /// The shape, where rows are records.
    pub fn shape(&self) -> Option<&Shape> {
        match &self.mode {
            Mode::Records(shape) => Some(shape),
            Mode::Raw | Mode::Hex => None,
        }
    }

    /// The key of one row.
    ///
    /// # Errors
    /// Too few or too many columns, or one of the wrong kind.
    pub fn key(&self, texts: &[String]) -> Outcome<Vec<u8>> {
        if let Mode::Records(shape) = &self.mode
            && texts.len() < shape.key.len()
        {
            let (given, names) = (texts.len(), shape.key_words());
            return Err(Failure::usage(format!(
                "the key of table {} is {names}: {} value(s), {given} given",
                self.table,
                shape.key.len()
            )));
        }
        self.beginning(texts, Last::Whole)
    }

    /// What the keys begin with whose leading columns are `texts`.
    ///
    /// # Errors
    /// Too many columns, or one of the wrong kind.
    pub fn beginning(&self, texts: &[String], last: Last) -> Outcome<Vec<u8>> {
        let of_table = |message: String| Failure::usage(format!("table {}: {message}", self.table));
        match &self.mode {
            Mode::Records(shape) => encode_prefix(&shape.key, texts, last).map_err(of_table),
            Mode::Raw => {
                let columns = [KeyColumn {
                    name: "key".to_string(),
                    kind: KeyKind::Text,
                }];
                encode_prefix(&columns, texts, last).map_err(of_table)
            }
            Mode::Hex => match texts {
                [] => Ok(Vec::new()),
                [text] => from_hex(text).map_err(of_table),
                _ => Err(of_table("a key in hexadecimal is one word".to_string())),
            },
        }
    }

    /// A bare value as the user writes it.
    ///
    /// # Errors
    /// With `--hex`, when it is not hexadecimal.
    pub fn bare_value(&self, text: &str) -> Outcome<Vec<u8>> {
        match self.mode {
            Mode::Hex => from_hex(text).map_err(Failure::usage),
            Mode::Raw | Mode::Records(_) => Ok(text.as_bytes().to_vec()),
        }
    }

    /// The header of the table.
    pub fn columns(&self) -> Vec<String> {
        match &self.mode {
            Mode::Records(shape) => shape.columns.clone(),
            Mode::Raw | Mode::Hex => vec!["key".to_string(), "value".to_string()],
        }
    }

    /// A row in the form that `format` needs.
    ///
    /// # Errors
    /// The row is not a record, in a table of records.
    pub fn show(&self, format: Output, key: &[u8], value: &[u8]) -> Outcome<Shown> {
        match (&self.mode, format) {
            (Mode::Records(_), Output::Json) => {
                self.fields(key, value)?;
                Ok(Shown::Json(String::from_utf8_lossy(value).into_owned()))
            }
            (Mode::Records(shape), _) => {
                let fields = self.fields(key, value)?;
                let unknown = fields
                    .names()
                    .find(|name| !shape.columns.iter().any(|c| c == name));
                if let Some(name) = unknown {
                    return Err(self.not_a_record(key, &format!("its field {name} is no column")));
                }
                let cell = |name| {
                    fields
                        .get(name)
                        .map(text_of)
                        .unwrap_or_default()
                        .into_owned()
                };
                Ok(Shown::Cells(
                    shape.columns.iter().map(|name| cell(name)).collect(),
                ))
            }
            (Mode::Raw | Mode::Hex, Output::Json) => {
                let (key, value) = (self.bare(key), self.bare(value));
                Ok(Shown::Json(
                    serde_json::json!({ "key": key, "value": value }).to_string(),
                ))
            }
            (Mode::Raw | Mode::Hex, _) => Ok(Shown::Cells(vec![
                self.bare(key).into_owned(),
                self.bare(value).into_owned(),
            ])),
        }
    }

    /// A bare key or value as text: what is not UTF-8 is escaped.
    pub fn bare<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        match (&self.mode, std::str::from_utf8(bytes)) {
            (Mode::Hex, _) => Cow::Owned(to_hex(bytes)),
            (_, Ok(text)) => Cow::Borrowed(text),
            (_, Err(_)) => Cow::Owned(bytes.escape_ascii().to_string()),
        }
    }

    fn fields(&self, key: &[u8], value: &[u8]) -> Outcome<Fields> {
        Fields::parse(value).map_err(|reason| self.not_a_record(key, &reason))
    }

    fn not_a_record(&self, key: &[u8], reason: &str) -> Failure {
        let message = format!(
            "the row with key {} of table {} is not a record of its columns ({reason}); \
             --raw shows it as it is, --json with all its fields",
            self.bare(key),
            self.table
        );
        Failure::new(Code::Store, message)
    }
}

/// Two digits for each byte.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes that [`to_hex`] gives these digits for.
///
/// # Errors
/// What else the text is, in words.
pub fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let refusal = || format!("\"{text}\" is not hexadecimal: two digits for each byte");
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) || !text.len().is_multiple_of(2) {
        return Err(refusal());
    }
    let pairs = (0..text.len()).step_by(2).map(|at| &text[at..at + 2]);
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).map_err(|_| refusal()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> View {
        let key = vec![KeyColumn {
            name: "id".to_string(),
            kind: KeyKind::Text,
        }];
        let shape = Shape {
            key,
            columns: vec!["id".to_string(), "n".to_string()],
        };
        View {
            table: "t".to_string(),
            mode: Mode::Records(shape),
        }
    }

    #[test]
    fn a_record_fills_its_columns() {
        let Shown::Cells(cells) = records().show(Output::Csv, b"a", br#"{"id":"a"}"#).unwrap()
        else {
            panic!("cells")
        };
        assert_eq!(cells, ["a", ""]);
    }

    #[test]
    fn a_value_of_another_program_is_not_guessed_at() {
        let failure = records()
            .show(Output::Csv, b"a", b"plain")
            .err()
            .unwrap()
            .to_string();
        assert!(
            failure.contains("--raw") && failure.contains("key a of table t"),
            "{failure}"
        );
        let failure = records()
            .show(Output::Csv, b"a", br#"{"x":1}"#)
            .err()
            .unwrap()
            .to_string();
        assert!(failure.contains("field x is no column"), "{failure}");
    }

    #[test]
    fn a_key_needs_all_its_columns() {
        assert!(records().key(&[]).is_err());
        assert_eq!(records().key(&["a".to_string()]).unwrap(), b"a");
    }

    #[test]
    fn hexadecimal_goes_there_and_back() {
        assert_eq!(from_hex(&to_hex(&[0, 255, 16])).unwrap(), [0, 255, 16]);
        assert!(from_hex("abc").is_err());
        assert!(from_hex("zz").is_err());
        assert!(from_hex("+1").is_err());
    }
}
