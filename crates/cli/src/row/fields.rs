//! A record as named pieces of JSON text, each kept exactly as it was written.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of one record in their order.
#[derive(Clone, Debug, Default)]
pub struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    /// Reads a JSON object.
    ///
    /// # Errors
    /// Says what is wrong and at which column of the text.
    pub fn parse(text: &[u8]) -> Result<Fields, String> {
        let fields: Fields = serde_json::from_slice(text).map_err(|e| {
            let message = e.to_string();
            // The line is always 1 here; the caller knows the real one.
            message.replacen("at line 1 column", "at column", 1)
        })?;
        let mut names: Vec<&str> = fields.names().collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("the field \"{}\" is there twice", pair[0])),
            None => Ok(fields),
        }
    }

    /// The names of the fields in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The JSON text of a field.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(own, _)| own == name)
            .map(|(_, raw)| raw.get())
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object: {\"column\": value, ...}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// A piece of JSON as people read it: a string without its quotes, null as nothing.
pub fn text_of(json: &str) -> Cow<'_, str> {
    match json {
        "null" => Cow::Borrowed(""),
        _ if json.starts_with('"') => match serde_json::from_str::<String>(json) {
            Ok(text) => Cow::Owned(text),
            Err(_) => Cow::Borrowed(json),
        },
        _ => Cow::Borrowed(json),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_order_and_digits() {
        let text = br#"{"b": 12345678901234567890123, "a": "x\ny", "c": null}"#;
        let fields = Fields::parse(text).unwrap();
        assert_eq!(fields.names().collect::<Vec<_>>(), ["b", "a", "c"]);
        assert_eq!(fields.get("b"), Some("12345678901234567890123"));
        assert_eq!(text_of(fields.get("a").unwrap()), "x\ny");
        assert_eq!(text_of(fields.get("c").unwrap()), "");
    }

    #[test]
    fn what_is_not_an_object_says_where() {
        let message = Fields::parse(b"{\"a\": }").unwrap_err();
        assert!(message.contains("at column 7"), "{message}");
        assert!(Fields::parse(b"[1]").unwrap_err().contains("an object"));
        assert!(
            Fields::parse(b"{\"a\":1,\"a\":2}")
                .unwrap_err()
                .contains("twice")
        );
        assert!(Fields::parse(b"{} {}").is_err());
    }
}
