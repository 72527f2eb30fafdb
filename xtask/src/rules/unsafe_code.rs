//! `unsafe` stands only in the files that ARCHITECTURE.md names, each time with its argument.

use std::path::Path;

use crate::Violation;
use crate::architecture::Architecture;
use crate::source::Source;
use crate::workspace::Workspace;

const RULE: &str = "unsafe";

/// How far above an `unsafe` its argument may begin.
const ARGUMENT_LINES_MAX: usize = 12;

/// Checks every `unsafe` of one file.
pub fn check(architecture: &Architecture, source: &Source) -> Vec<Violation> {
    let unsafe_lines: Vec<usize> = source.code_lines_with("unsafe").collect();
    let allowed = architecture.may_be_unsafe(&source.path);
    let broken = unsafe_lines.iter().filter_map(|line| {
        let message = match allowed {
            false => "`unsafe` in a file that ARCHITECTURE.md does not name under \"Unsafe\"",
            true if !has_argument(source, &unsafe_lines, *line) => {
                "`unsafe` without a `// SAFETY:` comment above it (`# Safety` for declarations)"
            }
            true => return None,
        };
        Some(Violation::new(&source.path, *line, RULE, message))
    });
    broken.collect()
}

/// Checks that each crate root forbids `unsafe`, where no file of the crate may contain it.
pub fn check_roots(
    architecture: &Architecture,
    workspace: &Workspace,
    sources: &[Source],
) -> Vec<Violation> {
    let safe = workspace
        .members
        .iter()
        .filter(|m| !architecture.has_unsafe_below(&m.directory));
    let roots = safe.flat_map(|member| {
        let root_of = |name: &str| member.directory.join("src").join(name);
        [root_of("lib.rs"), root_of("main.rs")]
    });
    roots
        .filter_map(|root| check_root(sources, &root))
        .collect()
}

fn check_root(sources: &[Source], root: &Path) -> Option<Violation> {
    let source = sources.iter().find(|source| source.path == root)?;
    let forbids = source.code().contains("#![forbid(unsafe_code)]");
    // A binary beside a library has one file of glue; the library is what matters.
    let beside_library = root.ends_with("main.rs")
        && sources
            .iter()
            .any(|source| source.path == root.with_file_name("lib.rs"));
    (!forbids && !beside_library).then(|| {
        Violation::new(
            root,
            0,
            RULE,
            "say `#![forbid(unsafe_code)]` in the crate root",
        )
    })
}

/// Looks for the argument from `line` upwards; another `unsafe` on the way has used it up.
fn has_argument(source: &Source, unsafe_lines: &[usize], line: usize) -> bool {
    let comments: Vec<&str> = source.comments().lines().collect();
    let is_argument = |number: usize| {
        let comment = comments.get(number - 1).copied().unwrap_or_default();
        comment.contains("SAFETY:") || comment.contains("# Safety")
    };
    let lowest = line.saturating_sub(ARGUMENT_LINES_MAX).max(1);
    let above = (lowest..line)
        .rev()
        .take_while(|number| !unsafe_lines.contains(number));
    is_argument(line) || above.into_iter().any(is_argument)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let house = "## May import\n|a|b|\n|-|-|\n| `pool` | – |\n## Unsafe\n\
                     - `crates/pool/src/memory.rs`: frames\n## The operating system\n";
        let architecture = Architecture::parse(house).unwrap();
        let found = check(&architecture, &Source::new(path, text));
        found.into_iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn unsafe_elsewhere_is_refused() {
        let text = "// SAFETY: none\nunsafe { f() }\n";
        assert_eq!(lines("crates/pool/src/pool.rs", text), [2]);
        assert!(lines("crates/pool/src/memory.rs", text).is_empty());
    }

    #[test]
    fn each_unsafe_has_its_own_argument() {
        let two = "// SAFETY: one\nunsafe { f() }\nunsafe { g() }\n";
        assert_eq!(lines("crates/pool/src/memory.rs", two), [3]);
        let far = format!("// SAFETY: far\n{}unsafe {{ f() }}\n", "\n".repeat(20));
        assert_eq!(lines("crates/pool/src/memory.rs", &far), [22]);
    }
}
