//! Puts what an experiment found into a document, between two marks.
//!
//! `<!-- begin nbg-fig7 -->` and `<!-- end nbg-fig7 -->` stand on lines of their own; what is between them is replaced.

/// The document with `text` between the marks of `name`; `None` if it does not have them.
pub fn fill(document: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (
        format!("<!-- begin {name} -->\n"),
        format!("<!-- end {name} -->"),
    );
    let from = document.find(&begin)? + begin.len();
    let to = from + document[from..].find(&end)?;
    Some(format!(
        "{}\n{}\n{}",
        &document[..from],
        text.trim_end(),
        &document[to..]
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_between_the_marks_is_replaced() {
        let document = "a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n";
        let filled = fill(document, "x", "new\n").unwrap();
        assert_eq!(filled, "a\n<!-- begin x -->\n\nnew\n<!-- end x -->\nb\n");
        assert_eq!(fill(&filled, "x", "new\n").unwrap(), filled);
        assert_eq!(fill(document, "y", "new"), None);
        assert_eq!(fill("<!-- end x -->\n<!-- begin x -->\n", "x", "new"), None);
    }
}
