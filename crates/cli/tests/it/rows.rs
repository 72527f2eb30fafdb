//! `get`, `put`, `delete`.

use crate::harness::Place;

#[test]
fn a_row_is_printed_with_its_columns() {
    let place = Place::with_zones();
    let said = place
        .run(&["get", "db", "zones", "Europe/Paris"])
        .succeeded();
    let expected = "zone       Europe/Paris\ncountry    FR\nlatitude   48.8667\n\
                    longitude  2.3333\ncomment\n";
    assert_eq!(said, expected);
}

#[test]
fn what_is_put_is_got_and_what_is_deleted_is_gone() {
    let place = Place::with_zones();
    place
        .run(&[
            "put",
            "db",
            "zones",
            "zone=Moon/Base",
            "country=--",
            "height=-3=4",
        ])
        .succeeded();
    let row = place
        .run(&["get", "db", "zones", "Moon/Base", "--json"])
        .succeeded();
    assert_eq!(
        row,
        "{\"zone\":\"Moon/Base\",\"country\":\"--\",\"height\":\"-3=4\"}\n"
    );
    // The new column is the table's from now on.
    assert!(
        place
            .run(&["scan", "db", "zones", "--limit", "1"])
            .succeeded()
            .contains("height")
    );
    place
        .run(&["delete", "db", "zones", "Moon/Base"])
        .succeeded();
    place
        .run(&["get", "db", "zones", "Moon/Base"])
        .failed(1, &["there is no row Moon/Base"]);
    place
        .run(&["delete", "db", "zones", "Moon/Base"])
        .failed(1, &["there is no row Moon/Base"]);
}

#[test]
fn put_replaces_the_whole_row() {
    let place = Place::with_zones();
    place.run(&[
        "put",
        "db",
        "zones",
        "--record",
        "{\"zone\": \"Europe/Paris\",\n \"n\": 1}",
    ]);
    let row = place
        .run(&["get", "db", "zones", "Europe/Paris", "--json"])
        .succeeded();
    assert_eq!(row, "{\"zone\": \"Europe/Paris\",  \"n\": 1}\n");
}

#[test]
fn put_creates_a_table_when_told_how() {
    let place = Place::new();
    place
        .run(&["put", "db", "t", "id=10", "n=a", "--key", "id:int"])
        .succeeded();
    place.run(&["put", "db", "t", "id=-9", "n=b"]).succeeded();
    assert_eq!(place.rows("t"), ["-9,b", "10,a"]);
    place.run(&["get", "db", "t", "-9"]).succeeded();
    place
        .run(&["put", "db", "u", "id=1"])
        .failed(1, &["no table u", "it has t", "--key COLUMN"]);
}

#[test]
fn bare_keys_and_values_have_no_columns() {
    let place = Place::new();
    place
        .run(&["put", "db", "cache", "key one", "value", "--raw"])
        .succeeded();
    place
        .run(&["put", "db", "cache", "00ff", "f0", "--hex"])
        .succeeded();
    assert_eq!(
        place.run(&["get", "db", "cache", "key one"]).succeeded(),
        "value\n"
    );
    assert_eq!(
        place
            .run(&["get", "db", "cache", "00ff", "--hex"])
            .succeeded(),
        "f0\n"
    );
    assert_eq!(place.rows("cache"), ["\\x00\\xff,\\xf0", "key one,value"]);
    let json = place
        .run(&["get", "db", "cache", "key one", "--json"])
        .succeeded();
    assert_eq!(json, "{\"key\":\"key one\",\"value\":\"value\"}\n");
}

#[test]
fn a_command_line_that_contradicts_the_table_changes_nothing() {
    let place = Place::with_zones();
    let before = place.rows("zones");
    let put = |args: &[&str]| place.run(&[&["put", "db", "zones"], args].concat());
    put(&["zone"]).failed(2, &["\"zone\" is not COLUMN=VALUE"]);
    put(&["country=FR"]).failed(2, &["key column \"zone\" is missing"]);
    put(&["zone=a", "zone=b"]).failed(2, &["\"zone\" is there twice"]);
    put(&["--record", "{\"zone\": [1]}"]).failed(2, &["key column \"zone\" holds a list"]);
    put(&["--record", "{"]).failed(2, &["--record: EOF"]);
    put(&[]).failed(2, &["say what to put"]);
    put(&["zone=a", "--key", "country"]).failed(2, &["table zones has the key zone, not country"]);
    place
        .run(&["get", "db", "zones", "a", "b"])
        .failed(2, &["1 column(s) (zone), 2 were given"]);
    assert_eq!(place.rows("zones"), before);
}

#[test]
fn a_refused_first_row_leaves_no_table() {
    let place = Place::new();
    place
        .run(&["put", "db", "t", "n=1", "--key", "id"])
        .failed(2, &["\"id\" is missing"]);
    assert_eq!(
        place.run(&["tables", "db"]).succeeded(),
        "db has no tables\n"
    );
}
