//! A Rust file taken apart into code and comments.
//!
//! # Protocol
//! [`Source::new`] walks the text once. [`Source::code`] and [`Source::comments`] are as long as
//! the text, line for line and byte for byte, with everything else blanked; so a word found in
//! one of them stands at the same line in the file, and a word in a string is found in neither.

use std::path::{Path, PathBuf};

/// A Rust file.
#[derive(Debug)]
pub struct Source {
    /// Path, relative to the repository root.
    pub path: PathBuf,
    /// The whole text.
    pub text: String,
    code: String,
    comments: String,
    test_line: Option<usize>,
}

impl Source {
    /// Takes `text` apart.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Source {
        let (path, text) = (path.into(), text.into());
        let (code, comments) = split(text.as_bytes());
        let test_line = first_test_line(&code);
        Source {
            path,
            text,
            code,
            comments,
            test_line,
        }
    }

    /// The text with comments and literals blanked.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The text with everything but comments blanked.
    pub fn comments(&self) -> &str {
        &self.comments
    }

    /// Is line `number` (from 1) part of a test?
    ///
    /// A test is a file below `tests/`, `benches/` or `examples/`, a file `tests.rs`, or what follows the
    /// `#[cfg(test)]` of a module: tests stand last in a file.
    pub fn is_test(&self, number: usize) -> bool {
        is_test_file(&self.path) || self.test_line.is_some_and(|first| number >= first)
    }

    /// The lines of code that contain `word` as a whole word, numbered from 1.
    pub fn code_lines_with<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        lines_with(&self.code, word)
    }

    /// The lines of comments that contain `word` as a whole word, numbered from 1.
    pub fn comment_lines_with<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        lines_with(&self.comments, word)
    }
}

fn is_test_file(path: &Path) -> bool {
    let is_test_folder = |part: &std::ffi::OsStr| {
        ["tests", "benches", "examples"]
            .iter()
            .any(|folder| part == *folder)
    };
    path.file_name().is_some_and(|name| name == "tests.rs")
        || path
            .components()
            .any(|part| is_test_folder(part.as_os_str()))
}

fn lines_with<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let found = move |(_, line): &(usize, &str)| contains_word(line, word);
    text.lines()
        .enumerate()
        .filter(found)
        .map(|(index, _)| index + 1)
}

/// Does `line` contain `word` with no letter, digit or underscore touching either end?
pub fn contains_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let open = |c: Option<char>| !c.is_some_and(is_part);
        (open(before) || !word.starts_with(is_part)) && (open(after) || !word.ends_with(is_part))
    })
}

fn first_test_line(code: &str) -> Option<usize> {
    let lines: Vec<&str> = code.lines().map(str::trim).collect();
    let is_test_module = |at: usize| {
        lines[at].starts_with("#[cfg(test)]")
            && lines[at..]
                .iter()
                .take(4)
                .any(|line| contains_word(line, "mod"))
    };
    (0..lines.len())
        .find(|&at| is_test_module(at))
        .map(|at| at + 1)
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Code,
    Comment,
    Literal,
}

/// Returns (code, comments).
fn split(text: &[u8]) -> (String, String) {
    let (mut code, mut comments) = (vec![b' '; text.len()], vec![b' '; text.len()]);
    let mut at = 0;
    while at < text.len() {
        let (part, len) = next_part(text, at);
        for index in at..(at + len).min(text.len()) {
            let byte = text[index];
            let keep = |wanted: Part| part == wanted && byte.is_ascii();
            let blank = if byte == b'\n' { b'\n' } else { b' ' };
            code[index] = if keep(Part::Code) { byte } else { blank };
            comments[index] = if keep(Part::Comment) { byte } else { blank };
        }
        at += len;
    }
    let text_of = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text_of(code), text_of(comments))
}

/// What starts at `at`, and how many bytes it has (at least one).
fn next_part(text: &[u8], at: usize) -> (Part, usize) {
    let rest = &text[at..];
    let after_word = at > 0 && (text[at - 1].is_ascii_alphanumeric() || text[at - 1] == b'_');
    match rest {
        [b'/', b'/', ..] => (Part::Comment, find(rest, b"\n").unwrap_or(rest.len())),
        [b'/', b'*', ..] => (Part::Comment, block_comment_len(rest)),
        [b'"', ..] => (Part::Literal, 1 + string_len(&rest[1..])),
        [b'r', ..] | [b'b', b'r', ..] | [b'c', b'r', ..] if !after_word => {
            raw_string_len(rest).map_or((Part::Code, 1), |len| (Part::Literal, len))
        }
        [b'\'', ..] => char_len(rest).map_or((Part::Code, 1), |len| (Part::Literal, len)),
        _ => (Part::Code, 1),
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len())
        .position(|window| window == wanted)
}

fn block_comment_len(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// Length of the rest of a string, closing quote included.
fn string_len(rest: &[u8]) -> usize {
    let mut at = 0;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn raw_string_len(rest: &[u8]) -> Option<usize> {
    let start = rest.iter().position(|byte| *byte == b'r')? + 1;
    let hashes = rest[start..]
        .iter()
        .take_while(|byte| **byte == b'#')
        .count();
    let open = start + hashes;
    if rest.get(open) != Some(&b'"') {
        return None;
    }
    let close = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
    let body = find(&rest[open + 1..], &close);
    Some(body.map_or(rest.len(), |len| open + 1 + len + close.len()))
}

/// Length of a character literal; `None` when the quote starts a lifetime.
fn char_len(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        return Some(3 + rest.get(3..)?.iter().position(|byte| *byte == b'\'')? + 1);
    }
    let text = std::str::from_utf8(&rest[1..rest.len().min(6)]);
    let first = match text {
        Ok(text) => text.chars().next()?,
        Err(error) => {
            let valid = &rest[1..1 + error.valid_up_to()];
            std::str::from_utf8(valid).ok()?.chars().next()?
        }
    };
    let end = 1 + first.len_utf8();
    (rest.get(end) == Some(&b'\'')).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new("a.rs", text)
    }

    #[test]
    fn words_in_strings_and_comments_are_not_code() {
        let text = "let a = \"async\"; // async\nlet b = r#\"async \"quoted\" \"#; /* async */ c";
        let source = source(text);
        assert_eq!(source.code_lines_with("async").count(), 0);
        assert_eq!(
            source.comment_lines_with("async").collect::<Vec<_>>(),
            [1, 2]
        );
        assert!(source.code().ends_with(" c"));
        assert_eq!(source.code().len(), text.len());
    }

    #[test]
    fn quotes_of_characters_and_lifetimes_are_told_apart() {
        let source = source("fn f<'a>(x: &'a str) { g('\"', '\\'', 'é', '\\u{1F}'); async {} }");
        assert_eq!(source.code_lines_with("async").count(), 1);
        assert!(source.code().contains("'a>"));
        assert!(!source.code().contains('"'));
    }

    #[test]
    fn nested_comments_and_escapes_end_where_they_should() {
        let source = source("/* a /* b */ async */ \"\\\\\" x \"\\\"async\" y");
        assert_eq!(
            source.code().split_whitespace().collect::<Vec<_>>(),
            ["x", "y"]
        );
    }

    #[test]
    fn whole_words_only() {
        assert!(contains_word("a async{", "async"));
        assert!(!contains_word("async_code", "async"));
        assert!(contains_word("x.todo!()", "todo!"));
    }

    #[test]
    fn tests_begin_at_their_module() {
        let source = source("fn a() {}\n#[cfg(test)]\nmod tests {\n}\n");
        assert!(!source.is_test(1));
        assert!(source.is_test(2));
        assert!(Source::new("crates/pool/tests/it/main.rs", "").is_test(1));
    }
}
