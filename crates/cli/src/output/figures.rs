//! Named figures: lines for people, one JSON object for scripts.

use std::io::Write;

use serde_json::{Map, Value};

use crate::exit::Outcome;

/// A list of figures in groups, in the order they were added.
#[derive(Debug, Default)]
pub struct Figures {
    lines: Vec<Line>,
    json: Map<String, Value>,
}

#[derive(Debug)]
enum Line {
    Group(String),
    Figure { words: String, text: String },
}

impl Figures {
    /// No figures yet.
    pub fn new() -> Figures {
        Figures::default()
    }

    /// Begins a group, which is a heading for people and nothing for scripts.
    pub fn group(&mut self, heading: &str) -> &mut Figures {
        self.lines.push(Line::Group(heading.to_string()));
        self
    }

    /// Adds a figure: `name` and `value` for scripts; the name with spaces and `text` for people.
    pub fn add(
        &mut self,
        name: &str,
        value: impl Into<Value>,
        text: impl Into<String>,
    ) -> &mut Figures {
        self.lines.push(Line::Figure {
            words: name.replace('_', " "),
            text: text.into(),
        });
        self.json.insert(name.to_string(), value.into());
        self
    }

    /// Adds a figure that people see as it is.
    pub fn add_plain(&mut self, name: &str, value: impl Into<Value>) -> &mut Figures {
        let value = value.into();
        let text = match &value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number
                .as_u64()
                .map_or(number.to_string(), crate::units::count),
            other => other.to_string(),
        };
        self.add(name, value, text)
    }

    /// Prints them.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn print(&self, out: &mut impl Write, json: bool) -> Outcome {
        if json {
            writeln!(out, "{}", Value::Object(self.json.clone()))?;
            return Ok(());
        }
        let width = self.lines.iter().map(Line::width).max().unwrap_or(0);
        for line in &self.lines {
            match line {
                Line::Group(heading) => writeln!(out, "{heading}")?,
                Line::Figure { words, text } => writeln!(out, "  {words:width$}  {text}")?,
            }
        }
        Ok(())
    }
}

impl Line {
    fn width(&self) -> usize {
        match self {
            Line::Group(_) => 0,
            Line::Figure { words, .. } => words.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_words_and_scripts_see_names() {
        let mut figures = Figures::new();
        figures
            .group("pool")
            .add("pool_bytes", 2048, "2.0 KiB")
            .add_plain("hits", 1234);
        let print = |json| {
            let mut bytes = Vec::new();
            figures.print(&mut bytes, json).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(
            print(false),
            "pool\n  pool bytes  2.0 KiB\n  hits        1,234\n"
        );
        assert_eq!(print(true), "{\"pool_bytes\":2048,\"hits\":1234}\n");
    }
}
