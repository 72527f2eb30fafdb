//! A README that says "checked by `some_test`" names a test that is there.
//!
//! Looks at the tables whose header has a column "checked by". In that column, every name in
//! backticks that looks like a function must be one, and every `file.rs` must be a file.

use std::collections::BTreeSet;

use crate::Violation;
use crate::source::Source;
use crate::tree::{Markdown, Tree};

const COLUMN: &str = "checked by";

/// Checks every table of every Markdown file.
pub fn check(tree: &Tree) -> Vec<Violation> {
    let functions: BTreeSet<&str> = tree.sources.iter().flat_map(functions).collect();
    let is_true = |claim: &str| match claim.ends_with(".rs") {
        true => tree
            .sources
            .iter()
            .any(|source| source.path.ends_with(claim)),
        false => functions.contains(claim),
    };
    tree.markdown
        .iter()
        .flat_map(|file| check_file(file, is_true))
        .collect()
}

fn check_file(file: &Markdown, is_true: impl Fn(&str) -> bool) -> Vec<Violation> {
    let mut column = None;
    let mut broken = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if !line.trim_start().starts_with('|') {
            column = None;
            continue;
        }
        let cells: Vec<&str> = line
            .trim()
            .trim_matches('|')
            .split('|')
            .map(str::trim)
            .collect();
        column = column.or_else(|| cells.iter().position(|cell| *cell == COLUMN));
        let claims = column
            .and_then(|at| cells.get(at))
            .into_iter()
            .flat_map(|cell| names(cell));
        for name in claims.filter(|name| !is_true(name)) {
            let message = format!("`{name}` is neither a function nor a file of ours");
            broken.push(Violation::new(&file.path, index + 1, "claims", message));
        }
    }
    broken
}

/// The names in backticks that look like a function or a file: `snake_case`, `file.rs`.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    let quoted = cell.split('`').skip(1).step_by(2);
    // `module::test` claims the test.
    let last = quoted.map(|name| name.rsplit("::").next().unwrap_or(name));
    last.filter(|name| {
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        name.ends_with(".rs") || (name.contains('_') && name.chars().all(is_word))
    })
}

fn functions(source: &Source) -> impl Iterator<Item = &str> {
    let after_fn = source
        .code()
        .match_indices("fn ")
        .map(|(at, word)| at + word.len());
    after_fn.map(|at| {
        let rest = &source.code()[at..];
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        &rest[..end]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_held_against_the_sources() {
        let text = "| id | checked by |\n|---|---|\n\
                    | A1 | `there_it_is`, loom `mine::gone_it_is`, `a.rs`, assert in `b.rs` |\n\n\
                    | id | other |\n|---|---|\n| A2 | `not_looked_at` |\n";
        let tree = Tree {
            root: "".into(),
            sources: vec![Source::new("crates/x/src/a.rs", "fn there_it_is() {}\n")],
            markdown: vec![Markdown {
                path: "README.md".into(),
                text: text.to_string(),
            }],
        };
        let found: Vec<String> = check(&tree)
            .iter()
            .map(|violation| violation.to_string())
            .collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("README.md:3: [claims] `gone_it_is`"),
            "{found:?}"
        );
        assert!(found[1].contains("`b.rs`"), "{found:?}");
    }
}
