//! The files of the repository that the rules look at.

use std::path::{Path, PathBuf};

use crate::source::Source;

/// Directories that hold nothing of ours.
const SKIPPED: [&str; 3] = ["target", ".git", "node_modules"];

/// A Markdown file.
#[derive(Debug)]
pub struct Markdown {
    /// Path, relative to the repository root.
    pub path: PathBuf,
    /// The whole text.
    pub text: String,
}

/// Every Rust and Markdown file below a root, in path order.
#[derive(Debug)]
pub struct Tree {
    /// The directory that all paths are relative to.
    pub root: PathBuf,
    /// The Rust files.
    pub sources: Vec<Source>,
    /// The Markdown files.
    pub markdown: Vec<Markdown>,
}

impl Tree {
    /// Reads all files below `root`.
    ///
    /// # Errors
    /// Names the file or directory that cannot be read.
    pub fn read(root: &Path) -> Result<Tree, String> {
        let mut paths = Vec::new();
        collect(root, &mut paths)?;
        paths.sort();
        let mut tree = Tree {
            root: root.to_path_buf(),
            sources: vec![],
            markdown: vec![],
        };
        for path in paths {
            let relative = path.strip_prefix(root).unwrap_or(&path).to_path_buf();
            let read =
                || std::fs::read_to_string(&path).map_err(|e| format!("cannot read {path:?}: {e}"));
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("rs") => tree.sources.push(Source::new(relative, read()?)),
                Some("md") => tree.markdown.push(Markdown {
                    path: relative,
                    text: read()?,
                }),
                _ => {}
            }
        }
        Ok(tree)
    }

    /// The Markdown file at `path`.
    ///
    /// # Errors
    /// Says that the file is missing.
    pub fn markdown(&self, path: &str) -> Result<&Markdown, String> {
        self.markdown
            .iter()
            .find(|file| file.path == Path::new(path))
            .ok_or_else(|| format!("{path} is missing in {}", self.root.display()))
    }
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries =
        std::fs::read_dir(directory).map_err(|e| format!("cannot list {directory:?}: {e}"))?;
    for entry in entries {
        let entry = entry.map_err(|e| format!("cannot list {directory:?}: {e}"))?;
        let kind = entry
            .file_type()
            .map_err(|e| format!("cannot look at {entry:?}: {e}"))?;
        let name = entry.file_name();
        if kind.is_dir() {
            if !SKIPPED.iter().any(|skipped| name == *skipped) {
                collect(&entry.path(), paths)?;
            }
        } else if kind.is_file() {
            paths.push(entry.path());
        }
    }
    Ok(())
}
