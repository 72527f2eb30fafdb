//! The table of `docs/isolation.md` that says what each level prevents: made from the scripts.

use super::script::{Script, Verdict};
use longshore::Isolation;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- begin: made from the scripts -->\n";
const END: &str = "<!-- end -->\n";

pub fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/isolation.md")
}

/// The table, a row for each script.
pub fn table(names: &[&str]) -> String {
    let mut table =
        String::from("| case | serializable | snapshot | read committed |\n|---|---|---|---|\n");
    for name in names {
        let script = Script::read(name);
        let cell = |level| {
            let section = script.sections.iter().find(|s| s.level == level);
            words(section.expect("each level has its transcript").verdict)
        };
        table += &format!(
            "| [{}](../crates/engine/testscripts/isolation/{name}.txt) | {} | {} | {} |\n",
            script.title,
            cell(Isolation::Serializable),
            cell(Isolation::Snapshot),
            cell(Isolation::ReadCommitted),
        );
    }
    table
}

fn words(verdict: Verdict) -> &'static str {
    match (verdict.is_permitted, verdict.occurs) {
        (false, _) => "no",
        (true, true) => "**yes**",
        (true, false) => "no, though it may",
    }
}

/// The document with `table` where its table is.
pub fn with_table(document: &str, table: &str) -> String {
    let (head, rest) = document
        .split_once(BEGIN)
        .expect("the document has the table");
    let (_, tail) = rest.split_once(END).expect("the table has an end");
    format!("{head}{BEGIN}{table}{END}{tail}")
}
