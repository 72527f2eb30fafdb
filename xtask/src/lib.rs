//! Checks that the house keeps its own rules: `tidy`.
//!
//! # Protocol
//! [`tidy`] reads ARCHITECTURE.md, asks Cargo for the workspace's dependencies, reads every Rust
//! and Markdown file of the tree once, and hands them to the rules in [`rules`]. A rule looks at
//! one thing and returns [`Violation`]s; it changes nothing. The same call is made by the command
//! (`cargo run -p xtask -- tidy`) and by the test `the_house_is_tidy`.
//!
//! # Source
//! ARCHITECTURE.md is the only place where the may-import table, the list of files with `unsafe`
//! and the list of places that may reach the operating system are written down. The rules parse
//! it, so that prose and check cannot drift apart.

#![forbid(unsafe_code)]

pub mod architecture;
pub mod rules;
pub mod source;
mod tree;
mod violation;
pub mod workspace;

use std::path::{Path, PathBuf};

pub use tree::Tree;
pub use violation::Violation;

use architecture::Architecture;
use workspace::Workspace;

/// Checks the repository at `root` and returns everything that breaks a rule, in file order.
///
/// # Errors
/// A sentence when the check itself cannot run: a file that cannot be read, a table of
/// ARCHITECTURE.md that cannot be understood, Cargo failing.
pub fn tidy(root: &Path) -> Result<Vec<Violation>, String> {
    let tree = Tree::read(root)?;
    let architecture = Architecture::parse(&tree.markdown("ARCHITECTURE.md")?.text)?;
    let workspace = Workspace::load(root)?;
    let mut violations = Vec::new();
    violations.extend(rules::imports::check(&architecture, &workspace));
    violations.extend(rules::readme::check(&workspace, root));
    violations.extend(rules::links::check(&tree));
    violations.extend(rules::claims::check(&tree));
    for source in &tree.sources {
        violations.extend(rules::unsafe_code::check(&architecture, source));
        violations.extend(rules::system::check(&architecture, source));
        violations.extend(rules::words::check(source));
        violations.extend(rules::size::check(source));
    }
    violations.extend(rules::unsafe_code::check_roots(
        &architecture,
        &workspace,
        &tree.sources,
    ));
    violations.sort();
    Ok(violations)
}

/// The root of the repository this tool was built from.
pub fn repository_root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent()
        .map_or_else(|| own.to_path_buf(), Path::to_path_buf)
}
