//! Findings for people, for documents, for programs, and as a picture.

use std::io::Write;

use plot::{Axis, Bars, Chart, Figure, Line, Panel, Scale};
use serde_json::{Value, json};

use super::About;
use super::findings::{Findings, Relation, Table};
use crate::error::LabError;
use crate::report::{count, rounded, table};

/// Tables and relations as text.
///
/// # Errors
/// The output cannot be written.
pub fn print(about: &About, findings: &Findings, out: &mut impl Write) -> Result<(), LabError> {
    writeln!(out, "{}: {}: {}", about.name, about.source, about.asks)?;
    for line in &findings.conditions {
        writeln!(out, "{}", line.replace('`', ""))?;
    }
    for shown in &findings.tables {
        writeln!(
            out,
            "\n{}; {}, by {}",
            shown.title, shown.unit, shown.across
        )?;
        table(out, &cells(shown, |ours, paper| vec![ours, paper]))?;
    }
    if !findings.relations.is_empty() {
        writeln!(out)?;
    }
    for relation in &findings.relations {
        let Relation {
            id, claim, found, ..
        } = relation;
        writeln!(out, "{id}: {claim}: {}. {found}", verdict(relation))?;
    }
    Ok(())
}

fn verdict(relation: &Relation) -> &'static str {
    match relation.holds {
        true => "holds",
        false => "does not hold",
    }
}

/// The head and a line for each rival; `pair` makes cells of our number and the paper's, which may both be missing.
fn cells(shown: &Table, pair: impl Fn(String, String) -> Vec<String>) -> Vec<Vec<String>> {
    let has_paper = |at: usize| {
        shown
            .rows
            .iter()
            .any(|row| row.paper.get(at).is_some_and(Option::is_some))
    };
    let both = |at: usize, ours: String, paper: String| match has_paper(at) {
        true => pair(ours, paper),
        false => vec![ours],
    };
    let labels = shown.columns.iter().enumerate();
    let labels =
        labels.flat_map(|(at, column)| both(at, column.label.clone(), "paper".to_string()));
    let mut lines = vec![
        std::iter::once(String::new())
            .chain(labels)
            .collect::<Vec<_>>(),
    ];
    for row in &shown.rows {
        let numbers = row.ours.iter().zip(&row.paper).enumerate();
        let numbers =
            numbers.flat_map(|(at, (ours, paper))| both(at, number(*ours), number(*paper)));
        lines.push(std::iter::once(row.name.clone()).chain(numbers).collect());
    }
    lines
}

/// Digits that mean something: two behind the point, three where nothing stands before it.
fn number(value: Option<f64>) -> String {
    let Some(value) = value else {
        return "–".to_string();
    };
    match value.abs() {
        size if size >= 1000.0 => count(value as u64),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 1.0 || value == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// The same for a document.
pub fn markdown(findings: &Findings) -> String {
    let mut text = findings.conditions.join(" ") + "\n";
    for shown in &findings.tables {
        text += &format!(
            "\n{}; {}, by {}:\n\n",
            shown.title, shown.unit, shown.across
        );
        let lines = cells(shown, |ours, paper| match paper.as_str() {
            "paper" => vec![format!("{ours} (paper)")],
            _ => vec![format!("{ours} ({paper})")],
        });
        for (at, line) in lines.iter().enumerate() {
            text += &format!("| {} |\n", line.join(" | "));
            if at == 0 {
                text += &format!("|---|{}\n", "---:|".repeat(line.len() - 1));
            }
        }
    }
    if !findings.relations.is_empty() {
        text += "\n| relation | asks | here | numbers |\n|---|---|---|---|\n";
    }
    for relation in &findings.relations {
        let Relation {
            id, claim, found, ..
        } = relation;
        text += &format!("| {id} | {claim} | {} | {found} |\n", verdict(relation));
    }
    text
}

/// An object for each number and each relation.
pub fn objects(about: &About, findings: &Findings) -> Vec<Value> {
    let mut objects = Vec::new();
    for shown in &findings.tables {
        for row in &shown.rows {
            let numbers = shown.columns.iter().zip(row.ours.iter().zip(&row.paper));
            objects.extend(numbers.map(|(column, (ours, paper))| {
                json!({
                    "experiment": about.name,
                    "source": about.source,
                    "conditions": findings.conditions,
                    "table": shown.title,
                    "unit": shown.unit,
                    "across": shown.across,
                    "row": row.name,
                    "column": column.label,
                    "ours": ours.map(|value| rounded(value, 6)),
                    "paper": paper,
                })
            }));
        }
    }
    objects.extend(findings.relations.iter().map(|relation| {
        json!({
            "experiment": about.name,
            "relation": relation.id,
            "asks": relation.claim,
            "holds": relation.holds,
            "numbers": relation.found,
        })
    }));
    objects
}

/// The paper's figure: of each table a panel with our numbers, and one with the paper's.
pub fn figure(about: &About, findings: &Findings) -> Figure {
    let mut panels = Vec::new();
    for shown in &findings.tables {
        let Some(scale) = shown.drawn else { continue };
        panels.extend(panel(shown, scale, Whose::Ours));
        panels.extend(panel(shown, scale, Whose::Papers));
    }
    let caption = findings.conditions.iter().map(|line| line.replace('`', ""));
    Figure {
        title: format!("{}: {}", about.source, about.asks),
        panels,
        caption: caption.collect(),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Whose {
    Ours,
    Papers,
}

/// A panel, if there are numbers for it.
fn panel(shown: &Table, scale: Scale, whose: Whose) -> Option<Panel> {
    let has_place = |value: &f64| value.is_finite() && (scale == Scale::Linear || *value > 0.0);
    let numbers = |at: usize| {
        let row = &shown.rows[at];
        let all = if whose == Whose::Ours {
            &row.ours
        } else {
            &row.paper
        };
        all.iter()
            .map(move |value| value.filter(has_place))
            .collect::<Vec<_>>()
    };
    let is_shown = |column: &usize| {
        (0..shown.rows.len()).any(|row| numbers(row).get(*column).is_some_and(Option::is_some))
    };
    let columns: Vec<usize> = (0..shown.columns.len()).filter(is_shown).collect();
    let rows = (0..shown.rows.len()).filter(|&row| numbers(row).iter().any(Option::is_some));
    let rows: Vec<usize> = rows.collect();
    if columns.is_empty() {
        return None;
    }
    let chart = match shown.columns.iter().all(|column| column.at.is_some()) {
        true => Chart::Lines(
            rows.into_iter()
                .map(|row| {
                    let places = shown.columns.iter().map(|column| column.at);
                    let points = places.zip(numbers(row));
                    let points = points.filter_map(|(x, y)| Some((x?, y?)));
                    Line::new(shown.rows[row].name.clone(), points)
                })
                .collect(),
        ),
        false => Chart::Bars {
            groups: columns
                .iter()
                .map(|&at| shown.columns[at].label.clone())
                .collect(),
            bars: rows
                .into_iter()
                .map(|row| {
                    let values = numbers(row);
                    let values = columns.iter().map(|&at| values[at].unwrap_or(0.0).max(0.0));
                    Bars::new(shown.rows[row].name.clone(), values)
                })
                .collect(),
        },
    };
    let ticks = columns.iter().filter_map(|&at| shown.columns[at].at);
    let mut y = Axis::new(shown.unit, scale);
    if scale == Scale::Linear && matches!(chart, Chart::Bars { .. }) {
        y = y.from(0.0);
    }
    let owner = if whose == Whose::Ours {
        "here"
    } else {
        "in the paper"
    };
    Some(Panel {
        title: format!("{}, {owner}", shown.title),
        x: Axis::new(shown.across, Scale::Log).ticks(ticks),
        y,
        chart,
    })
}
