//! The crash points that a campaign must reach: every one in the sources.

use crate::points::Hits;

/// Every crash point of the storage manager, by name.
pub const REQUIRED: &[&str] = &[
    "abort.clr",
    "abort.end",
    "adopt.applied",
    "adopt.latched",
    "adopt.logged",
    "allocate.grown",
    "allocate.map_applied",
    "allocate.map_latched",
    "allocate.map_logged",
    "build.begun",
    "build.committed",
    "build.interrupted",
    "build.named",
    "build.portion",
    "build.ready",
    "build.tree",
    "bulk_load.applied",
    "bulk_load.latched",
    "bulk_load.logged",
    "chain.applied",
    "chain.latched",
    "chain.logged",
    "chain_free.applied",
    "chain_free.latched",
    "chain_free.logged",
    "checkpoint.begun",
    "checkpoint.control",
    "checkpoint.logged",
    "checkpoint.synced",
    "cleaner.double_write.synced",
    "cleaner.double_write.written",
    "cleaner.home.finished",
    "cleaner.home.run",
    "cleaner.home.synced",
    "cleaner.home.written",
    "cleaner.log.durable",
    "cleaner.marked_clean",
    "commit.durable",
    "commit.logged",
    "commit.released",
    "control.first_written",
    "control.written",
    "create.applied",
    "create.begun",
    "create.committed",
    "create.files",
    "create.formatted",
    "create.latched",
    "create.logged",
    "create.named",
    "create.renamed",
    "create.tree",
    "double_write.restored",
    "drop.closed",
    "drop.committed",
    "drop.unnamed",
    "format.applied",
    "format.latched",
    "format.logged",
    "free.applied",
    "free.latched",
    "free.logged",
    "garbage.announced",
    "garbage.freed",
    "index_drop.committed",
    "index_drop.unnamed",
    "load.begun",
    "load.committed",
    "load.given_up",
    "load.named",
    "lock.escalated",
    "log.open.removed",
    "log.open.rewritten",
    "log.open.synced",
    "log.open.zeroed",
    "log.recycled",
    "log.segment.created",
    "log.segment.ready",
    "log.segment.removed",
    "log.segment.renamed",
    "log.synced",
    "log.written",
    "merge.applied",
    "merge.latched",
    "merge.logged",
    "pool.data.synced",
    "pool.truncated",
    "prepare.adopted",
    "prepare.decided",
    "prepare.kept",
    "prepare.logged",
    "prepare.rolled_back",
    "purge.applied",
    "purge.latched",
    "purge.logged",
    "rename.committed",
    "rename.named",
    "rename.unnamed",
    "restart.analysed",
    "restart.loser",
    "restart.pages_restored",
    "restart.redone",
    "restart.undone",
    "root_growth.applied",
    "root_growth.latched",
    "root_growth.logged",
    "root_shrink.applied",
    "root_shrink.latched",
    "root_shrink.logged",
    "row.applied",
    "row.logged",
    "split.applied",
    "split.latched",
    "split.logged",
    "tree.created",
    "truncate.begun",
    "truncate.cut",
    "truncate.logged",
    "truncate.map_applied",
    "truncate.map_latched",
    "truncate.map_logged",
    "undo.applied",
    "undo.logged",
    "value.written",
];

/// Crash points that no database of this size reaches, and the test that does.
pub const BEYOND_REACH: &[(&str, &str)] = &[
    ("allocate.map_latched", MAP),
    ("allocate.map_logged", MAP),
    ("allocate.map_applied", MAP),
    ("truncate.map_latched", MAP),
    ("truncate.map_logged", MAP),
    ("truncate.map_applied", MAP),
    ("cleaner.home.finished", "follows a failed write: faults"),
];

const MAP: &str = "a second map page needs 128 MiB: the space tests of access";

/// The required points that were not reached.
pub fn missing(hits: &Hits) -> Vec<&'static str> {
    let excused = |name: &&str| BEYOND_REACH.iter().any(|(other, _)| other == name);
    let required = REQUIRED.iter().copied().filter(|name| !excused(name));
    required.filter(|name| !hits.contains_key(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::REQUIRED;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    /// What a list of crash points begins with.
    const MARKERS: [&str; 3] = ["crash_point(", "Steps::new(", "for step in ["];

    #[test]
    fn every_crash_point_of_the_sources_is_required() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        let mut found = BTreeSet::new();
        for name in ["disk", "pool", "log", "access", "txn", "engine"] {
            collect(&crates.join(name).join("src"), &mut found);
        }
        let required: BTreeSet<String> = REQUIRED.iter().map(|name| name.to_string()).collect();
        assert_eq!(required, found);
    }

    fn collect(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).expect("a source folder") {
            let path = entry.expect("a folder entry").path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let text = fs::read_to_string(&path).expect("a source file");
                for marker in MARKERS {
                    for part in text.split(marker).skip(1) {
                        let list = part.split([')', ']']).next().unwrap_or_default();
                        // Every second piece between quotes is a name.
                        found.extend(list.split('"').skip(1).step_by(2).map(str::to_owned));
                    }
                }
            }
        }
    }
}
