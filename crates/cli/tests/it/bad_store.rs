//! What may be wrong with a database or the machine: message, exit code, nothing lost.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use crate::harness::{Place, Said, ZONES};

const CONTROL_SLOT_BYTES: usize = 4096;

/// The user and group `nobody`, whom permissions bind even where tests run as root.
const NOBODY: u32 = 65534;

fn said(output: &Output) -> Said {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().unwrap_or(-1);
    Said {
        code,
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}

/// Changes bytes of a file of the database.
fn patch(place: &Place, file: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let path = place.path("db").join(file);
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
}

#[test]
fn no_database_is_told_from_no_directory_and_other_files() {
    let place = Place::new();
    place
        .run(&["stat", "db"])
        .failed(4, &["there is no database in db"]);
    fs::create_dir(place.path("db")).unwrap();
    place
        .run(&["stat", "db"])
        .failed(4, &["there is no database in db"]);
    fs::write(place.path("db").join("letter.txt"), "dear").unwrap();
    place
        .run(&["stat", "db"])
        .failed(4, &["db is not a Longshore database"]);
    fs::write(place.path("db").join("control"), "dear").unwrap();
    place
        .run(&["stat", "db"])
        .failed(4, &["db is not a Longshore database"]);
    place.file("plain", "a file");
    place.run(&["stat", "plain"]).failed(4, &["plain"]);
    let load = ["load", "plain", "t", ZONES, "--key", "zone"];
    place.run(&load).failed(4, &["plain"]);
    assert_eq!(fs::read(place.path("plain")).unwrap(), b"a file");
}

#[test]
fn another_format_version_is_named_with_ours() {
    let place = Place::with_zones();
    patch(&place, "control", |bytes| {
        for slot in bytes.chunks_mut(CONTROL_SLOT_BYTES) {
            slot[8..12].copy_from_slice(&77u32.to_le_bytes());
            let at = slot.len() - 4;
            let checksum = crc32c::crc32c(&slot[..at]);
            slot[at..].copy_from_slice(&checksum.to_le_bytes());
        }
    });
    place
        .run(&["stat", "db"])
        .failed(4, &["db has format version 77", "reads version"]);
}

#[test]
fn another_page_size_is_named_with_the_databases() {
    let place = Place::with_zones();
    place
        .run(&["get", "db", "zones", "Europe/Paris", "--page-size", "4K"])
        .failed(2, &["pages of 8192 bytes, not 4096"]);
    place
        .run(&["stat", "new", "--page-size", "5000"])
        .failed(4, &["no database in new"]);
    let load = [
        "load",
        "new",
        "zones",
        ZONES,
        "--key",
        "zone",
        "--page-size",
    ];
    place
        .run(&[&load[..], &["5000"]].concat())
        .failed(2, &["page_size is 5000", "power of two"]);
    place.run(&[&load[..], &["16K"]].concat()).succeeded();
    place
        .run(&["get", "new", "zones", "Europe/Paris", "--page-size", "16K"])
        .succeeded();
}

#[test]
fn a_pool_too_small_states_the_minimum_which_then_works() {
    let place = Place::with_zones();
    let get = |pool: &str| place.run(&["get", "db", "zones", "Europe/Paris", "--pool-bytes", pool]);
    let said = get("1000").failed(2, &["pool_bytes is 1000", "at least"]);
    let minimum = said
        .err
        .split("at least ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    get(minimum.expect("a number")).succeeded();
}

#[test]
fn a_truncated_file_is_found() {
    let place = Place::with_zones();
    patch(&place, "data", |bytes| {
        bytes.truncate(bytes.len() / 2 + 100)
    });
    place
        .run(&["verify", "db"])
        .failed(4, &["`data`", "truncated"]);
    fs::remove_file(place.path("db").join("data")).unwrap();
    place.run(&["stat", "db"]).failed(4, &["`data`", "missing"]);
}

#[test]
fn a_wrong_checksum_names_file_and_page_and_other_rows_are_read() {
    let place = Place::with_zones();
    let needle = b"Europe/Zagreb";
    let mut pages = Vec::new();
    patch(&place, "data", |bytes| {
        let found = bytes
            .windows(needle.len())
            .enumerate()
            .filter(|(_, window)| window == needle);
        let places: Vec<usize> = found.map(|(at, _)| at).collect();
        for at in places {
            bytes[at] ^= 1;
            pages.push((at / 8192).to_string());
        }
    });
    assert!(!pages.is_empty(), "the row is in the data file");
    let said = place
        .run(&["get", "db", "zones", "Europe/Zagreb"])
        .failed(4, &["`data`", "damaged"]);
    assert!(
        pages
            .iter()
            .any(|page| said.err.contains(&format!("page {page}"))),
        "{said:?}"
    );
    place
        .run(&["get", "db", "zones", "Africa/Abidjan"])
        .succeeded();
    let said = place.run(&["verify", "db"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        pages.iter().all(|page| said.out.contains(page.as_str())),
        "{said:?}"
    );
}

#[test]
fn a_second_opener_is_refused_and_the_first_goes_on() {
    let place = Place::with_zones();
    let args = ["load", "db", "t", "-", "--format", "csv", "--key", "id"];
    let more = ["--commit-every", "1", "--report-commits"];
    let mut command = place.command(&[&args[..], &more].concat());
    let mut first = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = first.stdin.take().unwrap();
    let mut output = BufReader::new(first.stdout.take().unwrap()).lines();
    // The second record makes sure that the first one has been handed on.
    input.write_all(b"id\n1\n2\n").unwrap();
    input.flush().unwrap();
    // Enough to fill the reader's buffer, so that records come through while the file is open.
    input.write_all("\n".repeat(300 << 10).as_bytes()).unwrap();
    input.flush().unwrap();
    assert_eq!(output.next().unwrap().unwrap(), "committed 1 2");
    for args in [&["stat", "db"][..], &["put", "db", "zones", "zone=x"]] {
        place.run(args).failed(5, &["db is open already"]);
    }
    drop(input);
    assert!(first.wait().unwrap().success());
    assert_eq!(place.rows("t"), ["1", "2"]);
}

/// Records of some 30 MB in all.
fn file_too_large(place: &Place) {
    let mut text = String::from("zone,country,comment\n");
    for number in 0..30_000 {
        text.push_str(&format!("Mars/{number},--,{}\n", "x".repeat(1000)));
    }
    place.file("mars.csv", text);
}

fn run_script(place: &Place, script: &str) -> Said {
    let script = format!("longshore={}\n{script}", env!("CARGO_BIN_EXE_longshore"));
    let mut command = Command::new("bash");
    said(
        &command
            .args(["-c", &script])
            .current_dir(place.path(""))
            .output()
            .unwrap(),
    )
}

#[test]
fn a_file_that_may_not_grow_loses_nothing_that_was_there() {
    let place = Place::with_zones();
    let before = place.rows("zones");
    file_too_large(&place);
    // 20 MiB: enough for each segment of the log, not for the data.
    let script = "trap '' XFSZ; ulimit -f 20480
        exec $longshore load db mars mars.csv --key zone";
    run_script(&place, script).failed(4, &["the disk is full", "db/data`", "nothing was loaded"]);
    place.run(&["verify", "db"]).succeeded();
    assert_eq!(place.rows("zones"), before);
    place
        .run(&["load", "db", "mars", "mars.csv", "--key", "zone"])
        .succeeded();
    assert_eq!(place.rows("mars").len(), 30_000);
}

#[test]
fn a_full_disk_loses_nothing_that_was_there() {
    let place = Place::with_zones();
    let before = place.rows("zones");
    file_too_large(&place);
    let in_own_mounts = "unshare --map-root-user --mount bash -c";
    let mount = "mkdir small && mount -t tmpfs -o size=40m tmpfs small";
    if run_script(
        &place,
        &format!("{in_own_mounts} '{mount}'; code=$?; rmdir small; exit $code"),
    )
    .code
        != 0
    {
        eprintln!("SKIPPED: no file system can be mounted here, so no disk is full");
        return;
    }
    let script = format!(
        "export longshore
        {in_own_mounts} '{mount} && cp -r db small/ && cd small
            $longshore load db mars ../mars.csv --key zone
            code=$?
            $longshore verify db >&2 && $longshore scan db zones
            [ $? = 0 ] || exit 99
            exit $code'"
    );
    let said = run_script(&place, &script).failed(4, &["the disk is full", "nothing was loaded"]);
    let after: Vec<&str> = said.out.lines().skip(1).collect();
    assert_eq!(after, before);
}

#[test]
fn permission_denied_is_said_and_changes_nothing() {
    let place = Place::with_zones();
    fs::set_permissions(place.path(""), Permissions::from_mode(0o755)).unwrap();
    // The binary may stand where nobody else may go.
    let exe = place.path("longshore-copy");
    fs::copy(env!("CARGO_BIN_EXE_longshore"), &exe).unwrap();
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt;
        own.uid() == 0
    });
    let run = |args: &[&str]| {
        let mut command = Command::new(&exe);
        command.args(args).current_dir(place.path(""));
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        said(&command.output().unwrap())
    };
    let database = place.path("db");
    let close = |mode: u32| {
        for entry in fs::read_dir(&database).unwrap() {
            fs::set_permissions(entry.unwrap().path(), Permissions::from_mode(mode & 0o666))
                .unwrap();
        }
        fs::set_permissions(&database, Permissions::from_mode(mode)).unwrap();
    };
    close(0o555);
    run(&["put", "db", "zones", "zone=x"]).failed(4, &["permission denied"]);
    close(0o700 & if is_root { 0o777 } else { 0 });
    run(&["stat", "db"]).failed(4, &["permission denied"]);
    close(0o755);
    fs::set_permissions(place.path(""), Permissions::from_mode(0o555)).unwrap();
    run(&["put", "new", "t", "a=b", "--key", "a"]).failed(4, &["permission denied", "new"]);
    fs::set_permissions(place.path(""), Permissions::from_mode(0o755)).unwrap();
    place
        .run(&["get", "db", "zones", "Europe/Paris"])
        .succeeded();
}

#[test]
fn a_log_too_small_for_the_transaction_says_how_to_load_in_parts() {
    let place = Place::with_zones();
    let mut text = String::from("zone,comment\n");
    for number in 0..60_000 {
        text.push_str(&format!("Mars/{number},{}\n", "x".repeat(900)));
    }
    place.file("mars.csv", text);
    let before = place.rows("zones");
    let load = ["load", "db", "zones", "mars.csv", "--log-bytes-max", "64M"];
    place.run(&load).failed(
        4,
        &[
            "mars.csv:",
            "full",
            "nothing was loaded",
            "--commit-every N",
        ],
    );
    assert_eq!(place.rows("zones"), before);
    place
        .run(&[&load[..], &["--commit-every", "5000"]].concat())
        .succeeded();
    assert_eq!(place.rows("zones").len(), before.len() + 60_000);
    place.run(&["verify", "db"]).succeeded();
    // The log has been recycled by now: its oldest segment begins within a record.
    let first = place
        .run(&["log", "db", "--limit", "1", "--json"])
        .succeeded();
    assert!(
        first.starts_with("{\"lsn\":") && !first.starts_with("{\"lsn\":64,"),
        "{first}"
    );
}
