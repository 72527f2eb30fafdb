//! Aligned columns for a terminal.

use std::io::IsTerminal;

use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent, presets};

/// Below this a terminal is not taken at its word: cells are not folded to fit.
const TERMINAL_WIDTH_MIN: u16 = 40;

/// The rows under their header; numbers stand at the right.
pub fn render(columns: &[String], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(columns);
    table.set_style(TableComponent::HeaderLines, '─');
    table.set_style(TableComponent::MiddleHeaderIntersections, '─');
    let is_wide = table
        .width()
        .is_some_and(|width| width >= TERMINAL_WIDTH_MIN);
    if std::io::stdout().is_terminal() && is_wide {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    for row in rows {
        table.add_row(row.iter().map(|cell| printable(cell)));
    }
    for at in 0..columns.len() {
        let cells = || {
            rows.iter()
                .filter_map(|row| row.get(at))
                .filter(|cell| !cell.is_empty())
        };
        let is_numeric = cells().next().is_some() && cells().all(|cell| is_number(cell));
        if let (true, Some(column)) = (is_numeric, table.column_mut(at)) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

fn is_number(text: &str) -> bool {
    text.replace(',', "").parse::<f64>().is_ok()
}

/// A cell on one line, without characters that would move the cursor.
fn printable(text: &str) -> String {
    let shown = text.chars().map(|c| {
        if c.is_control() {
            c.escape_default().to_string()
        } else {
            c.to_string()
        }
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_numbers_stand_right() {
        let columns = ["name".to_string(), "n".to_string()];
        let rows = [
            vec!["a\nb".to_string(), "1".to_string()],
            vec!["c".into(), "1,000".into()],
        ];
        let text = render(&columns, &rows);
        assert!(text.contains("a\\nb"), "{text}");
        assert!(text.contains("    1"), "{text}");
    }
}
