//! The key as the user asks for it: `country,id:int`.

use super::{KeyColumn, KeyField, KeyKind, Shape};

/// Column names, each perhaps with the kind it is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySpec(Vec<(String, Option<KeyKind>)>);

impl KeySpec {
    /// Reads the words of `--key`.
    ///
    /// # Errors
    /// A column without a name, or named twice.
    pub fn parse(words: &[String]) -> Result<KeySpec, String> {
        let mut columns: Vec<(String, Option<KeyKind>)> = Vec::new();
        for word in words {
            let (name, kind) = match word.rsplit_once(':') {
                Some((name, "int")) => (name, Some(KeyKind::Int)),
                Some((name, "text")) => (name, Some(KeyKind::Text)),
                _ => (word.as_str(), None),
            };
            if name.is_empty() {
                return Err("--key: a column without a name".to_string());
            }
            if columns.iter().any(|(other, _)| other == name) {
                return Err(format!("--key names the column {name} twice"));
            }
            columns.push((name.to_string(), kind));
        }
        Ok(KeySpec(columns))
    }

    /// Was no key asked for?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the columns.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The key of a new table: where no kind was asked for, the first record decides, whose fields
    /// are `first` (none, if there is no record). Records of CSV and TSV hold text only.
    pub fn resolve(&self, first: &[KeyField]) -> Vec<KeyColumn> {
        let columns = self.0.iter().enumerate().map(|(at, (name, kind))| {
            let found = match first.get(at) {
                Some(KeyField::Int(_)) => KeyKind::Int,
                _ => KeyKind::Text,
            };
            KeyColumn {
                name: name.clone(),
                kind: kind.unwrap_or(found),
            }
        });
        columns.collect()
    }

    /// Holds the key against that of a table that exists.
    ///
    /// # Errors
    /// A sentence, when they differ.
    pub fn check(&self, table: &str, shape: &Shape) -> Result<(), String> {
        let is_same = self.0.len() == shape.key.len()
            && self.0.iter().zip(&shape.key).all(|((name, kind), column)| {
                *name == column.name && kind.is_none_or(|kind| kind == column.kind)
            });
        match self.is_empty() || is_same {
            true => Ok(()),
            false => Err(format!(
                "table {table} has the key {}, not {}; leave --key out, or use another table",
                shape.key_words(),
                self.names().join(", ")
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(words: &[&str]) -> Result<KeySpec, String> {
        KeySpec::parse(
            &words
                .iter()
                .map(|word| word.to_string())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn kinds_are_asked_for_or_found() {
        let spec = spec(&["a", "b:int", "c:text", "d:e"]).unwrap();
        let first = [
            KeyField::Int(1),
            KeyField::Int(1),
            KeyField::Int(1),
            KeyField::Missing,
        ];
        let kinds: Vec<KeyKind> = spec
            .resolve(&first)
            .iter()
            .map(|column| column.kind)
            .collect();
        assert_eq!(
            kinds,
            [KeyKind::Int, KeyKind::Int, KeyKind::Text, KeyKind::Text]
        );
        assert_eq!(spec.names(), ["a", "b", "c", "d:e"]);
    }

    #[test]
    fn another_key_than_the_tables_is_refused() {
        let shape = Shape {
            key: spec(&["a:int"]).unwrap().resolve(&[]),
            columns: vec![],
        };
        spec(&["a"]).unwrap().check("t", &shape).unwrap();
        spec(&[]).unwrap().check("t", &shape).unwrap();
        let message = spec(&["a:text"]).unwrap().check("t", &shape).unwrap_err();
        assert!(message.contains("has the key a (int), not a;"), "{message}");
        assert!(spec(&["a", "b"]).unwrap().check("t", &shape).is_err());
        assert!(spec(&["a", "a"]).is_err());
        assert!(spec(&[":int"]).is_err());
    }
}
