//! What is not a database, or not this one, is refused by name, and nothing is changed by trying.

use crate::support::{in_memory, open, put, sim, small};
use longshore::{Database, Error, FORMAT_VERSION, Options};
use longshore_disk::{Disk, OpenMode};
use std::fs;
use std::path::Path;
use std::sync::Arc;

fn message<T>(outcome: longshore::Result<T>) -> String {
    match outcome {
        Ok(_) => panic!("was not refused"),
        Err(error) => error.to_string(),
    }
}

fn created(path: &Path) {
    let db = Options::new().pool_bytes(4 << 20).create(path).unwrap();
    let table = db.create_table("t").unwrap();
    for n in 0..100 {
        put(&db, &table, &format!("key {n}"), &"value".repeat(50));
    }
    db.close().unwrap();
}

fn assert_words(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
}

#[test]
fn nothing_there() {
    let directory = tempfile::tempdir().unwrap();
    let refused = message(Database::open(directory.path().join("absent")));
    assert_words(&refused, &["there is no database in", "absent", "create"]);
    assert!(!directory.path().join("absent").exists());

    let refused = message(Database::open(directory.path()));
    assert_words(&refused, &["there is no database in"]);
    assert_eq!(
        fs::read_dir(directory.path()).unwrap().count(),
        0,
        "opening left files"
    );
}

#[test]
fn another_kind_of_directory() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("letter.txt"), "Dear Sir").unwrap();
    let refused = message(Database::open(directory.path()));
    assert_words(&refused, &["not a Longshore database", "no file `control`"]);

    fs::write(directory.path().join("control"), "Dear Sir").unwrap();
    let refused = message(Database::open(directory.path()));
    assert_words(&refused, &["not a Longshore database", "LONGSHRE"]);
}

#[test]
fn a_database_already() {
    let directory = tempfile::tempdir().unwrap();
    created(directory.path());
    let refused = message(Database::create(directory.path()));
    assert_words(&refused, &["holds a database already", "open it"]);
    Database::open(directory.path()).unwrap();
}

#[test]
fn files_in_the_way() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("data"), "mine").unwrap();
    let refused = message(Database::create(directory.path()));
    assert_words(&refused, &["`data`"]);
    assert_eq!(fs::read(directory.path().join("data")).unwrap(), b"mine");
}

#[test]
fn another_version() {
    let directory = tempfile::tempdir().unwrap();
    created(directory.path());
    let path = directory.path().join("control");
    let mut bytes = fs::read(&path).unwrap();
    for slot in bytes.chunks_mut(4096) {
        slot[8] = 7;
        let sum = crc32c::crc32c(&slot[..4092]);
        slot[4092..].copy_from_slice(&sum.to_le_bytes());
    }
    fs::write(&path, bytes).unwrap();
    let refused = message(Database::open(directory.path()));
    let ours = format!("this build reads version {FORMAT_VERSION}");
    assert_words(&refused, &["format version 7", &ours]);
}

#[test]
fn another_page_size() {
    let directory = tempfile::tempdir().unwrap();
    created(directory.path());
    let refused = message(Options::new().page_size(4096).open(directory.path()));
    assert_words(
        &refused,
        &["pages of 8192 bytes, not 4096", "fixed at creation"],
    );
    Options::new()
        .page_size(8192)
        .open(directory.path())
        .unwrap();
}

#[test]
fn truncated_data_file() {
    let directory = tempfile::tempdir().unwrap();
    created(directory.path());
    let path = directory.path().join("data");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 8192]).unwrap();
    let refused = message(Database::open(directory.path()));
    assert_words(&refused, &["`data`", "truncated", "backup"]);
    fs::write(&path, &bytes).unwrap();
    Database::open(directory.path()).unwrap();
}

#[test]
fn missing_files() {
    for name in ["data", "log"] {
        let directory = tempfile::tempdir().unwrap();
        created(directory.path());
        for entry in fs::read_dir(directory.path()).unwrap() {
            let path = entry.unwrap().path();
            if path
                .file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with(name)
            {
                fs::remove_file(path).unwrap();
            }
        }
        let error = Database::open(directory.path()).unwrap_err();
        assert!(error.is_corrupt(), "{error}");
        assert_words(&error.to_string(), &[name, "missing"]);
    }
}

#[test]
fn damaged_page_is_named_and_others_are_served() {
    let directory = tempfile::tempdir().unwrap();
    created(directory.path());
    let path = directory.path().join("data");
    let mut bytes = fs::read(&path).unwrap();
    // Pages of users' tables, by the store in their header.
    for page in bytes.chunks_mut(8192).filter(|page| page[24] >= 16) {
        page[5000] ^= 1;
    }
    fs::write(&path, bytes).unwrap();
    // The double-write area would repair pages written last.
    fs::write(directory.path().join("double-write"), []).unwrap();
    let db = Database::open(directory.path()).unwrap();
    let table = db.table("t").unwrap();
    let error = db
        .view(|tx| tx.scan(&table, ..)?.try_for_each(|row| row.map(drop)))
        .unwrap_err();
    let Error::Corrupt {
        file,
        page: Some(_),
        reason,
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(file, "data");
    assert_words(&reason, &["checksum"]);
    assert!(!db.verify().unwrap().is_sound());
    assert_eq!(db.tables().unwrap(), ["t"]);
}

#[test]
fn every_flipped_bit_of_the_control_file_is_repaired_or_told() {
    let disk = Arc::new(sim(1));
    drop(open(&disk, 1).unwrap());
    for byte in [0, 8, 12, 16, 24, 32, 40, 48, 56, 64, 72, 80, 4000, 4095] {
        for slot in 0..2 {
            disk.flip_bit("control", slot * 4096 + byte, 3);
            open(&disk, 1).unwrap_or_else(|error| panic!("byte {byte}: {error}"));
        }
        let image = Arc::new(disk.crash_image(1));
        image.flip_bit("control", byte, 3);
        image.flip_bit("control", 4096 + byte, 3);
        let error = open(&image, 1).unwrap_err();
        assert!(
            error.is_corrupt() || matches!(error, Error::NotADatabase { .. }),
            "{error}"
        );
    }
}

#[test]
fn pool_too_small() {
    let error = Options::new().pool_bytes(1000).in_memory().unwrap_err();
    let Error::PoolTooSmall { bytes, minimum } = error else {
        panic!("{error}");
    };
    assert_eq!(bytes, 1000);
    Options::new().pool_bytes(minimum).in_memory().unwrap();
}

#[test]
fn second_opener() {
    let directory = tempfile::tempdir().unwrap();
    created(directory.path());
    let first = Database::open(directory.path()).unwrap();
    let refused = message(Database::open(directory.path()));
    assert_words(&refused, &["is open already", "close it"]);
    let refused = message(Options::new().read_only().open(directory.path()));
    assert_words(&refused, &["is open already"]);
    first.close().unwrap();
    Database::open(directory.path()).unwrap();
}

#[test]
fn permission_denied() {
    // The superuser may do everything; a file where the directory should be is refused to all.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(Database::create(file.join("db")).is_err());
    assert!(Database::open(&file).is_err());

    let disk = Arc::new(sim(1));
    drop(open(&disk, 1).unwrap());
    let file = disk.open("data", OpenMode::Read).unwrap();
    let denied: Error = file.write_at(b"x", 0).unwrap_err().into();
    assert_words(
        &denied.to_string(),
        &["permission denied", "data", "owner and mode"],
    );
}

#[test]
fn keys_too_long_and_tables_not_there() {
    let db = in_memory();
    let table = db.create_table("t").unwrap();
    let long = vec![7; 10_000];
    let refused = message(db.update(|tx| tx.put(&table, &long, "v")));
    assert_words(&refused, &["key of 10000 bytes", "`t`", "at most"]);
    assert_eq!(db.get(&table, &long).unwrap(), None);

    assert_words(
        &message(db.table("nowhere")),
        &["no table `nowhere`", "tables()"],
    );
    assert_words(&message(db.create_table("t")), &["`t` exists already"]);
    assert_words(&message(db.create_table("")), &["1 to 255 bytes", "has 0"]);
    let other = in_memory();
    let refused = message(other.get(&table, "k"));
    assert_words(&refused, &["belongs to another database"]);
    let refused = message(other.update(|tx| tx.get(&table, "k")));
    assert_words(&refused, &["belongs to another database"]);
}

#[test]
fn transaction_larger_than_the_log() {
    let disk = Arc::new(sim(1));
    let db = crate::support::open_with(&disk, 1, small()).unwrap();
    let table = db.create_table("t").unwrap();
    let refused =
        message(db.update(|tx| {
            (0..20_000u32).try_for_each(|n| tx.put(&table, n.to_be_bytes(), [1; 500]))
        }));
    assert_words(&refused, &["log is full", "1048576 bytes", "log_bytes_max"]);
    assert_eq!(crate::support::rows(&db, &table), []);
    put(&db, &table, "small", "fits");
    crate::support::assert_sound(&db);
}

#[test]
fn disk_full() {
    let disk = Arc::new(sim(1));
    let db = open(&disk, 1).unwrap();
    let table = db.create_table("t").unwrap();
    put(&db, &table, "before", "kept");
    disk.set_capacity(Some(disk.used_bytes() + 50_000));
    let mut stored = 0u32;
    let error = loop {
        match db.update(|tx| tx.put(&table, stored.to_be_bytes(), [1; 1000])) {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 10_000, "the disk was never full");
    };
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    assert_words(&error.to_string(), &["disk is full", "free some space"]);
    assert_eq!(
        crate::support::get(&db, &table, "before").as_deref(),
        Some("kept")
    );
    disk.set_capacity(None);
    put(&db, &table, "after", "goes on");
    assert_eq!(crate::support::rows(&db, &table).len() as u32, stored + 2);
    crate::support::assert_sound(&db);
}
