//! Nothing half done is left behind.

use crate::Violation;
use crate::source::Source;

const CODE: [(&str, &str); 4] = [
    (
        "todo!",
        "write it, or open an issue and return an error that says so",
    ),
    (
        "unimplemented!",
        "write it, or open an issue and return an error that says so",
    ),
    ("dbg!", "remove it"),
    (
        "#[ignore",
        "make the test pass and quick enough to run, or delete it",
    ),
];

const COMMENTS: [&str; 3] = ["TODO", "FIXME", "XXX"];

/// Checks one file for left-overs.
pub fn check(source: &Source) -> Vec<Violation> {
    let code = CODE.iter().flat_map(|(word, advice)| {
        source.code_lines_with(word).map(move |line| {
            Violation::new(&source.path, line, "words", format!("`{word}`: {advice}"))
        })
    });
    let comments = COMMENTS.iter().flat_map(|word| {
        source.comment_lines_with(word).map(move |line| {
            let message = format!("`{word}` in a comment: do it, or open an issue");
            Violation::new(&source.path, line, "words", message)
        })
    });
    code.chain(comments).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check(&Source::new("a.rs", text))
            .into_iter()
            .map(|violation| violation.line)
            .collect()
    }

    #[test]
    fn left_overs_are_found_where_they_stand() {
        assert_eq!(lines("fn a() {\n    todo!()\n}\n"), [2]);
        assert_eq!(lines("// TODO: later\n"), [1]);
        assert_eq!(lines("#[ignore = \"slow\"]\nfn a() {}\n"), [1]);
    }

    #[test]
    fn talking_about_them_in_a_string_is_allowed() {
        assert!(lines("let a = \"todo! TODO\";\n").is_empty());
    }
}
