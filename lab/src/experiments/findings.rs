//! What an experiment found: numbers in tables, and relations between them.

use plot::Scale;

use crate::report::count;

/// See the head of the file.
#[derive(Debug, Default)]
pub struct Findings {
    /// What was really run, and how.
    pub conditions: Vec<String>,
    /// The numbers.
    pub tables: Vec<Table>,
    /// What should hold between them.
    pub relations: Vec<Relation>,
}

/// Numbers of one kind: a row for each rival, a column for each setting.
#[derive(Debug)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// In which unit.
    pub unit: &'static str,
    /// What columns differ in.
    pub across: &'static str,
    /// The settings.
    pub columns: Vec<Column>,
    /// The rivals.
    pub rows: Vec<Row>,
    /// How the picture spreads the numbers; `None`: there is no picture.
    pub drawn: Option<Scale>,
}

/// A setting.
#[derive(Clone, Debug)]
pub struct Column {
    /// What it is called.
    pub label: String,
    /// Its place on an axis, if it is a number.
    pub at: Option<f64>,
}

/// A rival's numbers, one for each column.
#[derive(Debug)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What we measured.
    pub ours: Vec<Option<f64>>,
    /// What the paper says.
    pub paper: Vec<Option<f64>>,
}

/// What should hold.
#[derive(Debug)]
pub struct Relation {
    /// Its short name.
    pub id: &'static str,
    /// What should hold.
    pub claim: String,
    /// Does it, here?
    pub holds: bool,
    /// The numbers that say so.
    pub found: String,
}

impl Column {
    /// Columns that differ in a number.
    pub(super) fn numbers<N: Copy + Into<u64>>(values: &[N]) -> Vec<Column> {
        let column = |value: &N| {
            let value: u64 = (*value).into();
            Column {
                label: count(value),
                at: Some(value as f64),
            }
        };
        values.iter().map(column).collect()
    }

    /// Columns that differ in kind.
    pub(super) fn kinds<'a>(labels: impl IntoIterator<Item = &'a str>) -> Vec<Column> {
        let column = |label: &str| Column {
            label: label.to_string(),
            at: None,
        };
        labels.into_iter().map(column).collect()
    }
}

impl Table {
    /// What we measured there.
    pub(super) fn ours(&self, row: &str, label: &str) -> Option<f64> {
        let column = self
            .columns
            .iter()
            .position(|column| column.label == label)?;
        let row = self.rows.iter().find(|other| other.name == row)?;
        *row.ours.get(column)?
    }

    /// By how much one rival is ahead of another, at each setting that `wanted` names; all, if it names none.
    pub(super) fn ratios(&self, one: &str, other: &str, wanted: &[&str]) -> Vec<(String, f64)> {
        let labels = self.columns.iter().map(|column| column.label.as_str());
        let labels = labels.filter(|label| wanted.is_empty() || wanted.contains(label));
        labels
            .filter_map(|label| {
                let ratio = self.ours(one, label)? / self.ours(other, label)?;
                Some((format!("{one}/{other}, {label}"), ratio))
            })
            .collect()
    }
}

impl Relation {
    /// A relation that asks something of each of some numbers. None at all: there is nothing to be said.
    pub(super) fn of(
        id: &'static str,
        claim: impl Into<String>,
        numbers: Vec<(String, f64)>,
        is_right: impl Fn(f64) -> bool,
    ) -> Option<Relation> {
        if numbers.is_empty() {
            return None;
        }
        let told = numbers
            .iter()
            .map(|(what, number)| format!("{what}: {number:.2}"));
        Some(Relation {
            id,
            claim: claim.into(),
            holds: numbers.iter().all(|(_, number)| is_right(*number)),
            found: told.collect::<Vec<_>>().join("; "),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_ask_all_numbers_or_do_not_ask() {
        let numbers = vec![("a".to_string(), 2.0), ("b".to_string(), 3.0)];
        let relation = Relation::of("A5", "twice", numbers.clone(), |ratio| ratio >= 2.0).unwrap();
        assert!(relation.holds);
        assert_eq!(relation.found, "a: 2.00; b: 3.00");
        assert!(
            !Relation::of("A5", "more", numbers, |ratio| ratio > 2.0)
                .unwrap()
                .holds
        );
        assert!(Relation::of("A5", "none", Vec::new(), |_| true).is_none());
    }

    #[test]
    fn ratios_are_of_what_was_measured() {
        let row = |name: &str, ours: [Option<f64>; 2]| Row {
            name: name.to_string(),
            ours: ours.to_vec(),
            paper: vec![None; 2],
        };
        let table = Table {
            title: String::new(),
            unit: "",
            across: "threads",
            columns: Column::numbers(&[1000u32, 8]),
            rows: vec![
                row("x", [Some(6.0), Some(1.0)]),
                row("y", [Some(3.0), None]),
            ],
            drawn: None,
        };
        assert_eq!(
            table.ratios("x", "y", &[]),
            [("x/y, 1,000".to_string(), 2.0)]
        );
        assert_eq!(table.ratios("x", "y", &["8"]), []);
    }
}
