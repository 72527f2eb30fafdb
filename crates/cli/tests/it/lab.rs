//! The laboratory, through the command: answers in each form, and every kind of bad input.

use crate::harness::Place;

/// A trace on which LRU and FIFO differ: three pages often, others once.
fn trace() -> String {
    let pages = (0..3000u32).map(|at| match at % 2 {
        0 => at / 2 % 3,
        _ => 100 + at,
    });
    pages.map(|page| format!("{page}\n")).collect()
}

fn place() -> Place {
    let place = Place::new();
    place.file("t.txt", trace());
    place
}

#[test]
fn lab_trace_prints_an_object_for_each_policy_and_size() {
    let args = [
        "lab",
        "trace",
        "t.txt",
        "--policies",
        "lru,gclock:cap=3,opt",
        "--sizes",
        "10,4,10",
        "--json",
    ];
    let out = place().run(&args).succeeded();
    let lines: Vec<serde_json::Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told: Vec<_> = lines
        .iter()
        .map(|line| {
            (
                line["policy"].as_str().unwrap(),
                line["size"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("lru", 4),
            ("lru", 10),
            ("gclock:cap=3", 4),
            ("gclock:cap=3", 10),
            ("opt", 4),
            ("opt", 10)
        ]
    );
    for line in &lines {
        assert_eq!(line["requests"], 3000);
        assert!(line["misses"].as_u64() >= Some(1503), "{line}");
    }
    assert_eq!(lines[1]["misses"], 1503, "three pages, and 1500 once");
    assert!(
        out.starts_with(r#"{"policy":"lru","size":4,"requests":3000,"misses":"#),
        "{out}"
    );
}

#[test]
fn lab_trace_takes_any_number_of_pages_for_a_size() {
    let run = |policies: &str, sizes: &str| {
        let args = ["lab", "trace", "t.txt", "--policies", policies, "--sizes"];
        let args = [&args[..], &[sizes, "--csv"]].concat();
        place().run(&args).succeeded()
    };
    let all = run("all", "4294967295");
    assert!(all.lines().count() > 20, "{all}");
    let rows = all.lines().skip(1);
    for row in rows {
        assert!(row.ends_with(",4294967295,3000,1503,0.501"), "{row}");
    }
    assert_eq!(run("arc,arc", "1,2,1").lines().count(), 3, "each once");
}

#[test]
fn lab_trace_prints_tables_and_csv_and_reads_standard_input() {
    let place = place();
    let table = place
        .run(&["lab", "trace", "t.txt", "--sizes", "1%"])
        .succeeded();
    for word in [
        "3,000 requests of 1,503 pages",
        "15",
        "opt",
        "clock",
        "49.90",
    ] {
        assert!(table.contains(word), "{word}: {table}");
    }
    let args = [
        "lab",
        "trace",
        "-",
        "--format",
        "keys",
        "--policies",
        "lru",
        "--sizes",
        "10",
        "--csv",
    ];
    let csv = place.run_with_input(&args, trace().as_bytes()).succeeded();
    assert_eq!(
        csv,
        "policy,size,requests,misses,miss_ratio\nlru,10,3000,1503,0.501\n"
    );
}

#[test]
fn lab_trace_draws_pictures_of_workloads() {
    let place = Place::new();
    let args = [
        "lab",
        "trace",
        "zipf:requests=20000",
        "--policies",
        "lru,fifo",
        "--figure",
        "a.svg",
        "--figure",
        "a.png",
        "-q",
    ];
    place.run(&args).succeeded();
    let svg = std::fs::read_to_string(place.path("a.svg")).unwrap();
    for word in [
        "<svg",
        "hit ratio, %",
        "lru",
        "fifo",
        "opt",
        "zipf:requests=20000",
    ] {
        assert!(svg.contains(word), "{word}");
    }
    assert!(
        std::fs::read(place.path("a.png"))
            .unwrap()
            .starts_with(b"\x89PNG")
    );
}

#[test]
fn lab_list_tells_what_there_is() {
    let out = Place::new().run(&["lab", "list"]).succeeded();
    for word in [
        "gclock",
        "cap=0",
        "nbg-scan",
        "alpha=0.86",
        "u32be",
        "weak at",
    ] {
        assert!(out.contains(word), "{word}: {out}");
    }
}

#[test]
fn lab_refuses_what_it_does_not_know() {
    let place = place();
    let trace = |more: &[&str]| place.run(&[&["lab", "trace", "t.txt"], more].concat());
    trace(&["--policies", "lru,lrru"]).failed(2, &["lrru", "clock, gclock", "opt"]);
    trace(&["--policies", "gclock:lid=3"]).failed(2, &["lid", "cap"]);
    trace(&["--policies", "gclock:cap=3,cap=5"]).failed(2, &["sets cap twice"]);
    trace(&["--policies", "lru,,arc"]).failed(2, &["policy ''", "clock, gclock", "opt"]);
    trace(&["--policies", ""]).failed(2, &["--policies", "none is named"]);
    trace(&["--policies", "2q:in=101%"]).failed(2, &["'101%'", "from 0% to 100%"]);
    trace(&["--sizes", "4294967296"]).failed(2, &["number of pages"]);
    trace(&["--policies", "gclock:cap=x"]).failed(2, &["cap", "'x'", "whole number"]);
    trace(&["--sizes", "0"]).failed(2, &["at least one page"]);
    trace(&["--sizes", "10,0%"]).failed(2, &["at least one page"]);
    trace(&["--sizes", "ten"]).failed(2, &["number of pages"]);
    trace(&["--format", "xml"]).failed(2, &["xml", "u32be", "cloudphysics"]);
    trace(&["--pages"]).failed(2, &["--pages", "cloudphysics"]);
    trace(&["--figure", "a.pdf"]).failed(2, &["a.pdf", ".svg", ".png"]);
    trace(&["--figure", "missing/a.svg"]).failed(4, &["missing/a.svg", "write"]);
    let of = |name: &str| place.run(&["lab", "trace", name]);
    of("nbg:alpha=1,alpha=2").failed(2, &["sets alpha twice"]);
    of("nbg:").failed(2, &["empty setting"]);
    of("nbg:beta=1").failed(2, &["beta", "alpha"]);
    of("zipf:pages=0").failed(2, &["pages", "from 1"]);
    for name in ["absent.txt", "nbgg", "zip:alpha=1"] {
        of(name).failed(4, &[name, "neither a file nor a workload"]);
    }
    of(".").failed(2, &["--format", "lirs"]);
    place.file("t.dat", "1\n");
    of("t.dat").failed(2, &["t.dat", "--format", "arc", "pages"]);
}

#[test]
fn lab_tells_where_a_trace_is_bad() {
    let place = place();
    let bad = |name: &str, bytes: &[u8], words: &[&str]| {
        place.file(name, bytes);
        place.run(&["lab", "trace", name]).failed(3, words);
    };
    bad("a.txt", b"1\n2\nx\n", &["a.txt", "line 3", "\"x\""]);
    bad(
        "a.lis",
        b"1 2 0 0\n1 2 0\n",
        &["a.lis", "line 2", "four columns"],
    );
    bad(
        "a.csv",
        b"time,op\n",
        &["a.csv", "line 1", "version,time,op,size,lbn"],
    );
    bad("a.u32be", b"12345", &["a.u32be", "byte 4", "cut off"]);
    bad(
        "a.pages",
        b"1\n2\n",
        &["a.pages", "byte 0", "longshore lab record"],
    );
    bad("a.txt.gz", b"1\n2\n", &["a.txt.gz", "line 1"]);
    bad("b.txt", b"", &["b.txt", "empty"]);
    place
        .run(&["lab", "trace", "b.txt", "--figure", "b.svg"])
        .failed(3, &["empty"]);
    assert!(
        !place.path("b.svg").exists(),
        "no picture without an answer"
    );
}

#[test]
fn lab_mrc_estimates_what_the_whole_trace_gives() {
    let place = Place::new();
    let args = [
        "lab",
        "mrc",
        "zipf:pages=30000,requests=200000",
        "--sizes",
        "500,2000,8000",
        "--sample-pages",
        "2000",
    ];
    let run = |more: &[&str]| place.run(&[&args, more].concat());
    let out = run(&[
        "--json",
        "--policies",
        "lru,fifo",
        "--exact",
        "--figure",
        "m.svg",
    ])
    .succeeded();
    let lines: Vec<serde_json::Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 6);
    for line in &lines {
        let value = |name: &str| line[name].as_f64().unwrap();
        let off = (value("miss_ratio") - value("exact")).abs();
        assert!(off < 5.0 * value("error") + 0.01, "{line}");
    }
    assert!(
        std::fs::read_to_string(place.path("m.svg"))
            .unwrap()
            .contains("miss ratio, %")
    );
    let table = run(&[]).succeeded();
    for word in ["8 samples of", "exact", "off by", "standard error"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    assert!(
        run(&["--csv"])
            .succeeded()
            .starts_with("policy,size,miss_ratio,error,exact\nlru,500,0.")
    );
}

#[test]
fn lab_advise_names_policy_and_size_and_the_reason() {
    let place = Place::new();
    // A loop of 1000 pages, of which 800 fit: what an LRU cache does worst.
    let args = ["lab", "advise", "loop:requests=50000", "--memory", "6400K"];
    let run = |more: &[&str]| place.run(&[&args, more].concat());
    let text = run(&["--figure", "a.png"]).succeeded();
    for word in [
        "50,000 requests of 1,000 pages",
        "--replacement",
        "--pool-bytes",
        "Why this policy",
        "over lru",
        "knee",
        "How sure",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let told: serde_json::Value = serde_json::from_str(&run(&["--json"]).succeeded()).unwrap();
    assert_eq!(told["size_max"], 800);
    assert!(told["hit_percent"]["mean"].as_f64() > Some(50.0), "{told}");
    assert_ne!(
        told["replacement"], "nb-gclock",
        "which hits nothing of a loop"
    );
    assert_eq!(
        told["pool_bytes"].as_u64(),
        told["size"].as_u64().map(|pages| pages * 8192)
    );
    // Three pages are no pool: what is advised can be opened.
    let few = ["lab", "advise", "loop:pages=3,requests=900", "--memory"];
    let few = [&few[..], &["24K", "--policies", "lru"]].concat();
    let text = place.run(&few).succeeded();
    assert!(text.contains("to work at all, more than"), "{text}");
    let told = place.run(&[&few[..], &["--json"]].concat()).succeeded();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let least = told["pool_bytes"].as_u64().unwrap();
    assert!(least > 24 << 10, "{told}");
    place.file("z.csv", "id\n1\n");
    let load = |bytes: u64| {
        let bytes = bytes.to_string();
        let args = [
            "load",
            "db",
            "z",
            "z.csv",
            "--key",
            "id",
            "--replacement",
            "nb-gclock",
        ];
        place.run(&[&args[..], &["--pool-bytes", &bytes]].concat())
    };
    load(least - 1).failed(2, &[&least.to_string()]);
    load(least).succeeded();
    let calm = [
        "lab",
        "advise",
        "zipf:pages=2000,requests=50000",
        "--memory",
        "8M",
        "--policies",
        "fifo",
        "--json",
    ];
    let told: serde_json::Value = serde_json::from_str(&place.run(&calm).succeeded()).unwrap();
    assert_eq!(told["replacement"], "nb-gclock", "{told}");
}

#[test]
fn lab_commands_refuse_settings_that_make_no_sense() {
    let place = place();
    let run = |args: &[&str]| place.run(&[&["lab"], args].concat());
    run(&["mrc", "t.txt", "--rate", "0"]).failed(2, &["--rate", "0.125"]);
    run(&["mrc", "t.txt", "--sample-pages", "0"]).failed(2, &["--sample-pages"]);
    run(&["mrc", "t.txt", "--policies", "x"]).failed(2, &["'x'", "clock"]);
    run(&["mrc", "t.txt", "--policies", ","]).failed(2, &["--policies"]);
    run(&["advise", "t.txt"]).failed(2, &["--memory"]);
    run(&["advise", "t.txt", "--memory", "4K"]).failed(2, &["--memory", "page"]);
    run(&["advise", "t.txt", "--memory", "64Q"]).failed(2, &["unit"]);
    run(&["advise", "t.txt", "--memory", "64M", "--page-size", "0"]).failed(2, &["--page-size"]);
    run(&["check", "."]).failed(4, &["reference.csv"]);
}

#[test]
fn lab_record_writes_what_lab_reads() {
    let place = Place::with_zones();
    let record = |args: &[&str]| place.run(&[&["lab", "record", "t.pages"], args].concat());
    let rows = place.run(&["scan", "db", "zones", "--json"]).succeeded();
    let said = record(&["scan", "db", "zones", "--json"]);
    assert!(said.err.contains("recorded "), "{said:?}");
    assert_eq!(said.succeeded(), rows, "the output is the command's");
    let uses = |policy| {
        let args = [
            "lab",
            "trace",
            "t.pages",
            "--policies",
            policy,
            "--sizes",
            "50%",
            "--json",
        ];
        let line: serde_json::Value = serde_json::from_str(&place.run(&args).succeeded()).unwrap();
        line["requests"].as_u64().unwrap()
    };
    let of_scan = uses("lru");
    let header = std::fs::read(place.path("t.pages")).unwrap();
    assert_eq!(header[12..16], 8192u32.to_le_bytes(), "the page size");
    record(&["get", "db", "zones", "Europe/Paris"]).succeeded();
    let of_get = uses("lru");
    assert!(0 < of_get && of_get < of_scan, "{of_get} and {of_scan}");
    let bench = [
        "bench",
        "tpcc",
        "--small",
        "--warehouses",
        "1",
        "--threads",
        "2",
    ];
    let bench = [&bench[..], &["--seconds", "0.1", "--json"]].concat();
    record(&bench).succeeded();
    assert!(uses("lirs") > 10_000);
}

#[test]
fn lab_record_refuses_what_cannot_be_recorded() {
    let place = Place::with_zones();
    place.file("t.pages", "mine");
    let record = |args: &[&str]| place.run(&[&["lab", "record", "t.pages"], args].concat());
    record(&["lab", "list"]).failed(2, &["`lab` uses no database"]);
    record(&["log", "db"]).failed(2, &["`log`"]);
    record(&["scam", "db"]).failed(2, &["scam"]);
    record(&[]).failed(2, &["COMMAND"]);
    let run = ["bench", "insert", "--seconds", "0.01", "--threads"];
    record(&[&run[..], &["1,2"]].concat()).failed(2, &["--threads", "one number"]);
    record(&[&run[..], &["1", "--rounds", "2"]].concat()).failed(2, &["--rounds"]);
    record(&["bench", "pool"]).failed(2, &["pool has no database"]);
    record(&["scan", "no-db", "zones"]).failed(4, &["no-db"]);
    record(&["scan", "db", "zones", "--pool-bytes", "1"]).failed(2, &["189440"]);
    record(&["scan", "db", "zones", "--replacement", "lruu"]).failed(2, &["lruu"]);
    let kept = std::fs::read_to_string(place.path("t.pages")).unwrap();
    assert_eq!(kept, "mine", "nothing was begun");
    record(&["get", "db", "zones", "Nowhere"]).failed(1, &["Nowhere"]);
    let trace = ["lab", "record", "no/t.pages", "tables", "db"];
    place.run(&trace).failed(4, &["no/t.pages"]);
}

#[test]
fn lab_check_tells_what_differs() {
    let place = Place::new();
    std::fs::create_dir(place.path("keys")).unwrap();
    let mut file = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut file, trace().as_bytes()).unwrap();
    place.file("keys/t.txt.gz", file.finish().unwrap());
    let head = "trace,cache_size_pages,policy,params,requests,misses,miss_ratio,simulator\n";
    let reference = |misses: u32| {
        format!("{head}t,10,LRU,,3000,{misses},0.501,mine\nt,10,UNKNOWN,,3000,,0.5,mine\n")
    };
    place.file("reference.csv", reference(1503));
    let out = place.run(&["lab", "check", "."]).succeeded();
    assert!(out.contains("lru") && out.contains("none"), "{out}");
    place.file("reference.csv", reference(1502));
    let said = place.run(&["lab", "check", "."]).failed(1, &["1 of 1"]);
    assert!(said.out.contains("t, lru, 10 pages"), "{said:?}");
    place.file("reference.csv", "head\nnonsense\n");
    place
        .run(&["lab", "check", "."])
        .failed(3, &["reference.csv", "line 2"]);
}
