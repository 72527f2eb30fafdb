//! A crate imports only what the table in ARCHITECTURE.md allows it.
//!
//! Code follows the table to the letter. Tests may also look sideways and down, but never at a
//! crate that stands on their own: such a test belongs to the upper crate.

use crate::Violation;
use crate::architecture::Architecture;
use crate::workspace::{Member, Workspace};

const RULE: &str = "imports";

/// Checks every arrow between workspace crates.
pub fn check(architecture: &Architecture, workspace: &Workspace) -> Vec<Violation> {
    workspace
        .members
        .iter()
        .flat_map(|member| check_member(architecture, member))
        .collect()
}

fn check_member(architecture: &Architecture, member: &Member) -> Vec<Violation> {
    let manifest = member.directory.join("Cargo.toml");
    let name = &member.name;
    if !architecture.knows(name) {
        let message = format!("`{name}` has no row in the table of ARCHITECTURE.md");
        return vec![Violation::new(manifest, 0, RULE, message)];
    }
    let up = member
        .imports
        .iter()
        .filter(|other| !architecture.may_import(name, other))
        .map(|other| {
            format!(
                "`{name}` imports `{other}`, which its row in ARCHITECTURE.md does not allow: \
                 put a trait into the lower crate, or change the table in a commit of its own"
            )
        });
    let tests_up = member
        .test_imports
        .iter()
        .filter(|other| architecture.stands_on(other, name))
        .map(|other| {
            format!(
                "tests of `{name}` import `{other}`, which stands on it: \
                     move the test up to `{other}`"
            )
        });
    up.chain(tests_up)
        .map(|message| Violation::new(&manifest, 0, RULE, message))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "## May import
| crate | may import |
|---|---|
| `base` | – |
| `pool` | base |
| `log` | base |
| `engine` | base, pool, log |
## Unsafe
## The operating system
";

    fn member(name: &str, imports: &[&str], test_imports: &[&str]) -> Member {
        let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        Member {
            name: name.to_string(),
            directory: format!("crates/{name}").into(),
            imports: owned(imports),
            test_imports: owned(test_imports),
        }
    }

    fn messages(members: Vec<Member>) -> Vec<String> {
        let architecture = Architecture::parse(TEXT).unwrap();
        check(&architecture, &Workspace { members })
            .into_iter()
            .map(|v| v.message)
            .collect()
    }

    #[test]
    fn arrows_of_the_table_are_allowed() {
        assert!(messages(vec![member("pool", &["base"], &[])]).is_empty());
    }

    #[test]
    fn arrows_up_and_sideways_are_refused() {
        assert!(messages(vec![member("pool", &["engine"], &[])])[0].contains("imports `engine`"));
        assert!(messages(vec![member("pool", &["log"], &[])])[0].contains("imports `log`"));
    }

    #[test]
    fn tests_look_sideways_but_never_up() {
        assert!(messages(vec![member("pool", &[], &["log"])]).is_empty());
        assert!(messages(vec![member("pool", &[], &["engine"])])[0].contains("stands on it"));
    }

    #[test]
    fn a_crate_without_a_row_is_refused() {
        assert!(messages(vec![member("common", &[], &[])])[0].contains("no row"));
    }
}
