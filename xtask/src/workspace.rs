//! What Cargo says about the crates of the workspace and what they depend on.

use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// One crate of the workspace.
#[derive(Debug, Clone)]
pub struct Member {
    /// Name in the may-import table: the package's name without `longshore-`; `engine` for the
    /// package `longshore`.
    pub name: String,
    /// Directory, relative to the repository root.
    pub directory: PathBuf,
    /// Workspace crates that the crate's own code is built with.
    pub imports: Vec<String>,
    /// Workspace crates that only its tests are built with.
    pub test_imports: Vec<String>,
}

/// The members of the workspace, in Cargo's order.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// All members.
    pub members: Vec<Member>,
}

impl Workspace {
    /// Asks `cargo metadata` about the workspace at `root`; needs no network.
    ///
    /// # Errors
    /// What Cargo said.
    pub fn load(root: &Path) -> Result<Workspace, String> {
        let metadata = MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .no_deps()
            .exec()
            .map_err(|e| format!("cargo metadata failed: {e}"))?;
        let packages = metadata.workspace_packages();
        let names: Vec<String> = packages
            .iter()
            .map(|package| package.name.to_string())
            .collect();
        let members = packages
            .iter()
            .map(|package| {
                let of_kind = |wanted: fn(DependencyKind) -> bool| -> Vec<String> {
                    let ours = package.dependencies.iter().filter(|dependency| {
                        wanted(dependency.kind) && names.contains(&dependency.name)
                    });
                    ours.map(|dependency| short_name(&dependency.name))
                        .collect()
                };
                let directory = package
                    .manifest_path
                    .parent()
                    .map(|path| path.as_std_path());
                let directory = directory.unwrap_or(root);
                Member {
                    name: short_name(&package.name),
                    directory: directory
                        .strip_prefix(root)
                        .unwrap_or(directory)
                        .to_path_buf(),
                    imports: of_kind(|kind| kind != DependencyKind::Development),
                    test_imports: of_kind(|kind| kind == DependencyKind::Development),
                }
            })
            .collect();
        Ok(Workspace { members })
    }
}

/// The name that ARCHITECTURE.md uses for a package.
fn short_name(package: &str) -> String {
    match package {
        "longshore" => "engine".to_string(),
        other => other
            .strip_prefix("longshore-")
            .unwrap_or(other)
            .to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::short_name;

    #[test]
    fn package_names_become_the_words_of_the_table() {
        assert_eq!(short_name("longshore"), "engine");
        assert_eq!(short_name("longshore-pool"), "pool");
        assert_eq!(short_name("sim"), "sim");
    }
}
