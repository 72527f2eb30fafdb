//! No file is longer than a reader's patience.

use crate::Violation;
use crate::source::Source;

/// Most lines that a Rust file may have.
pub const LINES_MAX: usize = 600;

/// Checks the length of one file.
pub fn check(source: &Source) -> Option<Violation> {
    let lines = source.text.lines().count();
    (lines > LINES_MAX).then(|| {
        let message = format!("{lines} lines, at most {LINES_MAX}: split it by concept");
        Violation::new(&source.path, 0, "size", message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_legal_file_passes() {
        assert!(check(&Source::new("a.rs", "\n".repeat(LINES_MAX))).is_none());
        assert!(check(&Source::new("a.rs", "\n".repeat(LINES_MAX + 1))).is_some());
    }
}
