//! How an index is shown.

use longshore::IndexInfo;
use serde_json::{Value, json};

/// An index in a list for people.
pub fn index_words(index: &IndexInfo) -> String {
    let unique = if index.is_unique { " (unique)" } else { "" };
    let ready = if index.is_ready { "" } else { " (not ready)" };
    format!("{}{unique}{ready}", index.name)
}

/// An index for programs.
pub fn index_json(index: &IndexInfo) -> Value {
    json!({
        "index": index.name,
        "definition": index.definition,
        "unique": index.is_unique,
        "ready": index.is_ready,
    })
}
