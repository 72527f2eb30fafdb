//! Key columns as bytes that sort as the columns do.
//!
//! # Invariants
//! K1. For two keys of one shape, byte order is the order of the columns, first column first.
//! K2. The key of the leading columns is a prefix of every key that starts with them, and of no
//!     other: a text that is not last ends with a mark that sorts below any continuation.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::KeyColumn;

/// What a key column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// Text, ordered by its UTF-8 bytes.
    Text,
    /// A whole number of 64 bits, ordered as numbers are.
    Int,
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeyKind::Text => "text",
            KeyKind::Int => "int",
        })
    }
}

/// What a record holds in a key column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyField {
    /// Text, which an `int` column will parse.
    Text(String),
    /// A whole number.
    Int(i64),
    /// Nothing: the column is absent or null.
    Missing,
    /// Something that cannot be a key, in words.
    Other(String),
}

/// The key of a record: one field for each column of the key.
///
/// # Errors
/// A sentence that names the column.
pub fn encode_key(columns: &[KeyColumn], fields: &[KeyField]) -> Result<Vec<u8>, String> {
    assert_eq!(columns.len(), fields.len(), "a field for each key column");
    let mut key = Vec::new();
    for (at, (column, field)) in columns.iter().zip(fields).enumerate() {
        let is_last = at + 1 == columns.len();
        encode_field(&mut key, column, field, Ending::of(is_last))?;
    }
    Ok(key)
}

/// What all keys begin with whose leading columns are `texts`.
///
/// With [`Last::Open`] the last text may go on (`Europe/` begins `Europe/Paris`); numbers never go on.
///
/// # Errors
/// A sentence, when there are more texts than columns or one is not of its column's kind.
pub fn encode_prefix(
    columns: &[KeyColumn],
    texts: &[String],
    last: Last,
) -> Result<Vec<u8>, String> {
    if texts.len() > columns.len() {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        return Err(format!(
            "the key has {} column(s) ({}), {} were given",
            columns.len(),
            names.join(", "),
            texts.len()
        ));
    }
    let mut key = Vec::new();
    for (at, (column, text)) in columns.iter().zip(texts).enumerate() {
        let is_open = last == Last::Open && at + 1 == texts.len();
        let ending = if is_open {
            Ending::Open
        } else {
            Ending::of(at + 1 == columns.len())
        };
        encode_field(&mut key, column, &KeyField::Text(text.clone()), ending)?;
    }
    Ok(key)
}

/// May the last text of a prefix be continued?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// It is the whole column.
    Whole,
    /// It is the beginning of the column.
    Open,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// More columns follow: the text is escaped and ends with a mark.
    Mark,
    /// The key ends here: the text stands as it is.
    None,
    /// A beginning of a text that is followed by more columns: escaped, but no mark.
    Open,
}

impl Ending {
    fn of(is_last: bool) -> Ending {
        if is_last { Ending::None } else { Ending::Mark }
    }
}

fn encode_field(
    key: &mut Vec<u8>,
    column: &KeyColumn,
    field: &KeyField,
    ending: Ending,
) -> Result<(), String> {
    let name = &column.name;
    match (column.kind, field) {
        (KeyKind::Text, KeyField::Text(text)) => encode_text(key, text, ending),
        (KeyKind::Text, KeyField::Int(number)) => encode_text(key, &number.to_string(), ending),
        (KeyKind::Int, KeyField::Int(number)) => encode_int(key, *number),
        (KeyKind::Int, KeyField::Text(text)) => {
            let number = text.trim().parse().map_err(|_| {
                format!(
                    "key column \"{name}\" holds \"{text}\", which is not a 64-bit whole number"
                )
            })?;
            encode_int(key, number);
        }
        (_, KeyField::Missing) => return Err(format!("key column \"{name}\" is missing or null")),
        (_, KeyField::Other(what)) => {
            return Err(format!(
                "key column \"{name}\" holds {what}; a key is text or a 64-bit whole number"
            ));
        }
    }
    Ok(())
}

fn encode_int(key: &mut Vec<u8>, number: i64) {
    key.extend_from_slice(&((number as u64) ^ (1 << 63)).to_be_bytes());
}

fn encode_text(key: &mut Vec<u8>, text: &str, ending: Ending) {
    if ending == Ending::None {
        key.extend_from_slice(text.as_bytes());
        return;
    }
    for byte in text.bytes() {
        key.push(byte);
        if byte == 0 {
            key.push(0xff);
        }
    }
    if ending == Ending::Mark {
        key.extend_from_slice(&[0, 1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(kinds: &[KeyKind]) -> Vec<KeyColumn> {
        let named = kinds.iter().enumerate();
        named
            .map(|(at, kind)| KeyColumn {
                name: format!("c{at}"),
                kind: *kind,
            })
            .collect()
    }

    fn text(text: &str) -> KeyField {
        KeyField::Text(text.to_string())
    }

    #[test]
    fn a_single_text_key_is_the_text_itself() {
        let key = encode_key(&columns(&[KeyKind::Text]), &[text("Europe/Paris\0x")]).unwrap();
        assert_eq!(key, b"Europe/Paris\0x");
    }

    #[test]
    fn bytes_sort_as_the_columns_do() {
        let columns = columns(&[KeyKind::Text, KeyKind::Int, KeyKind::Text]);
        let texts = [
            "", "\0", "\0\0", "\0\u{1}", "a", "a\0", "a\0b", "ab", "b", "é",
        ];
        let ints = [i64::MIN, -256, -1, 0, 1, 255, 256, i64::MAX];
        let mut rows = Vec::new();
        for first in texts {
            for number in ints {
                for last in texts {
                    rows.push((first.as_bytes(), number, last.as_bytes()));
                }
            }
        }
        rows.sort();
        let keys: Vec<Vec<u8>> = rows
            .iter()
            .map(|(first, number, last)| {
                let of = |bytes: &[u8]| text(std::str::from_utf8(bytes).unwrap());
                encode_key(&columns, &[of(first), KeyField::Int(*number), of(last)]).unwrap()
            })
            .collect();
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "K1");
    }

    #[test]
    fn leading_columns_are_a_prefix_of_their_rows_only() {
        let columns = columns(&[KeyKind::Text, KeyKind::Text]);
        let prefix = encode_prefix(&columns, &["FR".to_string()], Last::Whole).unwrap();
        let key = |first, second| encode_key(&columns, &[text(first), text(second)]).unwrap();
        assert!(key("FR", "Europe/Paris").starts_with(&prefix));
        assert!(!key("FRA", "x").starts_with(&prefix), "K2");
        assert!(!key("FR\0", "x").starts_with(&prefix), "K2");
    }

    #[test]
    fn an_open_prefix_goes_on_in_the_last_text() {
        let columns = columns(&[KeyKind::Text, KeyKind::Text]);
        let texts = ["FR".to_string(), "Eur".to_string()];
        let prefix = encode_prefix(&columns, &texts, Last::Open).unwrap();
        let key = |second| encode_key(&columns, &[text("FR"), text(second)]).unwrap();
        assert!(key("Europe/Paris").starts_with(&prefix));
        assert!(!key("Indian/Reunion").starts_with(&prefix));
        let open = encode_prefix(&columns, &texts[..1], Last::Open).unwrap();
        assert_eq!(open, b"FR");
    }

    #[test]
    fn what_cannot_be_a_key_is_named() {
        let columns = columns(&[KeyKind::Int]);
        let message = encode_key(&columns, &[text("7a")]).unwrap_err();
        assert!(
            message.contains("\"c0\"") && message.contains("\"7a\""),
            "{message}"
        );
        let message = encode_key(&columns, &[KeyField::Missing]).unwrap_err();
        assert!(message.contains("missing"), "{message}");
        let two = ["1".to_string(), "2".to_string()];
        let message = encode_prefix(&columns, &two, Last::Whole).unwrap_err();
        assert!(
            message.contains("1 column(s) (c0), 2 were given"),
            "{message}"
        );
    }
}
