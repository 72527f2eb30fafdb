//! `longshore load`: formats, keys, all or nothing.

use crate::harness::{Place, ZONES};

#[test]
fn zones_are_loaded_and_the_advice_works_verbatim() {
    let place = Place::new();
    let said = place
        .run(&["load", "db", "zones", ZONES, "--key", "zone"])
        .succeeded();
    assert!(said.contains("loaded 418 rows (19.1 KiB)"), "{said}");
    assert!(said.contains("database  db (new)"), "{said}");
    let (_, advice) = said.split_once("try next:\n").expect("advice");
    let commands: Vec<&str> = advice.lines().map(str::trim).collect();
    assert_eq!(commands.len(), 3, "{said}");
    for command in commands {
        let status = std::process::Command::new("sh")
            .args(["-c", command])
            .current_dir(place.path(""))
            .output()
            .expect("a shell");
        assert!(status.status.success(), "{command}: {status:?}");
    }
    assert_eq!(place.rows("zones").len(), 418);
}

#[test]
fn json_report_has_the_figures() {
    let place = Place::new();
    let said = place
        .run(&["load", "db", "zones", ZONES, "--key", "zone", "--json"])
        .succeeded();
    let report: serde_json::Value = serde_json::from_str(&said).expect("one object");
    assert_eq!(report["rows"], 418);
    assert_eq!(report["bytes"], 19548);
    assert_eq!(report["new_table"], true);
    assert!(report["rows_per_second"].as_u64().is_some(), "{said}");
}

#[test]
fn csv_with_a_key_of_two_columns_sorts_numbers_as_numbers() {
    let place = Place::new();
    place.file(
        "people.csv",
        "name,id,country\n\"a, b\",10,NO\nc,9,NO\nd,-1,NO\ne,5,DK\n",
    );
    place
        .run(&[
            "load",
            "db",
            "people",
            "people.csv",
            "--key",
            "country,id:int",
        ])
        .succeeded();
    assert_eq!(
        place.rows("people"),
        ["e,5,DK", "d,-1,NO", "c,9,NO", "\"a, b\",10,NO"]
    );
    let row = place
        .run(&["get", "db", "people", "NO", "10", "--json"])
        .succeeded();
    assert_eq!(
        row,
        "{\"name\":\"a, b\",\"id\":\"10\",\"country\":\"NO\"}\n"
    );
}

#[test]
fn json_lines_keep_every_byte_and_number_keys_are_numbers() {
    let place = Place::new();
    let text = "{\"id\": 10, \"n\": 1.10}\n\n{\"id\": 9, \"more\": [1, 2]}\n";
    place.file("events.jsonl", text);
    place
        .run(&["load", "db", "events", "events.jsonl", "--key", "id"])
        .succeeded();
    let rows = place.run(&["scan", "db", "events", "--json"]).succeeded();
    assert_eq!(
        rows,
        "{\"id\": 9, \"more\": [1, 2]}\n{\"id\": 10, \"n\": 1.10}\n"
    );
    assert_eq!(place.rows("events"), ["9,,\"[1, 2]\"", "10,1.10,"]);
}

#[test]
fn standard_input_is_a_file_too() {
    let place = Place::new();
    let args = ["load", "db", "t", "-", "--format", "csv", "--key", "a"];
    place.run_with_input(&args, b"a,b\n1,2\n").succeeded();
    assert_eq!(place.rows("t"), ["1,2"]);
}

#[test]
fn more_records_join_a_table_that_exists() {
    let place = Place::new();
    place
        .file("a.csv", "id,n\n1,a\n")
        .file("b.jsonl", "{\"id\":\"2\",\"extra\":true}\n");
    place
        .run(&["load", "db", "t", "a.csv", "--key", "id"])
        .succeeded();
    let said = place.run(&["load", "db", "t", "b.jsonl"]).succeeded();
    assert!(!said.contains("(new)"), "{said}");
    assert_eq!(place.rows("t"), ["1,a,", "2,,true"]);
}

#[test]
fn a_bad_line_leaves_nothing_behind() {
    let place = Place::new();
    place.file("bad.csv", "id,n\n1,a\n2\n3,c\n");
    let load = ["load", "db", "t", "bad.csv", "--key", "id"];
    place.run(&load).failed(
        3,
        &[
            "bad.csv:3: 1 field(s), but the header has 2",
            "nothing was loaded",
        ],
    );
    place
        .run(&["get", "db", "t", "1"])
        .failed(1, &["there is no table t"]);
    assert!(
        !place
            .run(&["tables", "db", "--all"])
            .succeeded()
            .contains("loading")
    );

    place.file("good.csv", "id,n\n7,x\n");
    place
        .run(&["load", "db", "t", "good.csv", "--key", "id"])
        .succeeded();
    place.run(&load).failed(3, &["nothing was loaded"]);
    assert_eq!(place.rows("t"), ["7,x"]);
}

#[test]
fn bad_lines_are_tolerated_up_to_the_limit() {
    let place = Place::new();
    place.file("bad.csv", "id,n\n1,a\n2\n3,c,d\n4,e\n");
    let load = |limit| {
        place.run(&[
            "load",
            "db",
            "t",
            "bad.csv",
            "--key",
            "id",
            "--bad-lines",
            limit,
        ])
    };
    load("1").failed(
        3,
        &["bad.csv:3:", "bad.csv:4:", "2 bad line(s), 1 tolerated"],
    );
    let said = load("2").failed(0, &["bad.csv:3:", "bad.csv:4:"]);
    assert!(said.out.contains("skipped   2 bad lines"), "{said:?}");
    assert_eq!(place.rows("t"), ["1,a", "4,e"]);
}

#[test]
fn duplicates_are_refused_replaced_or_kept() {
    let place = Place::new();
    place.file("a.csv", "id,n\n1,a\n2,b\n1,c\n");
    let load = |how| {
        place.run(&[
            "load",
            "db",
            "t",
            "a.csv",
            "--key",
            "id",
            "--duplicates",
            how,
        ])
    };
    load("refuse").failed(3, &["a.csv:4: a row with this key is there already"]);
    let said = load("keep").succeeded();
    assert!(
        said.contains("kept      1 row whose key was there"),
        "{said}"
    );
    assert_eq!(place.rows("t"), ["1,a", "2,b"]);
    load("replace").succeeded();
    assert_eq!(place.rows("t"), ["1,c", "2,b"]);
}

#[test]
fn parts_stay_when_a_later_line_is_bad() {
    let place = Place::new();
    place.file("a.csv", "id\n1\n2\n3\n4\n5,x\n6\n");
    let load = |more: &[&str]| {
        let args = [
            "load",
            "db",
            "t",
            "a.csv",
            "--key",
            "id",
            "--commit-every",
            "2",
        ];
        place.run(&[&args, more].concat())
    };
    let said = load(&["--report-commits"]).failed(3, &["a.csv:6:", "what was committed stays"]);
    assert_eq!(said.out, "committed 2 3\ncommitted 4 5\n");
    assert_eq!(place.rows("t"), ["1", "2", "3", "4"]);
    place.file("a.csv", "id\n1\n2\n3\n4\n5\n6\n");
    load(&["--duplicates", "replace"]).succeeded();
    assert_eq!(place.rows("t").len(), 6);
}

#[test]
fn a_large_load_takes_many_transactions_and_one_moment() {
    let place = Place::new();
    let mut text = String::from("id,text\n");
    for id in 0..20_000 {
        text.push_str(&format!("{id},row number {id}\n"));
    }
    place.file("a.csv", text);
    place
        .run(&["load", "db", "t", "a.csv", "--key", "id:int"])
        .succeeded();
    let rows = place.rows("t");
    assert_eq!(rows.len(), 20_000);
    assert_eq!(
        (rows[0].as_str(), rows[19_999].as_str()),
        ("0,row number 0", "19999,row number 19999")
    );
}

#[test]
fn an_empty_file_of_records_makes_an_empty_table() {
    let place = Place::new();
    place.file("a.csv", "id,n\n");
    place
        .run(&["load", "db", "t", "a.csv", "--key", "id"])
        .succeeded();
    assert!(place.rows("t").is_empty());
    assert!(place.run(&["tables", "db"]).succeeded().contains("id, n"));
}

/// What a load does to a file of ascending keys, with some repeated, some long, and one too long.
fn half_sorted(
    place: &Place,
    how: &str,
    order: impl Fn(&mut Vec<String>),
) -> (String, Vec<String>) {
    let mut lines: Vec<String> = (0..2_000).map(|id| format!("k{id:04},first")).collect();
    let long = |bytes: usize| format!("k1200{},long", "x".repeat(bytes));
    let others = [
        "k0007,second".into(),
        "k1500,second".into(),
        long(1_200),
        long(5_000),
    ];
    lines.extend(others);
    // Stable: of two with one key the second stays the second, whichever way the keys go.
    lines.sort_by(|a, b| a.split(',').next().cmp(&b.split(',').next()));
    order(&mut lines);
    place.file("a.csv", format!("id,n\n{}\n", lines.join("\n")));
    let command = "load db t a.csv --key id --bad-lines 9 --json --duplicates";
    let args: Vec<&str> = command.split(' ').chain([how]).collect();
    let said = place.run(&args).succeeded();
    let report: serde_json::Value = serde_json::from_str(&said).expect("one object");
    let figures = ["rows", "kept", "bad_lines"].map(|name| report[name].to_string());
    (figures.join(" "), place.rows("t"))
}

#[test]
fn the_order_of_a_file_changes_nothing_but_the_speed() {
    for (how, figures, last) in [
        ("refuse", "2001 0 3", "first"),
        ("keep", "2001 2 1", "first"),
        ("replace", "2003 0 1", "second"),
    ] {
        let sorted = half_sorted(&Place::new(), how, |_| ());
        assert_eq!(sorted.0, figures, "{how}");
        assert!(sorted.1.contains(&format!("k0007,{last}")), "{how}");
        let middle = |lines: &mut Vec<String>| {
            let first = lines.remove(0);
            lines.insert(1_000, first);
        };
        assert_eq!(half_sorted(&Place::new(), how, middle), sorted, "{how}");
        let descending = |lines: &mut Vec<String>| {
            lines.sort_by(|a, b| b.split(',').next().cmp(&a.split(',').next()));
        };
        assert_eq!(half_sorted(&Place::new(), how, descending), sorted, "{how}");
    }
}

#[test]
fn a_sorted_file_is_logged_by_pages() {
    let of_rows = |last: u32| {
        let place = Place::new();
        let ids = (1..2_000).chain([last]);
        let lines: Vec<String> = ids.map(|id| format!("{id},a row")).collect();
        place.file("a.csv", format!("id,n\n{}\n", lines.join("\n")));
        let command = "load db t a.csv --key id:int";
        let args: Vec<&str> = command.split(' ').collect();
        place.run(&args).succeeded();
        assert_eq!(place.rows("t").len(), 2_000);
        place.run(&["verify", "db"]).succeeded();
        let log = place.run(&["log", "db"]).succeeded();
        log.lines().filter(|line| line.contains("  row  ")).count()
    };
    let sorted = of_rows(2_000);
    assert!(sorted < 100, "{sorted} rows were logged");
    // The last row goes through a transaction, those before it do not.
    assert!(of_rows(0) < 100);
}
