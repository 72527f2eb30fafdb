//! One broken rule: where, which, and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

/// A place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// File, relative to the repository root.
    pub file: PathBuf,
    /// Line, counted from 1; 0 when the whole file is meant.
    pub line: usize,
    /// Name of the rule.
    pub rule: &'static str,
    /// What is wrong and what to do.
    pub message: String,
}

impl Violation {
    /// A violation in `file` at `line` (0: the whole file).
    pub fn new(
        file: impl AsRef<Path>,
        line: usize,
        rule: &'static str,
        message: impl Into<String>,
    ) -> Violation {
        Violation {
            file: file.as_ref().to_path_buf(),
            line,
            rule,
            message: message.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": [{}] {}", self.rule, self.message)
    }
}
