//! Nothing reaches the operating system beside the traits for disk and environment.
//!
//! The simulation is only as true as this rule: whatever reads a clock or a file on its own is
//! outside the seed. `Duration` is a number and harmless; `Instant` and `SystemTime` are clocks.

use crate::Violation;
use crate::architecture::Architecture;
use crate::source::Source;

const WORDS: [&str; 8] = [
    "std::fs",
    "std::net",
    "std::process",
    "std::os",
    "Instant",
    "SystemTime",
    "rustix",
    "libc",
];

/// Checks one file, tests left out.
pub fn check(architecture: &Architecture, source: &Source) -> Vec<Violation> {
    if architecture.may_reach_system(&source.path) {
        return Vec::new();
    }
    let found = WORDS.iter().flat_map(|word| {
        let lines = source
            .code_lines_with(word)
            .filter(|line| !source.is_test(*line));
        lines.map(move |line| {
            let message = format!(
                "`{word}` reaches the operating system: go through `Disk` or `Environment`, so \
                 that the simulation sees it"
            );
            Violation::new(&source.path, line, "system", message)
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let house = "## May import\n|a|b|\n|-|-|\n| `disk` | – |\n## Unsafe\n\
                     ## The operating system\n- `crates/disk/`: files\n";
        let architecture = Architecture::parse(house).unwrap();
        let found = check(&architecture, &Source::new(path, text));
        found.into_iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn files_and_clocks_belong_to_the_disk_and_the_environment() {
        assert_eq!(lines("crates/pool/src/a.rs", "use std::fs::File;\n"), [1]);
        assert_eq!(
            lines(
                "crates/pool/src/a.rs",
                "use std::time::{Duration, Instant};\n"
            ),
            [1]
        );
        assert!(lines("crates/pool/src/a.rs", "use std::time::Duration;\n").is_empty());
        assert!(lines("crates/disk/src/a.rs", "use std::fs::File;\n").is_empty());
    }

    #[test]
    fn tests_may_use_what_they_like() {
        assert!(lines("crates/pool/tests/it/a.rs", "use std::fs::File;\n").is_empty());
        let text = "#[cfg(test)]\nmod tests {\n    use std::fs::File;\n}\n";
        assert!(lines("crates/pool/src/a.rs", text).is_empty());
    }
}
