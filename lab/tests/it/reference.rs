//! Our miss ratios against those that others published, on traces that are not in the repository.
//!
//! The traces are looked for in `$LONGSHORE_TRACES`, then in `../shared/traces` beside the checkout; without them the
//! tests say so and pass. Traces of up to three million requests run here; with `LONGSHORE_TRACES_ALL=1`, and by
//! `longshore lab check`, all do.

use std::io::Write;
use std::path::{Path, PathBuf};

use lab::published::table::{ACCEPTED, MATCHES};
use lab::published::{self, Comparison};

/// Longer ones: minutes in a debug build.
const LARGE: [&str; 6] = ["P2", "P3", "P6", "P12", "orm-busy", "w106"];

/// Where the traces lie, if they do; else says so.
pub fn folder() -> Option<PathBuf> {
    let folder = published::folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    if folder.is_none() {
        // Not by `eprintln`, which nobody sees of a test that passes.
        let told = "SKIPPED: no traces in $LONGSHORE_TRACES nor in ../shared/traces: nothing was compared\n";
        std::io::stderr().write_all(told.as_bytes()).unwrap();
    }
    folder
}

fn told(comparisons: &[Comparison]) -> String {
    let mut text = Vec::new();
    lab::print_comparisons(comparisons, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn miss_ratios_agree_with_those_of_others() {
    let Some(folder) = folder() else { return };
    let all = std::env::var_os("LONGSHORE_TRACES_ALL").is_some();
    let is_wanted = |trace: &str| all || !LARGE.contains(&trace);
    let rows = published::rows(&folder).unwrap();
    let comparisons =
        published::compare(&folder, &rows, is_wanted, &lab::Progress::hidden()).unwrap();
    let told = told(&comparisons);
    eprintln!("{told}");
    assert!(
        comparisons.len() > 100,
        "only {} comparisons",
        comparisons.len()
    );
    assert!(comparisons.iter().all(Comparison::holds), "{told}");
    let needless = comparisons
        .iter()
        .filter(|comparison| comparison.is_accepted_needlessly());
    let needless: Vec<_> = needless.map(|comparison| comparison.accepted).collect();
    assert!(needless.is_empty(), "no longer needed: {needless:?}");
}

#[test]
fn every_accepted_difference_has_its_reason_and_its_policy() {
    for accepted in ACCEPTED {
        assert!(accepted.reason.len() > 20, "{accepted:?}");
        assert!(
            MATCHES.iter().any(|known| known.ours == accepted.ours),
            "{accepted:?}"
        );
    }
}
