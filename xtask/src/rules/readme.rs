//! Every crate has a README.

use std::path::Path;

use crate::Violation;
use crate::workspace::Workspace;

/// Checks that each member's directory holds a README.md that says something.
pub fn check(workspace: &Workspace, root: &Path) -> Vec<Violation> {
    let missing = workspace.members.iter().filter(|member| {
        let path = root.join(&member.directory).join("README.md");
        !std::fs::metadata(path).is_ok_and(|file| file.len() > 0)
    });
    missing
        .map(|member| {
            let path = member.directory.join("README.md");
            let message = "missing: what the crate is for, its invariants, how to test it";
            Violation::new(path, 0, "readme", message)
        })
        .collect()
}
