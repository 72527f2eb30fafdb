//! `tables`, `stat`, `verify`, `dump`, `log`: looking at a database.

use longshore::{Database, IndexSpec, TypedTable};

use crate::harness::Place;

fn object(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("one JSON object")
}

#[test]
fn tables_are_listed_with_key_and_columns() {
    let place = Place::with_zones();
    let said = place.run(&["tables", "db", "--count"]).succeeded();
    assert!(
        said.contains("zones") && said.contains("418") && said.contains("latitude"),
        "{said}"
    );
    assert!(!said.contains("longshore.shapes"), "{said}");
    assert!(
        place
            .run(&["tables", "db", "--all"])
            .succeeded()
            .contains("longshore.shapes")
    );
    let line = object(
        &place
            .run(&["tables", "db", "--json", "--count"])
            .succeeded(),
    );
    assert_eq!(
        (&line["table"], &line["rows"]),
        (&"zones".into(), &418.into())
    );
    assert_eq!(line["key"][0]["name"], "zone");
}

#[test]
fn a_dump_loads_again() {
    let place = Place::with_zones();
    let json = place.run(&["dump", "db", "zones"]).succeeded();
    place.file("zones.jsonl", &json);
    place
        .run(&["load", "copy", "zones", "zones.jsonl", "--key", "zone"])
        .succeeded();
    assert_eq!(place.run(&["dump", "copy", "zones"]).succeeded(), json);
    let csv = place
        .run(&["dump", "db", "zones", "--output", "csv"])
        .succeeded();
    place.file("zones.csv", &csv);
    place
        .run(&["load", "copy", "again", "zones.csv", "--key", "zone"])
        .succeeded();
    assert_eq!(
        place
            .run(&["dump", "copy", "again", "--output", "csv"])
            .succeeded(),
        csv
    );
}

#[test]
fn all_tables_are_dumped_into_a_directory_that_is_never_overwritten() {
    let place = Place::with_zones();
    place
        .run(&["put", "db", "a/b", "id=1", "--key", "id"])
        .succeeded();
    let dump = || place.run(&["dump", "db", "--directory", "out"]);
    let said = dump().succeeded();
    assert_eq!(said, "out/a%2fb.jsonl: 1 row\nout/zones.jsonl: 418 rows\n");
    dump().failed(4, &["cannot write out/a%2fb.jsonl", "exists"]);
}

#[test]
fn figures_for_people_and_scripts() {
    let place = Place::with_zones();
    let said = place.run(&["stat", "db"]).succeeded();
    assert!(
        said.contains("data bytes") && said.contains("KiB"),
        "{said}"
    );
    let figures = object(&place.run(&["stat", "db", "--json"]).succeeded());
    assert_eq!(figures["tables"], 1);
    let data_bytes = std::fs::metadata(place.path("db").join("data"))
        .unwrap()
        .len();
    assert_eq!(figures["data_bytes"], data_bytes);
    assert!(
        figures["log_bytes"].as_u64().is_some_and(|bytes| bytes > 0),
        "{figures}"
    );
}

#[test]
fn stat_tells_the_replacement_that_was_chosen() {
    let place = Place::with_zones();
    for (chosen, told) in [
        ("lirs", "bp-wrapper/lirs"),
        ("bp-wrapper:batch=16/2q", "bp-wrapper:batch=16/2q"),
    ] {
        let with = ["--replacement", chosen];
        let run = |args: &[&str]| place.run(&[args, &with].concat()).succeeded();
        run(&[
            "put",
            "db",
            "moons",
            "name=Luna",
            "of=Earth",
            "--key",
            "name",
        ]);
        assert!(run(&["get", "db", "moons", "Luna"]).contains("Earth"));
        let figures = object(&run(&["stat", "db", "--json"]));
        assert_eq!(figures["replacement"], told, "{figures}");
        assert_eq!(run(&["verify", "db"]).lines().last(), Some("db is sound"));
    }
    let figures = object(&place.run(&["stat", "db", "--json"]).succeeded());
    assert_eq!(figures["replacement"], "nb-gclock", "{figures}");
}

#[test]
fn a_sound_database_is_verified() {
    let place = Place::with_zones();
    let said = place.run(&["verify", "db"]).succeeded();
    assert!(
        said.contains("zones: 418 rows") && said.ends_with("db is sound\n"),
        "{said}"
    );
    let report = object(&place.run(&["verify", "db", "--json"]).succeeded());
    assert_eq!(report["sound"], true);
    assert_eq!(report["faults"].as_array().map(Vec::len), Some(0));
}

#[test]
fn the_log_is_printed_readably() {
    let place = Place::with_zones();
    place
        .run(&["put", "db", "zones", "zone=Moon/Base", "country=--"])
        .succeeded();
    let said = place.run(&["log", "db"]).succeeded();
    assert!(
        said.contains("Moon/Base") && said.contains("commit"),
        "{said}"
    );
    let json = place.run(&["log", "db", "--json"]).succeeded();
    let records: Vec<serde_json::Value> = json.lines().map(object).collect();
    let row = records
        .iter()
        .find(|record| record["text"].to_string().contains("Moon/Base"));
    let row = row.expect("the row's record");
    let txn = row["txn"].as_u64().expect("a number").to_string();
    let own = place
        .run(&["log", "db", "--txn", &txn, "--json"])
        .succeeded();
    assert!(
        own.lines().all(|line| object(line)["txn"] == row["txn"]),
        "{own}"
    );
    let from = row["lsn"].as_u64().expect("a number").to_string();
    let rest = place
        .run(&["log", "db", "--from", &from, "--limit", "1", "--json"])
        .succeeded();
    assert_eq!(object(&rest), *row);
    let beyond = place.run(&["log", "db", "--from", "99999999999"]);
    assert_eq!(beyond.succeeded(), "");
    let between = place.run(&["log", "db", "--from", "65"]);
    between.failed(2, &["--from 65: no record can be read there"]);
}

#[test]
fn a_benchmark_prints_an_object_per_line() {
    let place = Place::new();
    let args = [
        "bench",
        "insert",
        "--threads",
        "1,2",
        "--seconds",
        "0.1",
        "--json",
        "--dir",
        ".",
    ];
    let said = place.run(&args).succeeded();
    let lines: Vec<serde_json::Value> = said.lines().map(object).collect();
    let threads: Vec<u64> = lines
        .iter()
        .filter_map(|line| line["threads"].as_u64())
        .collect();
    assert_eq!(threads, [1, 2], "{said}");
    for name in [
        "workload",
        "durability",
        "ops_per_second",
        "p50_us",
        "p99_us",
        "aborts",
    ] {
        assert!(
            lines.iter().all(|line| !line[name].is_null()),
            "{name} is missing: {said}"
        );
    }
    let refused = place.run(&["bench", "insert", "--threads", "0"]);
    refused.failed(2, &["--threads"]);
}

#[test]
fn a_benchmark_is_drawn_or_refuses_before_it_runs() {
    let place = Place::new();
    let bench = |figure: &str| {
        let run = [
            "--threads",
            "1,2",
            "--seconds",
            "0.1",
            "--rows",
            "1000",
            "--dir",
            ".",
        ];
        place.run(&[&["bench", "read", "--figure", figure], &run[..]].concat())
    };
    bench("f.svg").succeeded();
    let svg = std::fs::read_to_string(place.path("f.svg")).expect("a figure");
    assert!(
        svg.contains("reads per second and client") && svg.contains("bench read --figure"),
        "{svg}"
    );
    bench("f.png").succeeded();
    bench("f.jpg").failed(2, &["--figure f.jpg", ".svg or .png"]);
    bench("nowhere/f.svg").failed(4, &["cannot write the figure nowhere/f.svg"]);
}

#[test]
fn indexes_are_shown_with_their_table() {
    let place = Place::new();
    let db = Database::create(place.path("db")).expect("a database");
    let people: TypedTable<u32, String> = TypedTable::create(&db, "people").expect("a table");
    let by_name = IndexSpec::unique("by name", "name v1", |_, name: &String| [name.clone()]);
    people.create_index(&db, by_name).expect("an index");
    people.put(&db, 1, &"Ada".to_string()).expect("a row");
    db.close().expect("it closes");

    let said = place.run(&["tables", "db"]).succeeded();
    assert!(said.contains("by name (unique)"), "{said}");
    let line = object(&place.run(&["tables", "db", "--json"]).succeeded());
    assert_eq!(line["indexes"][0]["index"], "by name");
    assert_eq!(line["indexes"][0]["definition"], "name v1");
    assert_eq!(line["indexes"][0]["unique"], true);
    let figures = object(&place.run(&["stat", "db", "--json"]).succeeded());
    assert_eq!(figures["indexes"], 1);
    let said = place.run(&["verify", "db"]).succeeded();
    let words = "people.by name: 1 entry, 1 page, 1 level, not compared with the table";
    assert!(said.contains(words), "{said}");
    let report = object(&place.run(&["verify", "db", "--json"]).succeeded());
    let index = &report["tables"][2]["indexes"][0];
    assert_eq!(
        (&index["entries"], &index["compared"]),
        (&1.into(), &false.into())
    );

    place
        .run(&["put", "db", "people", "k", "v", "--raw"])
        .failed(4, &["`by name`", "open_index"]);
}
