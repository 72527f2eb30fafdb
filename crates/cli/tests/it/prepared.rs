//! `prepared`.

use crate::harness::Place;
use longshore::Database;

/// A database with two transactions that are prepared, and nothing open.
fn place() -> Place {
    let place = Place::new();
    let db = Database::open_or_create(place.path("db")).unwrap();
    let table = db.create_table("money").unwrap();
    for gid in ["first", "second"] {
        let tx = db.begin().unwrap();
        tx.put(&table, gid, "10").unwrap();
        drop(tx.prepare(gid.as_bytes()).unwrap());
    }
    db.close().unwrap();
    place
}

#[test]
fn prepared_transactions_are_listed_and_decided() {
    let place = place();
    let list = || place.run(&["prepared", "db"]).succeeded();
    assert!(list().contains("first") && list().contains("second"));
    let said = place.run(&["prepared", "db", "--commit", "first"]);
    assert_eq!(said.succeeded(), "committed first\n");
    let json = place.run(&["prepared", "db", "--json"]).succeeded();
    assert!(
        json.starts_with("{\"gid\":\"second\",\"transaction\":"),
        "{json}"
    );
    assert_eq!(json.lines().count(), 1);
    let said = place.run(&["prepared", "db", "--rollback", "second", "--json"]);
    assert_eq!(
        said.succeeded(),
        "{\"gid\":\"second\",\"outcome\":\"rolled back\"}\n"
    );
    assert_eq!(list(), "db has no prepared transactions\n");
    place.run(&["get", "db", "money", "first"]).succeeded();
    place.run(&["get", "db", "money", "second"]).failed(1, &[]);
}

#[test]
fn a_name_that_nobody_has_is_refused() {
    let place = place();
    place
        .run(&["prepared", "db", "--commit", "third"])
        .failed(1, &["no transaction is prepared as \"third\""]);
    place
        .run(&["prepared", "db", "--commit", "first", "--rollback", "first"])
        .failed(2, &["cannot be used with"]);
}
