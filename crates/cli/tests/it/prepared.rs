//! `prepared`.

use crate::harness::Place;
use longshore::Database;

/// A database with two transactions that are prepared, and nothing open.
fn place() -> Place {
    let place = Place::new();
    let db = Database::open_or_create(place.path("db")).unwrap();
    let table = db.create_table("money").unwrap();
    db.update(|tx| tx.put(&table, "before", "5")).unwrap();
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

#[test]
fn a_database_with_prepared_transactions_is_read_and_verified() {
    let place = place();
    for command in ["scan", "dump"] {
        let rows = place.run(&[command, "db", "money", "--raw"]).succeeded();
        assert!(rows.contains("before") && !rows.contains("first"), "{rows}");
    }
    let said = place.run(&["verify", "db"]).succeeded();
    assert!(
        said.contains("db is sound\n2 prepared transactions not decided"),
        "{said}"
    );
    let json = place.run(&["verify", "db", "--json"]).succeeded();
    assert!(json.contains("\"prepared_transactions\":2"), "{json}");
    let json = place.run(&["stat", "db", "--json"]).succeeded();
    assert!(json.contains("\"prepared_transactions\":2"), "{json}");
    place
        .run(&["delete", "db", "money", "first", "--raw"])
        .failed(4, &["see `longshore prepared`"]);
    place
        .run(&["drop", "db", "money"])
        .failed(4, &["prepared as \"first\""]);
    place
        .run(&["prepared", "db", "--rollback", "first"])
        .succeeded();
    place.run(&["verify", "db"]).succeeded();
}

#[test]
fn names_that_are_no_text_are_told_and_given_in_hexadecimal() {
    let place = Place::new();
    let db = Database::open_or_create(place.path("db")).unwrap();
    for gid in [&b"\n"[..], b"\xff\x00", b"text"] {
        drop(db.begin().unwrap().prepare(gid).unwrap());
    }
    db.close().unwrap();
    let list = place.run(&["prepared", "db"]).succeeded();
    assert!(list.contains("\"\\n\", see --hex") && list.contains("\"\\xff\\x00\", see --hex"));
    let list = place.run(&["prepared", "db", "--hex"]).succeeded();
    assert!(list.contains("0a") && list.contains("ff00") && list.contains("74657874"));
    let said = place.run(&["prepared", "db", "--hex", "--commit", "ff00"]);
    assert_eq!(said.succeeded(), "committed ff00\n");
    place
        .run(&["prepared", "db", "--hex", "--commit", "x"])
        .failed(2, &["is not hexadecimal"]);
    let said = place.run(&["prepared", "db", "--hex", "--rollback", "0A"]);
    assert_eq!(said.succeeded(), "rolled back 0A\n");
    assert!(!place.run(&["prepared", "db"]).succeeded().contains("hex"));
}
