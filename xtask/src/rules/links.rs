//! Relative links in Markdown lead somewhere.

use std::path::Path;

use crate::Violation;
use crate::tree::{Markdown, Tree};

/// Checks every relative link of every Markdown file.
pub fn check(tree: &Tree) -> Vec<Violation> {
    tree.markdown
        .iter()
        .flat_map(|file| check_file(&tree.root, file))
        .collect()
}

fn check_file(root: &Path, file: &Markdown) -> Vec<Violation> {
    let directory = root
        .join(&file.path)
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default();
    let mut broken = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for target in targets(line) {
            let path = target.split('#').next().unwrap_or_default();
            if is_relative(target) && !directory.join(path).exists() {
                let message = format!("the link to `{target}` leads nowhere");
                broken.push(Violation::new(&file.path, index + 1, "links", message));
            }
        }
    }
    broken
}

fn is_relative(target: &str) -> bool {
    !target.is_empty()
        && !target.contains("://")
        && !target.starts_with('#')
        && !target.starts_with("mailto:")
}

/// What stands between `](` and `)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_taken_from_their_brackets() {
        let line = "see [a](b/c.md), [d](e.md#f) and code(x)";
        assert_eq!(targets(line).collect::<Vec<_>>(), ["b/c.md", "e.md#f"]);
        assert!(!is_relative("https://example.org/a"));
        assert!(!is_relative("#words"));
        assert!(is_relative("b/c.md"));
    }
}
