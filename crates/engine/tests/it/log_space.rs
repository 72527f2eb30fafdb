//! Log space: those at work are served before those who begin.

use crate::support::{assert_sound, open_with, put, sim, small};
use longshore::Error;
use std::sync::Arc;

/// One transaction is at work; others begin until the log is full, and none of them ends, so that no checkpoint
/// frees anything. The one goes on, and ends.
#[test]
fn those_at_work_get_log_space_before_those_who_begin() {
    let disk = Arc::new(sim(1));
    let db = open_with(&disk, 1, small().transactions_max(1_000)).unwrap();
    let table = db.create_table("t").unwrap();
    let oldest = db.begin().unwrap();
    oldest.put(&table, "oldest", "begun").unwrap();
    let mut begun = Vec::new();
    let refused = loop {
        let tx = db.begin().unwrap();
        match tx.put(&table, begun.len().to_string(), [7; 400]) {
            Ok(()) => begun.push(tx),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::LogFull { .. }), "{refused}");
    for letter in b'a'..b'i' {
        oldest.put(&table, "oldest", [letter; 400]).unwrap();
    }
    oldest.commit().unwrap();
    drop(begun);
    put(&db, &table, "next", "v");
    assert_eq!(db.get(&table, "oldest").unwrap().unwrap(), [b'h'; 400]);
    assert_sound(&db);
}
