//! What a user may get wrong in a file or on the command line: message, exit code, nothing lost.

use crate::harness::{Place, ZONES};

#[test]
fn the_command_line_is_checked() {
    let place = Place::new();
    place.run(&[]).failed(2, &["Usage: longshore"]);
    place
        .run(&["lode"])
        .failed(2, &["unrecognized subcommand 'lode'"]);
    place.run(&["get", "db"]).failed(2, &["<TABLE>"]);
    place
        .run(&["scan", "db", "t", "--limit", "many"])
        .failed(2, &["--limit", "many"]);
    place
        .run(&["stat", "db", "--pool-bytes", "1X"])
        .failed(2, &["unknown unit"]);
    place
        .run(&["scan", "db", "t", "--prefix", "a", "--from", "b"])
        .failed(2, &["--prefix"]);
    place.run(&["stat", "db", "--replacement", "lruu"]).failed(
        2,
        &["unknown replacement policy 'lruu'", "nb-gclock", "lru,"],
    );
    place
        .run(&["stat", "db", "--replacement", "wrapped/lru"])
        .failed(2, &["unknown form 'wrapped'", "bp-wrapper, lossy"]);
    for (replacement, said) in [
        ("LRU", "unknown replacement policy 'LRU'"),
        ("gclock:cap=3,cap=5", "'gclock:cap=3,cap=5' sets cap twice"),
        ("gclock:cap=3,", "'gclock:cap=3,' has an empty setting"),
        ("gclock:cap", "'cap' sets nothing"),
        ("gclock:cap=-1", "cap must be a whole number from 0"),
        ("lossy/gclock: cap=3", "'gclock' has no parameter ' cap'"),
    ] {
        place
            .run(&["stat", "db", "--replacement", replacement])
            .failed(2, &[said]);
    }
    assert!(!place.path("db").exists());
}

#[test]
fn help_explains_exit_codes_and_shows_examples() {
    let place = Place::new();
    let help = place.run(&["--help"]).succeeded();
    for words in [
        "Exit codes:",
        "5  the database is open",
        "longshore load db zones",
    ] {
        assert!(help.contains(words), "{words:?} is not in {help}");
    }
    assert!(
        place
            .run(&["load", "--help"])
            .succeeded()
            .contains("All or nothing")
    );
}

#[test]
fn a_file_that_cannot_be_read_creates_no_database() {
    let place = Place::new();
    let load = |file: &str| place.run(&["load", "db", "t", file, "--key", "id"]);
    load("missing.csv").failed(4, &["cannot read missing.csv", "check the path"]);
    std::fs::create_dir(place.path("folder.csv")).unwrap();
    load("folder.csv").failed(4, &["cannot read folder.csv", "is a directory"]);
    place.file("data.bin", "x");
    load("data.bin").failed(2, &["data.bin", "say --format"]);
    assert!(!place.path("db").exists());
}

#[test]
fn a_header_that_cannot_be_used_creates_no_database() {
    let place = Place::new();
    for (text, words) in [
        ("", "the file is empty"),
        ("a,b\n1,2\n", "no column \"id\"; the header has a, b"),
        ("id,id\n", "names \"id\" twice"),
        ("id,,b\n", "column 2 has no name"),
    ] {
        place.file("a.csv", text);
        place
            .run(&["load", "db", "t", "a.csv", "--key", "id"])
            .failed(3, &["a.csv", words]);
    }
    assert!(!place.path("db").exists());
}

#[test]
fn a_new_table_needs_a_key() {
    let place = Place::new();
    place
        .run(&["load", "db", "zones", ZONES])
        .failed(2, &["--key COLUMN"]);
    assert!(!place.path("db").exists());
    place
        .run(&["load", "db", "zones", ZONES, "--key", "zone"])
        .succeeded();
    place
        .run(&["load", "db", "other", ZONES])
        .failed(2, &["table other is new", "--key COLUMN"]);
    place
        .run(&["load", "db", "zones", ZONES, "--key", "country"])
        .failed(2, &["table zones has the key zone, not country"]);
    place
        .run(&["load", "db", "t", ZONES, "--key", "zone,zone"])
        .failed(2, &["zone twice"]);
}

#[test]
fn malformed_lines_are_named() {
    let place = Place::new();
    let load = |file: &str, key: &str| place.run(&["load", "db", "t", file, "--key", key]);
    place.file("a.jsonl", "{\"id\": 1}\n{\"id\": 2\n");
    load("a.jsonl", "id").failed(3, &["a.jsonl:2: EOF", "1 bad line(s), 0 tolerated"]);
    place.file("a.jsonl", "{\"id\": 1}\n[2]\n");
    load("a.jsonl", "id").failed(3, &["a.jsonl:2:", "expected an object"]);
    place.file("a.jsonl", "{\"id\": 1}\n{\"n\": 2}\n");
    load("a.jsonl", "id").failed(3, &["a.jsonl:2: key column \"id\" is missing"]);
    place.file("a.jsonl", "{\"id\": 1}\n{\"id\": \"x\"}\n");
    load("a.jsonl", "id").failed(3, &["a.jsonl:2: key column \"id\" holds \"x\""]);
    place.file("a.csv", "id,n\n1,a\nx,b\n");
    load("a.csv", "id:int").failed(3, &["a.csv:3: key column \"id\" holds \"x\""]);
    place.file("a.csv", b"id,n\n1,\xff\n");
    load("a.csv", "id").failed(3, &["a.csv:2: column \"n\" is not UTF-8"]);
    place.file("a.tsv", "id\tn\n1\n");
    load("a.tsv", "id").failed(3, &["a.tsv:2: 1 field(s), but the header has 2"]);
    assert_eq!(
        place.run(&["tables", "db"]).succeeded(),
        "db has no tables\n"
    );
}

#[test]
fn a_key_too_long_is_a_bad_line() {
    let place = Place::new();
    let long = "k".repeat(3000);
    place.file("a.csv", format!("id,n\n1,a\n{long},b\n"));
    let load = ["load", "db", "t", "a.csv", "--key", "id"];
    place
        .run(&load)
        .failed(3, &["a.csv:3:", "key of 3000 bytes is too long", "at most"]);
    place
        .run(&[&load[..], &["--bad-lines", "1"]].concat())
        .succeeded();
    assert_eq!(place.rows("t"), ["1,a"]);
    let key = format!("id={long}");
    place
        .run(&["put", "db", "t", &key])
        .failed(3, &["key of 3000 bytes is too long"]);
    assert_eq!(place.rows("t"), ["1,a"]);
}

#[test]
fn a_table_that_is_not_there_is_named_with_those_that_are() {
    let place = Place::with_zones();
    for command in ["get", "delete"] {
        place
            .run(&[command, "db", "zone", "x"])
            .failed(1, &["there is no table zone in db: it has zones"]);
    }
    place
        .run(&["scan", "db", "zone"])
        .failed(1, &["there is no table zone"]);
    place
        .run(&["dump", "db", "zone"])
        .failed(1, &["there is no table zone"]);
    place
        .run(&["put", "db", "zone", "a=b"])
        .failed(1, &["there is no table zone"]);
    let long = "t".repeat(300);
    place
        .run(&["load", "db", &long, ZONES, "--key", "zone"])
        .failed(2, &["1 to 255 bytes", "nothing was loaded"]);
}
