//! Opening for reading only.

use crate::support::{crash, get, open, open_with, put, sim, small};
use longshore::Error;
use longshore_disk::Disk;
use std::sync::Arc;

#[test]
fn reads_work_and_changes_are_refused() {
    let disk = Arc::new(sim(1));
    let db = open(&disk, 1).unwrap();
    let table = db.create_table("t").unwrap();
    put(&db, &table, "k", "v");
    db.close().unwrap();
    drop((db, table));
    let before: Vec<_> = files(&disk);
    let db = open_with(&disk, 2, small().read_only()).unwrap();
    assert!(db.is_read_only());
    let table = db.table("t").unwrap();
    assert_eq!(get(&db, &table, "k").as_deref(), Some("v"));
    assert_eq!(db.view(|tx| Ok(tx.scan(&table, ..)?.count())).unwrap(), 1);
    for refused in [
        db.update(|tx| tx.put(&table, "k", "w")),
        db.update(|tx| tx.delete(&table, "k").map(drop)),
        db.create_table("u").map(drop),
        db.drop_table("t"),
        db.checkpoint(),
        db.maintain().map(drop),
    ] {
        assert!(matches!(refused, Err(Error::ReadOnly)), "{refused:?}");
    }
    assert!(db.verify().unwrap().is_sound());
    db.close().unwrap();
    drop((db, table));
    assert_eq!(files(&disk), before, "a byte was changed");
}

fn files(disk: &Arc<longshore_disk::SimDisk>) -> Vec<(String, Option<Vec<u8>>)> {
    let names = disk.list().unwrap();
    names
        .into_iter()
        .filter(|name| name != "lock")
        .map(|name| (name.clone(), disk.contents(&name)))
        .collect()
}

#[test]
fn needs_a_clean_database_and_says_so() {
    let disk = Arc::new(sim(1));
    let db = open(&disk, 1).unwrap();
    let table = db.create_table("t").unwrap();
    put(&db, &table, "k", "v");
    disk.crash_now();
    drop((db, table));
    let image = crash(&disk, 1);
    let error = open_with(&image, 2, small().read_only()).unwrap_err();
    assert!(matches!(error, Error::NeedsRecovery { .. }), "{error}");
    assert!(
        error.to_string().contains("open it once for writing"),
        "{error}"
    );
    drop(open(&image, 2).unwrap());
    let db = open_with(&image, 2, small().read_only()).unwrap();
    assert_eq!(get(&db, &db.table("t").unwrap(), "k").as_deref(), Some("v"));
}

#[test]
fn nothing_is_created() {
    let disk = Arc::new(sim(1));
    let error = open_with(&disk, 1, small().read_only()).unwrap_err();
    assert!(matches!(error, Error::NoDatabase { .. }), "{error}");
    assert_eq!(disk.list().unwrap(), Vec::<String>::new());
}
