//! `kill -9` under load: what was acknowledged is there, and of a load all or nothing.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, SystemTime};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::harness::Place;

const ROUNDS: u32 = 30;
const ROWS: u64 = 200_000;

/// Another one each time; `LONGSHORE_SEED` repeats one (the machine's own timing stays its own).
fn seed() -> u64 {
    let wanted = std::env::var("LONGSHORE_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    wanted.unwrap_or_else(|| {
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .expect("after 1970");
        u64::from(now.subsec_nanos()) ^ u64::from(std::process::id())
    })
}

fn file_of_rows(place: &Place) {
    let mut text = String::from("id,text\n");
    for id in 0..ROWS {
        text.push_str(&format!(
            "{id},row number {id} of a file that takes a while\n"
        ));
    }
    place.file("rows.csv", text);
}

/// The same rows, the second half of them before the first: half goes in by a bulk load, half by transactions.
fn file_of_rows_half_sorted(place: &Place) {
    let text = std::fs::read_to_string(place.path("rows.csv")).expect("it was just written");
    let mut lines: Vec<&str> = text.lines().collect();
    lines[1..].rotate_left(ROWS as usize / 2);
    place.file("half-sorted.csv", lines.join("\n"));
}

/// Starts a load, kills it after a random time; returns what it had said until then.
fn load_and_kill(place: &Place, args: &[&str], random: &mut StdRng) -> Vec<String> {
    let mut command = place.command(args);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let reader = thread::spawn(move || output.lines().map_while(Result::ok).collect::<Vec<_>>());
    thread::sleep(Duration::from_micros(random.random_range(0..400_000)));
    child.kill().expect("a kill");
    child.wait().expect("an end");
    reader.join().expect("the reader")
}

#[test]
fn reported_commits_survive_a_kill() {
    let seed = seed();
    let mut random = StdRng::seed_from_u64(seed);
    let place = Place::new();
    file_of_rows(&place);
    let mut acknowledged_in_all = 0;
    for round in 0..ROUNDS {
        let table = format!("t{round}");
        let durability = ["none", "os", "sync"][random.random_range(1..3)];
        let args = [
            "load",
            "db",
            &table,
            "rows.csv",
            "--key",
            "id:int",
            "--durability",
            durability,
        ];
        let more = ["--commit-every", "100", "--report-commits", "--quiet"];
        let said = load_and_kill(&place, &[&args[..], &more].concat(), &mut random);
        let commits = said
            .iter()
            .filter_map(|line| line.strip_prefix("committed "));
        let last = commits
            .filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok())
            .max();
        let acknowledged = last.unwrap_or(0);
        acknowledged_in_all += acknowledged;
        if acknowledged == 0 {
            continue;
        }
        let found = place.rows(&table);
        let count = found.len() as u64;
        let context =
            format!("seed {seed}, round {round}: {acknowledged} acknowledged, {count} found");
        assert!(count >= acknowledged, "{context}");
        assert!(
            count.is_multiple_of(100),
            "a part of a transaction is there: {context}"
        );
        let ids = found
            .iter()
            .enumerate()
            .all(|(at, row)| row.starts_with(&format!("{at},")));
        assert!(ids, "not the first rows of the file: {context}");
    }
    assert!(
        acknowledged_in_all > 0,
        "seed {seed}: no commit was ever acknowledged"
    );
    place.run(&["verify", "db"]).succeeded();
}

#[test]
fn killed_loads_leave_all_or_nothing() {
    let seed = seed();
    let mut random = StdRng::seed_from_u64(seed);
    let place = Place::with_zones();
    file_of_rows(&place);
    file_of_rows_half_sorted(&place);
    for round in 0..ROUNDS / 3 {
        let file = ["rows.csv", "half-sorted.csv"][round as usize % 2];
        let args = ["load", "db", "rows", file, "--key", "id:int", "--quiet"];
        load_and_kill(&place, &args, &mut random);
        let tables = place
            .run(&["tables", "db", "--json", "--count"])
            .succeeded();
        let line = tables.lines().find(|line| line.contains("\"rows\",\"id\""));
        if let Some(line) = line {
            let table: serde_json::Value = serde_json::from_str(line).expect("an object");
            assert_eq!(table["rows"], ROWS, "seed {seed}, round {round}");
            assert_eq!(
                table["key"][0]["name"], "id",
                "seed {seed}, round {round}: L1"
            );
            assert_eq!(
                table["columns"][1], "text",
                "seed {seed}, round {round}: L1"
            );
            break;
        }
    }
    // In the end a load goes through, whatever the killed ones have left behind.
    let args = [
        "load",
        "db",
        "rows",
        "rows.csv",
        "--key",
        "id:int",
        "--duplicates",
        "replace",
    ];
    place.run(&args).succeeded();
    assert_eq!(place.rows("rows").len() as u64, ROWS);
    assert!(
        !place
            .run(&["tables", "db", "--all"])
            .succeeded()
            .contains("loading")
    );
    place.run(&["verify", "db"]).succeeded();
}
