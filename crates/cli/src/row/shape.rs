//! What the command remembers about a table: its key and its columns.

use serde::{Deserialize, Serialize};

use super::KeyKind;

/// The table that holds the shape of every other table, by name.
pub const SHAPES_TABLE: &str = "longshore.shapes";

/// A column of the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyColumn {
    /// Its name in the records.
    pub name: String,
    /// What it holds.
    pub kind: KeyKind,
}

/// The key and the columns of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// The columns of the key, most significant first; never empty.
    pub key: Vec<KeyColumn>,
    /// All columns that rows may have, in the order they are shown.
    pub columns: Vec<String>,
}

impl Shape {
    /// The row of [`SHAPES_TABLE`].
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a shape is plain data")
    }

    /// Reads a row of [`SHAPES_TABLE`].
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn from_json(bytes: &[u8]) -> Result<Shape, String> {
        let shape: Shape = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        match shape.key.is_empty() {
            true => Err("the key has no column".to_string()),
            false => Ok(shape),
        }
    }

    /// Adds the columns that are not known yet, in their order; returns whether there were any.
    pub fn add_columns<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) -> bool {
        let before = self.columns.len();
        for name in names {
            if !self.columns.iter().any(|column| column == name) {
                self.columns.push(name.to_string());
            }
        }
        self.columns.len() > before
    }

    /// The names of the key's columns.
    pub fn key_names(&self) -> Vec<String> {
        self.key.iter().map(|column| column.name.clone()).collect()
    }

    /// The key in words: `country, id (int)`.
    pub fn key_words(&self) -> String {
        let words = self.key.iter().map(|column| match column.kind {
            KeyKind::Text => column.name.clone(),
            KeyKind::Int => format!("{} (int)", column.name),
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_survives_its_json() {
        let mut shape = Shape {
            key: vec![KeyColumn {
                name: "id".to_string(),
                kind: KeyKind::Int,
            }],
            columns: vec!["id".to_string()],
        };
        assert!(shape.add_columns(["id", "name"]));
        assert!(!shape.add_columns(["name"]));
        assert_eq!(Shape::from_json(&shape.to_json()).unwrap(), shape);
        assert_eq!(shape.key_words(), "id (int)");
        assert!(Shape::from_json(b"{\"key\":[],\"columns\":[]}").is_err());
    }
}
