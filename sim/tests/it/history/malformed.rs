//! Histories that cannot be judged are refused with the line and the reason.

use super::refused;
use sim::history::HistoryError;

fn line(index: u32, process: u32, kind: &str, value: &str) -> String {
    format!(
        "{{\"index\":{index},\"process\":{process},\"time\":{index},\"type\":\"{kind}\",\"value\":{value}}}\n"
    )
}

fn assert_refused(history: &[String], at: u32, expected: &str) {
    match refused(&history.concat()) {
        HistoryError::Malformed { line, reason } => {
            assert_eq!(line, at, "{reason}");
            assert!(reason.contains(expected), "{reason}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_history_that_shows_nothing_fails() {
    let nothing = [
        String::new(),
        line(0, 0, "invoke", "[[\"append\",1,1]]"),
        line(0, 0, "invoke", "[]") + &line(1, 0, "fail", "[]"),
        line(0, 0, "invoke", "[]") + &line(1, 0, "ok", "[]"),
    ];
    for history in nothing {
        assert!(
            matches!(refused(&history), HistoryError::Empty),
            "{history}"
        );
    }
}

#[test]
fn broken_lines_are_named() {
    let good = line(0, 0, "invoke", "[[\"append\",1,1]]");
    for (bad, expected) in [
        ("{\"index\":1}\n", "missing field `process`"),
        ("nonsense\n", "not a line of a history"),
        (
            "{\"index\":1,\"process\":0,\"time\":1,\"type\":\"done\"}\n",
            "unknown variant `done`",
        ),
        (
            "{\"index\":1,\"process\":-1,\"time\":1,\"type\":\"ok\"}\n",
            "-1",
        ),
        (
            "{\"index\":1,\"process\":0,\"time\":1,\"type\":\"ok\",\"value\":[[\"r\",1,[1,2}\n",
            "column",
        ),
    ] {
        assert_refused(&[good.clone(), bad.to_owned()], 2, expected);
    }
}

#[test]
fn processes_have_one_transaction_at_a_time() {
    let invoke = |index| line(index, 3, "invoke", "[[\"append\",1,1]]");
    assert_refused(&[invoke(0), invoke(1)], 2, "has a transaction open");
    let over = line(1, 4, "ok", "[]");
    assert_refused(&[invoke(0), over], 2, "no transaction open");
    let info = line(1, 3, "info", "null");
    assert_refused(&[invoke(0), info, invoke(2)], 3, "after its info in line 2");
}

#[test]
fn indexes_and_times_only_grow() {
    let invoke = line(5, 0, "invoke", "[]");
    assert_refused(
        &[invoke.clone(), line(5, 0, "ok", "[]")],
        2,
        "index 5 comes after index 5",
    );
    let back = "{\"index\":6,\"process\":0,\"time\":1,\"type\":\"ok\"}\n".to_owned();
    assert_refused(&[invoke, back], 2, "time 1 comes after time 5");
}

#[test]
fn values_are_unique() {
    let txn = |index, process, value: &str| {
        line(index, process, "invoke", value) + &line(index + 1, process, "ok", value)
    };
    let append = |index, process| txn(index, process, "[[\"append\",1,1]]");
    assert_refused(
        &[append(0, 0), append(2, 1)],
        4,
        "key 1 is given 1 again, which the transaction of line 1",
    );
    let write = |index, process| txn(index, process, "[[\"w\",1,1]]");
    assert_refused(
        &[append(0, 0), write(2, 1)],
        4,
        "both as a list and as a register",
    );
    let unread = txn(0, 0, "[[\"scan\",0,9,null]]");
    assert_refused(&[unread], 2, "lacks its value");
}
