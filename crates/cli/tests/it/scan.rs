//! `scan`: ranges, prefixes, directions, formats.

use crate::harness::Place;

fn keys(place: &Place, args: &[&str]) -> Vec<String> {
    let said = place
        .run(&[&["scan", "db", "zones", "--output", "csv"], args].concat())
        .succeeded();
    said.lines()
        .skip(1)
        .map(|line| line.split(',').next().unwrap_or("").to_string())
        .collect()
}

#[test]
fn ranges_include_their_start_and_not_their_end() {
    let place = Place::with_zones();
    let range = keys(&place, &["--from", "Europe/Oslo", "--to", "Europe/Prague"]);
    assert_eq!(range, ["Europe/Oslo", "Europe/Paris", "Europe/Podgorica"]);
    let reverse = keys(
        &place,
        &[
            "--from",
            "Europe/Oslo",
            "--to",
            "Europe/Prague",
            "--reverse",
        ],
    );
    assert_eq!(reverse, ["Europe/Podgorica", "Europe/Paris", "Europe/Oslo"]);
    assert!(keys(&place, &["--from", "b", "--to", "a"]).is_empty());
}

#[test]
fn prefixes_and_limits() {
    let place = Place::with_zones();
    let all = keys(&place, &[]);
    assert_eq!(all.len(), 418);
    assert!(all.is_sorted());
    let american = keys(&place, &["--prefix", "America/"]);
    assert!(american.iter().all(|key| key.starts_with("America/")));
    assert_eq!(
        american.len(),
        all.iter().filter(|key| key.starts_with("America/")).count()
    );
    assert_eq!(
        keys(&place, &["--prefix", "America/", "--limit", "3"]),
        american[..3]
    );
    assert_eq!(keys(&place, &["--limit", "0"]).len(), 0);
    assert_eq!(keys(&place, &["--reverse", "--limit", "1"]), all[417..]);
    assert!(keys(&place, &["--prefix", "Mars/"]).is_empty());
}

#[test]
fn leading_columns_bound_a_key_of_several() {
    let place = Place::new();
    place.file("a.csv", "c,n\nNO,2\nNO,10\nNOR,1\nSE,3\nDK,4\n");
    place
        .run(&["load", "db", "zones", "a.csv", "--key", "c,n:int"])
        .succeeded();
    let rows = |args: &[&str]| {
        let said = place
            .run(&[&["scan", "db", "zones", "-o", "csv"], args].concat())
            .succeeded();
        said.lines().skip(1).map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        rows(&["--from", "NO", "--to", "SE"]),
        ["NO,2", "NO,10", "NOR,1"]
    );
    assert_eq!(
        rows(&["--from", "NO", "--from", "10"]),
        ["NO,10", "NOR,1", "SE,3"]
    );
    assert_eq!(rows(&["--prefix", "NO"]), ["NO,2", "NO,10", "NOR,1"]);
    assert_eq!(rows(&["--prefix", "NO", "--prefix", "2"]), ["NO,2"]);
    place
        .run(&["scan", "db", "zones", "--from", "NO", "--from", "x"])
        .failed(
            2,
            &["table zones: key column \"n\" holds \"x\", which is not a 64-bit whole number"],
        );
}

#[test]
fn formats_for_people_and_programs() {
    let place = Place::with_zones();
    let scan = |args: &[&str]| {
        let all = [&["scan", "db", "zones", "--prefix", "Europe/Paris"], args].concat();
        place.run(&all).succeeded()
    };
    let csv = "zone,country,latitude,longitude,comment\nEurope/Paris,FR,48.8667,2.3333,\n";
    assert_eq!(scan(&["--output", "csv"]), csv);
    // Standard output is a pipe here.
    assert_eq!(scan(&[]), csv);
    let json = "{\"zone\":\"Europe/Paris\",\"country\":\"FR\",\"latitude\":\"48.8667\",\
                \"longitude\":\"2.3333\",\"comment\":\"\"}\n";
    assert_eq!(scan(&["--json"]), json);
    assert_eq!(scan(&["--output", "json"]), json);
    let table = scan(&["--output", "table"]);
    assert!(table.contains("zone") && table.contains("───"), "{table}");
    let raw = scan(&["--raw", "--output", "csv"]);
    assert!(
        raw.starts_with("key,value\nEurope/Paris,\"{\"\"zone\"\""),
        "{raw}"
    );
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let place = Place::with_zones();
    let exe = env!("CARGO_BIN_EXE_longshore");
    let script = format!("set -o pipefail; {exe} scan db zones | head -n 1");
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .current_dir(place.path(""))
        .output()
        .expect("bash");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"zone,country,latitude,longitude,comment\n");
}
