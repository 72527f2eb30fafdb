//! Hand-made histories, one for each anomaly: found by its name, forbidden from its level on.

use super::{Txn, checked, names, one_by_one, side_by_side};
use sim::history::{Level, Order};

const LEVELS: [Level; 3] = [Level::ReadCommitted, Level::Snapshot, Level::Serializable];

/// The history shows `anomaly`, among others, and from `weakest` on it is a violation.
fn shows(txns: &[Txn], anomaly: &str, weakest: Level) {
    let history = side_by_side(txns);
    for level in LEVELS {
        let report = checked(&history, level, Order::Any);
        assert!(
            names(&report).contains(&anomaly),
            "{anomaly} is missing:\n{report}"
        );
        assert_eq!(report.valid, level < weakest, "{anomaly}:\n{report}");
    }
}

#[test]
fn g0_dirty_write() {
    let txns = [
        ("ok", r#"[["append",1,1],["append",2,1]]"#),
        ("ok", r#"[["append",1,2],["append",2,2]]"#),
        ("ok", r#"[["r",1,[1,2]],["r",2,[2,1]]]"#),
    ];
    shows(&txns, "G0", Level::ReadCommitted);
}

#[test]
fn g1a_aborted_read() {
    let lists = [("fail", r#"[["append",1,1]]"#), ("ok", r#"[["r",1,[1]]]"#)];
    shows(&lists, "G1a", Level::ReadCommitted);
    let below = [
        ("fail", r#"[["append",1,1]]"#),
        ("ok", r#"[["append",1,2]]"#),
        ("ok", r#"[["r",1,[1,2]]]"#),
    ];
    shows(&below, "G1a", Level::ReadCommitted);
    let registers = [("fail", r#"[["w",1,1]]"#), ("ok", r#"[["r",1,1]]"#)];
    shows(&registers, "G1a", Level::ReadCommitted);
    let rows = [
        ("fail", r#"[["insert",1,5]]"#),
        ("ok", r#"[["scan",0,9,[[5,1]]]]"#),
    ];
    shows(&rows, "G1a", Level::ReadCommitted);
}

#[test]
fn g1b_intermediate_read() {
    let lists = [
        ("ok", r#"[["append",1,1],["append",1,2]]"#),
        ("ok", r#"[["r",1,[1]]]"#),
    ];
    shows(&lists, "G1b", Level::ReadCommitted);
    let registers = [("ok", r#"[["w",1,1],["w",1,2]]"#), ("ok", r#"[["r",1,1]]"#)];
    shows(&registers, "G1b", Level::ReadCommitted);
    let rows = [
        ("ok", r#"[["insert",1,5],["move",1,5,7]]"#),
        ("ok", r#"[["scan",0,9,[[5,1]]]]"#),
    ];
    shows(&rows, "G1b", Level::ReadCommitted);
}

#[test]
fn g1c_circular_information_flow() {
    let lists = [
        ("ok", r#"[["append",1,1],["r",2,[2]]]"#),
        ("ok", r#"[["append",2,2],["r",1,[1]]]"#),
    ];
    shows(&lists, "G1c", Level::ReadCommitted);
    let registers = [
        ("ok", r#"[["w",1,1],["r",2,2]]"#),
        ("ok", r#"[["w",2,2],["r",1,1]]"#),
    ];
    shows(&registers, "G1c", Level::ReadCommitted);
}

#[test]
fn an_observed_transaction_vanishes() {
    let txns = [
        ("ok", r#"[["append",1,1],["append",2,1]]"#),
        ("ok", r#"[["append",1,2],["append",2,2]]"#),
        ("ok", r#"[["r",1,[1,2]],["r",2,[]],["r",2,[1,2]]]"#),
    ];
    // The third saw the second, then missed both: a level that reads a state at a time forbids it.
    shows(&txns, "G-single", Level::Snapshot);
}

#[test]
fn what_nobody_wrote_is_garbage() {
    shows(
        &[("ok", r#"[["r",1,[7]]]"#)],
        "garbage",
        Level::ReadCommitted,
    );
    shows(&[("ok", r#"[["r",1,7]]"#)], "garbage", Level::ReadCommitted);
    let row = [("ok", r#"[["scan",0,9,[[5,1]]]]"#)];
    shows(&row, "garbage", Level::ReadCommitted);
}

#[test]
fn a_value_twice_in_a_list() {
    let txns = [("ok", r#"[["append",1,1]]"#), ("ok", r#"[["r",1,[1,1]]]"#)];
    shows(&txns, "duplicate", Level::ReadCommitted);
}

#[test]
fn lists_of_no_common_order() {
    let txns = [
        ("ok", r#"[["append",1,1]]"#),
        ("ok", r#"[["append",1,2]]"#),
        ("ok", r#"[["r",1,[1,2]]]"#),
        ("ok", r#"[["r",1,[2]]]"#),
    ];
    shows(&txns, "incompatible-order", Level::ReadCommitted);
}

#[test]
fn own_writes_that_are_not_seen() {
    for own in [
        r#"[["append",1,1],["r",1,[]]]"#,
        r#"[["append",1,1],["r",1,null]]"#,
        r#"[["w",1,1],["r",1,null]]"#,
        r#"[["insert",1,5],["scan",0,9,[]]]"#,
    ] {
        shows(&[("ok", own)], "internal", Level::ReadCommitted);
    }
}

#[test]
fn lost_update() {
    let lists = [
        ("ok", r#"[["r",1,[]],["append",1,1]]"#),
        ("ok", r#"[["r",1,[]],["append",1,2]]"#),
        ("ok", r#"[["r",1,[1,2]]]"#),
    ];
    shows(&lists, "lost-update", Level::Snapshot);
    let registers = [
        ("ok", r#"[["r",1,null],["w",1,1]]"#),
        ("ok", r#"[["r",1,null],["w",1,2]]"#),
    ];
    shows(&registers, "lost-update", Level::Snapshot);
    let rows = [
        ("ok", r#"[["insert",1,5]]"#),
        ("ok", r#"[["move",1,5,6]]"#),
        ("ok", r#"[["move",1,5,7]]"#),
    ];
    shows(&rows, "lost-update", Level::Snapshot);
}

#[test]
fn g_single_read_skew() {
    let lists = [
        ("ok", r#"[["append",1,1],["append",2,2]]"#),
        ("ok", r#"[["r",1,[1]],["r",2,null]]"#),
        ("ok", r#"[["r",2,[2]]]"#),
    ];
    shows(&lists, "G-single", Level::Snapshot);
    let registers = [
        ("ok", r#"[["r",1,null],["w",1,1],["r",2,null],["w",2,2]]"#),
        ("ok", r#"[["r",1,1],["r",2,null]]"#),
    ];
    shows(&registers, "G-single", Level::Snapshot);
    let repeated = [
        ("ok", r#"[["append",1,1]]"#),
        ("ok", r#"[["r",1,[]],["r",1,[1]]]"#),
    ];
    shows(&repeated, "G-single", Level::Snapshot);
}

#[test]
fn g_single_on_a_predicate() {
    let phantom = [
        ("ok", r#"[["insert",1,5]]"#),
        ("ok", r#"[["scan",0,9,[]],["scan",0,9,[[5,1]]]]"#),
    ];
    shows(&phantom, "G-single", Level::Snapshot);
    let seen_twice = [
        ("ok", r#"[["insert",1,5]]"#),
        ("ok", r#"[["move",1,5,7]]"#),
        ("ok", r#"[["scan",0,9,[[5,1],[7,1]]]]"#),
    ];
    shows(&seen_twice, "G-single", Level::Snapshot);
}

#[test]
fn a_bank_that_does_not_add_up() {
    let account = |balance: i64, stamp: i64| format!(r#"{{"balance":{balance},"stamp":{stamp}}}"#);
    let open = format!(
        r#"[["bank",[1,2],20],["w",1,{}],["w",2,{}]]"#,
        account(10, 1),
        account(10, 2)
    );
    let transfer = format!(
        r#"[["r",1,{}],["r",2,{}],["w",1,{}],["w",2,{}]]"#,
        account(10, 1),
        account(10, 2),
        account(7, 3),
        account(13, 4)
    );
    let whole = format!(r#"[["r",1,{}],["r",2,{}]]"#, account(7, 3), account(13, 4));
    let torn = format!(r#"[["r",1,{}],["r",2,{}]]"#, account(7, 3), account(10, 2));
    let good = [("ok", &*open), ("ok", &*transfer), ("ok", &*whole)];
    let report = checked(&side_by_side(&good), Level::Serializable, Order::Any);
    assert_eq!(names(&report), [""; 0], "{report}");
    let bad = [("ok", &*open), ("ok", &*transfer), ("ok", &*torn)];
    shows(&bad, "wrong-total", Level::Snapshot);
    shows(&bad, "G-single", Level::Snapshot);
}

#[test]
fn long_fork() {
    let lists = [
        ("ok", r#"[["append",1,1]]"#),
        ("ok", r#"[["append",2,2]]"#),
        ("ok", r#"[["r",1,[1]],["r",2,[]]]"#),
        ("ok", r#"[["r",1,[]],["r",2,[2]]]"#),
    ];
    shows(&lists, "long-fork", Level::Snapshot);
    let registers = [
        ("ok", r#"[["w",1,1]]"#),
        ("ok", r#"[["w",2,2]]"#),
        ("ok", r#"[["r",1,1],["r",2,null]]"#),
        ("ok", r#"[["r",1,null],["r",2,2]]"#),
    ];
    shows(&registers, "long-fork", Level::Snapshot);
}

#[test]
fn g2_item_write_skew() {
    let lists = [
        ("ok", r#"[["r",1,[]],["append",2,2]]"#),
        ("ok", r#"[["r",2,[]],["append",1,1]]"#),
        ("ok", r#"[["r",1,[1]],["r",2,[2]]]"#),
    ];
    shows(&lists, "G2-item", Level::Serializable);
    let registers = [
        ("ok", r#"[["r",1,null],["r",2,null],["w",1,1]]"#),
        ("ok", r#"[["r",1,null],["r",2,null],["w",2,2]]"#),
    ];
    shows(&registers, "G2-item", Level::Serializable);
}

#[test]
fn g2_write_skew_on_a_predicate() {
    let inserts = [
        ("ok", r#"[["scan",0,9,[]],["insert",1,5]]"#),
        ("ok", r#"[["scan",0,9,[]],["insert",2,6]]"#),
    ];
    shows(&inserts, "G2", Level::Serializable);
    let moves = [
        ("ok", r#"[["insert",1,5],["insert",2,15]]"#),
        ("ok", r#"[["scan",0,9,[[5,1]]],["move",2,15,17]]"#),
        ("ok", r#"[["scan",10,19,[[15,2]]],["move",1,5,7]]"#),
    ];
    shows(&moves, "G2", Level::Serializable);
}

#[test]
fn the_read_only_anomaly() {
    // Fekete, O'Neil, O'Neil (2004): the third alone shows that the others are not serial.
    let txns = [
        ("ok", r#"[["r",1,null],["r",2,null],["w",1,11]]"#),
        ("ok", r#"[["r",2,null],["w",2,22]]"#),
        ("ok", r#"[["r",1,null],["r",2,22]]"#),
    ];
    shows(&txns, "G2-item", Level::Serializable);
}

#[test]
fn a_miss_that_may_have_come_later_is_no_evidence() {
    // The row was in the range and left it: who missed it may have come before, or after.
    let txns = [
        ("ok", r#"[["insert",1,5]]"#),
        ("ok", r#"[["move",1,5,50]]"#),
        ("ok", r#"[["scan",0,9,[]],["scan",40,60,[[50,1]]]]"#),
    ];
    let report = checked(&side_by_side(&txns), Level::Serializable, Order::Any);
    assert_eq!(names(&report), [""; 0], "{report}");
}

#[test]
fn what_may_have_happened_counts_only_if_it_was_seen() {
    let unseen = [
        ("info", r#"[["append",1,1],["append",2,1]]"#),
        ("ok", r#"[["r",1,[]],["r",2,[]]]"#),
    ];
    assert!(checked(&side_by_side(&unseen), Level::Serializable, Order::Strict).valid);
    let torn = [
        ("info", r#"[["append",1,1],["append",2,1]]"#),
        ("ok", r#"[["r",1,[1]],["r",2,[]],["append",3,1]]"#),
        ("ok", r#"[["r",2,[1]],["r",3,[1]]]"#),
    ];
    shows(&torn, "G-single", Level::Snapshot);
}

/// The history is in order unless time counts; then it shows `anomaly`, even where little is promised.
fn strictly_shows(txns: &[Txn], anomaly: &str, weakest: Level) {
    let history = one_by_one(txns);
    let report = checked(&history, Level::Serializable, Order::Any);
    assert_eq!(names(&report), [""; 0], "{report}");
    for level in LEVELS {
        let report = checked(&history, level, Order::Strict);
        assert_eq!(names(&report), [anomaly], "{report}");
        assert_eq!(report.valid, level < weakest, "{report}");
    }
}

#[test]
fn a_stale_read_breaks_the_order_of_time() {
    let txns = [("ok", r#"[["append",1,1]]"#), ("ok", r#"[["r",1,[]]]"#)];
    strictly_shows(&txns, "G-single-realtime", Level::Snapshot);
}

#[test]
fn a_write_before_its_time_breaks_the_order_of_time() {
    let txns = [
        ("ok", r#"[["append",1,1]]"#),
        ("ok", r#"[["append",1,2]]"#),
        ("ok", r#"[["r",1,[2,1]]]"#),
    ];
    strictly_shows(&txns, "G0-realtime", Level::ReadCommitted);
}

#[test]
fn an_append_that_is_gone_breaks_the_order_of_time() {
    let txns = [
        ("ok", r#"[["append",1,1]]"#),
        ("ok", r#"[["append",1,2]]"#),
        ("ok", r#"[["r",1,[1]]]"#),
    ];
    strictly_shows(&txns, "G-single-realtime", Level::Snapshot);
}

#[test]
fn what_is_unknown_may_happen_at_any_later_time() {
    let txns = [
        ("info", r#"[["append",1,1]]"#),
        ("ok", r#"[["r",1,[]]]"#),
        ("ok", r#"[["r",1,[1]]]"#),
    ];
    let report = checked(&one_by_one(&txns), Level::Serializable, Order::Strict);
    assert!(report.valid, "{report}");
}

#[test]
fn the_report_tells_the_shortest_circle_in_words() {
    let txns = [
        ("ok", r#"[["r",1,[]],["append",2,2]]"#),
        ("ok", r#"[["r",2,[]],["append",1,1]]"#),
        ("ok", r#"[["r",1,[1]],["r",2,[2]]]"#),
    ];
    let report = checked(&side_by_side(&txns), Level::Serializable, Order::Any);
    let text = report.to_string();
    for expected in [
        "FORBIDDEN: G2-item (write skew on rows)",
        "T1 = process 0, invoked in line 1, committed in line 4: read key 1: [] (0 values); append 2 to key 2",
        "T1 saw key 1 as it was before T2 wrote it (rw)",
        "T2 saw key 2 as it was before T1 wrote it (rw)",
        "serializable: VIOLATED",
    ] {
        assert!(text.contains(expected), "{expected}\nis missing in\n{text}");
    }
    assert_eq!(report.found[0].transactions.len(), 2);
}
