//! `rename` and `drop`.

use crate::harness::Place;

#[test]
fn renamed_table_keeps_its_rows_and_columns() {
    let place = Place::with_zones();
    let before = place.rows("zones");
    let said = place.run(&["rename", "db", "zones", "places"]).succeeded();
    assert_eq!(said, "renamed table zones to places\n");
    assert_eq!(place.rows("places"), before);
    place
        .run(&["get", "db", "places", "Europe/Paris"])
        .succeeded();
    place
        .run(&["scan", "db", "zones"])
        .failed(1, &["there is no table zones", "it has places"]);
    let json = place
        .run(&["rename", "db", "places", "zones", "--json"])
        .succeeded();
    assert_eq!(json, "{\"table\":\"zones\",\"renamed_from\":\"places\"}\n");
}

#[test]
fn refused_rename_changes_nothing() {
    let place = Place::with_zones();
    place
        .run(&["put", "db", "other", "k", "v", "--raw"])
        .succeeded();
    let rename = |from: &str, to: &str| place.run(&["rename", "db", from, to]);
    rename("nowhere", "x").failed(
        1,
        &["there is no table nowhere in db", "it has other, zones"],
    );
    rename("zones", "other").failed(
        2,
        &["there is a table other in db already", "drop it first"],
    );
    rename("zones", "zones").failed(2, &["there is a table zones in db already"]);
    rename("zones", "").failed(2, &["1 to 255 bytes"]);
    rename("zones", "longshore.x").failed(2, &["the command's own", "longshore.x"]);
    rename("longshore.shapes", "x").failed(2, &["longshore.shapes is the command's own table"]);
    place.run(&["rename", "db", "zones"]).failed(2, &["<NAME>"]);
    place
        .run(&["rename", "nodb", "a", "b"])
        .failed(4, &["there is no database in"]);
    let tables = place.run(&["tables", "db", "--json"]).succeeded();
    assert!(
        tables.contains("\"other\"") && tables.contains("\"zones\""),
        "{tables}"
    );
}

#[test]
fn dropped_table_is_gone_with_its_shape() {
    let place = Place::with_zones();
    let said = place.run(&["drop", "db", "zones"]).succeeded();
    assert_eq!(said, "dropped table zones\n");
    place
        .run(&["get", "db", "zones", "Europe/Paris"])
        .failed(1, &["there is no table zones"]);
    place
        .run(&["drop", "db", "zones"])
        .failed(1, &["there is no table zones in db"]);
    assert_eq!(
        place
            .run(&["scan", "db", "longshore.shapes", "--output", "csv"])
            .succeeded(),
        "key,value\n"
    );
    place.run(&["verify", "db"]).succeeded();
    // Its name is free, for a table of other columns.
    place
        .run(&["put", "db", "zones", "id=1", "--key", "id:int"])
        .succeeded();
    assert_eq!(place.rows("zones"), ["1"]);
    let json = place.run(&["drop", "db", "zones", "--json"]).succeeded();
    assert_eq!(json, "{\"table\":\"zones\",\"dropped\":true}\n");
}

#[test]
fn refused_drop_changes_nothing() {
    let place = Place::with_zones();
    place
        .run(&["drop", "db", "nowhere"])
        .failed(1, &["there is no table nowhere in db", "it has zones"]);
    place
        .run(&["drop", "db", "longshore.shapes"])
        .failed(2, &["longshore.shapes is the command's own table"]);
    place
        .run(&["drop", "nodb", "zones"])
        .failed(4, &["there is no database in"]);
    assert!(!place.path("nodb").join("control").exists());
    assert!(!place.rows("zones").is_empty());
}
