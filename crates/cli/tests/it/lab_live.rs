//! The laboratory on the real pool, through the command.

use crate::harness::Place;

const MARKS: &str = "# Ours\n<!-- begin nbg-fig13 -->\n<!-- end nbg-fig13 -->\nend\n";

fn place() -> Place {
    let place = Place::new();
    let pages = (0..4000u32).map(|at| format!("{}\n", at * at % 613));
    place.file("t.txt", pages.collect::<String>());
    place.file("results.md", MARKS);
    place
}

#[test]
fn lab_replay_prints_an_object_for_each_run() {
    let args = "lab replay t.txt --replacement nb-gclock,spin/2q:in=20%,out=30% --capacity 50,100 --threads 1,3 --json";
    let out = place()
        .run(&args.split(' ').collect::<Vec<_>>())
        .succeeded();
    let lines: Vec<serde_json::Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 8);
    assert!(lines.iter().all(|line| line["accesses"] == 4000));
    assert_eq!(lines[2]["replacement"], "spin/2q:in=20%,out=30%");
    assert_eq!(
        (&lines[3]["size"], &lines[3]["threads"]),
        (&50.into(), &3.into())
    );
    assert_eq!(lines[0]["locks"], 0);
}

#[test]
fn lab_replay_reads_a_file_on_disk_and_leaves_none() {
    let place = place();
    std::fs::create_dir(place.path("pages")).unwrap();
    let args = "lab replay t.txt --capacity 50 --seconds 0.01 --threads 2 --optimistic --dir pages";
    let table = place.run(&args.split(' ').collect::<Vec<_>>()).succeeded();
    for word in ["4,000 requests of", "nb-gclock", "blocked", "hits, %"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    assert_eq!(std::fs::read_dir(place.path("pages")).unwrap().count(), 0);
}

#[test]
fn lab_experiment_prints_draws_and_fills() {
    let place = place();
    std::fs::create_dir(place.path("pictures")).unwrap();
    let args = "lab experiment nbg-fig13 --quick --seconds 0.005 --workload t.txt --figure a.svg --figures pictures \
                --fill results.md";
    let said = place
        .run(&args.split_whitespace().collect::<Vec<_>>())
        .succeeded();
    for word in ["Nb-GCLOCK, Fig. 13", "t.txt", "Opteron 880", "A5", "hold"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let filled = std::fs::read_to_string(place.path("results.md")).unwrap();
    assert!(
        filled.starts_with("# Ours\n") && filled.ends_with("<!-- end nbg-fig13 -->\nend\n"),
        "{filled}"
    );
    assert!(filled.contains("](pictures/nbg-fig13.svg)"), "{filled}");
    assert!(filled.contains("| Nb-GCLOCK3 (laid out) |"), "{filled}");
    for name in ["a.svg", "pictures/nbg-fig13.svg"] {
        let picture = std::fs::read_to_string(place.path(name)).unwrap();
        assert!(picture.contains("Nb-GCLOCK, Fig. 13"), "{name}");
    }
}

#[test]
fn lab_refuses_what_no_pool_can_be() {
    let place = place();
    let replay = |args: &[&str]| place.run(&[&["lab", "replay", "t.txt"], args].concat());
    replay(&["--replacement", "wrapped/lru"]).failed(2, &["wrapped", "bp-wrapper, lossy"]);
    replay(&["--replacement", "spin/lruu"]).failed(2, &["lruu", "gclock"]);
    replay(&["--replacement", ","]).failed(2, &["--replacement"]);
    replay(&["--capacity", "0"]).failed(2, &["at least one page"]);
    replay(&["--capacity", "2"]).failed(2, &["2 pages are too few", "24"]);
    replay(&["--capacity", "4294967295"]).failed(2, &["4294967295 pages are too many"]);
    replay(&["--threads", "0"]).failed(2, &["from 1 to 1024"]);
    replay(&["--seconds", "0"]).failed(2, &["0.001"]);
    replay(&["--dir", "missing"]).failed(4, &["missing"]);
    let experiment = |args: &[&str]| place.run(&[&["lab", "experiment"], args].concat());
    experiment(&["nbg-fig99"]).failed(2, &["nbg-fig99", "nbg-fig7", "bpw-threads"]);
    experiment(&["all", "--figure", "a.svg"]).failed(2, &["--figures"]);
    experiment(&["nbg-fig7", "--fill", "results.md"]).failed(2, &["begin nbg-fig7"]);
    experiment(&["nbg-fig7", "--fill", "missing.md"]).failed(4, &["missing.md"]);
    experiment(&["nbg-fig7", "--figures", "missing"]).failed(4, &["nbg-fig7.svg"]);
    experiment(&["nbg-fig7", "--capacity", "3"]).failed(2, &["24"]);
    experiment(&["nbg-fig7", "--workload", "nbg:beta=1"]).failed(2, &["beta"]);
}
