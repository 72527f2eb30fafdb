//! The parts of ARCHITECTURE.md that are checked.
//!
//! # Protocol
//! Three sections are read, found by their headings:
//! - `May import`: a table; first column the crate, second what it may import (`–` for nothing);
//! - `Unsafe`: a list; every item starts with a path in backticks;
//! - `The operating system`: a list of the same shape; a path that ends in `/` means all below.
//!
//! # Invariants
//! A1. A row of the table names only crates of rows above it, so no arrow points up.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What ARCHITECTURE.md allows.
#[derive(Debug, Clone)]
pub struct Architecture {
    may_import: BTreeMap<String, BTreeSet<String>>,
    unsafe_files: Vec<String>,
    system_places: Vec<String>,
}

impl Architecture {
    /// Reads the three sections.
    ///
    /// # Errors
    /// Says which section is missing or which row cannot be understood.
    pub fn parse(text: &str) -> Result<Architecture, String> {
        Ok(Architecture {
            may_import: parse_table(section(text, "May import")?)?,
            unsafe_files: parse_paths(section(text, "Unsafe")?, "Unsafe")?,
            system_places: parse_paths(
                section(text, "The operating system")?,
                "The operating system",
            )?,
        })
    }

    /// Does the table have a row for this crate?
    pub fn knows(&self, name: &str) -> bool {
        self.may_import.contains_key(name)
    }

    /// May the code of `importer` use `imported`?
    pub fn may_import(&self, importer: &str, imported: &str) -> bool {
        self.may_import
            .get(importer)
            .is_some_and(|allowed| allowed.contains(imported))
    }

    /// Does `upper` stand on `lower`, directly or through others?
    pub fn stands_on(&self, upper: &str, lower: &str) -> bool {
        self.may_import.get(upper).is_some_and(|allowed| {
            allowed.contains(lower) || allowed.iter().any(|next| self.stands_on(next, lower))
        })
    }

    /// May this file contain `unsafe`?
    pub fn may_be_unsafe(&self, path: &Path) -> bool {
        covers(&self.unsafe_files, path)
    }

    /// Does a file that may contain `unsafe` stand below this directory?
    pub fn has_unsafe_below(&self, directory: &Path) -> bool {
        self.unsafe_files
            .iter()
            .any(|file| Path::new(file).starts_with(directory))
    }

    /// May this file use the operating system directly?
    pub fn may_reach_system(&self, path: &Path) -> bool {
        covers(&self.system_places, path)
    }
}

fn covers(places: &[String], path: &Path) -> bool {
    places.iter().any(|place| match place.strip_suffix('/') {
        Some(directory) => path.starts_with(directory),
        None => path == Path::new(place),
    })
}

/// The lines between the heading `title` and the next heading.
fn section<'a>(text: &'a str, title: &str) -> Result<Vec<&'a str>, String> {
    let is_heading = |line: &str| line.starts_with('#');
    let mut lines = text.lines();
    lines
        .by_ref()
        .find(|line| is_heading(line) && line.trim_start_matches(['#', ' ']) == title)
        .ok_or_else(|| format!("ARCHITECTURE.md has no section \"{title}\""))?;
    Ok(lines.take_while(|line| !is_heading(line)).collect())
}

fn parse_table(lines: Vec<&str>) -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    let mut table: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    // The first two lines are the header and the rule below it.
    for line in lines.iter().filter(|line| line.starts_with('|')).skip(2) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, imports, ..] = cells.as_slice() else {
            return Err(format!("ARCHITECTURE.md: cannot read the row `{line}`"));
        };
        let name = name.trim_matches('`').to_string();
        let mut allowed = BTreeSet::new();
        for import in imports
            .split(',')
            .map(str::trim)
            .filter(|word| *word != "–")
        {
            if !table.contains_key(import) {
                return Err(format!(
                    "ARCHITECTURE.md: `{name}` may import `{import}`, which has no row above it (A1)"
                ));
            }
            allowed.insert(import.to_string());
        }
        if table.insert(name.clone(), allowed).is_some() {
            return Err(format!("ARCHITECTURE.md: `{name}` has two rows"));
        }
    }
    match table.is_empty() {
        true => Err("ARCHITECTURE.md: the table under \"May import\" has no rows".to_string()),
        false => Ok(table),
    }
}

fn parse_paths(lines: Vec<&str>, title: &str) -> Result<Vec<String>, String> {
    let items = lines.iter().filter_map(|line| line.strip_prefix("- "));
    let paths = items
        .map(|item| {
            let path = item
                .strip_prefix('`')
                .and_then(|rest| rest.split('`').next());
            path.map(str::to_string).ok_or_else(|| {
                format!(
                    "ARCHITECTURE.md, \"{title}\": `{item}` does not start with a path in backticks"
                )
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# House
## May import
| crate | may import | what |
|---|---|---|
| `base` | – | words |
| `pool` | base | pages |
| `txn` | pool | rows |

## Unsafe
- `crates/pool/src/memory.rs`: frames
## The operating system
- `crates/disk/`
- `crates/base/src/env.rs`
";

    #[test]
    fn the_three_sections_are_read() {
        let house = Architecture::parse(TEXT).unwrap();
        assert!(house.may_import("pool", "base"));
        assert!(!house.may_import("base", "pool"));
        assert!(!house.may_import("txn", "base"));
        assert!(house.stands_on("txn", "base"));
        assert!(house.may_be_unsafe(Path::new("crates/pool/src/memory.rs")));
        assert!(!house.may_be_unsafe(Path::new("crates/pool/src/pool.rs")));
        assert!(house.has_unsafe_below(Path::new("crates/pool")));
        assert!(house.may_reach_system(Path::new("crates/disk/src/file.rs")));
        assert!(house.may_reach_system(Path::new("crates/base/src/env.rs")));
        assert!(!house.may_reach_system(Path::new("crates/base/src/lib.rs")));
    }

    #[test]
    fn an_arrow_that_points_up_is_refused() {
        let text = TEXT.replace("| `base` | – |", "| `base` | pool |");
        let message = Architecture::parse(&text).unwrap_err();
        assert!(message.contains("`base` may import `pool`"), "{message}");
    }

    #[test]
    fn a_missing_section_is_named() {
        let message = Architecture::parse("# House\n").unwrap_err();
        assert!(message.contains("May import"), "{message}");
    }
}
