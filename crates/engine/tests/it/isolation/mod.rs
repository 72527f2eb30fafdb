//! Anomalies, each at every level: prevented where the level promises it, and seen to occur where the
//! documents say that it may. The format of the scripts is told in `testscripts/isolation/README.md`.
//!
//! `UPDATE_GOLDEN=1` writes transcripts and the table of `docs/isolation.md` anew. Verdicts it leaves alone.

mod anomaly;
mod document;
mod play;
mod script;
mod session;
mod store;

use longshore::{Database, Isolation};
use play::{play, play_with};
use script::{Script, folder, level_name};

fn is_update() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

/// Plays a script at each level, and compares what happens with what the file says.
fn check(name: &str) {
    let mut script = Script::read(name);
    let expected = script.text();
    let names: Vec<_> = script
        .steps
        .iter()
        .filter_map(|s| s.name.as_deref())
        .collect();
    for spoken_of in script.anomaly.names() {
        assert!(
            spoken_of == "end" || names.contains(&spoken_of),
            "`{spoken_of}` is no answer"
        );
    }
    let mut wrong = Vec::new();
    for at in 0..script.sections.len() {
        let (level, verdict) = (script.sections[at].level, script.sections[at].verdict);
        let played = play(&script, level);
        if script.anomaly.occurs(&played.outcome) != verdict.occurs {
            wrong.push(format!(
                "{}: not so\n{}",
                level_name(level),
                played.transcript
            ));
        }
        script.sections[at].transcript = played.transcript;
    }
    let found = script.text();
    if is_update() {
        std::fs::write(&script.path, &found).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let is_same = is_update() || found == expected;
    assert!(is_same, "{name}: expected\n{expected}\nbut found\n{found}");
    let levels: Vec<_> = script
        .sections
        .iter()
        .map(|section| section.level)
        .collect();
    assert_eq!(levels, LEVELS);
}

const LEVELS: [Isolation; 3] = [
    Isolation::Serializable,
    Isolation::Snapshot,
    Isolation::ReadCommitted,
];

macro_rules! scripts {
    ($($name:ident)*) => {
        /// In the order of the table in `docs/isolation.md`.
        const SCRIPTS: &[&str] = &[$(stringify!($name)),*];

        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*
    };
}

scripts! {
    g0_dirty_write
    g0_without_waiting
    g0_against_each_other
    g1a_aborted_read
    g1b_intermediate_read
    g1c_circular_flow
    otv_observed_transaction_vanishes
    pmp_predicate_read
    pmp_write_predicate
    p4_lost_update
    p4_lost_update_in_a_row
    p4_lost_delete
    p4_lost_update_of_a_statement
    g_single_read_skew
    g_single_predicates
    g_single_write_predicate
    g2_item_write_skew
    g2_predicate_write_skew
    g2_read_only_anomaly
    g2_three_in_a_circle
    long_fork
    stale_read
    own_changes
    view_read_skew
    view_phantom
    view_stale_read
    view_of_the_read_only_anomaly
    for_update_lost_update
    for_update_beside_a_reader
    modify_lost_update
    modify_beside_a_savepoint
    for_update_write_skew
    for_update_write_skew_crosswise
    for_update_missing_row
    for_update_predicate
    savepoint_aborted_read
    savepoint_keeps_locks
    savepoint_keeps_the_key
    savepoint_frees_the_key
    savepoint_of_a_waiter
    unique_key_two_inserts
    unique_key_first_is_rolled_back
    unique_key_delete_is_rolled_back
    unique_key_next_number
    unique_index_two_inserts
    unique_index_two_updates
    unique_index_value_is_taken_back
    unique_index_first_is_rolled_back
    phantom_below_the_first
    phantom_above_the_last
    phantom_in_an_empty_table
    phantom_of_a_missing_row
    phantom_in_reverse
    phantom_where_a_row_was
    phantom_of_a_delete
    phantom_in_a_deleted_range
    phantom_beside_a_split_above
    phantom_beside_a_split_below
    phantom_that_splits_the_page
    phantom_after_own_split
    mixed_write_skew
    mixed_phantom
    prepared_dirty_write
    prepared_dirty_write_after_a_restart
    prepared_aborted_read
    prepared_aborted_read_after_a_restart
    prepared_read_skew
    prepared_lost_update
    prepared_write_skew
    prepared_read_only_anomaly
    prepared_read_only_anomaly_after_a_restart
    prepared_phantom_after_a_restart
    prepared_lost_after_a_restart
    prepared_gid_taken_twice
    prepared_gid_taken_twice_after_a_restart
    prepared_unique_value_after_a_restart
}

#[test]
fn every_script_is_played() {
    let files = std::fs::read_dir(folder()).unwrap();
    let mut found: Vec<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".txt").map(str::to_owned))
        .collect();
    found.sort();
    let mut played = SCRIPTS.to_vec();
    played.sort_unstable();
    assert_eq!(found, played);
}

/// Controls: what a level promises fails without what upholds it.
#[test]
fn anomalies_occur_when_what_prevents_them_is_switched_off() {
    let occurs = |name: &str, level, switch: fn(&Database)| {
        let script = Script::read(name);
        let played = play_with(&script, level, switch);
        assert!(
            script.anomaly.occurs(&played.outcome),
            "{name}\n{}",
            played.transcript
        );
    };
    for name in ["pmp_predicate_read", "g2_predicate_write_skew"] {
        occurs(name, Isolation::Serializable, Database::ignore_gaps);
    }
    let names = || SCRIPTS.iter().filter(|name| name.starts_with("phantom_"));
    // A row's own lock keeps it from being deleted, and its ghost's or its key's from being inserted.
    let by_row = [
        "phantom_of_a_delete",
        "phantom_where_a_row_was",
        "phantom_of_a_missing_row",
    ];
    for name in names().filter(|name| !by_row.contains(name)) {
        occurs(name, Isolation::Serializable, Database::ignore_gaps);
    }
    for name in [
        "p4_lost_update",
        "p4_lost_delete",
        "p4_lost_update_in_a_row",
    ] {
        occurs(name, Isolation::Snapshot, Database::ignore_conflicts);
    }
}

#[test]
#[should_panic(expected = "what was seen has changed")]
fn onlookers_notice_when_snapshots_show_what_is_there_now() {
    let script = Script::read("g1b_intermediate_read");
    play_with(&script, Isolation::Snapshot, Database::ignore_versions);
}

#[test]
fn the_document_says_what_the_scripts_show() {
    let document = std::fs::read_to_string(document::path()).unwrap();
    let made = document::with_table(&document, &document::table(SCRIPTS));
    if is_update() {
        std::fs::write(document::path(), made).unwrap();
        return;
    }
    assert_eq!(document, made, "run this test with UPDATE_GOLDEN=1");
}
